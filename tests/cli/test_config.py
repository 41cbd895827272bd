"""Options from a file: the same names, the command line wins, mistakes are one line."""

import json

import pytest
import torch
from safetensors.torch import save_file

from jostle.cli import main
from jostle.cli.app import app

MODEL = """
import torch
def make():
    return lambda x: torch.stack([x[:, 0], -x[:, 0]], dim=1)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    save_file({"x": torch.randn(20, 3, generator=torch.Generator().manual_seed(0))}, tmp_path / "x.safetensors")
    return tmp_path


TOML = """
data = "x.safetensors"
tokens = "coordinates"
json = true
[measure]
model = "py:model.py:make"
perturbation = "sign-flip"
[compare]
model = ["a=py:model.py:make", "b=py:model.py:make"]
max_passes = 50
"""
YAML = """
data: x.safetensors
tokens: coordinates
json: true
measure:
  model: py:model.py:make
  perturbation: sign-flip
compare:
  model: [a=py:model.py:make, b=py:model.py:make]
  max-passes: 50
"""


@pytest.mark.parametrize(("name", "text"), [("a.toml", TOML), ("a.yaml", YAML), ("a.yml", YAML)])
def test_a_file_says_what_flags_say(here, capsys, name, text):
    (here / name).write_text(text)
    flags = ["--model", "py:model.py:make", "--data", "x.safetensors", "--tokens", "coordinates"]
    main(["measure", *flags, "--perturbation", "sign-flip", "--json"])
    by_flags = json.loads(capsys.readouterr().out)
    main(["measure", "--config", name, "--json"])
    by_file = json.loads(capsys.readouterr().out)
    assert by_file["settings"] == by_flags["settings"]
    assert by_file["value"] == by_flags["value"] == pytest.approx(1 / 3)


def test_the_command_line_wins_and_other_commands_have_their_own_table(here, capsys):
    (here / "a.toml").write_text(TOML)
    main(["measure", "--config=a.toml", "--perturbation", "replace-by:0", "--json"])
    assert json.loads(capsys.readouterr().out)["settings"]["perturbation"] == "replace-by:0"
    main(["compare", "--json", "--config", "a.toml", "--perturbation", "gaussian-noise:std=1"])
    compared = json.loads(capsys.readouterr().out)
    assert [m["name"] for m in compared["measurements"]] == ["a", "b"]
    assert "max_passes=50" in compared["measurements"][0]["settings"]["plan"]
    assert app.config == () or not app.config  # nothing is left behind


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "sed = 1", 'Unknown option: "[sed]" from a.toml'),
        ("a.toml", "data = ", "config file a.toml cannot be read"),
        ("a.yaml", "data: [1", "config file a.yaml cannot be read"),
        ("a.yaml", "- 1", "must hold options by name"),
        ("a.json", "{}", "--config a.json must end in .toml, .yaml, .yml"),
        ("a.toml", 'limit = "many"\nmodel = "m"\ndata = "d"', "many is not a whole number"),
    ],
)
def test_mistakes_are_one_line(here, capsys, name, text, message):
    (here / name).write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["measure", "--config", name])
    assert ended.value.code == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("words", [["measure", "--config"], ["measure", "--config", "a.toml", "--config", "b.toml"]])
def test_one_file(here, capsys, words):
    with pytest.raises(SystemExit):
        main(words)
    assert "--config takes one file" in capsys.readouterr().err


def test_a_file_that_is_not_there(here, capsys):
    with pytest.raises(SystemExit):
        main(["measure", "--config", "none.toml"])
    assert "config file none.toml does not exist" in capsys.readouterr().err
