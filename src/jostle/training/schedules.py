"""The learning rate of each epoch, a pure function of a schedule and the epoch's number: no state to save.

    learning rate of epoch e = lr * multiplier(e),  e = 1, 2, ...

To add one, derive from ``Schedule`` as ``Step`` does and put ``SCHEDULES.register`` on it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from jostle.base import checks
from jostle.base.registry import Registry
from jostle.base.specs import written

SCHEDULES: Registry[type["Schedule"]] = Registry("schedule")


@dataclass(frozen=True)
class Schedule(ABC):
    """The factor of the learning rate in each epoch.

    The first ``warmup`` = w epochs have the multipliers 1 / (w + 1), 2 / (w + 1), ..., w / (w + 1); the schedule proper
    starts after them, with its own epoch 1.

    Arguments:
        warmup: epochs of warm-up.
    """

    warmup: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        checks.whole("warmup", self.warmup, least=0)

    def multiplier(self, epoch: int) -> float:
        """The factor in ``epoch``, counted from 1."""
        if epoch <= self.warmup:
            return epoch / (self.warmup + 1)
        return self.after_warmup(epoch - self.warmup)

    @abstractmethod
    def after_warmup(self, epoch: int) -> float:
        """The factor in ``epoch``, counted from 1 where the warm-up ends."""

    @abstractmethod
    def describe(self) -> str:
        """A spec that makes this schedule again, e.g. ``step:every=8,factor=0.5,warmup=0``."""


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
    """factor ^ floor((e - 1) / every): the learning rate is multiplied by ``factor`` after every ``every`` epochs.

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
        checks.whole("every", self.every, least=1)
        checks.number("factor", self.factor, above=0, hint=", for example 0.5")

    def after_warmup(self, epoch: int) -> float:
        return float(self.factor ** ((epoch - 1) // self.every))

    def describe(self) -> str:
        return f"step:every={self.every},factor={written(self.factor)},warmup={self.warmup}"


@SCHEDULES.register("cosine")
@dataclass(frozen=True)
class Cosine(Schedule):
    """final + (1 - final) (1 + cos(pi (e - 1) / n)) / 2 with n = epochs - warmup: half a wave from 1 down to ``final``.

    Source: Loshchilov and Hutter 2017, "SGDR: stochastic gradient descent with warm restarts", without the restarts.
    ``epochs`` is an argument of its own, not the ``max_epochs`` of ``fit``: raising ``max_epochs`` changes no epoch
    that is done. After ``epochs`` the multiplier stays at ``final``.

    >>> [round(Cosine(4).multiplier(epoch), 4) for epoch in (1, 2, 3, 4, 5)]
    [1.0, 0.8536, 0.5, 0.1464, 0.0]

    Arguments:
        epochs: the last epoch of the wave, warm-up included; usually ``max_epochs``.
        final: the factor at the end, in [0, 1].
    """

    epochs: int
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("epochs", self.epochs, least=self.warmup + 1, hint=": the warm-up and at least one epoch more")
        checks.number("final", self.final, least=0, most=1)

    def after_warmup(self, epoch: int) -> float:
        share = min((epoch - 1) / (self.epochs - self.warmup), 1.0)
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * share)) / 2

    def describe(self) -> str:
        return f"cosine:epochs={self.epochs},final={written(self.final)},warmup={self.warmup}"
