"""The token views: coordinates, rows, patches, and the whole input as one token."""

from dataclasses import dataclass

from torch import Tensor

from jostle.base.errors import UsageError
from jostle.tokens.view import VIEWS, TokenView, must_fit


@VIEWS.register("coordinates")
@dataclass(frozen=True)
class Coordinates(TokenView):
    """Every number of the input is a token of its own: the bits of a Boolean function, the pixels of a grey image.

    >>> Coordinates().num_tokens((28, 28))
    784
    """

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) >= 1, self, shape, "expected at least one dimension after the batch")
        return shape

    def grid(self, batch: Tensor) -> Tensor:
        return batch.unsqueeze(-1)

    @property
    def spec(self) -> str:
        return "coordinates"


@VIEWS.register("rows")
@dataclass(frozen=True)
class Rows(TokenView):
    """The first dimension after the batch counts the tokens: (batch, tokens, dim), or (batch, tokens) token ids.

    >>> Rows().num_tokens((50, 16))
    50
    """

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) >= 1, self, shape, "expected (batch, tokens, dim) or (batch, tokens)")
        return shape[:1]

    def grid(self, batch: Tensor) -> Tensor:
        return batch

    @property
    def spec(self) -> str:
        return "rows"


@VIEWS.register("patches")
@dataclass(frozen=True)
class Patches(TokenView):
    """Square patches of an image (batch, channels, height, width) or (batch, height, width), all channels together.

    Positions are numbered from the top left, row by row, as in a vision transformer.

    >>> Patches(4).num_tokens((3, 32, 32))
    64

    Arguments:
        size: the side of a patch in pixels; it must divide height and width.
    """

    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise UsageError(f"size={self.size!r} of Patches must be a whole number of pixels, at least 1")

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) in (2, 3), self, shape, "expected (channels, height, width) or (height, width)")
        height, width = shape[-2:]
        fits = height % self.size == 0 and width % self.size == 0
        must_fit(fits, self, shape, f"the side {self.size} must divide height {height} and width {width}")
        return height // self.size, width // self.size

    def grid(self, batch: Tensor) -> Tensor:
        rows, columns = self.positions(tuple(batch.shape[1:]))
        split = batch.view(*batch.shape[:-2], rows, self.size, columns, self.size)
        order = (0, 1, 3, 2, 4) if batch.dim() == 3 else (0, 2, 4, 1, 3, 5)
        return split.permute(order)  # (batch, rows, columns, [channels,] size, size)

    @property
    def spec(self) -> str:
        return f"patches:{self.size}"


@VIEWS.register("whole")
@dataclass(frozen=True)
class Whole(TokenView):
    """The whole input is one token: noise everywhere at once, the control of paper 1 (2403.06925), Table 4.

    >>> Whole().num_tokens((3, 32, 32))
    1
    """

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:  # noqa: ARG002
        return (1,)

    def grid(self, batch: Tensor) -> Tensor:
        return batch.unsqueeze(1)

    @property
    def spec(self) -> str:
        return "whole"
