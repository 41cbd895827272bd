"""Averages in which all tokens weigh the same, so that inputs weigh by their number of tokens."""

import numpy as np
from scipy import special

from jostle.estimates.estimate import Floats
from jostle.intervals import fixed

Ends = tuple[float, float]

_RESAMPLES = 10_000
_AT_ONCE = 512


def mean(means: Floats, sizes: Floats) -> float:
    """sum of size * mean / sum of sizes."""
    return float(means @ sizes / sizes.sum())


def bounded_ratio(means: Floats, sizes: Floats, level: float, bounds: Ends) -> Ends:
    """An interval for E[size * mean] / E[size], from independent inputs whose means lie between two bounds.

    The ratio r solves E[size * (mean - r)] = 0. Gaffke's bound (see ``intervals.fixed``) for that expectation, with one
    more input of the largest size at a bound, is on the right side of 0 just if r is beyond

        high = quantile_{(1 + level) / 2} of  (sum_i D_i s_i m_i + D_{n+1} S * upper) / (sum_i D_i s_i + D_{n+1} S)

    with D ~ Dirichlet(1, ..., 1), sizes s_i, means m_i and the largest size S, and ``low`` alike with the lower bound.
    With equal sizes it is Gaffke's bound. Sizes beyond the largest seen are not provided for. The quantile is taken
    over 10,000 draws from a fixed generator.

    Arguments:
        means: (inputs,) the mean change of each.
        sizes: (inputs,) its number of tokens, at least 1.
        level: coverage.
        bounds: no mean can lie outside.
    """
    pairs, counts = np.unique(np.stack([means, sizes]), axis=1, return_counts=True)
    generator = np.random.Generator(np.random.PCG64(0))
    total, weight = np.zeros(_RESAMPLES), np.zeros(_RESAMPLES)
    for start in range(0, len(counts), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        gammas = generator.standard_gamma(counts[part], size=(_RESAMPLES, len(counts[part])))  # (resamples, pairs)
        total += gammas @ (pairs[0, part] * pairs[1, part])
        weight += gammas @ pairs[1, part]
    extra = generator.standard_exponential(_RESAMPLES) * sizes.max()
    low, high = ((total + extra * bound) / (weight + extra) for bound in bounds)
    tail = (1 - level) / 2
    return float(np.quantile(low, tail)), float(np.quantile(high, 1 - tail))


def student_ratio(means: Floats, sizes: Floats, level: float) -> Ends:
    """The same for real-valued means, by linearisation and Student's t: asymptotic."""
    value = mean(means, sizes)
    residuals = sizes * (means - value) / sizes.mean()
    variance = residuals.var(ddof=1) if len(means) > 1 else 0.0
    low, high = fixed.student(value, variance, len(means), level)
    return float(low), float(high)


def noise_reach(variances: Floats, sizes: Floats, level: float) -> float:
    """Half of a normal interval for the mean over these very inputs, from the noise variance of each input's mean."""
    spread = np.sqrt((sizes**2 * variances).sum()) / sizes.sum()
    return float(special.ndtri((1 + level) / 2) * spread)
