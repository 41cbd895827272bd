"""``jostle boolean`` as a person meets it."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jostle.boolean import analyse
from tests.cli.test_cli import run

MODEL = """
import torch

def make(bits=6):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(bits, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).float()

def two():
    return lambda x: torch.stack([-x[:, 0], x[:, 0]], dim=1)

def tied():
    return lambda x: x.sum(dim=1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_table_of_a_named_function(capsys):
    code, out, err = run(capsys, "boolean", "parity", "--n", 10)
    assert (code, err) == (0, "")
    for part in (
        "total sensitivity    10 ",
        "max sensitivity      10 ",
        "inputs of s          10: 1,024",
        "by formula",
    ):
        assert part in out
    assert "rho 0.25" in run(capsys, "boolean", "majority", "--n", 5, "--rho", 0.25)[1]
    assert "{0}" in run(capsys, "boolean", "first", "--n", 5, "--coefficients", 3)[1]


def test_json_holds_the_analysis(capsys):
    code, out, _ = run(capsys, "boolean", "sparse-parity:k=3", "--n", 7, "--json", "--coefficients", 1)
    numbers = json.loads(out)
    assert code == 0
    assert numbers["sensitivity_profile"] == [0, 0, 0, 128, 0, 0, 0, 0]
    assert len(numbers["largest_coefficients"][0]["subset"]) == 3
    sampled = json.loads(run(capsys, "boolean", "majority", "--n", 31, "--samples", 50, "--json", "--rho", 0.5)[1])
    assert sampled["is_exact"] is False
    assert sampled["noise_stability"]["0.5"]["low"] <= sampled["noise_stability"]["0.5"]["value"]


def test_a_truth_table_file(capsys, folder):
    table = np.random.default_rng(0).choice([-1, 1], 16)
    np.save(folder / "f.npy", table)
    (folder / "f.txt").write_text(" ".join(map(str, table)))
    for name in ("f.npy", "f.txt"):
        numbers = json.loads(run(capsys, "boolean", name, "--json")[1])
        assert numbers["total_sensitivity"] == analyse(table).total_sensitivity
        assert run(capsys, "boolean", name, "--n", 5)[0] == 2


def test_a_network_with_weights(capsys, folder):
    torch.manual_seed(5)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).float()
    save_file(network.state_dict(), folder / "trained.safetensors")
    words = ("boolean", "--model", "py:nets.py:make", "--n", 6, "--json")
    expected = analyse(network, 6, output="sign").total_sensitivity
    assert json.loads(run(capsys, *words, "--weights", "trained.safetensors")[1])["total_sensitivity"] == expected
    assert json.loads(run(capsys, *words, "--values")[1])["is_boolean"] is False
    assert json.loads(run(capsys, "boolean", "--model", "py:nets.py:two", "--n", 4, "--json")[1])["influences"][0] == 1
    tied = ("boolean", "--model", "py:nets.py:tied", "--n", 4)
    assert "give --tie -1 or --tie 1" in run(capsys, *tied)[2]
    assert run(capsys, *tied, "--tie", -1)[0] == 0


def test_a_network_of_the_zoo_sees_the_bits_as_a_picture(capsys, folder):
    words = ("boolean", "--model", "zoo:mlp:image_size=3,channels=1,classes=2,hidden=8/", "--n", 9)
    code, out, _ = run(capsys, *words, "--shape", "1x3x3", "--figure", "net.svg")
    assert code == 0
    assert "from 512 values" in out
    assert (folder / "net.svg").read_text().startswith("<svg")
    assert "product is n=9" in run(capsys, *words, "--shape", "2x3")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "exactly one of them"),
        (("parity", "--model", "py:nets.py:make", "--n", 3), "exactly one of them"),
        (("parity",), "how many bits? Give --n"),
        (("majorty",), "did you mean majority"),
        (("majorty", "--n", 4), "did you mean majority"),
        (("missing.txt",), "missing.txt does not exist"),
        (("parity", "--n", 0), "n"),
        (("parity", "--n", 3, "--weights", "w"), "--weights w goes with --model only"),
        (("parity", "--n", 3, "--rho", 2), "between -1 and 1"),
        (("parity", "--n", 3, "--coefficients", -1), "--coefficients -1"),
        (("parity", "--n", 40, "--coefficients", 1, "--samples", 5), "only an exact analysis"),
        (("parity", "--n", 40, "--method", "exact"), "limit is 24"),
        (("parity", "--n", 3, "--figure", "f.gif"), "must end in .svg"),
        (("--model", "py:nets.py:make"), "how many bits does the network take"),
        (("--model", "py:nets.py:make", "--n", 7), "f raised"),
    ],
)
def test_wrong_use_is_one_line(capsys, folder, words, message):
    code, out, err = run(capsys, "boolean", *words)
    assert code in (1, 2)
    assert message in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1
