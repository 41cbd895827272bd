"""A mean change with its two intervals and its profile over positions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.intervals import Interval, Target

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Profile:
    """The mean change by token position, each position with an interval of its own (not simultaneous).

    A position is averaged over the inputs that have it. ``Until`` visits a token of a short input more often than one
    of a long input, so with masks its profile weighs inputs by 1 / their number of tokens; ``Grid`` weighs them alike,
    and so does ``Until`` if the average is micro.

    Arguments:
        values, low, high: (tokens,); NaN where a position was never jostled.
        counts: (tokens,) trials behind each position.
        positions: the shape of the position grid, e.g. (7, 7) for patches.
        target, method: what the intervals are for and how they were made.
        special: (tokens,) of text whose special tokens are known: of the texts that have this position, the share with
            a special token there, such as a classification token or a separator; NaN where no text reaches.
    """

    values: Floats
    low: Floats
    high: Floats
    counts: NDArray[np.int64]
    positions: tuple[int, ...]
    target: Target
    method: str
    special: Floats | None = None

    def image(self) -> Floats:
        """``values`` in the shape of the position grid: (rows, columns) for patches."""
        return self.values.reshape(self.positions)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; NaN becomes null, and what is not known has no entry."""
        return {
            "values": plain(self.values),
            "low": plain(self.low),
            "high": plain(self.high),
            "counts": self.counts.tolist(),
            "positions": list(self.positions),
            "target": self.target,
            "method": self.method,
            **({} if self.special is None else {"special": plain(self.special)}),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Profile":
        """The profile that ``to_dict`` wrote."""
        ends = {key: array(record[key]) for key in ("values", "low", "high")}
        counts = np.asarray(record["counts"], dtype=np.int64)
        return cls(
            **ends,
            counts=counts,
            positions=tuple(record["positions"]),
            target=record["target"],
            method=record["method"],
            special=array(record["special"]) if "special" in record else None,
        )


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean over inputs of the mean over tokens of the mean over draws, and how sure we are of it.

    Arguments:
        value: the estimate.
        dataset: the interval for the mean over exactly the inputs given.
        population: the interval for the mean over the population they came from.
        per_input: (N,), the mean change of each input; NaN where it was not visited.
        profile: the mean change by position.
        trials: finite trials behind the value.
    """

    value: float
    dataset: Interval
    population: Interval
    per_input: Floats
    profile: Profile
    trials: int

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {
            "value": self.value,
            "dataset": self.dataset.to_dict(),
            "population": self.population.to_dict(),
            "trials": self.trials,
            "profile": self.profile.to_dict(),
            "per_input": plain(self.per_input),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Estimate":
        """The estimate that ``to_dict`` wrote; other keys are passed over."""
        return cls(
            value=record["value"],
            dataset=Interval.from_dict("dataset", record["dataset"]),
            population=Interval.from_dict("population", record["population"]),
            per_input=array(record["per_input"]),
            profile=Profile.from_dict(record["profile"]),
            trials=record["trials"],
        )


def plain(values: Floats) -> list[float | None]:
    """Numbers as JSON can hold them."""
    return [float(value) if np.isfinite(value) else None for value in values]


def array(values: list[float | None]) -> Floats:
    """What ``plain`` wrote, as an array."""
    return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)
