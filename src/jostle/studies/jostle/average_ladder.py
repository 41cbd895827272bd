"""From the mean over random changes to the worst that was found: what a ladder is, and how it is read from records.

The rungs are the mean response to one random change, the expected largest response to 2, 4, ... K of them, and the
largest response that a search found, all of them for changes of the same length and for the same tokens. So no rung is
below the one before it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from jostle.figures.style import Floats
from jostle.results import Record
from jostle.studies.evidence import Measured
from jostle.studies.records import Records
from jostle.worst.search import expected_maxima

BySeed = dict[int, float]


@dataclass(frozen=True)
class Ladder:
    """The rungs at each radius.

    Arguments:
        radii: lengths of the changes in units of the token's norm, increasing.
        mean: (radii,) over random changes.
        max_of: (radii, counts) expected largest of 1, 2, 4, ... random changes; the first is the mean.
        worst: (radii,) the largest found.
    """

    radii: list[float]
    mean: list[float]
    max_of: list[list[float]]
    worst: list[float]

    @classmethod
    def of(cls, radii: Sequence[float], drawn: Floats, worst: list[float], counts: list[int]) -> "Ladder":
        """The ladder of one token.

        Arguments:
            radii: (radii,).
            drawn: (radii, draws) responses to random changes.
            worst: (radii,) the largest found.
            counts: 1, 2, 4, ... draws.
        """
        maxima = expected_maxima(drawn, counts)  # (counts, radii)
        return cls(list(radii), maxima[0].tolist(), maxima.T.tolist(), worst)

    def to_dict(self) -> Record:
        """A plain dictionary, for JSON."""
        return dict(vars(self))


def averaged(ladders: Iterable[Ladder]) -> Ladder:
    """The mean of every rung over tokens.

    >>> averaged([Ladder([1.0], [1.0], [[1.0, 2.0]], [3.0]), Ladder([1.0], [3.0], [[3.0, 4.0]], [5.0])])
    Ladder(radii=[1.0], mean=[2.0], max_of=[[2.0, 3.0]], worst=[4.0])
    """
    listed = list(ladders)
    parts = [(one.mean, one.max_of, one.worst) for one in listed]
    return Ladder(listed[0].radii, *(np.mean(part, axis=0).tolist() for part in zip(*parts, strict=True)))


def rung(records: Records[Any], field: str, name: str, radius: float) -> dict[int, Any]:
    """One rung at one radius by seed: ``mean``, ``worst``, or ``max_of``, which is a list over counts.

    Arguments:
        records: of one network or map.
        field: of the record, where its ladder is.
        name: of the rung.
        radius: one of the ladder's radii.
    """
    return {seed: ladder[name][ladder["radii"].index(radius)] for seed, ladder in records.by("seed", field).items()}


def ratios(worst: BySeed, mean: BySeed) -> BySeed:
    """log10 of worst / mean by seed; NaN where one of them is 0."""
    return {
        seed: math.log10(worst[seed] / mean[seed]) if min(worst[seed], mean[seed]) > 0 else math.nan for seed in mean
    }


def exponential(measured: Measured) -> Measured:
    """10 to the power of a measured number.

    >>> from jostle.studies.evidence import over_seeds
    >>> low, high = exponential(over_seeds([0.9, 1.0, 1.1])).ends(0.95)
    >>> round(low, 2), round(high, 2)
    (5.64, 17.72)
    """

    def ends(level: float) -> tuple[float, float]:
        low, high = measured.ends(level)
        return _power(low), _power(high)

    method = f"{measured.method} of the logarithm"
    return Measured(_power(measured.value), ends, measured.doubt, most_level=measured.most_level, method=method)


def crossing(first: Mapping[float, float], second: Mapping[float, float]) -> float:
    """The smallest radius beyond which ``first``, at first below ``second``, is above; NaN if there is none.

    Between two radii both are taken for powers of the radius.

    >>> round(crossing({1.0: 1.0, 4.0: 16.0}, {1.0: 2.0, 4.0: 8.0}), 6)
    2.0

    Arguments:
        first, second: values by radius, the same increasing radii.
    """
    gaps = [(math.log(radius), math.log(first[radius] / second[radius])) for radius in first]
    for (left, before), (right, after) in pairwise(gaps):
        if before < 0 <= after:
            return math.exp(left + (right - left) * before / (before - after))
    return math.nan


def _power(exponent: float) -> float:
    return math.inf if exponent > 300 else 10.0**exponent
