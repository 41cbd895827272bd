"""Pictures of what was found, and the command that makes them."""

import json

import numpy as np
import pytest
import torch
from cyclopts import App
from PIL import Image

from jostle.base.errors import UsageError
from jostle.cli.worst_case import worst_case as command
from jostle.figures import svg
from jostle.worst import WorstCase, worst_case
from jostle.worst.picture import caption, choose_shown
from tests.tokens.made_up_texts import Bag, padded, sentences
from tests.worst.maps import Halfspace, small_network, words

FEW = {"starts": 3, "steps": 4, "draws": 4}
MODEL = """
import torch

def make(classes=3):
    torch.manual_seed(0)
    weights = torch.randn(64, classes, dtype=torch.float32)
    return lambda x: x.float().flatten(1) @ weights
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    images = np.random.default_rng(0).standard_normal((4, 1, 8, 8)).astype(np.float32)
    np.save(tmp_path / "images.npy", images)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*given, **options):
    """The command, as it will be one of ``jostle``."""
    app = App(name="jostle", result_action="return_value")
    app.command(command)
    asked = {"model": "py:my_model.py:make", "data": "images.npy", "tokens": "patches:4", **FEW, **options}
    asked = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    app(["worst-case", *asked, "--quiet", *given], exit_on_error=False)


def test_the_command_finds_what_the_library_finds_and_draws_it(folder, capsys):
    run("-o", "worst.json", radius="0.3/1", picture="flip.png")
    out = capsys.readouterr().out
    saved = WorstCase.load(folder / "worst.json")
    assert saved.radii == (0.3, 1.0)
    assert saved.settings.positions == "worst"
    shown = choose_shown(saved)
    assert caption(saved, shown) in out
    assert "the prediction changes from" in out
    assert "written to worst.json" in out
    with Image.open(folder / "flip.png") as picture:
        assert picture.width > picture.height
    capsys.readouterr()
    run("--json", radius="0.3/1")
    record = json.loads(capsys.readouterr().out)
    assert record["value"] == saved.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": "far"}, "--radius far must be a number"),
        ({"positions": "some"}, "--positions some must be each, worst"),
        ({"picture": "flip.txt"}, "must end in .png"),
        ({"limit": 0}, "--limit 0"),
    ],
)
def test_wrong_options_are_one_line(folder, options, message):
    with pytest.raises(UsageError, match=message):
        run(**options)


def test_an_image_is_shown_before_and_after_with_its_patch():
    images = torch.randn(3, 3, 8, 8)
    found = worst_case(Halfspace(3, 8, 8), images, tokens="patches:4", radius=[0.5, 3.0], **FEW)
    text = svg(found.plot(images))
    for word in ("before", "the change", "after", "prediction"):
        assert word in text
    shown = choose_shown(found)
    assert found.values[shown.place, shown.input, shown.position] == 1
    assert shown.place == int(np.flatnonzero(found.values[:, shown.input].any(axis=1))[0])
    assert "input 2" in svg(found.plot(images, 2))
    with pytest.raises(UsageError, match="index=3 is not an input"):
        found.plot(images, 3)


def test_a_sentence_is_shown_with_its_words():
    texts = padded(sentences())
    found = worst_case(Bag(), texts, tokens="embeddings", radius=1.0, **FEW)
    table = [f"word{number}" for number in range(40)]
    text = svg(found.plot(texts, 1, words=table))
    for token in texts["input_ids"][1][texts["attention_mask"][1].bool()].tolist():
        assert f"word{token}<" in text
    assert ">word1<" not in text  # padding is no word
    assert "#" in svg(found.plot(texts, 1))


def test_other_tokens_are_numbered_and_curves_go_over_radii():
    found = worst_case(small_network(), words(3, 4, 6), tokens="rows", radius=[0.5, 1.0], response="margin", **FEW)
    text = svg(found.plot(words(3, 4, 6)))
    assert "margin" in text
    curves = svg(found.plot())
    for word in ("largest found", "max of 4 draws", "mean of draws", "radius"):
        assert word in curves
