import gzip

import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.data.idx import read_idx, read_images
from tests.data.made_up import numbers, write_idx


def test_an_array_is_read_back(tmp_path):
    array = numbers(0, 300, 5, 7)  # 300 needs two bytes of the size
    assert np.array_equal(read_idx(write_idx(tmp_path / "a.gz", array), axes=3), array)
    assert np.array_equal(read_idx(write_idx(tmp_path / "b.gz", array[:, 0, 0]), axes=1), array[:, 0, 0])


def test_images_have_one_channel(tmp_path):
    pixels, labels = numbers(0, 4, 28, 28), np.array([3, 1, 0, 9], dtype=np.uint8)
    images = read_images(write_idx(tmp_path / "i.gz", pixels), write_idx(tmp_path / "l.gz", labels), 10)
    assert images.pixels.shape == (4, 1, 28, 28)
    assert np.array_equal(images.pixels[:, 0], pixels)
    assert np.array_equal(images.labels, labels)


HEADER = b"\x00\x00\x08\x01\x00\x00\x00"
PACKED = gzip.compress(HEADER + b"\x03abc", mtime=0)
WRONG_AXES = "starts with 00 00 08 03; an idx file of unsigned bytes with 1 axis starts with 00 00 08 01"
DAMAGED = {
    "end missing": (PACKED[:-5], "is cut short"),
    "only a beginning": (PACKED[:5], "is cut short"),
    "empty": (b"", "starts with nothing"),
    "no gzip": (b"no gzip at all", "is damaged or no gzip file"),
    "damaged gzip": (PACKED[:12] + b"\xff\xff\xff" + PACKED[15:], "is damaged or no gzip file"),
    "other axes": (gzip.compress(b"\x00\x00\x08\x03\x00\x00\x00\x03abc"), WRONG_AXES),
    "other type": (gzip.compress(b"\x00\x00\x0d\x01\x00\x00\x00\x03abc"), "starts with 00 00 0d 01"),
    "no sizes": (gzip.compress(HEADER[:5]), "starts with 00 00 08 01; .* and its sizes"),
    "too few values": (gzip.compress(HEADER + b"\x04abc"), "says it holds 4 bytes and holds 3; get it again"),
    "too many values": (gzip.compress(HEADER + b"\x02abc"), "says it holds 2 bytes and holds 3; get it again"),
}


@pytest.mark.parametrize(("contents", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files(tmp_path, contents, message):
    path = tmp_path / "labels.gz"
    path.write_bytes(contents)
    with pytest.raises(UsageError, match=f"^{path} {message}"):
        read_idx(path, axes=1)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_idx(tmp_path, axes=1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1, 2], "holds 3 images, but .* 2 labels"), ([1, 2, 10], "has a label 10; expected labels from 0 to 9")],
)
def test_labels_that_do_not_fit(tmp_path, labels, message):
    images = write_idx(tmp_path / "i.gz", numbers(0, 3, 2, 2))
    with pytest.raises(UsageError, match=message):
        read_images(images, write_idx(tmp_path / "l.gz", np.array(labels, dtype=np.uint8)), 10)


def test_no_examples(tmp_path):
    images, labels = numbers(0, 0, 2, 2), numbers(0, 0)
    with pytest.raises(UsageError, match=r"l\.gz holds no examples"):
        read_images(write_idx(tmp_path / "i.gz", images), write_idx(tmp_path / "l.gz", labels), 10)
