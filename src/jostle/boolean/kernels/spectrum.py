"""What the kernels check about their arguments: whole numbers, numbers above 0, the range of floats.

Eigenvalues of a kernel Psi(<x, y> / n) on the cube, from the power series of Psi.

The monomials are the eigenfunctions, and all monomials of one degree k share the eigenvalue (Yang and Salman 2019,
1907.10599, Theorem 4.1, used by paper 1, 2403.06925, for Prop. 3.1)

    mu_k = E over x of chi_U(x) Psi(x_1 + ... + x_n over n),   |U| = k.

The usual sum over Krawtchouk polynomials loses every digit beyond small n: mu_k may be 1e-200 while its terms are
of size one. Here Psi(c) = sum_m a_m c^m with a_m >= 0, and the moments v_(m,k) = E[chi_U (mean of x)^m] obey

    v_(0,k) = [k = 0],    v_(m+1,k) = (k v_(m,k-1) + (n - k) v_(m,k+1)) / n,

an Ehrenfest urn: only positive terms. After 25 n steps v has settled, to within n e^-50, at 2^(1-n) where k and m have
the same parity and at 0 elsewhere. What the terms left out add up to is the one difference taken here: of the masses of
the series from the second order on (``masses``) and of the terms kept, for each parity, so that neither a large
constant nor a large linear term eats its digits. ``zonal.kernel_spectrum`` says how exact the result is.
"""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from jostle.base.errors import UsageError
from jostle.boolean.kernels.series import Floats, Series


def whole(name: str, value: Any, least: int = 1, most: int | None = None, hint: str = "") -> int:
    """``value`` as an int from ``least`` to ``most``; numpy's whole numbers are welcome, True and 2.0 are not.

    >>> whole("depth", np.int64(3))
    3
    >>> whole("depth", 2.0)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: depth is 2.0; expected a whole number of at least 1
    """
    expected = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name} is {value!r}; expected {expected}{hint}") from None
    if number < least or (most is not None and number > most):
        raise UsageError(f"{name} is {number}; expected {expected}{hint}")
    return number


def number(name: str, value: Any, *, may_be_zero: bool = False) -> float:
    """``value`` as a finite float above 0, or from 0 on."""
    expected = "0 or more" if may_be_zero else "a number above 0"
    try:
        found = float(value) if not isinstance(value, str | bool) else np.nan
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found) or found < 0 or (found == 0 and not may_be_zero):
        raise UsageError(f"{name} is {value!r}; expected {expected}")
    return found


def out_of_range(depth: int, weight_variance: float) -> UsageError:
    """The error for a kernel whose values are too small or too large for floats."""
    return UsageError(
        f"the kernel under- or overflows at depth {depth} with weight_variance {weight_variance:g}; expected values "
        "from 1e-308 to 1e308, take fewer layers or a weight_variance that keeps the kernel's size"
    )


LARGEST = 1000  # beyond it the urn's columns leave the range of floats
STEPS = 25  # steps of the urn for each bit
_BLURRED = 1e-9  # of the size: a smaller difference may be made of rounding errors
_NOISE = 1e-13  # the same for a smaller one that is certainly made of them
_STEEP = 8.0  # local exponent m d log a_m / dm beyond that of all power laws, at most 5/2 here
_CLOSE = 0.05  # to the geometric continuation, relative
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
        return float(self.shares[whole("degree", degree, 0, self.n)])

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
        ends: Psi(1) and Psi(-1), from which the terms left out are found, to 1e-13 Psi(1) at best; None if nothing is
            left out.
        radius: the coefficients are given multiplied by its powers, so that those of a series that converges beyond 1
            stay in the range of floats.
    """
    n, radius = check_bits(n), number("radius", radius)
    series = _checked_coefficients(coefficients)
    scaled = _at_one(series, radius)
    if ends is None:
        return _spectrum(name, n, series, radius, (0.0, 0.0), fsum(scaled))
    total = number("ends[0]", ends[0])
    even, odd = (total + ends[1]) / 2 - scaled[0], (total - ends[1]) / 2 - fsum(scaled[1:2])
    left = _mass_left(even, scaled[2::2], total), _mass_left(odd, scaled[3::2], total)
    return _spectrum(name, n, series, radius, left, total)


def spectrum_of_series(series: Series, n: int, *, name: str, radius: float) -> Spectrum:
    """The spectrum of a series that knows its masses; n has been checked."""
    masses, scaled = series.masses, _at_one(series.coefficients, radius)
    left = _mass_left(masses.even, scaled[2::2], masses.even), _mass_left(masses.odd, scaled[3::2], masses.odd)
    return _spectrum(name, n, series.coefficients, radius, left, masses.total)


def check_bits(n: int) -> int:
    """Refuses a number of bits this package cannot do."""
    return whole("n", n, 1, LARGEST, " bits")


def _checked_coefficients(coefficients: ArrayLike) -> Floats:
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
    """The terms of the series at c = 1: its coefficients without the powers of the radius."""
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
    """What the terms of one parity that are not given add up to at c = 1.

    As a rule their mass less that of the terms given. A small difference may be made of rounding errors. It is then
    compared with the last two terms going on as a geometric series, if they fall faster than any power law of the
    kernels here. If so, the series converges beyond 1, that continuation is right to a per cent or so, and stands in
    for a difference that is not close to it: noise would be seen where mu_n is 1e-297, a remainder dropped be missed.

    Arguments:
        mass: of all terms of this parity from the second order on.
        kept: those that are given.
        size: of the numbers the mass was found from, to compare rounding errors with.
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
