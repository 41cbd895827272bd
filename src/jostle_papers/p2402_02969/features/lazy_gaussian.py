"""A Gaussian matrix that is never in memory: only its products with given vectors are drawn."""

from typing import Any

import torch
from torch import Tensor

from jostle.base import checks
from jostle_papers.p2402_02969.features.feature_map import generator

_NOTHING = 1e-10  # a remainder below this share of a vector is rounding


class LazyGaussian:
    """V with independent entries N(0, std^2), revealed one product at a time with exactly the right law.

    Let A be an orthonormal basis of all x for which V x is known, and B one of all y for which V^T y is known. For a
    new unit vector q orthogonal to A

        V q = B (V^T B)^T q + (I - B B^T) g,     g of independent N(0, std^2),

    because the part of V from the complement of A to the complement of B is independent of all known products, even if
    a vector depends on earlier products. The same holds for V^T, so gradients can be computed through V. T products of
    vectors of size D cost O(D T) each and keep 2 D T numbers, where V has D^2. The conditioning is Bolthausen's (2014,
    "An iterative construction of solutions of the TAP equations").

    >>> matrix = LazyGaussian(3, 2, std=1.0)
    >>> x = torch.eye(2)
    >>> one, both = matrix.times(x[:1]), matrix.times(x.sum(0, keepdim=True))
    >>> bool(torch.allclose(both, one + matrix.times(x[1:])))
    True

    Arguments:
        rows, columns: of V.
        std: of its entries.
        seed, name: of the random numbers.
        dtype: of the numbers that are kept.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        std: float,
        seed: int = 0,
        name: str = "lazy",
        dtype: torch.dtype = torch.float64,
    ) -> None:
        checks.sizes(rows=rows, columns=columns)
        checks.number("std", std, above=0)
        self.shape, self.std, self.dtype = (rows, columns), std, dtype
        self._generator = generator(seed, name)
        self._right = _Known(columns, rows, dtype)  # x and V x
        self._left = _Known(rows, columns, dtype)  # y and V^T y

    def times(self, vectors: Tensor) -> Tensor:
        """V x for each x, (count, columns) -> (count, rows); differentiable."""
        product: Tensor = _Product.apply(vectors, self)  # type: ignore[no-untyped-call]
        return product

    def product(self, vectors: Tensor) -> Tensor:
        """V x for each x, without a gradient."""
        return self._ask(vectors, self._right, self._left)

    def transposed_product(self, vectors: Tensor) -> Tensor:
        """V^T y for each y, (count, rows) -> (count, columns), without a gradient."""
        return self._ask(vectors, self._left, self._right)

    @property
    def directions_known(self) -> tuple[int, int]:
        """The number of directions in which V is known, and of those in which V^T is."""
        return self._right.count, self._left.count

    def _ask(self, vectors: Tensor, asked: "_Known", other: "_Known") -> Tensor:
        return torch.stack([self._one(vector, asked, other) for vector in vectors.detach().to(self.dtype)])

    def _one(self, vector: Tensor, asked: "_Known", other: "_Known") -> Tensor:
        size = torch.linalg.vector_norm(vector)
        basis = asked.basis
        inside = basis @ vector
        remainder = vector - inside @ basis
        again = basis @ remainder  # twice is enough for orthogonality to rounding
        inside, remainder = inside + again, remainder - again @ basis
        rest = torch.linalg.vector_norm(remainder)
        answer: Tensor = inside @ asked.images
        if rest <= _NOTHING * size or asked.count == asked.most:
            return answer
        direction = remainder / rest
        fresh = torch.randn(asked.size_of_images, generator=self._generator, dtype=self.dtype) * self.std
        image = fresh + (other.images @ direction - other.basis @ fresh) @ other.basis
        asked.append(direction, image)
        answer += rest * image
        return answer


class _Known:
    """Orthonormal vectors and their images, kept in rows of tables that grow."""

    def __init__(self, size: int, size_of_images: int, dtype: torch.dtype) -> None:
        self.count, self.most, self.size_of_images = 0, size, size_of_images
        self._basis = torch.empty(8, size, dtype=dtype)
        self._images = torch.empty(8, size_of_images, dtype=dtype)

    @property
    def basis(self) -> Tensor:
        return self._basis[: self.count]

    @property
    def images(self) -> Tensor:
        return self._images[: self.count]

    def append(self, vector: Tensor, image: Tensor) -> None:
        if self.count == len(self._basis):
            self._basis = torch.cat([self._basis, torch.empty_like(self._basis)])
            self._images = torch.cat([self._images, torch.empty_like(self._images)])
        self._basis[self.count], self._images[self.count] = vector, image
        self.count += 1


class _Product(torch.autograd.Function):
    """V x with the gradient V^T y."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, matrix: LazyGaussian) -> Tensor:
        ctx.matrix = matrix
        return matrix.product(vectors).to(vectors.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.transposed_product(gradient).to(gradient.dtype), None
