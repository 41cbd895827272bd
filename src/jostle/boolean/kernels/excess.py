"""By how much a function of a power series exceeds its tangent: the masses of what it adds from the second order on.

For a series S with S(0) = r and a function f the even and the odd part of

    f(S(c)) - f(r) - f'(r) (S(c) - r)   at c = 1

are half the sum and half the difference of its values at 1 and at -1. They are small beside f(S) when S is nearly
constant, and one is small beside the other when S(0) is small and f is even or odd; so neither is computed from values
of f. S is known by its masses and by 1 - S(1), and the formulas are in the angles whose cosines are the values of S: an
angle keeps its digits where its cosine has rounded to 1.
"""

from dataclasses import dataclass

import numpy as np

from jostle.boolean.kernels.masses import Masses

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
