"""Eigenvalues of a kernel Psi(<x, y> / n) on the cube, from the power series of Psi.

The monomials are the eigenfunctions, and all monomials of one degree k share the eigenvalue (Yang and Salman 2019,
1907.10599, Theorem 4.1, used by paper 1, 2403.06925, for Prop. 3.1)

    mu_k = E over x of chi_U(x) Psi(x_1 + ... + x_n over n),   |U| = k.

The usual sum over Krawtchouk polynomials loses every digit beyond small n: mu_k may be 1e-200 while its terms are
of size one. Here Psi(c) = sum_m a_m c^m with a_m >= 0, and the moments v_(m,k) = E[chi_U (mean of x)^m] obey

    v_(0,k) = [k = 0],    v_(m+1,k) = (k v_(m,k-1) + (n - k) v_(m,k+1)) / n,

an Ehrenfest urn: only positive terms. After 25 n steps v has settled, to within n e^-50, at 2^(1-n) where k and m have
the same parity and at 0 elsewhere, so of the terms beyond only the sum of their coefficients is needed. It is the one
difference taken here: the mass of the series from the second order on (``series.Masses``) less that of the terms
computed, for each parity apart, so that neither a large constant nor a large linear term takes its digits.
``named.kernel_spectrum`` states how exact the result is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean.kernels.series import Floats, PowerSeries

LARGEST = 1000  # beyond it the urn's columns leave the range of floats
STEPS = 25  # steps of the urn for each bit
_BLURRED = 1e-9  # a difference below this share of its terms may consist of rounding errors
_NOISE = 1e-13  # a difference below this share certainly does
_STEEP = 8.0  # local exponent m d log a_m / dm; power laws of these kernels have at most 5/2
_CLOSE = 0.05  # relative distance to the geometric continuation
_EQUAL = 1e-9  # log eigenvalues closer than this count as equal


@dataclass(frozen=True, eq=False)
class Spectrum:
    """mu_0..mu_n of a kernel on the cube; numpy treats it as the array of these n + 1 numbers.

    >>> square = spectrum_of([0.0, 0.0, 1.0], n=2)  # Psi(c) = c^2
    >>> np.asarray(square).round(12).tolist(), square.shares.round(12).tolist(), square.is_weakly_biased
    ([0.5, 0.0, 0.5], [0.5, 0.0, 0.5], True)

    Arguments:
        name: of the kernel.
        n: bits.
        log_eigenvalues: (n + 1,) natural logarithms, -inf for an eigenvalue 0. They stay exact where eigenvalues are
            below 1e-308.
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
        """Whether a positive eigenvalue is too small for a float; then use ``log_eigenvalues``."""
        is_positive = np.isfinite(self.log_eigenvalues)
        return bool(np.any(self.eigenvalues[is_positive] < np.finfo(np.float64).tiny))

    @property
    def shares(self) -> Floats:
        """C(n, k) mu_k / trace: the share of degree k in the kernel's trace. The shares sum to 1."""
        k = np.arange(self.n + 1)
        log_binomial = gammaln(self.n + 1) - gammaln(k + 1) - gammaln(self.n - k + 1)
        return np.asarray(np.exp(log_binomial + self.log_eigenvalues - log(self.trace)))

    def share(self, degree: int) -> float:
        """The share of one degree in the trace."""
        return float(self.shares[checks.whole("degree", degree, least=0, most=self.n)])

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
        coefficients: (terms,) a_m radius^m; at least 25 n terms of an infinite series.
        n: bits, 1 to 1000.
        name: of the kernel, kept in the result.
        ends: Psi(1) and Psi(-1), from which the mass of the terms left out is found, to 1e-13 Psi(1) at best; None if
            no term is left out.
        radius: the coefficients are multiplied by its powers; a radius above 1 keeps the coefficients of a series that
            converges beyond 1 in the range of floats.
    """
    n, radius = check_bits(n), checks.number("radius", radius, above=0)
    series = _check_coefficients(coefficients)
    scaled = _at_one(series, radius)
    if ends is None:
        return _spectrum(name, n, series, radius, (0.0, 0.0), fsum(scaled))
    total = checks.number("ends[0]", ends[0], above=0)
    even, odd = (total + ends[1]) / 2 - scaled[0], (total - ends[1]) / 2 - fsum(scaled[1:2])
    left = _mass_left(even, scaled[2::2], total), _mass_left(odd, scaled[3::2], total)
    return _spectrum(name, n, series, radius, left, total)


def spectrum_of_series(series: PowerSeries, n: int, *, name: str, radius: float) -> Spectrum:
    """The spectrum of a series with masses; the caller has checked n."""
    masses, scaled = series.masses, _at_one(series.coefficients, radius)
    left = _mass_left(masses.even, scaled[2::2], masses.even), _mass_left(masses.odd, scaled[3::2], masses.odd)
    return _spectrum(name, n, series.coefficients, radius, left, masses.total)


def check_bits(n: int) -> int:
    """``n`` as a number of bits for which there are spectra."""
    return checks.whole("n", n, least=1, most=LARGEST)


def _check_coefficients(coefficients: ArrayLike) -> Floats:
    """The coefficients as an array; raises unless they are finite, non-negative and not all 0."""
    try:
        series = np.asarray(coefficients, dtype=np.float64)
    except (TypeError, ValueError):
        series = np.empty((0, 0))
    if series.ndim != 1 or len(series) == 0 or not np.all(np.isfinite(series)) or np.any(series < 0):
        raise UsageError(
            "coefficients must be a list of finite numbers, none negative, at least one; check their signs"
        )
    if not np.any(series):
        raise UsageError("coefficients are all 0, and so is the kernel; expected at least one above 0")
    return series


def _spectrum(name: str, n: int, series: Floats, radius: float, left: tuple[float, float], trace: float) -> Spectrum:
    logs = np.logaddexp(_log_sums(series, n, radius), _log_remainder(left, n))
    return Spectrum(name, n, logs, float(trace))


def _at_one(series: Floats, radius: float) -> Floats:
    """The terms of the series at c = 1: the coefficients divided by powers of the radius."""
    return np.asarray(series * radius ** -np.arange(len(series), dtype=np.float64))


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


def _mass_left(mass: float, kept: Floats, size: float) -> float:
    """The sum at c = 1 of the terms of one parity that are not among ``kept``.

    As a rule it is ``mass`` less the sum of ``kept``. A small difference may consist of rounding errors. If the last
    two terms fall faster than any power law of these kernels, the series converges beyond 1, and continuing them as a
    geometric series gives the sum to about one per cent. Then the continuation replaces a difference that is not close
    to it. Both errors would show: noise where mu_n is 1e-297, and a remainder that was dropped.

    Arguments:
        mass: the sum of all terms of this parity from the second order on.
        kept: the terms that are given.
        size: of the numbers from which the mass was found, to compare rounding errors with.
    """
    left = mass - fsum(kept)
    given = np.flatnonzero(kept)  # attention has terms of order 3 m only
    if left > _BLURRED * size or len(given) < 2:
        return left if left > _NOISE * size else 0.0
    before, last = kept[given[-2:]].tolist()
    exponent = (before / last - 1) * given[-1] / (given[-1] - given[-2])
    continued = last * last / (before - last) if exponent > _STEEP else np.inf
    if continued > _BLURRED * size:  # more than the difference allows: the series is finite, or ends in a power law
        return left if left > _NOISE * size else 0.0
    return left if abs(left - continued) < _CLOSE * continued else continued


def _log_remainder(masses: tuple[float, float], n: int) -> Floats:
    """log of 2^(1-n) times the mass of k's parity, for k = 0..n."""
    with np.errstate(divide="ignore"):
        settled = np.log(np.array(masses)) + (1 - n) * log(2)
    return np.asarray(settled[np.arange(n + 1) % 2])
