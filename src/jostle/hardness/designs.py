"""Which network is trained, and how."""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from jostle.errors import UsageError
from jostle.hardness.architectures import ARCHITECTURES, least_depth
from jostle.models.sizes import check_factor, check_positive

SMOOTHING = 0.95  # of the loss that says when a network has fitted
SHOWN = 20  # steps from one line of progress to the next


@contextlib.contextmanager
def first_weights(seed: int) -> Iterator[None]:
    """Inside, modules are float32 and their random numbers a function of ``seed``; afterwards all is as before."""
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


@dataclass(frozen=True, kw_only=True)
class Design:
    """Which network, and its sizes; paper 2's ``BitEncoder`` unless given.

    Arguments:
        dim, depth, heads: as there; depth at least 2 for transformers.
        architecture: one of ``hardness.architectures.names()``; others than transformers have no use for heads.
    """

    dim: int = 128
    depth: int = 2
    heads: int = 2
    architecture: str = "transformer"

    def __post_init__(self) -> None:
        check_positive(dim=self.dim, depth=self.depth, heads=self.heads)
        ARCHITECTURES.get(self.architecture)
        if self.depth < least_depth(self.architecture):
            raise UsageError(
                f"depth={self.depth} must be at least 2, as the first block and the last have ways of their own"
            )

    def create(self, n: int, seed: int) -> nn.Module:
        """The untrained network for n bits, in float32; torch's own random state is left alone."""
        with first_weights(seed):
            return ARCHITECTURES.get(self.architecture)(n, dim=self.dim, depth=self.depth, heads=self.heads)

    def describe(self) -> dict[str, Any]:
        """All choices, as JSON values; a transformer is what is meant where no architecture is named."""
        found = asdict(self)
        if self.architecture == "transformer":
            del found["architecture"]
        return found


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Training by AdamW on the squared error, and when it ends.

    Paper 2: 10,000 steps of 1,024 fresh strings, lr 3e-4 and weight decay 0.1 on all weights. That is
    ``Plan(fit_loss=0)``. By default a network that fits is settled and then left alone: once its smoothed loss is
    below ``fit_loss`` it has ``settle`` more steps, in which the lr goes down to 0 in a straight line.

    Arguments:
        batch_size, lr, weight_decay: of AdamW.
        steps: at most, on all lengths together.
        fit_loss: a smaller smoothed loss counts as fitted, where labels are 0 and 1, each as often; for other labels it
            is multiplied by 4 Var(label), as the best constant is closer to them. 0 for the full number of steps.
        settle: steps after that.
        curriculum: shorter lengths that are trained on first, each until it is fitted.
    """

    batch_size: int = 1024
    lr: float = 3e-4
    weight_decay: float = 0.1
    steps: int = 10_000
    fit_loss: float = 0.02
    settle: int = 300
    curriculum: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_positive(batch_size=self.batch_size, steps=self.steps, settle=self.settle)
        check_factor(lr=self.lr)
        if self.weight_decay < 0 or self.fit_loss < 0:
            raise UsageError(f"weight_decay={self.weight_decay} and fit_loss={self.fit_loss} must not be negative")
        if list(self.curriculum) != sorted(set(self.curriculum)) or any(length < 1 for length in self.curriculum):
            raise UsageError(f"curriculum={self.curriculum} must be growing lengths of at least 1, e.g. (4, 6, 8)")

    def lengths(self, n: int) -> list[int]:
        """The lengths that are trained on, one after the other.

        >>> Plan(curriculum=(4, 6, 8, 10)).lengths(8)
        [4, 6, 8]
        """
        return [*(length for length in self.curriculum if length < n), n]

    def describe(self) -> dict[str, Any]:
        """All choices, as JSON values."""
        return asdict(self) | {"curriculum": list(self.curriculum)}
