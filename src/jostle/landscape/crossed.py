"""The interval of a mean over directions and inputs that are both drawn, every direction with every input."""

import math

import numpy as np
from scipy import special

from jostle.intervals import Interval
from jostle.landscape.averages import Floats


def crossed_interval(
    per_draw: Floats, per_input: Floats, level: float, *, is_exact: bool = False, least: float = -math.inf
) -> Interval:
    """An interval for the mean over all possible draws of the weights and the population of the inputs.

    With y_ij for draw i of D and input j of N, the variance of the grand mean is s_D^2 / D + s_N^2 / N + s_DN^2 / DN.
    It is estimated by

        V = var(means over inputs) / D + var(means over draws) / N,

    which counts the last term twice, so a little too much; then mean -+ t sqrt(V), with Satterthwaite's degrees of
    freedom. Asymptotic, as Student's.

    >>> found = crossed_interval(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]), 0.95)
    >>> round(found.low, 4), round(found.high, 4)  # inputs that do not differ leave Student's t over draws
    (-0.4841, 4.4841)

    Arguments:
        per_draw: (D,), the mean over the inputs for each draw.
        per_input: (N,), the mean over the draws for each input.
        level: coverage.
        is_exact: nothing is random: the interval has no width.
        least: no mean can be smaller; the interval ends there.
    """
    draws, inputs = len(per_draw), len(per_input)
    value = math.fsum(per_draw) / draws
    if is_exact:
        return Interval(value, value, level, "population", "nothing is random")
    if inputs < 2:
        return Interval(least, math.inf, level, "population", "open: a single input does not show its spread")
    parts = np.array([per_draw.var(ddof=1) / draws, per_input.var(ddof=1) / inputs])
    variance = float(parts.sum())
    if variance == 0:
        return Interval(least, math.inf, level, "population", "open: all draws and inputs are equal")
    freedom = variance**2 / float((parts**2 / np.array([draws - 1, inputs - 1])).sum())
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance)
    method = f"Satterthwaite's t over {draws} draws and {inputs} inputs"
    return Interval(max(value - reach, least), value + reach, level, "population", method)
