"""Squares of an image at any place, as in the released code of paper 1's regularisation."""

from dataclasses import dataclass

from torch import Tensor

from jostle.errors import UsageError
from jostle.lowering.arguments import truth
from jostle.tokens import TokenView
from jostle.tokens.view import must_fit


@dataclass(frozen=True)
class UnalignedSquares(TokenView):
    """All squares of ``size`` x ``size`` pixels of an image, all channels together; unlike patches they overlap.

    Positions are the places of the top left corner, row by row. The penalty of paper 1 (2403.06925, Section 7.1) as
    released draws its squares like this, and not from the patches a vision transformer sees.

    >>> UnalignedSquares(4).num_tokens((3, 32, 32)), UnalignedSquares(4, released=True).num_tokens((3, 32, 32))
    (841, 784)

    Arguments:
        size: the side of a square in pixels, at most height and width.
        released: leave out the last place of every row and column, 28 of 29 for images of 32 x 32: the released code
            draws it from ``randint(0, 28)``, whose end is exclusive, so the last row and column of pixels never move.
    """

    size: int
    released: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise UsageError(f"size={self.size!r} of UnalignedSquares must be a whole number of pixels, at least 1")
        truth("released", self.released, "UnalignedSquares")

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) in (2, 3), self, shape, "expected (channels, height, width) or (height, width)")
        height, width = shape[-2:]
        least = self.size + int(self.released)
        fits = height >= least and width >= least
        must_fit(fits, self, shape, f"height {height} and width {width} must be at least {least}")
        return height - least + 1, width - least + 1

    def grid(self, batch: Tensor) -> Tensor:
        rows, columns = self.positions(tuple(batch.shape[1:]))
        squares = batch.unfold(-2, self.size, 1).unfold(-2, self.size, 1)[..., :rows, :columns, :, :]
        return squares if batch.dim() == 3 else squares.permute(0, 2, 3, 1, 4, 5)  # (batch, rows, columns, ...)

    @property
    def spec(self) -> str:
        return f"unaligned-squares:{self.size}" + (",released=true" if self.released else "")
