"""What a command writes beside its text: CSV, samples, trackers, advice and reference values; and completion."""

import csv
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import jostle
from jostle.cli import main, references
from jostle.cli import output as outputs
from jostle.cli.references import recorded, reference_lines

ROOT = Path(__file__).parent.parent.parent
MODEL = """
import torch
def make(classes=3):
    return lambda x: x.flatten(1)[:, :classes]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    save_file({"x": torch.randn(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))}, tmp_path / "x.safetensors")
    return tmp_path


FLAGS = ["--model", "py:model.py:make", "--data", "x.safetensors", "--tokens", "patches:4", "--quiet"]


def run(capsys, *words):
    main(list(words))
    return capsys.readouterr().out


def test_numbers_as_comma_separated_values(here, capsys):
    out = run(capsys, "measure", *FLAGS, "--csv", "a.csv", "-o", "a.json", "--half-width", "0.05")
    (row,) = csv.DictReader((here / "a.csv").read_text().splitlines())
    m = jostle.load("a.json")
    assert [float(row[key]) for key in ("value", "low", "high")] == [m.value, m.low, m.high]
    assert "written to a.csv" in out
    run(capsys, "measure", *FLAGS, "--csv", "a.csv", "--half-width", "0.05")  # its own file may be replaced
    (here / "mine.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit):
        main(["measure", *FLAGS, "--csv", "mine.csv"])
    assert "mine.csv is a file that jostle did not write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "more", "rows"),
    [
        ("sweep", ["--stds", "1", "2", "--half-width", "0.05"], 2),
        ("stability", ["--rho", "0.5", "--half-width", "0.05"], 1),
        ("worst-case", ["--radius", "1", "--limit", "3", "--steps", "2"], 3),
        ("certify", ["--std", "0.5", "--draws", "20", "--selection", "5"], 2),
    ],
)
def test_other_commands_write_them_too(here, capsys, command, more, rows):
    is_of_tokens = command not in ("certify", "stability")
    flags = [word for word in FLAGS if is_of_tokens or word not in ("--tokens", "patches:4")]
    run(capsys, command, *flags, *more, "--csv", "a.csv")
    found = list(csv.DictReader((here / "a.csv").read_text().splitlines()))
    assert len(found) == rows
    assert {"value", "low", "high"} <= set(found[0])


def test_samples_of_inputs_and_tokens(here, capsys):
    run(capsys, "measure", *FLAGS, "--draws", "2", "--log-samples", "a.jsonl", "-o", "a.json")
    lines = [json.loads(line) for line in (here / "a.jsonl").read_text().splitlines()]
    assert len(lines) == 30
    m = jostle.load("a.json")
    assert [line["value"] for line in lines] == pytest.approx(m.per_input.tolist())
    assert all(len(line["tokens"]) == 4 and line["trials"] == 8 for line in lines)
    run(capsys, "measure", *FLAGS, "--draws", "2", "--log-samples", "a.jsonl")  # its own file may be replaced
    with pytest.raises(SystemExit):
        main(["measure", *FLAGS, "--log-samples", "a.txt"])
    assert "--log-samples a.txt must end in .csv or .jsonl" in capsys.readouterr().err


def test_advice_and_references_are_notes_in_json_too(here, capsys):
    out = run(capsys, "measure", *FLAGS, "--max-passes", "300")
    assert "the interval is wide: about " in out
    assert "is that a lot? a constant function 0; a random one 0.67\n" in out
    notes = json.loads(run(capsys, "measure", *FLAGS, "--max-passes", "300", "--json"))["notes"]
    assert any(note.startswith("the interval is wide") for note in notes)
    assert any(note.startswith("is that a lot?") for note in notes)
    alone = run(capsys, "measure", *FLAGS, "--perturbation", "replace-by:0")
    assert "is that a lot?" not in alone  # that of a constant function says nothing by itself


def test_a_random_function_flips_as_often_as_the_reference_says():
    """1 - 1/C: hash every input to one of C classes, and measure."""

    def at_random(x, classes=5):
        numbers = (x.double().flatten(1) * 1e6).long()
        mixed = (numbers * torch.arange(1, numbers.shape[1] + 1) * 2654435761).sum(dim=1) % 1000003
        return torch.nn.functional.one_hot((mixed * 48271 % 2147483647) % classes, classes).double()

    x = torch.randn(400, 6, generator=torch.Generator().manual_seed(2))
    m = jostle.measure(at_random, x, tokens="coordinates", perturbation="gaussian-noise:std=1", plan=jostle.Grid(5))
    assert m.low <= 1 - 1 / 5 <= m.high
    assert "a random one 0.8" in reference_lines(m, "x.npy", 5)[0]
    constant = jostle.measure(lambda x: torch.ones(len(x), 2), x, tokens="coordinates", perturbation="sign-flip")
    assert constant.value == constant.high == 0
    assert reference_lines(m, "x.npy", None) == []  # that of a constant says nothing by itself


def test_recorded_networks_are_those_of_the_records():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import references as tool
    finally:
        sys.path.pop(0)
    held = (ROOT / "src" / "jostle" / "cli" / "references.json").read_text()
    assert held == tool.text(), "the records have changed: make scoreboard"
    found = recorded("mnist-5000", "patches:7", "gaussian-noise:std=2")
    assert found["is_same"]
    assert set(found["networks"]) == {"ViT", "MLP", "CNN", "ConvMixer"}
    assert recorded("mnist-5000", "patches:7", "gaussian-noise:std=2.1")["std"] == 2
    assert not recorded("mnist-5000", "patches:7", "gaussian-noise:std=2.1")["is_same"]
    assert recorded("mnist-5000", "patches:5", "gaussian-noise:std=2") is None
    assert recorded("mnist-5000", "patches:7", "sphere:radius=2") is None


def test_a_tracker_is_checked_first_and_gets_the_numbers(here, capsys, monkeypatch):
    for words in (["measure", *FLAGS], ["run", "2403.06925/proposition-3.1"]):
        with pytest.raises(SystemExit):
            main([*words, "--tracker", "paper:notes"])
        assert "--tracker paper:notes is not known; expected tensorboard:FOLDER" in capsys.readouterr().err
    sent = []

    class Writer:
        def add_scalar(self, name, number, step):
            sent.append((name, number, step))

        def close(self):
            sent.append("closed")

    monkeypatch.setattr(
        "jostle.base.trackers._import", lambda *_: type("tb", (), {"SummaryWriter": lambda _: Writer()})
    )
    monkeypatch.setattr("jostle.base.trackers.importlib.util.find_spec", lambda _: True)
    run(capsys, "measure", *FLAGS, "--tracker", "tensorboard:logs", "--half-width", "0.05", "-o", "a.json")
    m = jostle.load("a.json")
    assert sent[0] == ("jostle/py:model.py:make/flip/value", m.value, 0)
    assert sent[-1] == "closed"


def test_a_tracker_that_cannot_be_opened_is_one_line_after_the_numbers(here, capsys, monkeypatch):
    def refuse(_):
        raise ConnectionError("no\nroute")

    monkeypatch.setattr("jostle.base.trackers._import", lambda *_: type("tb", (), {"SummaryWriter": refuse}))
    monkeypatch.setattr("jostle.base.trackers.importlib.util.find_spec", lambda _: True)
    with pytest.raises(SystemExit) as ended:
        main(["measure", *FLAGS, "--tracker", "tensorboard", "--half-width", "0.1"])
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert "flip 0." in said.out
    assert said.err.strip() == "jostle: --tracker tensorboard cannot be opened: ConnectionError: no route"


def test_a_page_is_opened_on_request(here, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("jostle.cli.measure.open_page", opened.append)
    run(capsys, "measure", *FLAGS, "--half-width", "0.1", "--report", "a.html", "--open", "--examples", "0")
    assert opened == [Path("a.html")]
    with pytest.raises(SystemExit):
        main(["measure", *FLAGS, "--open"])
    assert "give --report report.html too" in capsys.readouterr().err
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    outputs.open_page(here / "a.html")
    assert shown == [(here / "a.html").as_uri()]


def test_a_report_is_written_again_when_runs_change(here, capsys, monkeypatch):
    from jostle.cli import report as command

    main(["run", "2403.06925/proposition-3.1", "--quiet"])
    naps = []

    def nap(_):
        naps.append((here / "report.html").read_text())
        if len(naps) == 1:
            records = next((here / "runs").rglob("records.jsonl"))
            records.touch()
            (here / "report.html").write_text("old")
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "time", type("clock", (), {"sleep": nap, "strftime": time.strftime}))
    opened = []
    monkeypatch.setattr(command, "open_page", opened.append)
    main(["report", "--watch", "--open"])
    assert opened == [Path("report.html")]
    assert all('http-equiv="refresh"' in text for text in naps)
    assert 'http-equiv="refresh"' not in (here / "report.html").read_text()  # at the end it stops to reload
    assert "written again: 1 run" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["report", "--json", "--open"])


def test_both_flags_say_the_version(capsys):
    for flag in ("--version", "-V"):
        main([flag])
        assert capsys.readouterr().out.strip() == jostle.__version__


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_its_shell_reads(capsys, shell):
    main(["completion", shell])
    script = capsys.readouterr().out
    assert "measure" in script
    assert "half-width" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the shell itself completes")
def test_bash_completes_a_command(capsys):
    main(["completion", "bash"])
    script = capsys.readouterr().out
    name = next(line.split()[-2] for line in script.splitlines() if line.startswith("complete ") and "jostle" in line)
    ask = f'{script}\nCOMP_WORDS=(jostle mea); COMP_CWORD=1; COMP_LINE="jostle mea"; {name} jostle mea jostle; '
    ended = subprocess.run(["bash", "-c", ask + 'echo "${COMPREPLY[@]}"'], text=True, capture_output=True, check=True)
    assert "measure" in ended.stdout.split()


def test_records_are_read_once():
    assert references._records() is references._records()
