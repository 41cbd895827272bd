"""A first day: model files beside each other, .pt weights, models that print, labels of any kind, odd streams."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from jostle import load, measure
from jostle.report import recover
from tests.cli.test_cli import run

NETS = """
import torch
from torch import nn

def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 3)).float()
"""
LATER = """
def make():
    def model(x):
        from nets_of_mine import make_net
        return make_net()(x)
    return model
"""
LOUD = """
print("hello")
def make():
    print("making")
    def model(x):
        print("asked")
        return x
    return model
"""
OPTIONS = ("--tokens", "coordinates", "--half-width", "0.1", "--quiet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "mine"
    place.mkdir()
    (place / "nets_of_mine.py").write_text(NETS)
    inputs = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    np.save(tmp_path / "inputs.npy", inputs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("nets_of_mine", "uses_nets", "later_nets"):
        sys.modules.pop(name, None)


def test_a_model_file_finds_the_files_beside_it(capsys, folder):
    (folder / "mine" / "uses_nets.py").write_text("from nets_of_mine import make_net\n")
    code, out, err = run(
        capsys, "measure", "--model", "py:mine/uses_nets.py:make_net", "--data", "inputs.npy", *OPTIONS
    )
    assert (code, err) == (0, "")
    assert "flip" in out


def test_also_inside_a_function_that_is_called_later(capsys, folder):
    (folder / "mine" / "later_nets.py").write_text(LATER)
    code, _, err = run(capsys, "measure", "--model", "py:mine/later_nets.py:make", "--data", "inputs.npy", *OPTIONS)
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def make(:\n", "SyntaxError: invalid syntax (mine/broken.py, line 1)"),
        (
            "import torch\nimport nowhere_to_be_found\n",
            "No module named 'nowhere_to_be_found' (mine/broken.py, line 2)",
        ),
        ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero (mine/broken.py, line 2)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (mine/broken.py, line 2)"),
        ("def make():\n    return {}['lr']\n", "make raised KeyError: 'lr' (mine/broken.py, line 2)"),
        ("def make():\n    raise SystemExit('bye')\n", "make raised SystemExit: bye (mine/broken.py, line 2)"),
        (
            "def make():\n    def f(x):\n        return x.no\n    return f\n",
            "has no attribute 'no' (mine/broken.py, line 3)",
        ),
        (
            "def make():\n    def f(x):\n        exit(3)\n    return f\n",
            "raised SystemExit on a batch of input (16, 6): 3",
        ),
    ],
)
def test_an_error_in_somebodys_file_is_one_line_with_the_line_of_that_file(capsys, folder, text, message):
    (folder / "mine" / "broken.py").write_text(text)
    code, out, err = run(capsys, "measure", "--model", "py:mine/broken.py:make", "--data", "inputs.npy", *OPTIONS)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert message in err.replace(f"{folder}/", "")


def test_a_colon_in_the_name_of_a_folder(capsys, folder):
    (folder / "run:3").mkdir()
    (folder / "mine" / "nets_of_mine.py").rename(folder / "run:3" / "nets_of_mine.py")
    words = ("--model", "py:./run:3/nets_of_mine.py:make_net", "--data", "inputs.npy", *OPTIONS)
    assert run(capsys, "measure", *words)[0] == 0


def test_weights_that_torch_saved(capsys, folder):
    torch.save({"1.weight": torch.zeros(3, 6), "1.bias": torch.arange(3.0)}, "w.pt")
    torch.save({"state_dict": {"module.1.weight": torch.zeros(3, 6), "module.1.bias": torch.arange(3.0)}}, "c.ckpt")
    words = ("--model", "py:mine/nets_of_mine.py:make_net", "--data", "inputs.npy", *OPTIONS, "--json")
    for file in ("w.pt", "c.ckpt"):
        code, out, _ = run(capsys, "measure", *words, "--weights", file)
        assert code == 0
        assert json.loads(out)["value"] == 0  # these weights are constant, those of make_net are not


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-file-of-weights",)


def test_code_in_a_file_of_weights_is_not_run(capsys, folder):
    torch.save({"1.weight": Harmful()}, "bad.pt")
    words = ("--model", "py:mine/nets_of_mine.py:make_net", "--data", "inputs.npy", *OPTIONS)
    code, _, err = run(capsys, "measure", *words, "--weights", "bad.pt")
    assert (code, err.count("\n")) == (2, 1)
    assert "runs no code from a file of weights" in err
    assert not (folder / "made-by-a-file-of-weights").exists()


def test_json_is_json_whatever_a_model_prints(capsys, folder):
    (folder / "mine" / "loud.py").write_text(LOUD)
    code, out, err = run(
        capsys, "measure", "--model", "py:mine/loud.py:make", "--data", "inputs.npy", *OPTIONS, "--json"
    )
    assert code == 0
    assert json.loads(out)["kind"] == "jostle/measurement"
    assert all(word in err for word in ("hello", "making", "asked"))


def test_one_grammar_for_models(capsys, folder):
    spec = "py:mine/nets_of_mine.py:make_net"
    for command, more in (
        ("measure", ()),
        ("compare", ()),
        ("sweep", ("--stds", "1")),
        ("worst-case", ("--limit", "2")),
    ):
        options = OPTIONS if command != "worst-case" else ("--tokens", "coordinates", "--quiet")
        for model in (spec, f"mine={spec}"):
            code, out, err = run(capsys, command, "--model", model, "--data", "inputs.npy", *options, *more)
            assert code == 0, err
            assert ("mine" if model != spec else spec) in out


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.arange(50) % 3 + 1, "no accuracy, labels go from 1 to 3 and its classes from 0 to 2"),
        (np.array(["a"] * 50), "cannot be used, they are text; expected numbers from 0 on"),
        (np.zeros(49, dtype=int), "cannot be used, they have shape (49,); expected (50,)"),
        (np.full(50, 0.5), "cannot be used, not all of them are whole numbers"),
        (np.zeros((50, 3), dtype=int), "cannot be used, they have shape (50, 3)"),
        (np.zeros(50), "accuracy on all 50 inputs"),
    ],
)
def test_labels_that_cannot_be_used_are_said(capsys, folder, labels, said):
    np.savez("both.npz", x=np.load("inputs.npy"), y=labels)
    words = ("--model", "py:mine/nets_of_mine.py:make_net", "--data", "both.npz", *OPTIONS)
    code, out, _ = run(capsys, "measure", *words)
    assert code == 0
    assert said in out


def jostle(folder, *words, redirect="", **environment):
    """A command in a shell of its own, with streams redirected."""
    line = f"{sys.executable} -m jostle {' '.join(words)} {redirect}"
    return subprocess.run(
        line, shell=True, cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams(folder, redirect):
    done = jostle(folder, "list", "plans", redirect=redirect)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_stream_that_knows_only_ascii(folder):
    words = ("run", "2403.06925/table-1", "--scale", "smoke", "--quiet", "--out", "runs")
    done = jostle(folder, *words, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "UNDECIDED" in done.stdout


def test_the_report_of_images_shows_images(capsys, folder):
    images = np.random.default_rng(0).standard_normal((40, 1, 8, 8)).astype(np.float32)
    np.savez("images.npz", x=images, y=np.arange(40) % 3)
    (folder / "mine" / "linear.py").write_text(
        "import torch\nfrom torch import nn\ndef make(seed=0):\n    torch.manual_seed(seed)\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).float()\n"
    )
    words = ("--data", "images.npz", "--tokens", "patches:4", "--half-width", "0.1", "--quiet", "--report", "r.html")
    models = ("--model", "a=py:mine/linear.py:make", "--model", "b=py:mine/linear.py:make:seed=1")
    code, _, err = run(capsys, "compare", *models, *words, "--examples", "3", "--example-draws", "5")
    assert (code, err) == (0, "")
    page = (folder / "r.html").read_text(encoding="utf-8")
    found = recover(folder / "r.html")["examples"]
    assert len(found) == 3
    for example in found:
        assert example["draws"] == 5
        assert all(len(flips) == 4 and max(flips) <= 5 for flips in example["flips"].values())
        assert f"Image {example['row']}: a predicts class" in page
    assert "Close calls" in page
    assert "Picked at random" in page
    assert "accuracy on all 40 inputs" in page
    assert "All models have one colour scale." in page


def test_a_page_without_labels_shows_images_too(capsys, folder):
    np.save("images.npy", np.random.default_rng(0).standard_normal((9, 3, 4, 4)).astype(np.float32))
    (folder / "mine" / "sums.py").write_text("def make():\n    return lambda x: x.flatten(1)[:, :1]\n")
    words = ("--data", "images.npy", "--tokens", "patches:2", "--half-width", "0.2", "--quiet", "--report", "r.html")
    code, _, err = run(capsys, "measure", "--model", "py:mine/sums.py:make", *words)
    assert (code, err) == (0, "")
    assert len(recover(folder / "r.html")["examples"]) == 6


def test_a_report_is_a_page(capsys, folder):
    words = ("--model", "py:mine/nets_of_mine.py:make_net", "--data", "inputs.npy", *OPTIONS)
    code, _, err = run(capsys, "measure", *words, "--report", "report.pdf")
    assert (code, err.count("\n")) == (2, 1)
    assert "--report report.pdf must end in .html" in err


def test_json_has_the_notes_and_loads(capsys, folder):
    np.savez("both.npz", x=np.load("inputs.npy"), y=np.zeros(50, dtype=int))
    words = ("--data", "both.npz", *OPTIONS, "--json")
    for command, models in (("measure", 1), ("compare", 2)):
        named = [word for name in "ab"[:models] for word in ("--model", f"{name}=py:mine/nets_of_mine.py:make_net")]
        out = run(capsys, command, *named, *words)[1]
        assert "accuracy on all 50 inputs" in " ".join(json.loads(out)["notes"])
        (folder / "r.json").write_text(out)
        assert load(folder / "r.json").to_dict()["kind"].startswith("jostle/")


def test_names_come_with_their_options(capsys, folder):
    out = " ".join(run(capsys, "list", "perturbations")[1].split())
    assert "Options: radius, relative=False." in out
    assert "Options: std." in out


def test_several_correlations_after_one_flag(capsys, folder):
    out = run(capsys, "boolean", "parity", "--n", "3", "--rho", "0.5", "0.9")[1]
    assert "rho 0.5: 0.125" in out
    assert "rho 0.9: 0.729" in out


def test_a_single_output_is_read_by_its_sign_only_for_flips(folder):
    squashed = lambda x: x.mean(dim=1).sigmoid()  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(
            squashed,
            torch.randn(20, 4),
            tokens="coordinates",
            perturbation="gaussian-noise:1",
            response="absolute-change",
        )
    with pytest.warns(match="read by its sign"):
        measure(squashed, torch.randn(20, 4), tokens="coordinates", perturbation="gaussian-noise:1")


def test_arrays_of_other_names(capsys, folder):
    inputs = np.load("inputs.npy")
    np.savez("pair.npz", X=inputs, target=np.zeros(50, dtype=int))
    np.savez("many.npz", X=inputs, more=inputs)
    model = ("--model", "py:mine/nets_of_mine.py:make_net")
    code, out, err = run(capsys, "measure", *model, "--data", "pair.npz", *OPTIONS)
    assert (code, err) == (0, "")
    assert "accuracy on all 50 inputs" in out
    options = ("--tokens", "coordinates:key=X", *OPTIONS[2:])
    code, _, err = run(capsys, "measure", *model, "--data", "many.npz", *options)
    assert (code, err.count("\n")) == (1, 1)
    assert "the names of its arguments are: input" in err


def test_channels_last(capsys, folder):
    np.save("last.npy", np.zeros((5, 8, 8, 1), dtype=np.float32))
    words = ("--model", "py:mine/nets_of_mine.py:make_net", "--data", "last.npy", "--tokens", "patches:2", "--quiet")
    code, _, err = run(capsys, "measure", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert "if the 1 are channels, put them first: (channels, height, width)" in err


def test_labels_that_do_not_exclude_each_other_are_said(capsys, folder):
    (folder / "mine" / "sigmoids.py").write_text("def make():\n    return lambda x: x.sigmoid()\n")
    (folder / "mine" / "softmax.py").write_text("def make():\n    return lambda x: x.softmax(dim=1)\n")
    told = "only the largest output is looked at"
    for name, is_said in (("sigmoids", True), ("softmax", False)):
        words = ("--model", f"py:mine/{name}.py:make", "--data", "inputs.npy", *OPTIONS)
        out = run(capsys, "measure", *words)[1]
        assert (told in " ".join(out.split())) is is_said


def test_the_words_help_and_version(capsys, folder):
    assert "Jostle one input token" in run(capsys, "help")[1]
    assert "--stds" in run(capsys, "help", "sweep")[1]
    assert run(capsys, "version")[1] == run(capsys, "-V")[1] == run(capsys, "--version")[1]


def test_a_summary_is_not_cut_at_an_ellipsis(capsys, folder):
    out = " ".join(run(capsys, "list", "corruptions")[1].split())
    assert "up to the largest: it came near" in out


@pytest.mark.parametrize("words", ["boolean parity --n 3", "run 2403.06925/proposition-3.1 --quiet"])
def test_a_working_directory_that_is_gone_is_one_clear_line(tmp_path, words):
    program = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd()); from jostle.cli import main; "
        "main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, *words.split()]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = "jostle: the folder in which this command was started is gone: change to one that exists\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", said)
