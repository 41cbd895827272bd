"""``jostle certify``, and ``jostle measure`` where labels are known, as a person meets them."""

import json

import numpy as np
import pytest

import jostle
from tests.cli.test_cli import run
from tests.cli.test_sweep import MODEL, A


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    generator = np.random.default_rng(0)
    inputs, labels = generator.standard_normal((60, 6)).astype(np.float32), generator.integers(3, size=60)
    np.savez(tmp_path / "inputs.npz", x=inputs, labels=labels)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_and_writes_radii(capsys, folder):
    code, out, err = run(
        capsys, "certify", "--model", A, "--data", "inputs.npz", "--std", 0.3, "--draws", 100, "-o", "c.json", "--quiet"
    )
    assert (code, err) == (0, "")
    assert "have a certified prediction" in out
    assert "right and certified at 0.15" in out
    assert "AUROC of the flip rate for errors" in out  # from the same draws
    assert len(jostle.load("c.json").radii) == 60


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--std", 0), "std=0.0 must be"),
        (("--std", 1, "--tokens", "rows"), "use Whole"),
        (("--std", 1, "--model", "py:maps.py:make"), "this response needs (batch, classes)"),
    ],
)
def test_wrong_use_is_one_line(capsys, folder, more, message):
    (folder / "maps.py").write_text("def make(): return lambda x: x[:, None, None]\n")
    model = () if "--model" in more else ("--model", A)
    code, out, err = run(capsys, "certify", *model, "--data", "inputs.npz", "--quiet", *more)
    assert (code, out) == (2, "")
    assert message in err


def test_draws_that_are_too_few_prove_no_radius(capsys, folder):
    words = ("--data", "inputs.npz", "--std", 0.3, "--draws", 5, "--limit", 3, "--quiet")
    code, out, _ = run(capsys, "certify", "--model", A, *words)
    assert code == 0
    assert "(at most 0 with 5 draws)" in out


def test_measure_says_whether_flips_mean_errors(capsys, folder):
    words = ("measure", "--model", A, "--data", "inputs.npz", "--tokens", "coordinates", "--draws", 5, "--quiet")
    code, out, _ = run(capsys, *words, "--report", "r.html")
    assert code == 0
    assert "AUROC of the flip rate for errors" in out
    assert "Is the model sure?" in (folder / "r.html").read_text()
    code, out, _ = run(capsys, *words, "--json")
    assert json.loads(out)["certainty"]["inputs"] == 60
    code, out, _ = run(capsys, *words, "--response", "margin")
    assert "AUROC" not in out
