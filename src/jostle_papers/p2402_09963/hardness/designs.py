"""Which network is trained, and how."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle_papers.p2402_09963.hardness.architectures import ARCHITECTURES, check_sizes


def check_seed(value: object) -> int:
    """``value`` as a seed of first weights: a whole number, also one of numpy, from 0 to the largest that torch takes.

    >>> check_seed(-1)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: seed=-1 must be a whole number from 0 to 18446744073709551615
    """
    return checks.whole("seed", value, least=0, most=2**64 - 1)


@contextlib.contextmanager
def first_weights(seed: int) -> Iterator[None]:
    """Inside, modules are made in float32 with random numbers of ``seed``; then torch's settings are put back."""
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(check_seed(seed))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


@dataclass(frozen=True, kw_only=True)
class HardnessDesign:
    """Which network, and its sizes; paper 2's ``BitEncoder`` unless given.

    Arguments:
        dim, depth, heads: as in ``BitEncoder``; transformers need an even dim, a multiple of heads, and a depth of at
            least 2.
        architecture: one of ``hardness.architectures.names()``; only transformers use heads.
    """

    dim: int = 128
    depth: int = 2
    heads: int = 2
    architecture: str = "transformer"

    def __post_init__(self) -> None:
        checks.sizes(dim=self.dim, depth=self.depth, heads=self.heads)
        checks.choice("architecture", self.architecture, ARCHITECTURES.names())
        check_sizes(self.architecture, dim=self.dim, depth=self.depth, heads=self.heads)

    def create(self, n: int, seed: int) -> nn.Module:
        """The untrained network for n bits, in float32; torch's own random state stays as it is."""
        with first_weights(seed):
            return ARCHITECTURES.get(self.architecture)(n, dim=self.dim, depth=self.depth, heads=self.heads)

    def describe(self) -> dict[str, Any]:
        """All choices, as JSON values; without an architecture a transformer is meant."""
        found = asdict(self)
        if self.architecture == "transformer":
            del found["architecture"]
        return found


@dataclass(frozen=True, kw_only=True)
class HardnessPlan:
    """Training by AdamW on the squared error, and when it ends.

    Paper 2: 10,000 steps of 1,024 fresh strings, lr 3e-4 and weight decay 0.1 on all weights. That is
    ``HardnessPlan(fit_loss=0)``. By default training ends once a network fits: after its smoothed loss has fallen below
    ``fit_loss`` there are ``settle`` more steps, in which the lr goes down to 0 in a straight line.

    Arguments:
        batch_size, lr, weight_decay: of AdamW.
        steps: at most, on all lengths together.
        fit_loss: a network has fitted once its smoothed loss is smaller, where labels are 0 and 1, each as often. For
            other labels it is multiplied by 4 Var(label), as the best constant is closer to them. 0 for the full number
            of steps.
        settle: steps after a network has fitted.
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
        checks.sizes(batch_size=self.batch_size, steps=self.steps, settle=self.settle)
        checks.number("lr", self.lr, above=0)
        checks.number("weight_decay", self.weight_decay, least=0)
        checks.number("fit_loss", self.fit_loss, least=0)
        if not _are_growing(self.curriculum):
            raise checks.wrong("curriculum", self.curriculum, "growing lengths of at least 1, e.g. (4, 6, 8)")

    def lengths(self, n: int) -> list[int]:
        """The lengths that are trained on, one after the other.

        >>> HardnessPlan(curriculum=(4, 6, 8, 10)).lengths(8)
        [4, 6, 8]
        """
        return [*(length for length in self.curriculum if length < n), n]

    def rates(self, steps: int, fitted: Tensor) -> Tensor:
        """The lr of the next step of each network: constant until it fits, then down to 0; 0 at the end of training.

        >>> HardnessPlan(lr=0.5, steps=10, settle=4).rates(6, torch.tensor([-1, 5])).tolist()
        [0.5, 0.375]

        Arguments:
            steps: done so far.
            fitted: the step after which each network had fitted, or -1, (networks,).
        """
        since = (steps - fitted).double()
        left = torch.where(fitted < 0, torch.ones_like(since), (1 - since / self.settle).clamp_min(0))
        return self.lr * left * (steps < self.steps)

    def describe(self) -> dict[str, Any]:
        """All choices, as JSON values."""
        return asdict(self) | {"curriculum": list(self.curriculum)}


def _are_growing(lengths: object) -> bool:
    """Whether these are whole numbers of at least 1, each larger than the one before; also if there are none."""
    if not isinstance(lengths, Sequence):
        return False
    try:
        found = [checks.whole("curriculum", length, least=1) for length in lengths]
    except UsageError:
        return False
    return found == sorted(set(found))
