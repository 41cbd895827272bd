"""Eigenvalues of a kernel Psi(<x, y> / n) on the cube, from the power series of Psi.

The monomials are the eigenfunctions, and all monomials of one degree k share the eigenvalue (Yang and Salman 2019,
1907.10599, Theorem 4.1, used by paper 1, 2403.06925, for Prop. 3.1)

    mu_k = E over x of chi_U(x) Psi(x_1 + ... + x_n over n),   |U| = k.

The usual sum over Krawtchouk polynomials loses every digit beyond small n: mu_k may be 1e-200 while its terms are
of size one. Here Psi(c) = sum_m a_m c^m with a_m >= 0, and the moments v_(m,k) = E[chi_U (mean of x)^m] obey

    v_(0,k) = [k = 0],    v_(m+1,k) = (k v_(m,k-1) + (n - k) v_(m,k+1)) / n,

an Ehrenfest urn: only positive terms. After 25 n steps v has settled, to within n e^-50, at 2^(1-n) where k and m have
the same parity and at 0 elsewhere; what is left of the series is summed by its value at 1 and at -1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from jostle.boolean.kernels.series import Floats
from jostle.errors import UsageError

LARGEST = 1000  # beyond it the urn's columns leave the range of floats
STEPS = 25  # steps of the urn for each bit
_NOTHING_LEFT = 1e-11  # of Psi(1): a remainder below this cannot be told from rounding errors and matters nowhere
_EQUAL = 1e-9  # log eigenvalues closer than this count as equal


@dataclass(frozen=True, eq=False)
class Spectrum:
    """mu_0..mu_n of a kernel on the cube; in numpy it behaves like the array of these n + 1 numbers.

    >>> square = spectrum_of([0.0, 0.0, 1.0], n=2)  # Psi(c) = c^2
    >>> np.asarray(square).round(12).tolist(), square.shares.round(12).tolist(), square.is_weakly_biased
    ([0.5, 0.0, 0.5], [0.5, 0.0, 0.5], True)

    Arguments:
        name: of the kernel.
        n: bits.
        log_eigenvalues: (n + 1,) natural logarithms, -inf for an eigenvalue 0. They stay exact where the eigenvalues
            themselves are below 1e-308.
        trace: Psi(1) = sum over k of C(n, k) mu_k.
    """

    name: str
    n: int
    log_eigenvalues: Floats
    trace: float

    @property
    def eigenvalues(self) -> Floats:
        """mu_k for k = 0..n: (n + 1,); 0 where mu_k is too small for a float, see ``underflows``."""
        return np.exp(self.log_eigenvalues)

    @property
    def underflows(self) -> bool:
        """Whether a positive eigenvalue is too small for a float: use ``log_eigenvalues`` then."""
        is_positive = np.isfinite(self.log_eigenvalues)
        return bool(np.any(self.eigenvalues[is_positive] < np.finfo(np.float64).tiny))

    @property
    def shares(self) -> Floats:
        """C(n, k) mu_k / trace: the part of the kernel's trace that degree k holds. They sum to 1."""
        k = np.arange(self.n + 1)
        log_binomial = gammaln(self.n + 1) - gammaln(k + 1) - gammaln(self.n - k + 1)
        return np.asarray(np.exp(log_binomial + self.log_eigenvalues - log(self.trace)))

    def share(self, degree: int) -> float:
        """The part of the trace that one degree holds."""
        if not 0 <= degree <= self.n:
            raise UsageError(f"degree is {degree}; expected 0 to {self.n}")
        return float(self.shares[degree])

    @property
    def even_gaps(self) -> Floats:
        """mu_0 - mu_2, mu_2 - mu_4, ...: none negative if the kernel is weakly biased."""
        return -np.diff(self.eigenvalues[0::2])

    @property
    def odd_gaps(self) -> Floats:
        """mu_1 - mu_3, mu_3 - mu_5, ...: none negative if the kernel is weakly biased."""
        return -np.diff(self.eigenvalues[1::2])

    @property
    def is_weakly_biased(self) -> bool:
        """mu_0 >= mu_2 >= ... and mu_1 >= mu_3 >= ...: the weak spectral simplicity bias of Prop. 3.1."""
        lower, higher = self.log_eigenvalues[:-2], self.log_eigenvalues[2:]
        return bool(np.all(lower + _EQUAL >= higher))

    def __len__(self) -> int:
        return self.n + 1

    def __iter__(self) -> Iterator[float]:
        return iter(self.eigenvalues.tolist())

    def __getitem__(self, index: Any) -> Any:
        return self.eigenvalues[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.eigenvalues, dtype=dtype)


def spectrum_of(
    coefficients: ArrayLike,
    n: int,
    *,
    name: str = "given series",
    ends: tuple[float, float] | None = None,
    radius: float = 1.0,
) -> Spectrum:
    """The spectrum of Psi(c) = sum over m of a_m c^m with non-negative a_m.

    >>> np.asarray(spectrum_of([0.25, 0.0, 0.75], n=3)).round(12).tolist()
    [0.5, 0.0, 0.166666666667, 0.0]

    Arguments:
        coefficients: (terms,) a_m radius^m. Of an infinite series at least 25 n terms.
        n: bits, 1 to 1000.
        name: what the result calls the kernel.
        ends: Psi(1) and Psi(-1), from which the terms left out are found; None if nothing is left out.
        radius: the coefficients are given multiplied by its powers, so that those of a series that converges beyond 1
            stay in the range of floats.
    """
    series = np.asarray(coefficients, dtype=np.float64)
    check_bits(n)
    if series.ndim != 1 or len(series) == 0 or not np.all(np.isfinite(series)) or np.any(series < 0):
        raise UsageError(
            "coefficients must be a list of finite numbers, none negative, at least one; check their signs"
        )
    scaled = series * radius ** -np.arange(len(series), dtype=np.float64)
    partial = fsum(scaled[0::2]), fsum(scaled[1::2])
    total = sum(partial) if ends is None else ends[0]
    if total <= 0:
        raise UsageError("coefficients are all 0, and so is the kernel; expected at least one above 0")
    left = (0.0, 0.0) if ends is None else _masses_left(ends, partial)
    logs = np.logaddexp(_log_sums(series, n, radius), _log_remainder(left, n))
    return Spectrum(name, n, logs, float(total))


def check_bits(n: int) -> None:
    """Refuses a number of bits this package cannot do."""
    if not 1 <= n <= LARGEST:
        raise UsageError(f"n is {n}; expected 1 to {LARGEST} bits")


def _log_sums(series: Floats, n: int, radius: float) -> Floats:
    """log of sum over the given m of a_m v_(m,k), for k = 0..n.

    The urn runs on y_(m,k) = v_(m,k) (n radius)^k / (k! radius^m), which is 1 at its first value m = k and obeys
    y_(m+1,k) = y_(m,k-1) + y_(m,k+1) (n - k)(k + 1) / (n radius)^2.
    """
    k = np.arange(n + 1, dtype=np.float64)
    down = ((n - k) * (k + 1) / (n * radius) ** 2)[:-1]
    now, after, total = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    now[0] = 1.0
    for coefficient in series:
        total += coefficient * now
        after[0] = 0.0
        after[1:] = now[:-1]
        after[:-1] += down * now[1:]
        now, after = after, now
    with np.errstate(divide="ignore"):  # log 0 = -inf is the answer
        return np.asarray(np.log(total) + gammaln(k + 1) - k * log(n * radius))


def _masses_left(ends: tuple[float, float], partial: tuple[float, float]) -> tuple[float, float]:
    """What the terms that are not given add up to at c = 1: those of even and those of odd order."""
    even, odd = (ends[0] + ends[1]) / 2 - partial[0], (ends[0] - ends[1]) / 2 - partial[1]
    least = _NOTHING_LEFT * ends[0]
    return (even if even > least else 0.0), (odd if odd > least else 0.0)


def _log_remainder(masses: tuple[float, float], n: int) -> Floats:
    """log of 2^(1-n) times the mass of k's parity, for k = 0..n."""
    with np.errstate(divide="ignore"):
        settled = np.log(np.array(masses)) + (1 - n) * log(2)
    return np.asarray(settled[np.arange(n + 1) % 2])
