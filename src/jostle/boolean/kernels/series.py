"""What a power series with non-negative coefficients adds up to at 1, told apart by order.

A kernel is mostly its constant when biases are large, or when depth has pulled all inputs together; what its late terms
add up to is then lost in the last digits of its values at 1 and -1. So the constant, the linear term and the even and
odd terms from the second order on are followed through the layers as four numbers of their own. Sums and products of
them add and multiply only. ``excess`` has what functions of a series need.

Power series with coefficients that are never negative, cut off after a fixed number of terms.

Every operation here adds and multiplies non-negative numbers only: nothing cancels, so each coefficient keeps its
relative precision however small it is. That rules out fast Fourier products (their error is relative to the largest
coefficient) and subtraction; the direct products cost terms^2 multiplications, which is cheap at ten thousand terms.

By how much a function of a power series exceeds its tangent: the masses of what it adds from the second order on.

For a series S with S(0) = r and a function f the even and the odd part of

    f(S(c)) - f(r) - f'(r) (S(c) - r)   at c = 1

are half the sum and half the difference of its values at 1 and at -1. They are small beside f(S) when S is nearly
constant, and one is small beside the other when S(0) is small and f is even or odd; so neither is computed from values
of f. S is known by its masses and by 1 - S(1), and the formulas are in the angles whose cosines are the values of S: an
angle keeps its digits where its cosine has rounded to 1.
"""

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Masses:
    """The sums of a series' coefficients by order: none negative.

    >>> Masses(0.0, 1.0, 0.0, 0.0) * Masses(2.0, 1.0, 0.5, 0.0) + 5.0  # t (2 + t + t^2 / 2) + 5
    Masses(constant=5.0, linear=2.0, even=1.0, odd=0.5)

    Arguments:
        constant, linear: the coefficients of order 0 and 1.
        even, odd: the sums of those of order 2, 4, ... and of order 3, 5, ...
    """

    constant: float
    linear: float
    even: float
    odd: float

    @property
    def moving(self) -> float:
        """All but the constant: S(1) - S(0)."""
        return self.linear + self.even + self.odd

    @property
    def total(self) -> float:
        """S(1)."""
        return self.constant + self.moving

    @property
    def swing(self) -> float:
        """S(1) - S(-1), twice the coefficients of odd order."""
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
        """Of f(S), from f and f' at S(0) and the even and odd parts of the excess of f over its tangent there."""
        even, odd = excess
        return Masses(value, slope * self.linear, even + slope * self.even, odd + slope * self.odd)


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """S(c) = sum over m of a_m c^m, term by term up to the last coefficient kept, and its masses, which miss nothing.

    >>> rising = line(1.0, 1.0, terms=3)
    >>> cube = rising * rising * rising
    >>> cube.coefficients.tolist(), cube.masses.odd  # c^3 is not kept, but it is known
    ([1.0, 3.0, 3.0], 1.0)

    Arguments:
        coefficients: (terms,) a_m radius^m, none negative; the radius, 1 as a rule, keeps those of a series that
            converges beyond 1 in the range of floats.
        masses: of all the a_m, without powers of the radius.
    """

    coefficients: Floats
    masses: Masses

    def __add__(self, other: "Series | float") -> "Series":
        if isinstance(other, Series):
            return Series(self.coefficients + other.coefficients, self.masses + other.masses)
        added = self.coefficients.copy()
        added[0] += other
        return Series(added, self.masses + other)

    @overload
    def __mul__(self, other: "Series") -> "Series": ...
    @overload
    def __mul__(self, other: float) -> "Series": ...
    def __mul__(self, other: "Series | float") -> "Series":
        if isinstance(other, Series):
            product = np.convolve(self.coefficients, other.coefficients)[: len(self.coefficients)]
            return Series(product, self.masses * other.masses)
        return Series(self.coefficients * other, self.masses * other)


def line(constant: float, slope: float, terms: int, radius: float = 1.0) -> Series:
    """constant + slope c."""
    coefficients = np.zeros(terms)
    coefficients[:2] = constant, slope * radius
    return Series(coefficients, Masses(constant, slope, 0.0, 0.0))


def integral_along(integrand: Floats, path: Floats, constant: float) -> Floats:
    """F with F' = integrand * path' and F(0) = constant: how a composed function F = f(path) follows from f'(path).

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
    0: the only difference is in s, and the caller knows 1 - path(0) better than path(0) itself would tell.

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
    # Filled from the right, so that the dot products below run over neighbours in memory: [-1 - m] holds G_m, m G_m.
    found, found_times_order = np.zeros(terms), np.zeros(terms)
    found[-1] = 1.0
    for m in range(1, terms):
        weights, past = inner[1 : m + 1], slice(terms - m, terms)
        value = (weights @ found[past] + weights @ found_times_order[past] / m) / 2
        found[terms - 1 - m] = value
        found_times_order[terms - 1 - m] = m * value
    return found[::-1].copy()


Parts = tuple[float, float]  # even, odd

_LATE = 10  # terms of the sine's series, enough for angles below 1
SMALL = 0.5  # for of_small
_POWERS = 26
_NEARLY_ODD = 0.1  # a series with even terms below this is taken as an odd one with an addition


@dataclass(frozen=True)
class Angles:
    """Where a series S with values in [-1, 1] stands, as angles from 0 to pi.

    Arguments:
        start, near, far: arccos of S(0), S(1) and S(-1).
        mirror: arccos of -S(-1), which is ``near`` for an odd series.
        masses: of the series.
    """

    start: float
    near: float
    far: float
    mirror: float
    masses: Masses

    @property
    def evenness(self) -> float:
        """(S(1) + S(-1)) / 2: all the terms of even order, the constant too."""
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


def angles(masses: Masses, complement: float) -> Angles:
    """From the masses of S and 1 - S(1)."""
    far, mirror = angle(complement + masses.swing), angle(complement + 2 * (masses.constant + masses.even))
    if far > mirror:  # the smaller one is exact, and they are supplementary
        far = np.pi - mirror
    else:
        mirror = np.pi - far
    return Angles(angle(complement + masses.moving), angle(complement), far, mirror, masses)


def angle(complement: float) -> float:
    """a in [0, pi] with 1 - cos(a) = complement.

    >>> round(angle(1e-20) / 2e-20**0.5, 12)
    1.0
    """
    return 2 * float(np.arcsin(np.sqrt(min(complement / 2, 1.0))))


def turn(first: float, second: float, fall: float) -> float:
    """second - first, exact for close angles too, from fall = cos first - cos second = 2 sin(sum / 2) sin(turn / 2)."""
    if not fall:
        return 0.0  # both may be 0, and so the sine
    return 2 * float(np.arcsin(min(fall / (2 * np.sin((first + second) / 2)), 1.0)))


def of_arcsine(at: Angles) -> Parts:
    """f = arcsin, an odd function."""
    above, below = (2 * np.sin(step / 2) ** 2 / np.tan(at.start) - lag(step) for step in at.turns)
    even = above + below
    if at.evenness < _NEARLY_ODD:
        start = np.arcsin(at.masses.constant)
        even = at.between - 2 * start - 2 * at.masses.even / np.cos(start)
    return _parts(even, above - below)


def of_arc_cosine(at: Angles) -> Parts:
    """f(r) = sqrt(1 - r^2) + r (pi - arccos r), that is pi kappa_1, for a series with S(1) = 1.

    It is pi r / 2 and an even function.
    """
    above, below = (
        2 * np.sin(step / 2) ** 2 * np.sin(end) - np.cos(end) * lag(step)
        for end, step in zip((at.near, at.far), at.turns, strict=True)
    )
    odd = above - below
    if at.evenness < _NEARLY_ODD:
        odd = lag(at.mirror) + (np.pi - 2 * at.mirror) * at.evenness - np.arcsin(at.masses.constant) * at.masses.swing
    return _parts(above + below, odd)


def of_inverse_root(at: Angles) -> Parts:
    """f(r) = (1 - r^2)^(-1/2), an even function, 1 / sin of the angle.

    With A = sin(start), B = sin(end) and a step u from r: A^2 - B^2 = u (2 r + u), so that the tangent r u / A^3 can
    be subtracted from 1/B - 1/A on paper.
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


def of_small(masses: Masses) -> tuple[Masses, Masses]:
    """The masses of arcsin(S) and (1 - S^2)^(-1/2) for S(1) < 1/2, from their power series in S.

    Angles near pi / 2 lose the digits of a small cosine; here nothing is subtracted, and 26 powers are enough.

    >>> arcsine, root = of_small(Masses(0.0, 1e-30, 0.0, 0.0))
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
    """Halved, and without rounding errors below 0."""
    return max(float(twice_even), 0.0) / 2, max(float(twice_odd), 0.0) / 2


def lag(x: float) -> float:
    """x - sin(x), exact for small x too.

    >>> round(lag(1e-6) * 6e18, 9)
    1.0
    """
    if abs(x) >= 1:
        return float(x - np.sin(x))
    tail = 1.0
    for k in range(_LATE, 1, -1):
        tail = 1 - tail * x * x / ((2 * k) * (2 * k + 1))
    return tail * x**3 / 6
