"""Sparse parity: bits whose label is the product of a few of them."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean import functions
from jostle.boolean.functions.known import KnownFunction
from jostle.boolean.sampled import uniform_points
from jostle.data import Dataset

# The set of the sparse parities in the released data of Bhattamishra et al. (2211.12316), which paper 1 builds on.
RELEASED = (2, 9, 23, 36)


@dataclass(frozen=True)
class SparseParity:
    """x uniform in {-1, 1}^d with the label chi_S(x) = product of x_i over i in S.

    Its sensitivity is p / d, p being the size of S: a flip of a bit in S changes the label of every x, any other flip
    changes none. Source: paper 1 (2403.06925), appendix A.6, with d = 40 and p = 4.

    Differs: the paper does not name S; the default is that of the data that the paper builds on.

    >>> SparseParity().sensitivity, SparseParity.spread(20, 3).coordinates
    (0.1, (3, 10, 16))

    Arguments:
        num_bits: d.
        coordinates: S, counted from 0.
    """

    num_bits: int = 40
    coordinates: tuple[int, ...] = RELEASED

    def __post_init__(self) -> None:
        checks.sizes(num_bits=self.num_bits)
        object.__setattr__(self, "coordinates", tuple(self.coordinates))
        assert self.function  # making it refuses wrong coordinates

    @classmethod
    def spread(cls, num_bits: int, degree: int) -> "SparseParity":
        """The product of ``degree`` bits, each in the middle of an equal stretch of the ``num_bits``."""
        checks.sizes(num_bits=num_bits, degree=degree)
        if degree > num_bits:
            raise UsageError(f"degree={degree} must be at most num_bits={num_bits}")
        return cls(num_bits, tuple((2 * part + 1) * num_bits // (2 * degree) for part in range(degree)))

    @property
    def degree(self) -> int:
        """p, the size of S."""
        return len(self.coordinates)

    @property
    def sensitivity(self) -> float:
        """p / d."""
        return self.degree / self.num_bits

    @cached_property
    def function(self) -> KnownFunction:
        """The label as a function of ``jostle.boolean``, with its exact values."""
        return functions.sparse_parity(self.num_bits, coordinates=list(self.coordinates))

    def monomial(self, points: Tensor) -> Tensor:
        """chi_S at each row, (count, d) of -1 and 1 -> (count,) of -1 and 1."""
        return points[:, list(self.coordinates)].prod(dim=1)

    def sample(self, count: int, *, seed: int, split: str = "train") -> Dataset:
        """Independent uniform points with their labels: 1 where the product is 1, otherwise 0.

        Arguments:
            count: number of points.
            seed: of the points; a larger sample begins with the smaller one.
            split: samples of different splits are independent under one seed.
        """
        checks.sizes(count=count)
        points = torch.from_numpy(uniform_points(self.num_bits, count, seed, f"parity/{split}"))
        labels = (self.monomial(points) > 0).long()
        inputs = points.to(torch.get_default_dtype())
        return Dataset(self.describe(), inputs, labels, classes=2, split=split)

    def describe(self) -> str:
        """Its name in records.

        >>> SparseParity(10, (0, 4)).describe()
        'sparse-parity:num_bits=10,coordinates=0/4'
        """
        return f"sparse-parity:num_bits={self.num_bits},coordinates={'/'.join(map(str, self.coordinates))}"
