"""The page of a worst case: its numbers, and the changes that were found."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

import jostle
from jostle.report import recover, render
from jostle.report.worst import worst_page
from tests.tokens.made_up_texts import network, padded, sentences

IMAGES = torch.rand(5, 1, 4, 4, generator=torch.Generator().manual_seed(0))


def corner(images):
    """Class 1 where the first patch is bright: only that patch can flip it."""
    above = images[:, 0, :2, :2].sum(dim=(1, 2)) - 2.0 + 1e-6 * images.sum(dim=(1, 2, 3))
    return torch.stack([-above, above], dim=1)


@pytest.fixture(scope="module")
def found():
    return jostle.worst_case(
        corner,
        IMAGES,
        tokens="patches:2",
        radius=[0.5, 2.0],
        response="flip",
        positions="each",
        starts=2,
        steps=10,
        draws=8,
    )


def test_numbers_are_those_of_the_result(found):
    page = worst_page(found, inputs="x")
    [numbers] = page.sections
    for row, radius in zip(numbers.table.rows, found.radii, strict=True):
        at = found.at(radius)
        assert [entry.key for entry in row[:4]] == [
            radius, at.mean.value, at.max_of_draws.value, at.largest.value,
        ]  # fmt: skip
    assert f"for {found.value:.0%}".replace("%", " %") in page.lead


def test_classes_are_called_by_their_names(found):
    def page(**names):
        return render(worst_page(found, inputs="x", searched=IMAGES, examples=1, **names))

    assert "predicted dark" not in page()
    assert {"predicted class 0", "predicted class 1"} <= set(re.findall("predicted class [01]", page()))
    named = page(classes=["dark", "bright"])
    assert "predicted class" not in named
    assert re.search("the prediction changes from (dark to bright|bright to dark)", named)


def test_nothing_found_is_said_as_that():
    found = jostle.worst_case(corner, IMAGES, tokens="patches:2", radius=1e-6, starts=1, steps=1, draws=2, name="net")
    page = worst_page(found, inputs="x")
    assert page.lead.endswith("was found to flip net.")
    assert page.lead.startswith("No change of ")
    assert "0.0 %" not in page.meaning


def pixels(address):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))


def test_images_before_and_after_differ_in_the_worst_patch_alone(found, tmp_path):
    page = worst_page(found, inputs="x", searched=IMAGES, examples=2)
    shown = page.sections[1:]
    assert len(shown) == 2
    before, where, after = shown[0].maps
    assert before.caption != after.caption  # the class changes
    assert [share for share in where.shares if share] == [1.0]
    assert where.shares[0] == 1.0  # the patch that the model reads
    changed = pixels(before.picture) != pixels(after.picture)
    assert changed[:2, :2].any()
    assert not changed[2:].any()
    assert not changed[:, 2:].any()
    found.report(tmp_path / "page.html", inputs=IMAGES)
    assert recover(tmp_path / "page.html")["result"]["value"] == found.value


def test_texts_are_shaded():
    given = padded(sentences([3, 5]))
    found = jostle.worst_case(
        network("roberta"),
        given,
        tokens=jostle.Embeddings(),
        radius=1.0,
        response="absolute-change",
        starts=1,
        steps=3,
        draws=4,
    )
    page = worst_page(found, inputs="x", searched=given, words=[f"<w{number}>" for number in range(40)])
    assert sorted(len(passage.tokens) for passage in page.sections[1].passages) == [3, 5]
    assert "<w" not in render(page).replace("&lt;w", "")
