"""From a picture to pixels: size, crop, colours, normalisation, and files that cannot be read."""

import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from jostle.base.errors import UsageError
from jostle.data.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing, read_image

PLAIN = Preprocessing(size=4, resize=4, mean=(0.0,) * 3, std=(1.0,) * 3)
GREY = Preprocessing(size=4, resize=4, mean=(0.0,), std=(1.0,))


def noise(height, width, channels=3):
    values = np.random.default_rng(0).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return Image.fromarray(values if channels > 1 else values[:, :, 0])


def test_the_middle_of_an_image_that_has_the_right_height_is_normalised_pixel_by_pixel():
    image = noise(6, 10)
    mean, std = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    pixels = Preprocessing(size=4, resize=6, mean=mean, std=std).pixels(image)
    values = np.asarray(image)
    assert pixels.shape == (3, 4, 4)
    assert pixels.dtype == torch.float32
    for colour in range(3):
        for row in range(4):
            for column in range(4):
                expected = (values[row + 1, column + 3, colour] / 255 - mean[colour]) / std[colour]
                assert abs(pixels[colour, row, column].item() - expected) < 1e-6


@pytest.mark.parametrize(("height", "width"), [(50, 81), (81, 50), (64, 64), (9, 40)])
def test_the_shorter_side_is_resized_and_proportions_stay(height, width):
    """A ramp from left to right and from top to bottom: its slope in the result tells the factor."""
    rows, columns = np.mgrid[:height, :width]
    image = Image.fromarray(np.stack([rows, columns, columns], axis=2).astype(np.uint8))
    wanted = Preprocessing(size=20, resize=32, mean=(0.0,) * 3, std=(1.0,) * 3, interpolation="bilinear")
    pixels = wanted.pixels(image) * 255
    factor = min(height, width) / 32
    slopes = (pixels[0, -2, 0] - pixels[0, 1, 0]) / 17, (pixels[1, 0, -2] - pixels[1, 0, 1]) / 17
    assert slopes[0].item() == pytest.approx(factor, abs=0.1)
    assert slopes[1].item() == pytest.approx(factor, abs=0.1)
    middle = pixels[:2].mean(dim=(1, 2))
    assert middle.tolist() == pytest.approx([(height - 1) / 2, (width - 1) / 2], abs=factor)


def test_grey_images_get_three_equal_colours():
    image = noise(4, 4, channels=1)
    pixels = PLAIN.pixels(image)
    assert torch.equal(pixels[0], pixels[1])
    assert torch.equal(pixels[0], torch.from_numpy(np.asarray(image) / np.float32(255)))


def test_colour_images_become_grey_for_a_network_that_takes_grey():
    assert GREY.pixels(Image.new("RGB", (4, 4), (255, 0, 0))).unique().item() == pytest.approx(76 / 255)


def test_what_is_transparent_becomes_white():
    image = Image.new("RGBA", (4, 4), (10, 20, 30, 255))
    image.putpixel((0, 0), (10, 20, 30, 0))
    pixels = PLAIN.pixels(image) * 255
    assert pixels[:, 0, 0].tolist() == [255, 255, 255]
    assert pixels[:, 1, 1].tolist() == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("mode", ["P", "CMYK", "LA", "1", "YCbCr"])
def test_other_modes_become_colours(mode):
    pixels = PLAIN.pixels(noise(4, 4).convert(mode if mode != "LA" else "L").convert(mode))
    assert pixels.shape == (3, 4, 4)
    assert 0 <= pixels.min() < pixels.max() <= 1


def test_a_palette_with_a_transparent_colour():
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30])
    image.info["transparency"] = 0
    assert PLAIN.pixels(image).unique().item() == 1.0


def test_16_bits_are_scaled_not_clipped():
    image = Image.fromarray(np.full((4, 4), 0x8000, dtype=np.uint16))
    assert PLAIN.pixels(image).unique().item() == pytest.approx(0x80 / 255)


def test_real_valued_pixels_are_refused():
    with pytest.raises(UsageError, match=r"image x\.tif has pixels of mode F; expected 8 or 16 bits"):
        PLAIN.pixels(Image.fromarray(np.zeros((4, 4), dtype=np.float32)), "x.tif")


def test_changed_keeps_what_is_not_named():
    start = Preprocessing(size=224, resize=256)
    assert start.with_options({}) == start
    assert start.with_options({"size": 112}).resize == 128
    assert start.with_options({"size": 112, "resize": 112}).resize == 112
    assert start.with_options({"mean": 0.5}) == Preprocessing(224, 256, (0.5,) * 3, IMAGENET_STD)
    assert start.with_options({"std": [0.1, 0.2, 0.3]}) == Preprocessing(224, 256, IMAGENET_MEAN, (0.1, 0.2, 0.3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size=0 must be a whole number, at least 1"),
        ({"size": "big"}, "size='big' must be a whole number"),
        ({"resize": 2.5}, "resize=2.5 must be a whole number"),
        ({"size": 32, "resize": 31}, "resize=31 must be at least size=32"),
        ({"mean": [0.1, 0.2]}, "must both be one number"),
        ({"mean": "x"}, "mean='x' must be a number or three"),
        ({"std": 0}, "std larger than 0"),
        ({"std": float("nan")}, "must be finite"),
        ({"interpolation": "bicubc"}, "unknown interpolation 'bicubc'; did you mean bicubic"),
    ],
)
def test_wrong_wishes_are_one_line(options, message):
    with pytest.raises(UsageError, match=message):
        Preprocessing().with_options(options)


@pytest.mark.parametrize("name", ["cut.png", "cut.jpg", "text.png", "empty.jpg"])
def test_a_broken_file_is_one_line_that_names_it(tmp_path, name):
    path = tmp_path / name
    noise(40, 40).save(tmp_path / "whole.png")
    noise(40, 40).save(tmp_path / "whole.jpg")
    whole = (tmp_path / f"whole{path.suffix}").read_bytes()
    path.write_bytes({"cut": whole[: len(whole) // 2], "text": b"no image", "empty": b""}[path.stem])
    with pytest.raises(UsageError, match=f"image .*{name} cannot be read: ") as error:
        read_image(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("side", [9_600, 14_000])
def test_a_small_file_with_a_huge_picture_is_refused(side, tmp_path):
    """Pillow warns of the first and refuses the second; neither is decoded here."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(side * (1 + side // 8)))
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    assert len(picture) < 50_000
    (tmp_path / "bomb.png").write_bytes(picture)
    with pytest.raises(UsageError, match=r"bomb.png has more than 89,478,485 pixels; make it smaller or take it out"):
        read_image(tmp_path / "bomb.png")
