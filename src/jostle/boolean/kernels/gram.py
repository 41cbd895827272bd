"""Any kernel, by its Gram matrix over the whole cube: are the monomials its eigenfunctions?

Prop. 3.1 of paper 1 (2403.06925) has one premise: K(x, y) is a function of <x, y>. Then every monomial is an
eigenfunction and the eigenvalue depends on the degree alone. A weaker premise: if K depends on x and y only through the
product x * y (bit by bit), the monomials are still eigenfunctions, with one eigenvalue for each set U. ``premise``
checks both, and ``fourier_projection`` gives the kernel in the basis of the monomials.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError
from jostle.boolean import cube, fourier
from jostle.boolean.kernels.series import Floats

_EXACT = 1e-9  # spreads below this share of the largest entry are rounding errors


@dataclass(frozen=True, eq=False)
class Projection:
    """A kernel in the basis of the monomials, mu(U) = chi_U' K chi_U / 4^n.

    Arguments:
        diagonal: mu(U) for every U, (2^n,) in table order: the eigenvalues if the monomials are eigenfunctions, and
            otherwise the mean of (chi_U, K chi_U).
        minimum, mean, maximum: of mu(U) over the U of one size, (n + 1,).
        off_diagonal_share: the share of the squared Frobenius norm that is off the diagonal in this basis; 0 if and
            only if all monomials are eigenfunctions.
    """

    diagonal: Floats
    minimum: Floats
    mean: Floats
    maximum: Floats
    off_diagonal_share: float

    @property
    def is_diagonal(self) -> bool:
        """Whether all monomials are eigenfunctions, up to rounding."""
        return self.off_diagonal_share < _EXACT**2

    @property
    def is_weakly_biased(self) -> bool:
        """Whether every mu(U) with |U| = k is at least every mu(U') with |U'| = k + 2, for all k."""
        return bool(np.all(self.minimum[:-2] >= self.maximum[2:] - _EXACT * np.abs(self.diagonal).max()))


@dataclass(frozen=True, eq=False)
class Premise:
    """How far a kernel is from being a function of <x, y>.

    Arguments:
        products: -n, 2 - n, ..., n: the values of <x, y>, (n + 1,).
        minimum, maximum: of K over the pairs with this <x, y>, (n + 1,).
        spread: the largest difference of K between two pairs with the same <x, y>.
        spread_within_product: the same for two pairs with the same x * y, bit by bit.
        size: the largest |K|, to compare the spreads with.
    """

    products: NDArray[np.int64]
    minimum: Floats
    maximum: Floats
    spread: float
    spread_within_product: float
    size: float

    @property
    def holds(self) -> bool:
        """Whether K is a function of <x, y>, up to rounding: the premise of Prop. 3.1."""
        return self.spread <= _EXACT * self.size

    @property
    def is_function_of_product(self) -> bool:
        """Whether K is a function of x * y, up to rounding: then the monomials are eigenfunctions."""
        return self.spread_within_product <= _EXACT * self.size


def fourier_projection(gram: NDArray[Any]) -> Projection:
    """A Gram matrix over the cube, (2^n, 2^n) in table order, in the basis of the monomials.

    >>> x = cube.points(3) / 3.0
    >>> projection = fourier_projection(x @ x.T * 3)  # <x, y> / n
    >>> projection.mean.round(6).tolist(), projection.is_diagonal
    ([0.0, 0.333333, 0.0, 0.0], True)
    """
    kernel, n = _check_gram(gram)
    rotated = fourier.coefficients(np.ascontiguousarray(fourier.coefficients(kernel).T))  # (U, V)
    diagonal = np.diagonal(rotated).copy()
    np.fill_diagonal(rotated, 0.0)  # summed without the diagonal: a difference would be lost in rounding
    off, on = float(np.sum(rotated**2)), float(np.sum(diagonal**2))
    groups = [diagonal[cube.degrees(n) == k] for k in range(n + 1)]
    minimum, mean, maximum = (np.array([summary(group) for group in groups]) for summary in (np.min, np.mean, np.max))
    return Projection(diagonal, minimum, mean, maximum, off / (on + off) if on + off > 0 else 0.0)


def premise(gram: NDArray[Any]) -> Premise:
    """The spread of a kernel over the pairs of inputs with one <x, y>, and with one x * y.

    >>> x = cube.points(3)
    >>> found = premise((x @ x.T).astype(float))
    >>> found.products.tolist(), found.minimum.tolist(), found.holds
    ([-3, -1, 1, 3], [-3.0, -1.0, 1.0, 3.0], True)
    """
    kernel, n = _check_gram(gram)
    flips = np.arange(2**n)  # the bits in which x and y differ, as a number
    low, high = np.full(2**n, np.inf), np.full(2**n, -np.inf)
    for row, values in enumerate(kernel):
        shifted = values[row ^ flips]
        np.minimum(low, shifted, out=low)
        np.maximum(high, shifted, out=high)
    distance = cube.degrees(n)
    minimum = np.array([low[distance == k].min() for k in range(n, -1, -1)])
    maximum = np.array([high[distance == k].max() for k in range(n, -1, -1)])
    spreads = float(np.max(maximum - minimum)), float(np.max(high - low))
    return Premise(np.arange(-n, n + 1, 2), minimum, maximum, *spreads, float(np.abs(kernel).max()))


def gram_eigenvalues(gram: NDArray[Any]) -> Floats:
    """All 2^n eigenvalues of the operator f -> E over y of K(., y) f(y), largest first; n up to 10 takes a second.

    >>> x = cube.points(2)
    >>> gram_eigenvalues(x @ x.T / 2.0).round(12).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    kernel, _ = _check_gram(gram)
    return np.asarray(np.linalg.eigvalsh(kernel)[::-1] / len(kernel))


def _check_gram(gram: NDArray[Any]) -> tuple[Floats, int]:
    """The matrix in float64 and n; raises unless it is symmetric, finite and of size (2^n, 2^n)."""
    try:
        kernel = np.asarray(gram, dtype=np.float64)
    except (RuntimeError, TypeError, ValueError) as error:  # numpy refuses tensors with a RuntimeError or TypeError
        raise UsageError(
            f"gram is a {type(gram).__name__} that is no array of numbers ({str(error).splitlines()[0]}); expected "
            "(2^n, 2^n) numbers; of a tensor that requires a gradient give gram.detach()"
        ) from None
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise UsageError(f"gram has the shape {kernel.shape}; expected (2^n, 2^n), one row and column for each input")
    n = cube.dimension(kernel, "gram")
    if not np.all(np.isfinite(kernel)):
        raise UsageError("gram holds nan or inf; expected finite numbers, check the network's outputs")
    if not np.allclose(kernel, kernel.T, rtol=1e-6, atol=1e-6 * float(np.abs(kernel).max())):
        raise UsageError("gram is not symmetric; expected K(x, y) = K(y, x)")
    return kernel, n
