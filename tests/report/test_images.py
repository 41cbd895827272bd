"""Images in a report: their own colours, and maps of what flips them."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from jostle.data.image_folder import open_images
from jostle.estimates.request import Request
from jostle.perturbations import GaussianNoise, ReplaceBy
from jostle.report.images import Developer, are_pictures, image_examples
from jostle.tokens import Patches, Rows

IMAGES = torch.zeros(4, 1, 4, 4)
IMAGES[1, 0, :2, :2] = 1.0


def corner(images):
    """Class 1 where the first patch is bright."""
    above = images[:, 0, :2, :2].sum(dim=(1, 2)) - 1.0
    return torch.stack([-above, above], dim=1)


def asked(perturbation, tokens=None):
    return Request.build(tokens=tokens or Patches(2), perturbation=perturbation)


def test_maps_say_which_patch_flips_to_what():
    margins = np.asarray([0.5, 0.1, 0.4, 0.3])
    said = [f"picture {row}" for row in range(4)]
    names = {"m": ("dark", "<bright>")}
    request = asked(ReplaceBy(0.0))
    found = image_examples({"m": corner}, IMAGES, request, margins, said, count=2, draws=9, classes=names)
    close, random = found.sections
    assert close.caption == "Image 1: picture 1."
    picture, shown = close.maps
    assert picture.picture == shown.picture
    assert shown.hints == [
        "row 0, column 0: flips to dark", *(f"row {r}, column {c}: does not flip" for r, c in ((0, 1), (1, 0), (1, 1))),
    ]  # fmt: skip
    assert shown.shares == [1.0, 0.0, 0.0, 0.0]
    assert found.numbers[0] == {"row": 1, "draws": 1, "flips": {"m": [1, 0, 0, 0]}}
    assert random.maps[1].caption == "no draw flips"


def test_noise_is_drawn_as_often_as_asked():
    found = image_examples(
        {"m": corner}, IMAGES, asked(GaussianNoise(2.0)), np.zeros(4), ["x"] * 4, count=4, draws=40
    )  # fmt: skip
    first = found.sections[0].maps[1].hints[0]
    assert " of 40 draws flip (" in first
    assert first.endswith(", most to class 1")


def read(address):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))


def test_a_photograph_has_its_own_colours(tmp_path):
    (tmp_path / "a").mkdir()
    colours = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(colours).save(tmp_path / "a" / "one.png")
    files = open_images(f"images:{tmp_path}:size=8,resize=8")
    developer = Developer(files, files[0][0][None])
    assert np.abs(read(developer.address(files[0][0])).astype(int) - colours).max() <= 1


def test_other_pixels_go_from_black_to_white():
    image = torch.linspace(-3, 5, 16).reshape(1, 4, 4)
    found = read(Developer(image[None], image[None]).address(image))
    assert found.shape == (4, 4)
    assert (found.min(), found.max()) == (0, 255)
    blank = torch.full((4, 4), torch.nan)
    assert read(Developer(blank, blank).address(blank)).max() == 0


@pytest.mark.parametrize(
    ("shape", "tokens", "is_picture"),
    [
        ((2, 1, 4, 4), Patches(2), True),
        ((2, 3, 4, 4), Patches(2), True),
        ((2, 5, 4, 4), Patches(2), False),
        ((2, 4, 4), Rows(), False),
    ],
)
def test_what_can_be_drawn(shape, tokens, is_picture):
    assert are_pictures(torch.zeros(shape), asked(GaussianNoise(1.0), tokens)) == is_picture
