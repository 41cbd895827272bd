"""Tables and functions of strings on the command line."""

import json

import pytest

from jostle.cli import main

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
MODELS = """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import nn

TEXTS = ["a good film", "a good good time", "a bad film", "bad bad acting", "really good fun", "a bad, bad idea"]


def table():
    return LogisticRegression().fit([[0, 5], [1, 6], [10, 5], [11, 6]], ["no", "no", "yes", "yes"])


def texts():
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, ["pos", "pos", "neg", "neg", "pos", "neg"])


def module():
    return nn.Linear(2, 2).float()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(MODELS)
    (tmp_path / "t.csv").write_text("size,age,fits\n0,5,no\n10,6,yes\n4,5,no\n9,6,yes\n")
    rows = "\n".join(f'"{text}",{label}' for text, label in (("a good film", "pos"), ("bad, bad acting", "neg")))
    (tmp_path / "reviews.csv").write_text(f"text,label\n{rows}\n")
    return tmp_path


def run(capsys, *words):
    main(["measure", *words, "--quiet"])
    return capsys.readouterr().out


def test_a_table_of_numbers_has_names_and_units(here, capsys):
    out = run(capsys, "--model", "py:own.py:table", "--data", "csv:t.csv", "--label", "fits", "--report", "r.html")
    assert "by column: size " in out
    assert "100 % accuracy on all 4 inputs" in out
    assert "noise is in units of each column" in out
    assert (here / "r.html").stat().st_size > 1000
    found = json.loads(run(capsys, "--model", "py:own.py:table", "--data", "csv:t.csv", "--label", "fits", "--json"))
    assert found["profile"]["names"] == ["size", "age"]
    out = run(capsys, "--model", "py:own.py:module", "--data", "csv:t.csv", "--label", "fits", "--limit", "3")
    assert "3 inputs of 2 tokens" in out


def test_a_column_that_the_model_was_not_fitted_on_may_be_the_labels(here, capsys):
    (here / "named.py").write_text(
        "import pandas\nfrom sklearn.linear_model import LogisticRegression\n"
        "def make():\n    rows = pandas.read_csv('t.csv')\n"
        "    return LogisticRegression().fit(rows[['size', 'age']], rows.fits)\n"
    )
    pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(SystemExit):
        main(["measure", "--model", "py:named.py:make", "--data", "csv:t.csv"])
    error = capsys.readouterr().err
    assert "was not fitted on fits; if fits holds the right classes, give --label fits" in error
    assert "by column" in run(capsys, "--model", "py:named.py:make", "--data", "csv:t.csv", "--label", "fits")


def test_worst_cases_leave_out_the_column_of_labels(here, capsys):
    main(["worst-case", "--model", "py:own.py:table", "--data", "csv:t.csv", "--label", "fits", "--starts", "1"])
    assert "4 inputs of 2 tokens" in capsys.readouterr().out


def test_a_pipeline_of_texts_gets_strings(here, capsys):
    out = run(capsys, "--model", "py:own.py:texts", "--data", "csv:reviews.csv", "--report", "r.html")
    assert "tokens=words:special=false perturbation=deletion" in out
    assert "100 % accuracy on all 2 texts" in out
    assert "acting" in (here / "r.html").read_text()
    out = run(capsys, "--model", "py:own.py:texts", "--data", "csv:reviews.csv", "--perturbation", "uniform-token")
    assert "a token becomes any of the 5 tokens" in out


def test_what_a_table_cannot_have_is_one_line(here, capsys):
    for words, said in (
        (["--data", "csv:t.csv", "--split", "test"], "has no splits"),
        (["--data", "csv:t.csv:test=0.5"], "of a table of numbers only label= can be named"),
        (["--data", "csv:t.csv", "--max-length", "3"], "--max-length is for texts"),
    ):
        with pytest.raises(SystemExit):
            main(["measure", "--model", "py:own.py:table", *words])
        assert said in capsys.readouterr().err
