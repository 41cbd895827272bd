"""A number with its interval, what the interval covers, and where the number came from.

Every estimate of jostle is an ``Estimate`` or a subclass of it. ``provenance`` is what is saved beside results.
"""

import datetime
import functools
import math
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

from jostle.base.table import Row, Tabular

Target = Literal["dataset", "population"]

OTHER: dict[Target, Target] = {"dataset": "population", "population": "dataset"}
TARGETS: dict[str, str] = {
    "dataset": "the inputs given",
    "population": "the population the inputs came from",
}


@dataclass(frozen=True)
class Interval:
    """A confidence interval for a mean, labelled with what it is an interval for and how it was made.

    Arguments:
        low, high: the ends.
        level: the stated coverage, e.g. 0.95.
        target: ``dataset``, the mean over exactly the inputs given, or ``population``, the mean over the population
            from which the inputs are a random sample.
        method: the construction, in a few words.
        is_known: false where no interval can be given; ``low`` and ``high`` then enclose all values there are.
        caveat: why the stated coverage is not promised: ``asymptotic``, or ``asymptotic, too few: ...``; empty where
            it is.
    """

    low: float
    high: float
    level: float
    target: Target
    method: str
    is_known: bool = True
    caveat: str = ""

    @property
    def mark(self) -> str:
        """What is printed beside an interval that does not promise its coverage."""
        return " (asymptotic)" if self.caveat else ""

    @property
    def half_width(self) -> float:
        """Half of ``high - low``."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; an end at infinity becomes null."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        known = {} if self.is_known else {"is_known": False}
        caveat = {"caveat": self.caveat} if self.caveat else {}
        return {"low": low, "high": high, "level": self.level, "method": self.method, **known, **caveat}

    @classmethod
    def from_dict(cls, target: Target, record: dict[str, Any]) -> "Interval":
        """The interval that ``to_dict`` wrote."""
        low = -math.inf if record["low"] is None else record["low"]
        high = math.inf if record["high"] is None else record["high"]
        if low > high:
            raise ValueError(f"the interval for {TARGETS[target]}, which goes from {low:g} down to {high:g}")
        # Files of before the key is_known: the one method that gives no interval has a name that begins so.
        is_known = record.get("is_known", not record["method"].startswith("unknown"))
        return cls(low, high, record["level"], target, record["method"], is_known, record.get("caveat", ""))


@dataclass(frozen=True, eq=False)
class Estimate(Tabular):
    """A number and how sure we are of it: value [low, high].

    Arguments:
        value: the estimate.
        interval: its confidence interval.
    """

    value: float
    interval: Interval

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.interval.high

    def __str__(self) -> str:
        return f"{self.value:.4g}   [{self.low:.4g}, {self.high:.4g}]{self.interval.mark}"

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """One row: the number and the ends of its interval."""
        return [self.row()]

    def row(self, **first: Any) -> Row:
        """The number with the ends, the level and the target of its interval, after other columns."""
        interval = self.interval
        ends = {"value": self.value, "low": interval.low, "high": interval.high}
        return {**first, **ends, "level": interval.level, "target": interval.target}


def in_seconds(*seconds: float) -> str:
    """The sum of times as a result prints it: of the numbers in its file, so that it prints the same when it is read.

    >>> in_seconds(0.0496), in_seconds(0.05)
    ('0.1 s', '0.1 s')
    """
    return f"{sum(round(each, 3) for each in seconds):.1f} s"


PROCESSES = "processes"  # a key of what is saved beside a result: how it was computed, where that is worth a remark


def provenance() -> dict[str, str]:
    """Versions, kind of machine and time, to be saved beside a result."""
    versions = {name: _version(name) for name in ("jostle", "torch", "numpy", "scipy")}
    return {
        **versions,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
