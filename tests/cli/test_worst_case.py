"""``jostle worst-case`` as a person meets it; what it finds is tested in ``tests/worst``."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import jostle
from tests.cli.test_cli import run
from tests.integrations.text_folders import TEXTS, save

SPEC = "zoo:mlp:image_size=8,channels=1,classes=3"
FEW = ("--draws", 2, "--starts", 1, "--steps", 2, "--quiet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)
    np.save("images.npy", np.random.default_rng(0).standard_normal((4, 1, 8, 8)).astype(np.float32))
    return tmp_path


def command(*more, data="images.npy", tokens="patches:4"):
    return ("worst-case", "--model", SPEC, "--data", data, "--tokens", tokens, *FEW, *more)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--shown", 7, "--limit", 3), "--shown 7 is not an input: they are numbered 0 to 2, the first of --limit"),
        (("--shown", 4), "--shown 4 is not an input: they are numbered 0 to 3, those of --data images.npy"),
        (("--shown", -1), "--shown -1 is not an input"),
        (("-o", "images.npy"), "--output images.npy would replace a file that --data images.npy reads"),
        (("-o", "flip.png", "--picture", "flip.png"), "--output flip.png and --picture flip.png are one file"),
        (("--words", "w.txt", "-o", "w.txt"), "--output w.txt would replace a file that --words w.txt reads"),
        (("--picture", "."), "for example flip.png"),
        (("--split", "test"), "--split test: --data images.npy has no splits"),
    ],
)
def test_wrong_use_is_noticed_before_the_search(capsys, folder, monkeypatch, more, message):
    monkeypatch.setattr("jostle.worst.worst", None)
    (folder / "w.txt").write_text("word")
    code, out, err = run(capsys, *command(*more))
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]


def test_words_cannot_be_moved_and_embeddings_are_named(capsys, folder):
    code, out, err = run(capsys, *command(tokens="words"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--tokens words: the search moves tokens of real numbers, words are none; use embeddings" in err
    assert "uniform-token" not in err


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_failed_picture_does_not_lose_the_table(capsys, folder, monkeypatch, flags):
    def broken(*_: object, **__: object) -> None:
        raise jostle.UsageError("cannot be drawn")

    monkeypatch.setattr("jostle.worst.picture.change_figure", broken)
    code, out, err = run(capsys, *command("-o", "worst.json", "--picture", "flip.png", *flags))
    assert code == 2
    assert err.endswith("jostle: cannot be drawn\n")
    assert json.loads(out)["kind"] == "jostle/worst-case" if flags else "largest found" in out
    assert (folder / "worst.json").exists()


def test_random_weights_are_in_the_record(capsys, folder):
    code, out, err = run(capsys, *command("-o", "worst.json"))
    said = f"{SPEC} has random weights; give --weights for a trained network"
    assert code == 0
    assert f"jostle: {said}" in err
    assert f"  warning: {said}" in out
    assert said in jostle.load("worst.json").warnings


def test_nothing_is_said_of_an_accuracy_that_is_not_shown(capsys, folder):
    (folder / "net").mkdir()
    save(folder / "net")
    with Path("texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in TEXTS)])
    given = ("--model", "hf:net", "--data", "csv:texts.csv", "--limit", 2)
    code, out, _ = run(capsys, "worst-case", *given, *FEW)
    assert code == 0
    assert "accuracy" not in out


def test_the_page_shows_the_changes(capsys, folder):
    code, out, _ = run(capsys, *command("--report", "worst.html", "--examples", 2))
    assert code == 0
    assert "report written to worst.html" in out
    page = (folder / "worst.html").read_text()
    assert page.count(">before<") == page.count(">after<") == 2
    assert jostle.report.recover("worst.html")["result"]["kind"] == "jostle/worst-case"


def test_fewer_texts_than_the_usual_limit_are_all_searched(capsys, folder):
    (folder / "net").mkdir()
    save(folder / "net")
    (folder / "few.csv").write_text("text\na film\nno plot\n")
    for given in (("--data", "csv:few.csv"), ("--prompt", "a film", "--prompt", "no plot")):
        code, out, _ = run(capsys, "worst-case", "--model", "hf:net", *given, *FEW)
        assert code == 0
        assert "  2 inputs of" in out


def test_shares_other_than_flips_have_the_intervals_of_shares():
    settings = jostle.worst_case(
        torch.nn.Linear(3, 2), torch.ones(2, 3), tokens="coordinates", radius=1.0, draws=2, steps=1
    ).settings
    assert replace(settings, response="next-token-flip").is_share
    assert not replace(settings, response="kl").is_share
    assert not replace(settings, response="of my own").is_share
