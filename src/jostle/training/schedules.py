"""The learning rate of each epoch, as a pure function of a schedule and the epoch's number: resuming needs no state.

    learning rate of epoch e = lr * multiplier(e),  e = 1, 2, ...

To add one, derive from ``Schedule`` as ``Step`` does and put ``SCHEDULES.register`` on it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.base.specs import written

SCHEDULES: Registry[type["Schedule"]] = Registry("schedule")


@dataclass(frozen=True)
class Schedule(ABC):
    """What the learning rate is multiplied by in each epoch.

    The first ``warmup`` = w epochs have the multipliers 1 / (w + 1), 2 / (w + 1), ..., w / (w + 1); the schedule proper
    starts after them, with its own epoch 1.

    Arguments:
        warmup: epochs of warm-up.
    """

    warmup: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self._must_be_whole("warmup", self.warmup, at_least=0)

    def multiplier(self, epoch: int) -> float:
        """By what the learning rate is multiplied in ``epoch``, counted from 1."""
        if epoch <= self.warmup:
            return epoch / (self.warmup + 1)
        return self.after_warmup(epoch - self.warmup)

    @abstractmethod
    def after_warmup(self, epoch: int) -> float:
        """The multiplier in ``epoch``, counted from 1 where the warm-up ends."""

    @abstractmethod
    def describe(self) -> str:
        """A spec that makes this schedule again, e.g. ``step:every=8,factor=0.5,warmup=0``."""

    def _must_be_whole(self, name: str, value: int, at_least: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            owner = type(self).__name__
            raise UsageError(f"{name}={value!r} of {owner} must be a whole number of at least {at_least}")


@SCHEDULES.register("constant")
@dataclass(frozen=True)
class Constant(Schedule):
    """The same learning rate in all epochs after the warm-up.

    >>> [Constant(warmup=3).multiplier(epoch) for epoch in (1, 2, 3, 4, 5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """

    def after_warmup(self, epoch: int) -> float:  # noqa: ARG002
        return 1.0

    def describe(self) -> str:
        return f"constant:warmup={self.warmup}"


@SCHEDULES.register("step")
@dataclass(frozen=True)
class Step(Schedule):
    """factor ^ floor((e - 1) / every): the learning rate is multiplied by ``factor`` after every so many epochs.

    Paper 1 (2403.06925) halves Adam's learning rate every 8 epochs: ``Step(every=8, factor=0.5)``.

    >>> [Step(2, 0.5).multiplier(epoch) for epoch in (1, 2, 3, 4, 5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]

    Arguments:
        every: epochs between two changes.
        factor: what each change multiplies by.
    """

    every: int
    factor: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._must_be_whole("every", self.every, at_least=1)
        if not isinstance(self.factor, int | float) or not 0 < self.factor < math.inf:
            raise UsageError(f"factor={self.factor!r} of Step must be a positive number, for example 0.5")

    def after_warmup(self, epoch: int) -> float:
        return float(self.factor ** ((epoch - 1) // self.every))

    def describe(self) -> str:
        return f"step:every={self.every},factor={written(self.factor)},warmup={self.warmup}"


@SCHEDULES.register("cosine")
@dataclass(frozen=True)
class Cosine(Schedule):
    """final + (1 - final) (1 + cos(pi (e - 1) / n)) / 2 with n = epochs - warmup: half a wave from 1 down to ``final``.

    Source: Loshchilov and Hutter 2017, "SGDR: stochastic gradient descent with warm restarts", without the restarts.
    ``epochs`` is an argument of its own, and not the ``max_epochs`` of ``fit``, so that raising those changes no epoch
    that is done. After ``epochs`` the multiplier stays at ``final``.

    >>> [round(Cosine(4).multiplier(epoch), 4) for epoch in (1, 2, 3, 4, 5)]
    [1.0, 0.8536, 0.5, 0.1464, 0.0]

    Arguments:
        epochs: the last epoch of the wave, warm-up included; usually ``max_epochs``.
        final: what the multiplier tends to, in [0, 1].
    """

    epochs: int
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._must_be_whole("epochs", self.epochs, at_least=self.warmup + 1)
        if not isinstance(self.final, int | float) or not 0 <= self.final <= 1:
            raise UsageError(f"final={self.final!r} of Cosine must lie in [0, 1]")

    def after_warmup(self, epoch: int) -> float:
        share = min((epoch - 1) / (self.epochs - self.warmup), 1.0)
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * share)) / 2

    def describe(self) -> str:
        return f"cosine:epochs={self.epochs},final={written(self.final)},warmup={self.warmup}"
