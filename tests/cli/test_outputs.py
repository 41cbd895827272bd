"""Files that commands write: never over what they read, and never at the price of the number."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.base.errors import UsageError
from jostle.cli.options import SubjectOptions
from jostle.cli.output import check_outputs, command_line, show
from jostle.cli.subject import load_inputs, load_model
from jostle.results import load as load_result
from tests.cli.test_cli import MODEL, basic, run

WHOLE = {"measure": basic(), "corrupt": ["--data", "images.npz"], "boolean": ["table.txt"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    np.save(tmp_path / "inputs.npy", np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "more", "message"),
    [
        ("measure", ("-o", "inputs.npy"), "--output inputs.npy would replace a file that --data inputs.npy reads"),
        ("measure", ("-o", "sub/../inputs.npy"), "would replace a file that --data inputs.npy reads"),
        ("measure", ("-o", "link.npy"), "would replace a file that --data inputs.npy reads"),
        ("measure", ("--report", "my_model.py"), "--report my_model.py is a file that jostle did not write"),
        ("measure", ("--weights", "w.bin", "-o", "w.bin"), "would replace a file that --weights w.bin reads"),
        ("measure", ("--tokenizer", "t.json", "-o", "t.json"), "would replace a file that --tokenizer t.json reads"),
        ("measure", ("-o", "r.json", "--report", "r.json"), "--output r.json and --report r.json are one file"),
        ("measure", ("-o", "r.json", "--report", "./sub/../r.json"), "are one file; give each its own name"),
        ("corrupt", ("--out", "images.npz"), "--out images.npz would replace a file that --data images.npz reads"),
        ("boolean", ("--figure", "table.txt"), "--figure table.txt must end in .svg, .png, .pdf"),
    ],
)
def test_what_is_read_is_not_replaced(capsys, folder, monkeypatch, command, more, message):
    monkeypatch.setattr("jostle.integrations.load", None)  # before any work
    (folder / "sub").mkdir()
    (folder / "link.npy").symlink_to("inputs.npy")
    for name in ("w.bin", "t.json", "table.txt"):
        (folder / name).write_text("0 1")
    np.savez(folder / "images.npz", x=np.zeros((1, 3, 8, 8), dtype=np.float32))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, out, err = run(capsys, command, *WHOLE[command], *more)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_every_model_of_a_comparison_is_kept(capsys, folder):
    models = (
        "--model",
        "a=py:my_model.py:make",
        "--model",
        "b=zoo:mlp",
        "--weights",
        "a=v.bin",
        "--weights",
        "b=w.bin",
    )
    (folder / "v.bin").write_text("")
    command = ("compare", *models, "--data", "inputs.npy", "--tokens", "rows")
    for name, message in {
        "my_model.py": "is a file that jostle did not write",
        "v.bin": "would replace a file",
    }.items():
        code, _, err = run(capsys, *command, "-o", name)
        assert (code, err.count("\n")) == (2, 1)
        assert f"--output {name} {message}" in err


@pytest.mark.parametrize("name", ["notes.txt", "config.json", "photo.png", "data.csv", "page.html", "empty.json"])
def test_a_file_of_somebody_else_is_replaced_only_by_force(folder, name):
    Path(name).write_bytes(b"" if "empty" in name else b"this is mine" * 20_000)
    with pytest.raises(UsageError, match=f"--output {name} is a file that jostle did not write; give .* or --force"):
        check_outputs({"--output": Path(name)}, force=False)
    check_outputs({"--output": Path(name), "--report": None}, force=True)
    with pytest.raises(UsageError, match="would replace a file that --data"):
        check_outputs({"--output": Path(name)}, force=True, read=[("--data", name), ("--weights", None)])


@pytest.mark.parametrize("name", ["r.json", "r", "r.html", "s.svg", "s.png", "s.pdf"])
def test_what_jostle_wrote_is_replaced_without_force(capsys, folder, name):
    flag = {".html": "--report", ".json": "-o", "": "-o"}.get(Path(name).suffix, "--plot")
    command = ("sweep", *basic(), "--stds", 1) if flag == "--plot" else ("measure", *basic())
    for _ in range(2):
        code, _, err = run(capsys, *command, "--draws", 1, flag, name)
        assert (code, err) == (0, "")


def test_force_replaces_the_file(capsys, folder):
    Path("mine.json").write_text("{}")
    for flags, code in (((), 2), (("--force",), 0)):
        assert run(capsys, "measure", *basic(), "--draws", 1, "-o", "mine.json", *flags)[0] == code
    assert jostle.load("mine.json").settings.plan == "grid:draws=1"
    assert run(capsys, "measure", *basic(), "--draws", 1, "-o", "inputs.npy", "--force")[0] == 2


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_failed_write_does_not_lose_the_number(capsys, folder, monkeypatch, flags):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    wanted = json.loads(run(capsys, "measure", *basic(), "--draws", 2, "--json")[1])
    monkeypatch.setattr(os, "fsync", full)
    for option in ("-o", "--report"):
        code, out, err = run(capsys, "measure", *basic(), "--draws", 2, option, "result", *flags)
        assert (code, err.count("\n")) == (1, 1)
        assert "could not write result: No space left on device" in err
        assert json.loads(out)["value"] == wanted["value"] if flags else f"flip {wanted['value']:.4g} " in out
        assert "written to" not in out


def test_a_failed_figure_does_not_lose_the_analysis(capsys, folder, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = run(capsys, "boolean", "parity", "--n", 3, "--figure", "parity.svg")
    assert (code, err.count("\n")) == (1, 1)
    assert out.startswith("parity: ")
    assert "written to" not in out
    assert not list(folder.glob("*parity*"))


def test_a_place_that_takes_no_files_is_noticed_before_the_work(capsys, folder, monkeypatch):
    monkeypatch.setattr("jostle.integrations.load", None)
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: Path("nothing").stat())
    code, out, err = run(capsys, "measure", *basic(), "-o", "result.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "output result.json cannot be written: no file can be made in . (No such file or directory)" in err


def test_an_error_of_the_system_is_one_line(capsys, folder, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "secret.bin")

    monkeypatch.setattr("jostle.integrations.load", broken)
    code, out, err = run(capsys, "measure", *basic())
    assert (code, out, err) == (1, "", "jostle: secret.bin: Permission denied\n")


def test_files_are_written_even_if_nobody_reads(tmp_path):
    program = "from jostle.cli.output import say; say('x' * 100_000); say('y'); open('done', 'w').close()"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("more", "plan"),
    [
        ((), "grid:1"),
        (("--half-width", 0.05), "until:half_width=0.05"),
        (("--max-passes", 5000), "grid:1"),
        (("--max-passes", 200), "until:half_width=0.01,max_passes=200"),  # less than every token takes
        (("--response", "margin", "--relative", 0.2), "until:relative=0.2"),
    ],
)
def test_without_randomness_every_token_is_tried_once_unless_a_rule_is_given(capsys, folder, more, plan):
    command = ("measure", *basic(), "--perturbation", "replace-by:0", "--json", *more)
    code, out, _ = run(capsys, *command)
    found = json.loads(out)
    model = load_model("py:my_model.py:make")
    response = "margin" if "margin" in more else "flip"
    choices = {"tokens": "coordinates", "perturbation": "replace-by:0", "response": response}
    wanted = jostle.measure(model, load_inputs("inputs.npy")[0], plan=plan, **choices)
    assert code == 0
    assert (found["value"], found["passes"]) == (wanted.value, wanted.passes)
    assert found["settings"]["plan"] == wanted.settings.plan
    assert (found["low"] == found["value"] == found["high"]) == (plan == "grid:1")


def test_with_randomness_the_default_rules_are_those_of_python(capsys, folder):
    for response, plan in {"flip": "until:half_width=0.01", "margin": "until:relative=0.05"}.items():
        code, out, _ = run(capsys, "measure", *basic(response=response), "--json")
        assert code == 0
        assert json.loads(out)["settings"]["plan"] == f"{plan},max_passes=1000000"


def test_a_command_leaves_nothing_behind_for_the_next_one_in_the_same_process(capsys, folder, tmp_path_factory):
    assert run(capsys, "measure", *basic(), "-o", "first.json")[0] == 0
    result = load_result(folder / "first.json")
    other = tmp_path_factory.mktemp("other")
    os.chdir(other)  # the fixture goes back
    show(result, [], SubjectOptions(output=Path("second.json")))
    assert (other / "second.json").is_file()
    assert command_line() == ""
