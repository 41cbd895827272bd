"""Random triples until the interval is as narrow as asked for."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jostle.errors import UsageError
from jostle.randomness import Stream
from jostle.sampling.trials import Trials
from jostle.specs import written
from jostle.tokens import Inputs

_FIRST_LOOK = 64
_GROWTH = 0.04


@dataclass(frozen=True)
class Until:
    """Draw (input, token, noise) independently until the interval is narrow enough.

    Each trial takes an input uniformly with replacement, one of its tokens uniformly, and fresh noise, so the changes
    are independent draws whose mean is the sensitivity on this dataset; their number depends on neither N nor T. The
    interval is valid at every stopping time. It is looked at after 64 draws and then at draw numbers that grow by 4 %,
    whatever the batch size: the same seed stops at the same draw.

    Arguments:
        half_width: stop when the interval is at most this wide to each side on average: high - low <= 2 half_width.
        relative: stop when (high - low) / 2 <= relative * value. Give this or ``half_width``.
        max_passes: stop before a model has answered more inputs than this; the result says that this ended it.
    """

    half_width: float | None = None
    relative: float | None = None
    max_passes: int = 1_000_000

    def __post_init__(self) -> None:
        if (self.half_width is None) == (self.relative is None):
            raise UsageError("Until needs exactly one of half_width= and relative=, for example Until(half_width=0.01)")
        for name, value in (("half_width", self.half_width), ("relative", self.relative)):
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise UsageError(f"{name}={value!r} of Until must be a finite number larger than 0")
        if isinstance(self.max_passes, bool) or not isinstance(self.max_passes, int) or self.max_passes < 1:
            raise UsageError(f"max_passes={self.max_passes!r} of Until must be a whole number, at least 1")

    def trials(self, inputs: Inputs, seed: int, start: int, stop: int, average: str = "macro") -> Trials:
        """Trials number ``start`` .. ``stop`` - 1 of the endless sequence of this seed.

        Inputs are drawn uniformly; with ``average="micro"`` in proportion to their tokens, which makes tokens uniform.
        """
        number = np.arange(start, stop)
        zeros = np.zeros(stop - start)
        uniforms = Stream(seed, "until").uniforms(number, zeros, zeros, size=2)
        if average == "micro" and inputs.token_counts is not None:
            share = np.cumsum(inputs.token_counts) / inputs.token_counts.sum()
            chosen = np.searchsorted(share, uniforms[:, 0], side="right").clip(max=len(inputs) - 1)
        else:
            chosen = (uniforms[:, 0] * len(inputs)).astype(np.int64)
        counts = inputs.num_tokens if inputs.token_counts is None else inputs.token_counts[chosen]
        nth = (uniforms[:, 1] * counts).astype(np.int64)
        return Trials(chosen, inputs.nth_token(chosen, nth), number)

    @staticmethod
    def looks() -> Iterator[tuple[int, int]]:
        """(previous look, this look) in numbers of draws."""
        start = 0
        while True:
            step = max(_FIRST_LOOK, math.ceil(_GROWTH * start / _FIRST_LOOK) * _FIRST_LOOK)
            yield start, start + step
            start += step

    def is_met(self, value: float, low: float, high: float) -> bool:
        """Whether an interval is narrow enough to stop."""
        if self.half_width is not None:
            return high - low <= 2 * self.half_width
        return high - low <= 2 * (self.relative or 0.0) * abs(value)

    def share_done(self, value: float, low: float, high: float) -> float:
        """About which share of the draws needed has been made: widths shrink with the root of the draws."""
        aim = self.half_width if self.half_width is not None else (self.relative or 0.0) * abs(value)
        width = (high - low) / 2
        return 1.0 if width <= aim else float(aim / width) ** 2

    def horizon(self, p: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        """The number of draws at which sampling is expected to stop if the proportion is p.

        From b^2 p (1 - p) / n = half_width^2, where b is the boundary of the tuned mixture in standard errors (3.03
        at level 0.95), and from the draws that even p = 0 takes.
        """
        log_threshold = -math.log1p(-level)
        tuning = 2 * log_threshold + math.log1p(2 * log_threshold)
        boundary = (1 + 1 / tuning) * (math.log1p(tuning) + 2 * log_threshold)
        variance = np.maximum(p * (1 - p), 1e-12)
        if self.half_width is None:
            return np.minimum(boundary * variance / ((self.relative or 0.0) * np.maximum(p, 1e-12)) ** 2, 1e12)
        return np.maximum(boundary * variance / self.half_width**2, 0.65 * log_threshold / self.half_width)

    def describe(self) -> str:
        """A spec that makes this plan again."""
        name, value = ("relative", self.relative) if self.half_width is None else ("half_width", self.half_width)
        rule = f"{name}={written(value or 0.0)}"
        return f"until:{rule},max_passes={self.max_passes}"
