"""SVHN, cropped digits, from its official MATLAB files. Netzer et al. (2011), Reading digits in natural images.

A file holds ``X``, pixels # (height, width, channels, examples), and ``y``, labels 1 to 10 where 10 is the digit 0.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.data import register
from jostle.data.images import Images, check_file_labels
from jostle.data.matlab import read_matlab_arrays
from jostle.data.official import FileDataset, FoundFiles, OfficialFile

_ADDRESS = "http://ufldl.stanford.edu/housenumbers/"
_NAMES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}


def _file(name: str, size: int, sha256: str) -> OfficialFile:
    return OfficialFile(name, size, sha256, (_ADDRESS + name,))


class Svhn(FileDataset):
    """SVHN: 73,257 training and 26,032 test house-number digits, 32 x 32 in colour, from the official MATLAB files."""

    name = "svhn"
    folders = ("svhn", "SVHN")
    licence = "non-commercial use; cite Netzer et al. (2011)"
    files = (
        _file(_NAMES["train"], 182_040_794, "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
        _file(_NAMES["test"], 64_275_384, "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
    )

    def names_of(self, split: str) -> tuple[str, ...]:
        """The one file of the split."""
        return (_NAMES[split],)

    def read(self, split: str, found: FoundFiles) -> Images:
        """The official split; digit 0 has label 0."""
        return read_matlab(found.path(_NAMES[split]))


def read_matlab(path: Path) -> Images:
    """The images of a MATLAB file in SVHN's format, # (examples, 3, 32, 32)."""
    arrays = _read_arrays(path)
    pixels, labels = arrays["X"], arrays["y"].ravel()
    if pixels.ndim != 4 or pixels.shape[:3] != (32, 32, 3) or pixels.dtype != np.uint8:
        raise UsageError(
            f"{path} has X of shape {pixels.shape} and type {pixels.dtype}; expected 32 x 32 x 3 x n, uint8"
        )
    if pixels.shape[3] != len(labels):
        raise UsageError(f"{path} holds {pixels.shape[3]:,} images in X, but {len(labels):,} labels in y")
    if labels.dtype.kind not in "ui" or (len(labels) and not 0 <= labels.min() <= labels.max() <= 10):
        raise UsageError(f"{path} has labels y that are not whole numbers from 1 to 10")
    digits = (labels % 10).astype(np.uint8)
    check_file_labels(digits, 10, path)
    return Images(pixels.transpose(3, 2, 0, 1), digits, classes=10)


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    arrays = read_matlab_arrays(path)
    missing = [name for name in ("X", "y") if name not in arrays]
    if missing:
        raise UsageError(f"{path} has no {' and no '.join(missing)}; SVHN's files hold pixels X and labels y")
    return arrays


register("svhn")(Svhn())
