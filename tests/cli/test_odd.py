"""Odd models and odd inputs of people's own: each is measured rightly, or refused in one line that is about it."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import jostle
from tests.cli.test_cli import run

ODD = """
import sys
import numpy as np
import torch
from torch import nn

class Odd(nn.Module):
    def __init__(self, answer):
        super().__init__()
        torch.manual_seed(0)
        self.net, self.answer, self.calls = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).float(), answer, 0

    def forward(self, x):
        self.calls += 1
        return self.answer(self.net(x), self.calls, x)

def plain(): return Odd(lambda y, n, x: y)
def pair(): return Odd(lambda y, n, x: (y, None))
def listed(): return Odd(lambda y, n, x: [y])
def half(): return Odd(lambda y, n, x: y.half())
def sparse(): return Odd(lambda y, n, x: y.to_sparse())
def loud(): return Odd(lambda y, n, x: (print("NOISE"), y)[1])
def seeds(): return Odd(lambda y, n, x: (torch.manual_seed(1), np.random.seed(1), y)[2])
def inplace(): return Odd(lambda y, n, x: (y, x.zero_())[0])
def truths(): return Odd(lambda y, n, x: y == y.amax(dim=1, keepdim=True))

def complex_(): return Odd(lambda y, n, x: y.to(torch.complex64))
def changing(): return Odd(lambda y, n, x: y if n < 10 else y[:, :2])
def nan(): return Odd(lambda y, n, x: y if n < 10 else y * float("nan"))
def crash(): return Odd(lambda y, n, x: y if n < 10 else 1 / 0)
def leaves(): return Odd(lambda y, n, x: sys.exit(3))
def rows(): return Odd(lambda y, n, x: y[:-1])
def turned(): return Odd(lambda y, n, x: y.T)
def one(): return Odd(lambda y, n, x: y.sum())
def nothing(): return Odd(lambda y, n, x: None)
def weightless(): return plain().to("meta")

class Stubborn(nn.Module):
    def eval(self): raise RuntimeError("I never do")
def stubborn(): return Stubborn()

class Strange(Odd):
    def __getattr__(self, name):
        if name == "chain":
            raise RuntimeError("do not look")
        return super().__getattr__(name)
def strange(): return Strange(lambda y, n, x: y)

X = torch.from_numpy(np.load("x.npy"))
def as_list(): return list(X)
def as_generator(): return (row for row in X)
def as_pairs(): return [(row, 1) for row in X]
def as_dataset(): return torch.utils.data.TensorDataset(X, torch.zeros(len(X)))
def as_frame():
    import pandas as pd
    return pd.DataFrame(X.flatten(1).numpy()), pd.Series([0] * len(X))
def as_none(): return None
def as_number(): return torch.tensor(3.0)
def as_three(): return X, X, X
"""
SAME = ("pair", "listed", "half", "sparse", "loud", "seeds", "inplace", "truths")
REFUSED = {
    "complex_": "answers with complex numbers (torch.complex64); expected real ones",
    "changing": "the model answers with (2,) numbers for an input, and then with (3,)",
    "nan": "unperturbed inputs with NaN or infinity",
    "crash": "raised ZeroDivisionError on a batch of input (8, 1, 4, 4): division by zero",
    "leaves": "raised SystemExit",
    "rows": "answered 12 inputs with outputs of shape (11, 3)",
    "turned": "answered 12 inputs with outputs of shape (3, 12)",
    "one": "with outputs of shape ()",
    "nothing": "must answer with a tensor of outputs, not NoneType",
    "weightless": "answers with a tensor without data: its weights are on the device meta, load them first",
    "stubborn": "its method eval raised RuntimeError: I never do",
    "strange": "unexpected RuntimeError: do not look (a fault of jostle, or of an odd model: --debug shows where",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    np.save("x.npy", np.random.default_rng(0).standard_normal((12, 1, 4, 4)).astype(np.float32))
    (tmp_path / "odd_models.py").write_text(ODD)
    yield tmp_path
    sys.modules.pop("odd_models", None)


def measured(capsys, model="plain", data="x.npy", *more, tokens="patches:2"):
    words = ("--data", data, "--tokens", tokens, "--draws", 20, "--batch-size", 8, "--quiet", *more)
    return run(capsys, "measure", "--model", f"py:odd_models.py:{model}", *words)


def test_models_that_answer_oddly_are_measured_all_the_same(capsys, folder):
    values = {}
    for model in ("plain", *SAME):
        code, out, _ = measured(capsys, model, "x.npy", "--json")
        assert code == 0, model
        values[model] = json.loads(out)["value"]
    assert 0 < values["plain"] < 1
    assert values == dict.fromkeys(values, values["plain"])


@pytest.mark.parametrize("model", REFUSED)
def test_models_that_cannot_be_measured_are_one_line(capsys, folder, model):
    code, out, err = measured(capsys, model)
    assert code in (1, 2)
    assert out == ""
    assert err.startswith("jostle: ")
    assert err.count("\n") == 1
    assert REFUSED[model] in err


@pytest.mark.parametrize("data", ["list", "generator", "pairs", "dataset", "frame"])
def test_a_limit_takes_the_first_of_any_inputs(capsys, folder, data):
    tokens = "coordinates" if data == "frame" else "patches:2"
    code, out, err = measured(capsys, "plain", f"py:odd_models.py:as_{data}", "--limit", 4, "--json", tokens=tokens)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["settings"]["num_inputs"] == 4
    if tokens == "patches:2":
        assert found["value"] == json.loads(measured(capsys, "plain", "x.npy", "--limit", 4, "--json")[1])["value"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("py:odd_models.py:as_none", "the function returned None; it must return inputs, or inputs and labels"),
        ("py:odd_models.py:as_number", "the data are a single number"),
        ("py:odd_models.py:as_three", "--limit 3 cannot be applied to inputs of type tuple"),
        ("folder.npy", "--data folder.npy: it is no ordinary file"),
        ("pipe.npy", "--data pipe.npy: it is no ordinary file"),
        ("loop.npy", "--data loop.npy: the file does not exist"),
        ("text.npy", "cannot be read as .npy: it is not of that format, or holds Python objects, which are not loaded"),
        ("objects.npy", "cannot be read as .npy: it is not of that format, or holds Python objects"),
        ("empty.npy", "cannot be read as .npy: No data left in file"),
        ("scalar.npy", "the data are a single number"),
        ("days.npy", "holds datetime64[D]; expected an array of numbers"),
        ("records.npy", "expected an array of numbers"),
        ("complex.npy", "needs real-valued tokens, but they are complex64"),
        ("none.npy", "inputs are empty"),
    ],
)
def test_inputs_that_cannot_be_measured_are_one_line(capsys, folder, data, said):
    (folder / "folder.npy").mkdir()
    os.mkfifo("pipe.npy")
    (folder / "loop.npy").symlink_to("loop.npy")
    (folder / "text.npy").write_text("hello")
    (folder / "empty.npy").write_text("")
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    np.save("scalar.npy", np.float32(3))
    np.save("days.npy", np.array(["2020-01-01"], dtype="datetime64[D]"))
    np.save("records.npy", np.zeros(5, dtype=[("a", "f4"), ("b", "i4")]))
    np.save("complex.npy", np.load("x.npy").astype(np.complex64))
    np.save("none.npy", np.load("x.npy")[:0])
    code, out, err = measured(capsys, "plain", data, "--limit", 3)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize("more", [(), ("--text", "text"), ("--cluster", "doc", "--text", "text")])
def test_a_table_that_never_ends_is_no_table(capsys, folder, more):
    os.mkfifo("pipe.csv")
    (folder / "endless.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "endless.csv"):
        words = ("--model", "py:odd_models.py:plain", "--data", f"csv:{name}", "--quiet", *more)
        code, out, err = run(capsys, "measure", *words)
        assert (code, out, err) == (2, "", f"jostle: --data csv:{name}: it is no ordinary file\n")


@pytest.mark.parametrize("kind", ["float16", ">f4", "longdouble", "float64"])
def test_real_numbers_of_any_type_are_read(capsys, folder, kind):
    np.save("other.npy", np.load("x.npy").astype(np.float16).astype(kind))
    np.save("same.npy", np.load("x.npy").astype(np.float16).astype(np.float32))
    found, same = (json.loads(measured(capsys, "plain", name, "--json")[1]) for name in ("other.npy", "same.npy"))
    assert found["value"] == same["value"]


@pytest.mark.parametrize("option", ["--half-width", "--relative"])
def test_a_precision_that_nobody_can_reach_is_refused(capsys, folder, option):
    words = ("--data", "x.npy", "--tokens", "patches:2", "--quiet", option, "1e-300", "--max-passes", 500)
    code, _, err = run(capsys, "measure", "--model", "py:odd_models.py:plain", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert "=1e-300 is finer than can be measured; give at least 1e-09" in err


def test_a_terminal_of_one_column_gets_help_all_the_same(capsys, monkeypatch):
    """To break its tables into one column took minutes."""
    monkeypatch.setenv("COLUMNS", "1")
    began = time.process_time()
    code, out, _ = run(capsys, "measure", "--help")
    assert code == 0
    assert out
    assert time.process_time() - began < 30


def test_a_terminal_of_a_billion_columns_gets_help_all_the_same(capsys, monkeypatch):
    """Its lines were filled up with spaces until memory was gone."""
    monkeypatch.setenv("COLUMNS", "100000000")
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "hangs on" in out
    assert len(out) < 10**6


def test_no_line_of_the_first_help_is_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(capsys, "--help")
    assert "\non\n" not in out


def test_a_backend_of_matplotlib_that_does_not_exist_is_no_matter(tmp_path):
    """Nothing is shown in a window: what is drawn goes to files."""
    words = [sys.executable, "-m", "jostle", "boolean", "parity", "--n", "3", "--figure", str(tmp_path / "f.svg")]
    done = subprocess.run(words, env=os.environ | {"MPLBACKEND": "junk"}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "f.svg").exists()


def test_draws_that_a_model_answers_with_nan_are_said(capsys, folder):
    words = ("--data", "x.npy", "--std", 1, "--draws", 50, "--limit", 2, "--quiet", "--batch-size", 8)
    code, out, _ = run(capsys, "certify", "--model", "py:odd_models.py:nan", *words, "-o", "c.json")
    assert code == 0
    assert "of 300 draws were answered with NaN or infinity; they count as changes" in out
    assert jostle.load("c.json").nonfinite > 0


@pytest.mark.slow
def test_json_is_json_if_models_print_in_other_processes(folder):
    import subprocess

    words = ["--data", "x.npy", "--tokens", "patches:2", "--draws", "5", "--quiet", "--json", "--workers", "2"]
    command = [sys.executable, "-m", "jostle", "measure", "--model", "py:odd_models.py:loud", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["kind"] == "jostle/measurement"
    assert "NOISE" in ended.stderr
