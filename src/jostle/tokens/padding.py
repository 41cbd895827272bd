"""Where the sentences of a padded batch begin and end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jostle.errors import UsageError

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Padding:
    """The columns from the first real token of each input to its last; what is outside of them is padding.

    >>> padding = Padding.of(np.array([[1, 1, 0, 0], [1, 1, 1, 0]], dtype=bool))
    >>> padding.lengths.tolist(), padding.side, padding.window(np.array([0, 1]))
    ([2, 3], 'right', (0, 3))

    Arguments:
        first, stop: (N,) the column of the first real token, and the column after the last one.
        width: the number of columns.
        has_gaps: whether some input has padding between real tokens.
    """

    first: Integers
    stop: Integers
    width: int
    has_gaps: bool = False

    @classmethod
    def of(cls, real: NDArray[np.bool_]) -> "Padding":
        """The padding of inputs with ``real`` (N, width) true for real tokens; an input without any is refused."""
        empty = np.flatnonzero(~real.any(axis=1))
        if len(empty):
            raise UsageError(
                f"{len(empty)} of {len(real)} inputs are all padding (first: input {empty[0]}): leave out empty texts"
            )
        width = real.shape[1]
        first = real.argmax(axis=1)
        stop = width - real[:, ::-1].argmax(axis=1)
        has_gaps = bool((real.sum(axis=1) < stop - first).any())
        return cls(first.astype(np.int64), stop.astype(np.int64), width, has_gaps)

    @property
    def lengths(self) -> Integers:
        """(N,) tokens from the first real one to the last."""
        return self.stop - self.first

    @property
    def side(self) -> str:
        """Where the padding is: ``left``, or ``right``, also if there is none, or ``both``."""
        if not self.first.any():
            return "right"
        return "left" if (self.stop == self.width).all() else "both"

    def window(self, indices: Integers) -> tuple[int, int]:
        """The columns (from, to) outside of which all of these inputs are padding."""
        return int(self.first[indices].min()), int(self.stop[indices].max())

    def numbers(self, indices: Integers, columns: Integers, alignment: str = "left") -> Integers:
        """The number of each token in its sentence, from 0; with ``right`` the last token has number width - 1."""
        if alignment == "left":
            return columns - self.first[indices]
        return columns + self.width - self.stop[indices]
