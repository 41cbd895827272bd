"""A model, a dataset, a perturbation and a response of your own, which jostle finds by their entry points.

The contents are as small as they can be: images of two checkerboards, which differ in the colour of every square, and a
network that looks at one square and at the mean of all.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from jostle.data import Dataset
from jostle.perturbations import Perturbation
from jostle.responses import Flip


def checkerboards(split: str) -> Dataset:
    """Boards of 8 x 8 squares of -1 and 1: class 0 begins with a dark square, class 1 with a light one."""
    rows, columns = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
    board = ((rows + columns) % 2 * 2 - 1).to(torch.get_default_dtype())  # (8, 8)
    labels = torch.arange(20) % 2
    images = torch.where(labels[:, None, None] == 1, -board, board)[:, None]  # (20, 1, 8, 8)
    return Dataset("checkerboards", images, labels, classes=2, split=split)


class CheckerboardNet(nn.Module):
    """The logit is the square in the corner plus ``share`` times the mean of the image."""

    def __init__(self, *, image_size: int = 8, channels: int = 1, classes: int = 1, share: float = 0.5) -> None:
        super().__init__()
        if (image_size, channels, classes) != (8, 1, 1):
            raise ValueError("CheckerboardNet takes images of 1 x 8 x 8 and has one logit")
        self.share = nn.Parameter(torch.tensor(share))

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 1, 8, 8) -> (batch, 1)."""
        return images[:, :, 0, 0] + self.share * images.mean(dim=(1, 2, 3))[:, None]


@dataclass(frozen=True)
class Negative(Perturbation):
    """The token with its sign turned: dark squares become light ones."""

    @property
    def is_deterministic(self) -> bool:
        """There is nothing random about it."""
        return True

    def apply(self, tokens: Tensor, uniforms: object) -> Tensor:
        """-tokens."""
        return -tokens

    def describe(self) -> str:
        """The spec."""
        return "negative"


@dataclass(frozen=True)
class DecidedFlip(Flip):
    """A flip that counts only where the clean logit is at least ``least``."""

    name: ClassVar[str] = "decided-flip"
    least: float = 1.0

    def reference(self, outputs: Tensor) -> Tensor:
        """The sign of the clean logit, or 2 where it is too small to count."""
        signs = super().reference(outputs)
        return torch.where(outputs.reshape(len(outputs), -1)[:, 0].abs() >= self.least, signs, 2)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        """1 where the sign is another one."""
        signs = torch.sign(outputs.reshape(len(outputs), -1)[:, 0]).long()
        return ((reference != 2) & (signs != reference)).double()

    def describe(self) -> str:
        """The spec."""
        return f"{self.name}:least={self.least:g}"
