"""Straight lines through runs: slopes with intervals, as evidence for verdicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from jostle.intervals.fixed import Ends
from jostle.studies.evidence import Measured, Sample

CONSTANT = "constant"
_ROUNDING = 1e-12


def least_squares(y: Sequence[float], columns: Mapping[str, Sequence[float]]) -> dict[str, Measured]:
    """The coefficients of y = constant + sum of coefficient * column by least squares, with Student's intervals.

    The constant is among them, as ``CONSTANT``. Each interval is coefficient -+ t sqrt(s^2 (X^T X)^-1), with points -
    columns - 1 degrees of freedom. It assumes that distances from the line are independent and about normal; curvature
    counts as distance.

    >>> found = least_squares([0.0, 1.1, 1.9, 3.0], {"n": [0, 1, 2, 3]})["n"]
    >>> round(found.value, 3), [round(end, 3) for end in found.ends(0.95)]
    (0.98, [0.797, 1.163])

    Arguments:
        y: one number for each point.
        columns: one number for each point, by name.
    """
    design = np.column_stack([np.ones(len(y)), *(np.asarray(column, dtype=np.float64) for column in columns.values())])
    values, freedom, names = np.asarray(y, dtype=np.float64), len(y) - design.shape[1], [CONSTANT, *columns]
    if freedom < 1:
        return dict.fromkeys(names, _nothing(f"{len(y)} runs for {len(columns)} coefficients and a constant"))
    if not (np.isfinite(values).all() and np.isfinite(design).all()):
        return dict.fromkeys(names, _nothing("some values are NaN or infinite"))
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return dict.fromkeys(names, _nothing(f"the runs do not tell {' and '.join(columns)} apart"))
    found = np.linalg.lstsq(design, values, rcond=None)[0]
    left = float(np.square(values - design @ found).sum())
    errors = np.sqrt(left / freedom * np.diag(np.linalg.inv(design.T @ design)))
    is_perfect = left <= (_ROUNDING * float(np.abs(values).max())) ** 2 * len(values)
    doubt = "the points lie exactly on it, so how much runs differ is not known" if is_perfect else ""
    method = f"least squares through {len(y)} runs"
    return {
        name: _coefficient(float(found[place]), Sample(len(y), "runs", float(errors[place]), freedom), doubt, method)
        for place, name in enumerate(names)
    }


def slope(points: Sequence[tuple[float, float]]) -> Measured:
    """The slope of the line through (x, y)."""
    return least_squares([y for _, y in points], {"x": [x for x, _ in points]})["x"]


def height(points: Sequence[tuple[float, float]], at: float) -> Measured:
    """The height at ``at`` of the line through (x, y): the constant, if x is counted from there.

    >>> found = height([(4.0, 1.0), (6.0, 2.1), (8.0, 2.9), (10.0, 4.0)], 7.0)
    >>> round(found.value, 3), [round(end, 3) for end in found.ends(0.95)]
    (2.5, [2.296, 2.704])
    """
    return least_squares([y for _, y in points], {"x": [x - at for x, _ in points]})[CONSTANT]


def size(measured: Measured) -> Measured:
    """A number without its sign, with the interval that follows from that of the number.

    >>> round(size(slope([(0, 0.0), (1, -1.1), (2, -1.9), (3, -3.0)])).value, 3)
    0.98
    """

    def ends(level: float) -> Ends:
        low, high = measured.ends(level)
        least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        return least, max(abs(low), abs(high))

    return replace(measured, value=abs(measured.value), ends=ends)


def _coefficient(value: float, sample: Sample, doubt: str, method: str) -> Measured:
    def ends(level: float) -> Ends:
        reach = float(special.stdtrit(sample.freedom, (1 + level) / 2)) * sample.error
        return value - reach, value + reach

    return Measured(value, ends, doubt, method=method, sample=sample)


def _nothing(doubt: str) -> Measured:
    return Measured(math.nan, lambda _: (-math.inf, math.inf), doubt)
