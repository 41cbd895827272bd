"""Operations on pairs of numbers. A network is trained on a part of the pairs and tested on the rest.

A task is a table: all pairs (a, b), first number outermost, and the answer to each. A pair becomes three tokens, a, b
and "=", and the answer is read at "=".
"""

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry

TASKS: Registry[type["GrokkingTask"]] = Registry("task")


class GrokkingTask(ABC):
    """All pairs of numbers and the answers to them."""

    is_commutative = False

    @property
    @abstractmethod
    def numbers(self) -> int:
        """The number of different numbers, as operands and as answers; token ``numbers`` is "="."""

    @property
    def cycle(self) -> int | None:
        """n if the answers are the integers modulo n, all equally frequent; otherwise None.

        Then the logits have Fourier components by answer, which restricted and excluded loss need.
        """
        return None

    @abstractmethod
    def pairs(self) -> Tensor:
        """All pairs, (count, 2) whole numbers; the second number runs faster."""

    @abstractmethod
    def answers(self) -> Tensor:
        """The answer to each pair, (count,)."""

    @abstractmethod
    def describe(self) -> str:
        """A spec that makes this task again, e.g. ``addition:modulus=113``."""


@dataclass(frozen=True)
class _Modular(GrokkingTask):
    """Arithmetic modulo a number."""

    modulus: int = 113

    def __post_init__(self) -> None:
        checks.whole("modulus", self.modulus, least=2)

    @property
    def numbers(self) -> int:
        return self.modulus

    def pairs(self) -> Tensor:
        return _grid(range(self.modulus), range(self.modulus))


@TASKS.register("addition")
class Addition(_Modular):
    """a + b modulo a number: the task of Nanda et al. (2301.05217) and of paper 1 (2403.06925), Section 7.3.

    >>> Addition(modulus=3).answers().tolist()
    [0, 1, 2, 1, 2, 0, 2, 0, 1]
    """

    is_commutative = True

    @property
    def cycle(self) -> int | None:
        return self.modulus

    def answers(self) -> Tensor:
        return self.pairs().sum(dim=1) % self.modulus

    def describe(self) -> str:
        return f"addition:modulus={self.modulus}"


@TASKS.register("subtraction")
class Subtraction(_Modular):
    """a - b modulo a number."""

    @property
    def cycle(self) -> int | None:
        return self.modulus

    def answers(self) -> Tensor:
        pairs = self.pairs()
        return (pairs[:, 0] - pairs[:, 1]).remainder(self.modulus)

    def describe(self) -> str:
        return f"subtraction:modulus={self.modulus}"


@TASKS.register("division")
class Division(_Modular):
    """a / b modulo a prime, for b other than 0, as in Power et al. (2201.02177).

    >>> task = Division(modulus=5)
    >>> list(zip(task.pairs().tolist(), task.answers().tolist()))[6]  # since 3 * 2 = 6 = 1
    ([1, 3], 2)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(self.modulus % factor == 0 for factor in range(2, int(self.modulus**0.5) + 1)):
            raise UsageError(f"modulus={self.modulus} of division must be a prime, or some numbers have no inverse")

    def pairs(self) -> Tensor:
        return _grid(range(self.modulus), range(1, self.modulus))

    def answers(self) -> Tensor:
        pairs = self.pairs()
        inverses = torch.tensor([0, *(pow(number, -1, self.modulus) for number in range(1, self.modulus))])
        return (pairs[:, 0] * inverses[pairs[:, 1]]).remainder(self.modulus)

    def describe(self) -> str:
        return f"division:modulus={self.modulus}"


@TASKS.register("permutations")
@dataclass(frozen=True)
class Permutations(GrokkingTask):
    """The first permutation after the second: (a b)(i) = a(b(i)). With degree 5 it is S5 of Power et al. (2201.02177).

    Numbers stand for permutations in lexicographic order; 0 is the identity.

    >>> Permutations(degree=3).numbers, Permutations().numbers
    (6, 120)

    Arguments:
        degree: number of things that are permuted.
    """

    degree: int = 5

    def __post_init__(self) -> None:
        checks.whole("degree of permutations", self.degree, least=2, most=6)

    @property
    def numbers(self) -> int:
        return len(self._elements())

    def pairs(self) -> Tensor:
        return _grid(range(self.numbers), range(self.numbers))

    def answers(self) -> Tensor:
        elements = np.array(self._elements())  # (numbers, degree)
        first, second = self.pairs().T.numpy()
        products = np.take_along_axis(elements[first], elements[second], axis=1)
        powers = self.degree ** np.arange(self.degree)[::-1]  # as digits: the order of the codes is lexicographic
        return torch.from_numpy(np.searchsorted(elements @ powers, products @ powers))

    def describe(self) -> str:
        return f"permutations:degree={self.degree}"

    def _elements(self) -> list[tuple[int, ...]]:
        return list(itertools.permutations(range(self.degree)))


def split(task: GrokkingTask, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """The pairs to train on and the others, as rows of ``task.pairs()``, each in a random order.

    The order is that of numpy's legacy generator, so that a seed gives the same pairs as in the code released with
    paper 1; int(fraction * count) of them are trained on.

    >>> [len(part) for part in split(Addition(), 0.3, seed=42)]
    [3830, 8939]
    """
    checks.number("train_fraction", fraction, above=0, below=1)
    rows = np.arange(len(task.pairs()))
    np.random.RandomState(seed).shuffle(rows)
    trained = int(fraction * len(rows))
    if trained == 0:
        raise UsageError(f"train_fraction={fraction} of {len(rows)} pairs leaves none to train on")
    order = torch.from_numpy(rows)
    return order[:trained], order[trained:]


def _grid(first: range, second: range) -> Tensor:
    return torch.cartesian_prod(torch.tensor(first), torch.tensor(second))
