"""Labelled images of one byte a pixel, as files hold them; only chosen examples become real numbers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.data.dataset import Dataset
from jostle.data.selection import Rows


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images of one split.

    Arguments:
        pixels: # (examples, channels, height, width) of uint8.
        labels: # (examples,) of uint8.
        classes: number of classes.
        note: how the split departs from the official one; empty if it does not.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    classes: int
    note: str = ""

    def dataset(self, name: str, split: str, rows: Rows) -> Dataset:
        """The images in ``rows`` with pixels of float32, scaled to [-1, 1]."""
        labels = torch.from_numpy(self.labels[rows].astype(np.int64))
        return Dataset(name, scale_pixels(self.pixels[rows]), labels, self.classes, split, self.note)


def scale_pixels(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """Pixels from 0 to 255 as float32 in [-1, 1]: (pixel / 255 - 0.5) / 0.5, paper 1's scaling (2403.06925).

    >>> import numpy as np
    >>> scale_pixels(np.array([0, 51, 255], dtype=np.uint8)).tolist()
    [-1.0, -0.6000000238418579, 1.0]
    """
    # In place: a whole dataset as float32 is large enough once.
    return torch.from_numpy(pixels.astype(np.float32, order="C")).div_(127.5).sub_(1)


def check_file_labels(labels: NDArray[np.uint8], classes: int, path: Path) -> None:
    """Raise unless the file at ``path`` has labels, all of them below ``classes``."""
    if len(labels) == 0:
        raise UsageError(f"{path} holds no examples")
    if labels.max() >= classes:
        raise UsageError(f"{path} has a label {labels.max()}; expected labels from 0 to {classes - 1}")
