"""Models and data that do what no model should: the numbers and the files are there all the same, or one line is."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError

_MODEL = """
import os, sys, torch
class Net(torch.nn.Module):
    def forward(self, x):
        {odd}
        return x.flatten(1)[:, :3].float()
def net():
    return Net()
"""


@pytest.mark.parametrize("odd", ["os.chdir('elsewhere' if os.path.exists('elsewhere') else '.')", "sys.stdout.close()"])
def test_files_are_written_where_the_command_was_started_whatever_a_model_does(tmp_path, odd):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32))
    (tmp_path / "net.py").write_text(_MODEL.format(odd=odd))
    (tmp_path / "elsewhere").mkdir()
    ask = "measure --model py:net.py:net --data x.npy --tokens coordinates --perturbation gaussian-noise:1"
    files = "--max-passes 500 -o r.json --csv r.csv --report r.html"
    ended = subprocess.run(
        [sys.executable, "-m", "jostle", *f"{ask} {files}".split()],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert 0 < json.loads((tmp_path / "r.json").read_text())["value"] < 1
    assert {path.name for path in tmp_path.glob("r.*")} == {"r.json", "r.csv", "r.html"}
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("made", [np.asarray, torch.as_tensor])
def test_unsigned_numbers_are_read(kind, made):
    ids = np.random.default_rng(0).integers(0, 9, (30, 5)).astype(kind)

    def model(x):
        return torch.nn.functional.one_hot(x[:, 0].long(), 10).double()

    ask = {"tokens": "words", "perturbation": jostle.ReplaceBy(3), "plan": jostle.Grid(1)}
    found = jostle.measure(model, made(ids), **ask)
    assert found.value == jostle.measure(model, ids.astype(np.int64), **ask).value > 0
    if kind == "uint64":
        with pytest.raises(UsageError, match="more than a signed integer can"):
            jostle.measure(model, ids + np.uint64(2**63), **ask)


@pytest.mark.parametrize("option", ["-o", "--report", "--csv"])
@pytest.mark.parametrize("file", ["one", "one/r.json"])
def test_links_that_lead_in_a_circle_are_one_line(tmp_path, monkeypatch, capsys, option, file):
    from jostle.cli import main

    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    np.save(tmp_path / "x.npy", np.zeros((4, 6), dtype=np.float32))
    (tmp_path / "net.py").write_text(_MODEL.format(odd="pass"))
    monkeypatch.chdir(tmp_path)
    ask = "measure --model py:net.py:net --data x.npy --tokens coordinates --perturbation gaussian-noise:1"
    with pytest.raises(SystemExit) as ended:
        main([*ask.split(), option, file])
    said = capsys.readouterr().err
    assert ended.value.code in (1, 2)
    assert said.startswith("jostle: ")
    assert said.count("\n") == 1
    assert "unexpected" not in said


@pytest.mark.parametrize(
    "change", [{"kind": []}, {"kind": {}}, {"kind": None}, {"value": float("nan")}, {"low": float("inf")}]
)
def test_a_result_that_was_garbled_is_refused(tmp_path, change):
    made = jostle.measure(
        lambda x: x[:, :2], torch.zeros(4, 3), tokens="coordinates", perturbation="gaussian-noise:1", plan="grid:1"
    )
    (tmp_path / "r.json").write_text(json.dumps(made.to_dict() | change))
    with pytest.raises(UsageError, match=r"^result file .*r\.json") as refused:
        jostle.load(tmp_path / "r.json")
    assert "\n" not in str(refused.value)
