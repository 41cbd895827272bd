"""``jostle stability`` as a person meets it."""

import csv
import json

import numpy as np
import pytest
import torch

import jostle
from tests.cli.test_cli import run
from tests.cli.test_sweep import MODEL, A
from tests.integrations.text_folders import TEXTS, save


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    np.save(tmp_path / "inputs.npy", np.random.default_rng(0).standard_normal((30, 6)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(*more):
    return ("stability", "--model", A, "--data", "inputs.npy", "--draws", 3, "--quiet", *more)


def test_it_prints_what_python_measures_and_writes_it(capsys, folder):
    code, out, err = run(capsys, *words("--rho", "0.5/0.9", "--plot", "s.svg", "-o", "s.json"))
    assert (code, err) == (0, "")
    wanted = jostle.stability(
        jostle.integrations.load(A), torch.from_numpy(np.load("inputs.npy")), rho=[0.5, 0.9], plan="grid:3", name=A
    )
    assert out.splitlines()[:3] == str(wanted).splitlines()[:3]
    assert [point.value for point in jostle.load("s.json").points] == [point.value for point in wanted.points]
    assert (folder / "s.svg").read_text().startswith("<svg")


def test_correlation_as_json(capsys, folder):
    options = ("--rho", 0.5, "--response", "correlation", "--centred", "--centre", 0, "--std", 1, "--json")
    code, out, _ = run(capsys, *words(*options))
    assert code == 0
    (point,) = json.loads(out)["points"]
    assert point["rho"] == 0.5
    assert point["dataset"]["low"] < 0.5 < point["dataset"]["high"]


@pytest.mark.parametrize("tokens", ["words", "embeddings"])
def test_texts(capsys, tmp_path, monkeypatch, tokens):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "model", "roberta")
    with (tmp_path / "texts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["text"], *[[text] for text in TEXTS]])
    capsys.readouterr()
    code, out, err = run(
        capsys, "stability", "--model", "hf:model", "--data", "csv:texts.csv", "--tokens", tokens, "--rho", 0.3, 1,
        "--draws", 2, "--quiet",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "rho 1      1   [1, 1]" in out
    assert ("all equally likely" if tokens == "words" else "those of embedded tokens") in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--rho", "half"), "--rho half must be numbers"),
        (("--rho", 2), "rho=2.0 must be"),
        (("--rho", 0.5, "--response", "flip"), "response='flip' must be agreement"),
        (("--rho", 0.5, "--plot", "s.txt"), "--plot s.txt must end in"),
        (("--rho", 0.5, "--tokens", "coordinates"), "tokens=coordinates of stability: all tokens move at once"),
    ],
)
def test_wrong_use_is_one_line(capsys, folder, more, message):
    code, out, err = run(capsys, *words(*more))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_tokens_that_begin_with_a_minus_are_tokens(capsys, folder):
    code, out, err = run(capsys, *words("--rho", 0.5, "--vocabulary", "-1/1"))
    assert (code, err) == (0, "")
    assert "vocabulary=-1/1" in out
