"""Power series with non-negative coefficients, computed without losing digits.

A kernel of a wide network is a power series Psi(c) = sum over m of a_m c^m in the correlation c of two inputs, with
a_m >= 0. Three kinds of objects follow it through the layers:

``PowerSeries``: the coefficients, cut off after a fixed number of terms. Every operation adds and multiplies
non-negative numbers only. Nothing cancels, so each coefficient keeps its relative precision, however small it is. That
rules out subtraction and fast Fourier products (their error is relative to the largest coefficient). Direct products
cost terms^2 multiplications, which is cheap at ten thousand terms.

``Masses``: the sums of all coefficients by order (constant, linear, even from 2 on, odd from 3 on), cut-off terms
included. With large biases or at great depth a kernel is mostly its constant, and the sum of its late terms would be
lost in the last digits of Psi(1) and Psi(-1). So the four sums are followed through the layers as numbers of their own.

``Angles``: the series S that enters an activation f, as arccos of S(0), S(1) and S(-1). The masses of f(S) need the
even and the odd part of the excess of f over its tangent at r = S(0),

    f(S(c)) - f(r) - f'(r) (S(c) - r)   at c = 1 and c = -1: half the sum and half the difference of the two.

Both parts can be far smaller than f(S), so they are not computed from values of f. The functions ``excess_of_...`` use
angles instead: an angle keeps its digits where its cosine has rounded to 1.
"""

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Parts = tuple[float, float]  # even, odd

SMALL = 0.5  # the largest S(1) for masses_of_small
_POWERS = 26  # of S there
_LATE = 10  # terms of the sine's series: enough for angles below 1
_NEARLY_ODD = 0.1  # a series whose even terms are below this is treated as an odd series plus a small even one


@dataclass(frozen=True)
class Masses:
    """The sums of a series' coefficients by order; none is negative.

    >>> Masses(0.0, 1.0, 0.0, 0.0) * Masses(2.0, 1.0, 0.5, 0.0) + 5.0  # t (2 + t + t^2 / 2) + 5
    Masses(constant=5.0, linear=2.0, even=1.0, odd=0.5)

    Arguments:
        constant, linear: the coefficients of order 0 and 1.
        even, odd: the sums of the coefficients of order 2, 4, ... and of order 3, 5, ...
    """

    constant: float
    linear: float
    even: float
    odd: float

    @property
    def moving(self) -> float:
        """S(1) - S(0): all coefficients except the constant."""
        return self.linear + self.even + self.odd

    @property
    def total(self) -> float:
        """S(1)."""
        return self.constant + self.moving

    @property
    def swing(self) -> float:
        """S(1) - S(-1): twice the coefficients of odd order."""
        return 2 * (self.linear + self.odd)

    def __add__(self, other: "Masses | float") -> "Masses":
        if isinstance(other, Masses):
            return Masses(
                self.constant + other.constant, self.linear + other.linear, self.even + other.even, self.odd + other.odd
            )
        return Masses(self.constant + other, self.linear, self.even, self.odd)

    @overload
    def __mul__(self, other: "Masses") -> "Masses": ...
    @overload
    def __mul__(self, other: float) -> "Masses": ...
    def __mul__(self, other: "Masses | float") -> "Masses":
        if not isinstance(other, Masses):
            return Masses(self.constant * other, self.linear * other, self.even * other, self.odd * other)
        a, b = self, other
        steps_a, steps_b = a.linear + a.odd, b.linear + b.odd
        return Masses(
            constant=a.constant * b.constant,
            linear=a.constant * b.linear + a.linear * b.constant,
            even=a.constant * b.even + a.even * b.constant + a.even * b.even + steps_a * steps_b,
            odd=a.constant * b.odd + a.odd * b.constant + a.even * steps_b + steps_a * b.even,
        )

    def through(self, value: float, slope: float, excess: tuple[float, float]) -> "Masses":
        """The masses of f(S), from f and f' at S(0) and the even and odd parts of the excess of f over its tangent."""
        even, odd = excess
        return Masses(value, slope * self.linear, even + slope * self.even, odd + slope * self.odd)


@dataclass(frozen=True, eq=False)
class PowerSeries:
    """S(c) = sum over m of a_m c^m: its first coefficients, and the masses of all of them.

    >>> rising = line(1.0, 1.0, terms=3)
    >>> cube = rising * rising * rising
    >>> cube.coefficients.tolist(), cube.masses.odd  # c^3 is cut off, but its mass is known
    ([1.0, 3.0, 3.0], 1.0)

    Arguments:
        coefficients: (terms,) a_m radius^m, none negative. The radius is 1, or larger for a series that converges
            beyond 1: it keeps the coefficients in the range of floats.
        masses: of all a_m, without powers of the radius.
    """

    coefficients: Floats
    masses: Masses

    def __add__(self, other: "PowerSeries | float") -> "PowerSeries":
        if isinstance(other, PowerSeries):
            return PowerSeries(self.coefficients + other.coefficients, self.masses + other.masses)
        added = self.coefficients.copy()
        added[0] += other
        return PowerSeries(added, self.masses + other)

    @overload
    def __mul__(self, other: "PowerSeries") -> "PowerSeries": ...
    @overload
    def __mul__(self, other: float) -> "PowerSeries": ...
    def __mul__(self, other: "PowerSeries | float") -> "PowerSeries":
        if isinstance(other, PowerSeries):
            product = np.convolve(self.coefficients, other.coefficients)[: len(self.coefficients)]
            return PowerSeries(product, self.masses * other.masses)
        return PowerSeries(self.coefficients * other, self.masses * other)


def line(constant: float, slope: float, terms: int, radius: float = 1.0) -> PowerSeries:
    """constant + slope c."""
    coefficients = np.zeros(terms)
    coefficients[:2] = constant, slope * radius
    return PowerSeries(coefficients, Masses(constant, slope, 0.0, 0.0))


def integral_along(integrand: Floats, path: Floats, constant: float) -> Floats:
    """F with F' = integrand * path' and F(0) = constant: a composed function F = f(path) from integrand = f'(path).

    >>> t = np.array([0.0, 1.0, 0.0, 0.0])
    >>> integral_along(t, t, constant=3.0).tolist()  # 3 + t^2 / 2
    [3.0, 0.0, 0.5, 0.0]
    """
    orders = np.arange(1, len(path))
    slope = path[1:] * orders  # (terms - 1,)
    derivative = np.convolve(integrand[:-1], slope)[: len(orders)]
    return np.concatenate(([constant], derivative / orders))


def inverse_root(path: Floats, complement: float) -> Floats:
    """(1 - path^2)^(-1/2), for 0 <= path(0) < 1.

    With u = path - path(0) it is (s (1 - W))^(-1/2), where s = 1 - path(0)^2 and W = (2 path(0) u + u^2) / s starts at
    0. The only difference is in s, and the caller knows 1 - path(0) more precisely than it follows from path(0).

    >>> inverse_root(np.array([0.0, 1.0, 0.0, 0.0, 0.0]), complement=1.0).tolist()
    [1.0, 0.0, 0.5, 0.0, 0.375]

    Arguments:
        path: (terms,), none negative.
        complement: 1 - path(0).
    """
    moving = path.copy()
    moving[0] = 0.0
    size = complement * (1 + path[0])
    inner = (np.convolve(moving, moving)[: len(path)] + 2 * path[0] * moving) / size
    return np.asarray(_inverse_root_of_complement(inner) / np.sqrt(size))


def _inverse_root_of_complement(inner: Floats) -> Floats:
    """G = (1 - W)^(-1/2) for W_0 = 0, from (1 - W) G' = W' G / 2, read as G' = W' G / 2 + W G':

    G_m = sum over j >= 1 of W_j G_(m-j) (1/2 + (m - j) / (2 m)),   every term positive.
    """
    terms = len(inner)
    # Filled from the right, so that the dot products below read neighbours in memory: [-1 - m] holds G_m and m G_m.
    found, found_times_order = np.zeros(terms), np.zeros(terms)
    found[-1] = 1.0
    for m in range(1, terms):
        weights, past = inner[1 : m + 1], slice(terms - m, terms)
        value = (weights @ found[past] + weights @ found_times_order[past] / m) / 2
        found[terms - 1 - m] = value
        found_times_order[terms - 1 - m] = m * value
    return found[::-1].copy()


@dataclass(frozen=True)
class Angles:
    """The values of a series S in [-1, 1] as angles from 0 to pi.

    Arguments:
        start, near, far: arccos of S(0), S(1) and S(-1).
        mirror: arccos of -S(-1); equal to ``near`` for an odd series.
        masses: of the series.
    """

    start: float
    near: float
    far: float
    mirror: float
    masses: Masses

    @classmethod
    def of(cls, masses: Masses, complement: float) -> "Angles":
        """The angles of the series with these masses and complement = 1 - S(1)."""
        far = angle_of(complement + masses.swing)
        mirror = angle_of(complement + 2 * (masses.constant + masses.even))
        if far > mirror:  # the smaller one is exact, and they are supplementary
            far = np.pi - mirror
        else:
            mirror = np.pi - far
        return cls(angle_of(complement + masses.moving), angle_of(complement), far, mirror, masses)

    @property
    def evenness(self) -> float:
        """(S(1) + S(-1)) / 2: the coefficients of even order, the constant included."""
        return self.masses.constant + self.masses.even

    @property
    def between(self) -> float:
        """mirror - near."""
        return turn(self.near, self.mirror, 2 * self.evenness)

    @property
    def turns(self) -> tuple[float, float]:
        """near - start and far - start."""
        fall = self.masses.swing - self.masses.moving  # S(0) - S(-1)
        return -turn(self.near, self.start, self.masses.moving), turn(self.start, self.far, fall)


def angle_of(complement: float) -> float:
    """a in [0, pi] with 1 - cos(a) = complement.

    >>> round(angle_of(1e-20) / 2e-20**0.5, 12)
    1.0
    """
    return 2 * float(np.arcsin(np.sqrt(min(complement / 2, 1.0))))


def turn(first: float, second: float, fall: float) -> float:
    """second - first, exact for close angles too, from fall = cos first - cos second = 2 sin(sum / 2) sin(turn / 2)."""
    if not fall:
        return 0.0  # both angles may be 0, and then the sine is 0 too
    return 2 * float(np.arcsin(min(fall / (2 * np.sin((first + second) / 2)), 1.0)))


def excess_of_arcsine(at: Angles) -> Parts:
    """The excess of f = arcsin, an odd function."""
    above, below = (2 * np.sin(step / 2) ** 2 / np.tan(at.start) - lag(step) for step in at.turns)
    even = above + below
    if at.evenness < _NEARLY_ODD:
        start = np.arcsin(at.masses.constant)
        even = at.between - 2 * start - 2 * at.masses.even / np.cos(start)
    return _parts(even, above - below)


def excess_of_arc_cosine(at: Angles) -> Parts:
    """The excess of f(r) = sqrt(1 - r^2) + r (pi - arccos r) = pi kappa_1, for a series with S(1) = 1.

    f is the sum of pi r / 2 and an even function.
    """
    above, below = (
        2 * np.sin(step / 2) ** 2 * np.sin(end) - np.cos(end) * lag(step)
        for end, step in zip((at.near, at.far), at.turns, strict=True)
    )
    odd = above - below
    if at.evenness < _NEARLY_ODD:
        odd = lag(at.mirror) + (np.pi - 2 * at.mirror) * at.evenness - np.arcsin(at.masses.constant) * at.masses.swing
    return _parts(above + below, odd)


def excess_of_inverse_root(at: Angles) -> Parts:
    """The excess of f(r) = (1 - r^2)^(-1/2), an even function: 1 / sin of the angle.

    With A = sin(start), B = sin(end) and a step u from r: A^2 - B^2 = u (2 r + u). With it the tangent r u / A^3 is
    subtracted from 1/B - 1/A on paper and not in floats.
    """
    r, first = at.masses.constant, np.sin(at.start)
    halves = []
    for end, step in ((at.near, at.masses.moving), (at.far, at.masses.moving - at.masses.swing)):
        last = np.sin(end)
        bend = r * (2 * r + step) * (1 + first / (first + last)) / first**2
        halves.append(step**2 * (1 + bend) / (first * last * (first + last)))
    odd = halves[0] - halves[1]
    if at.evenness < _NEARLY_ODD:
        sines = np.sin(at.mirror) * np.sin(at.near)
        rise = 2 * np.cos((at.mirror + at.near) / 2) * np.sin(at.between / 2) / sines
        odd = rise - r * at.masses.swing / first**3
    return _parts(halves[0] + halves[1], odd)


def masses_of_small(masses: Masses) -> tuple[Masses, Masses]:
    """The masses of arcsin(S) and (1 - S^2)^(-1/2) for S(1) < SMALL, from their power series in S.

    Angles near pi / 2 lose the digits of a small cosine. Here nothing is subtracted, and 26 powers are enough.

    >>> arcsine, root = masses_of_small(Masses(0.0, 1e-30, 0.0, 0.0))
    >>> round(arcsine.odd * 6e90, 12), round(root.even * 2e60, 12)
    (1.0, 1.0)
    """
    square, power = masses * masses, Masses(1.0, 0.0, 0.0, 0.0)
    arcsine = root = power * 0.0
    coefficient = 1.0  # of r^(2 j) in (1 - r^2)^(-1/2)
    for j in range(_POWERS):
        root = root + power * coefficient
        arcsine = arcsine + power * masses * (coefficient / (2 * j + 1))
        power, coefficient = power * square, coefficient * (2 * j + 1) / (2 * j + 2)
    return arcsine, root


def _parts(twice_even: float, twice_odd: float) -> Parts:
    """Half of each; rounding errors below 0 become 0."""
    return max(float(twice_even), 0.0) / 2, max(float(twice_odd), 0.0) / 2


def lag(x: float) -> float:
    """x - sin(x), also exact for small x.

    >>> round(lag(1e-6) * 6e18, 9)
    1.0
    """
    if abs(x) >= 1:
        return float(x - np.sin(x))
    tail = 1.0
    for k in range(_LATE, 1, -1):
        tail = 1 - tail * x * x / ((2 * k) * (2 * k + 1))
    return tail * x**3 / 6
