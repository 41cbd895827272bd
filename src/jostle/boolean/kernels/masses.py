"""What a power series with non-negative coefficients adds up to at 1, told apart by order.

A kernel is mostly its constant when biases are large, or when depth has pulled all inputs together; what its late terms
add up to is then lost in the last digits of its values at 1 and -1. So the constant, the linear term and the even and
odd terms from the second order on are followed through the layers as four numbers of their own. Sums and products of
them add and multiply only. ``excess`` has what functions of a series need.
"""

from dataclasses import dataclass
from typing import overload


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
