"""``jostle sweep`` as a person meets it."""

import csv
import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import jostle
from tests.cli.test_cli import run
from tests.integrations.text_folders import TEXTS, save

MODEL = """
import torch

def make(seed=0, most=10**9):
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    asked = []
    def model(x):
        asked.append(len(x))
        if sum(asked) > most:
            raise KeyboardInterrupt
        return x.float() @ weights
    return model
"""
A, B = "py:my_model.py:make", "py:my_model.py:make:seed=3"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    np.save(tmp_path / "inputs.npy", np.random.default_rng(0).standard_normal((30, 6)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(*more, models=(A,), draws=("--draws", 2)):
    given = [word for model in models for word in ("--model", model)]
    return ("sweep", *given, "--data", "inputs.npy", "--tokens", "coordinates", *draws, "--quiet", *more)


def expected(**models):
    loaded = {name: jostle.integrations.load(spec) for name, spec in models.items()}
    inputs = torch.from_numpy(np.load("inputs.npy"))
    return jostle.sweep(loaded, inputs, tokens="coordinates", stds=[0, 0.5, 2], plan=jostle.Grid(2))


def test_it_prints_what_python_measures_and_writes_it(capsys, folder):
    models = (f"a={A}", f"b={B}")
    code, out, err = run(capsys, *words("--stds", 2, 0.5, 0, 2, "-o", "s.json", "--plot", "s.svg", models=models))
    assert (code, err) == (0, "")
    wanted = expected(a=A, b=B)
    assert out.splitlines()[:6] == str(wanted).splitlines()[:6]
    assert "  written to s.json\n  written to s.svg\n" in out
    assert wanted.crossings()[0] in out
    assert jostle.load("s.json").crossings() == wanted.crossings()
    assert (folder / "s.svg").read_text().startswith("<svg")


def test_the_page_holds_the_sweep_and_the_command_that_makes_it(capsys, folder):
    code, out, _ = run(capsys, *words("--stds", 0.5, 2, "--report", "s.html", models=(f"a={A}", f"b={B}")))
    assert code == 0
    assert "report written to s.html" in out
    found = jostle.report.recover("s.html")["result"]
    assert found["crossings"][0] in out
    page = re.sub("<[^>]*>", "", (folder / "s.html").read_text())
    assert "jostle sweep --model a=py:my_model.py:make --model" in page


def test_json_and_nothing_else_and_names_can_be_left_out(capsys, folder):
    code, out, err = run(capsys, *words("--stds", "0/0.5/2", "--json", "-o", "s.json", models=(A, f"b={B}")))
    assert (code, err) == (0, "")
    found, wanted = json.loads(out), expected(**{A: A, "b": B}).to_dict()
    assert found["models"] == [A, "b"]
    assert found["strengths"] == [0, 0.5, 2]
    assert found["crossings"] == wanted["crossings"]
    values = [[part["value"] for part in each["measurements"]] for each in found["comparisons"]]
    assert values == [[part["value"] for part in each["measurements"]] for each in wanted["comparisons"]]
    assert found.pop("notes") == []
    assert json.loads((folder / "s.json").read_text()) == found


def test_ctrl_c_prints_and_writes_the_finished_strengths(capsys, folder):
    passes = expected(m=A)["m"][0.5].passes
    code, out, _ = run(capsys, *words("--stds", 0.5, 2, 5, "-o", "s.json", models=(f"m={A}:most={passes + 50}",)))
    assert code == 130
    assert "interrupted before std 2 and 5 was measured" in out
    assert jostle.load("s.json").strengths == [0.5]
    code, out, err = run(capsys, *words("--stds", 0.5, models=(f"m={A}:most=60",)))
    assert (code, out, err) == (130, "", "jostle: interrupted before the first draws were done: nothing is known yet\n")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--stds",), "--stds is empty"),
        ((), "--stds requires an argument"),
        (("--stds", "1", "-2"), "--stds -2 must be a finite number, 0 or larger"),
        (("--stds", "1,x"), "--stds x must be a finite number"),
        (("--stds", "nan"), "--stds nan must be a finite number"),
        (("--stds", "1rms", "2"), "give all of them in rms, or none"),
        (("--stds", "1rms"), "rms is the size of embedded texts; give plain numbers"),
        (("--stds", 1, "--perturbation", "sphere:radius=2"), "has its radius already"),
        (("--stds", 1, "--perturbation", "sign-flip"), "has no strength"),
        (("--stds", 1, "--plot", "s.txt"), "--plot s.txt must end in .svg, .png, .pdf"),
        (("--stds", 1, "-o", "inputs.npy"), "would replace a file that --data inputs.npy reads"),
        (("--stds", 1, "-o", "s.svg", "--plot", "s.svg"), "are one file"),
        (("--stds", 1, "--report", "r.pdf"), "--report r.pdf must end in .html"),
        (("--stds", 1, "--half-width", 0.1), "give only one of"),
        (("--stds", 1, "--model", A), "names 'py:my_model.py:make' twice"),
        (
            ("--stds", 1, "--model", f"b={B}", "--weights", "w.safetensors"),
            "must read NAME=FILE with the name of a model",
        ),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(capsys, folder, more, message):
    before = sorted(folder.iterdir())
    code, out, err = run(capsys, *words(*more))
    assert (code, out) == (2, "")
    assert err.startswith("jostle: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(path for path in folder.iterdir() if path.name != "__pycache__") == before


def test_weights_of_the_zoo_with_and_without_a_name(capsys, folder):
    torch.set_default_dtype(torch.float32)
    network, spec = jostle.models.create("mlp", image_size=4, channels=1, seed=5), "zoo:mlp:image_size=4,channels=1"
    save_file(network.state_dict(), "w.safetensors")
    images = torch.randn(8, 1, 4, 4)
    np.save("images.npy", images.numpy())
    choices = {"tokens": "patches:2", "plan": jostle.Grid(2), "stds": [1.0]}
    wanted = jostle.sweep(network.eval(), images, **choices)["model"][1.0].value
    for name, file in ((spec, "w.safetensors"), (f"m={spec}", "m=w.safetensors")):
        given = ("sweep", "--model", name, "--weights", file, "--data", "images.npy", "--tokens", "patches:2")
        code, out, err = run(capsys, *given, "--stds", 1, "--draws", 2, "--quiet", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["comparisons"][0]["measurements"][0]["value"] == wanted
    code, out, err = run(
        capsys, "sweep", "--model", spec, "--data", "images.npy", "--tokens", "patches:2", "--stds", 1, "--draws", 1
    )
    assert code == 0
    assert "has random weights" in err
    assert f"warning: {spec} has random weights" in out


def test_strengths_of_texts_in_units_of_their_embeddings(capsys, tmp_path, monkeypatch):
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    save(tmp_path / "model")
    with (tmp_path / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in TEXTS)])
    given = ("--model", "hf:model", "--data", "csv:texts.csv", "--tokens", "embeddings:before", "--draws", 2)
    code, out, _ = run(capsys, "sweep", *given, "--stds", "2rms", "1rms", "--quiet", "--json")
    assert code == 0
    found = json.loads(out)
    code, out, _ = run(capsys, "measure", *given, "--perturbation", "gaussian-noise:std=1rms", "--quiet", "--json")
    alone = json.loads(out)
    weaker = found["comparisons"][0]["measurements"][0]
    assert weaker["settings"] == alone["settings"]
    assert (weaker["value"], weaker["low"]) == (alone["value"], alone["low"])
    assert found["strengths"][1] == pytest.approx(2 * found["strengths"][0], rel=0.01)
    code, out, _ = run(capsys, "sweep", *given, "--stds", "2rms", "1rms", "--quiet")
    weak, strong = found["strengths"]
    assert f"  rows as asked for: {weak:g} is 1rms, {strong:g} is 2rms\n" in out
