"""What a measurement and a difference have in common: an estimate, and the target it was asked for."""

from abc import ABC, abstractmethod
from typing import Any

from jostle.estimates.estimate import Estimate, Floats, Profile
from jostle.intervals import Interval, Target


class Answer(ABC):
    """An estimate as people read it: a value between ``low`` and ``high``."""

    estimate: Estimate

    @property
    @abstractmethod
    def target(self) -> Target:
        """Which interval is ``low`` and ``high``: ``dataset`` or ``population``."""

    @property
    def value(self) -> float:
        """The estimate."""
        return self.estimate.value

    @property
    def interval(self) -> Interval:
        """The interval for the target asked for."""
        return self.dataset if self.target == "dataset" else self.population

    @property
    def low(self) -> float:
        """The lower end of ``interval``."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper end of ``interval``."""
        return self.interval.high

    @property
    def dataset(self) -> Interval:
        """The interval for the mean over exactly the inputs given."""
        return self.estimate.dataset

    @property
    def population(self) -> Interval:
        """The interval for the mean over the population the inputs came from."""
        return self.estimate.population

    @property
    def profile(self) -> Profile:
        """The mean change by token position."""
        return self.estimate.profile

    @property
    def per_input(self) -> Floats:
        """The mean change of each input, NaN where it was not visited."""
        return self.estimate.per_input

    @property
    def trials(self) -> int:
        """Finite (input, token, draw) triples evaluated."""
        return self.estimate.trials

    def numbers(self) -> dict[str, Any]:
        """Value, intervals, profile and means as plain numbers, for JSON."""
        ends = self.interval.to_dict()
        return {"low": ends["low"], "high": ends["high"], "target": self.target, **self.estimate.to_dict()}
