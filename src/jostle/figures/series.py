"""``Series``: the numbers of one line of a figure. Importing it does not import matplotlib."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from jostle.base.errors import UsageError


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a figure, with or without a band.

    Arguments:
        name: of the line; it decides colour, line style and marker, see ``style.looks``.
        x, y: (points,) in the order of the line; NaN leaves a gap.
        low, high: (points,) the ends of the interval of each point, both or neither.
        is_background: whether the line is thin, grey and without markers, behind the others: one run of many whose mean
            is what matters.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    is_background: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        given = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        arrays = {key: np.asarray(value, dtype=np.float64) for key, value in given.items() if value is not None}
        if len(arrays) == 3:
            raise UsageError(f"series {self.name!r} has only one end of its band; give both low and high, or neither")
        if any(array.ndim != 1 or array.shape != arrays["x"].shape for array in arrays.values()):
            shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
            raise UsageError(f"series {self.name!r} must have one number a point in each of its parts, not {shapes}")
        for key, array in arrays.items():
            object.__setattr__(self, key, array)
