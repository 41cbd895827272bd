"""Plausible records without a model behind them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jostle.base.estimate import Interval
from jostle.estimates import Difference, MeanChange, Measurement, Profile
from jostle.estimates.result import MeasureSettings

Floats = NDArray[np.float64]


def profile(values: Floats, positions: tuple[int, ...]) -> Profile:
    flat = values.astype(np.float64).ravel()
    counts = np.full(flat.shape, 100, dtype=np.int64)
    return Profile(flat, flat - 0.01, flat + 0.02, counts, positions, "dataset", "made up")


def estimate(value: float, low: float, high: float, by_position: Profile) -> MeanChange:
    dataset = Interval(low, high, 0.95, "dataset", "made up")
    population = Interval(low - 0.5, high + 0.5, 0.95, "population", "made up")
    return MeanChange(value, dataset, population, np.zeros(2, dtype=np.float64), by_position, 100)


def measurement(values: Floats, positions: tuple[int, ...], name: str = "vit", response: str = "flip") -> Measurement:
    settings = MeasureSettings(
        "patches:4", "gaussian-noise:std=1", response, "grid:draws=1", "dataset", 0.9, 0, 2, values.size
    )
    whole = estimate(0.1, 0.05, 0.15, profile(values, positions))
    return Measurement(
        **vars(whole),
        name=name,
        settings=settings,
        passes=200,
        stopped="complete",
        nonfinite=0,
        warnings=[],
        seconds=1.0,
        provenance={},
    )


def difference(first: str, second: str, ends: Sequence[float]) -> Difference:
    low, value, high = ends
    return Difference(**vars(estimate(value, low, high, profile(np.zeros(4), (4,)))), first=first, second=second)
