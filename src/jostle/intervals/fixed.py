"""Intervals for a sample whose size was fixed before looking at it.

Pure functions of counts and values. Intervals for samples that are still growing are in ``anytime``.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Ends = tuple[float, float]

_RESAMPLES = 10_000
_GROUPS = 512
_PAIRS_AT_ONCE = 512
_LEAST_VALUES, _MOST_SHARE = 200, 0.05


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, level: float) -> tuple[NDArray[np.float64], ...]:
    """The exact interval for a binomial proportion, element by element.

    low and high solve P[Bin(n, low) >= s] = P[Bin(n, high) <= s] = (1 - level) / 2 (Clopper and Pearson 1934). It also
    covers when the trials have different success probabilities, since their sum is then less dispersed than a binomial
    (Hoeffding 1956); so it serves stratified draws. Non-integer counts are allowed.

    >>> low, high = clopper_pearson(5, 1000, 0.95)
    >>> round(float(low), 6), round(float(high), 6)
    (0.001625, 0.011629)
    """
    s, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(s > 0, special.betaincinv(np.maximum(s, 1e-300), n - s + 1, tail), 0.0)
        high = np.where(s < n, special.betaincinv(s + 1, np.maximum(n - s, 1e-300), 1 - tail), 1.0)
    return low, high


def bounded_mean(values: ArrayLike, counts: ArrayLike, level: float, bounds: Ends = (0.0, 1.0)) -> Ends:
    """An interval for the mean of independent variables that lie between two bounds.

    Gaffke's bound: with D ~ Dirichlet(1, ..., 1) over the n observations and one more at a bound,

        high = quantile_{(1 + level) / 2} of  D_1 x_1 + ... + D_n x_n + D_{n+1} * upper,

    and ``low`` in the same way with the lower bound. For observations of 0 and 1 it is the Clopper-Pearson interval;
    for skewed means (few inputs with most of the flips) it keeps its coverage where Student's t does not. Source:
    Gaffke (2005), and Phan, Thomas and Learned-Miller (2021), "Towards practical mean bounds for small samples".
    Coverage for general bounded variables is conjectured there, and simulated in our slow tests. The quantile is taken
    over 10,000 Dirichlet draws from a fixed generator: the same data give the same interval.

    Arguments:
        values: distinct observed values, in increasing order.
        counts: how often each was observed; may be non-integer (effective counts).
        level: coverage.
        bounds: no observation can lie outside.
    """
    x, c = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    x, c = x[c > 0], c[c > 0]
    lower, upper = bounds
    if np.isin(x, bounds).all():
        total, ups = c.sum(), c[x == upper].sum()
        low, high = clopper_pearson(ups, total, level)
        return lower + (upper - lower) * float(low), lower + (upper - lower) * float(high)
    down, up, c = grouped(x, c)
    generator = np.random.Generator(np.random.PCG64(0))
    weights = generator.standard_gamma(c, size=(_RESAMPLES, len(c)))  # (resamples, values)
    extra = generator.standard_exponential(_RESAMPLES)
    totals = weights.sum(axis=1) + extra
    tail = (1 - level) / 2
    low = np.quantile((weights @ down + extra * lower) / totals, tail)
    high = np.quantile((weights @ up + extra * upper) / totals, 1 - tail)
    return float(low), float(high)


def histogram(values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct values, in increasing order, and their counts, as ``bounded_mean`` takes them."""
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return distinct, counts.astype(np.float64)


def grouped(x: NDArray[np.float64], c: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Increasing values as at most 512 groups of about equal weight: smallest and largest value, and weight of each.

    The lower end is computed from the smallest values, the upper from the largest: rounding errs outward, and the
    groups follow the data, so that it errs little whatever their scale.
    """
    if len(x) <= _GROUPS:
        return x, x, c
    share = np.cumsum(c) / c.sum()
    group = np.minimum((share * _GROUPS).astype(np.int64), _GROUPS - 1)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    return x[starts], x[ends], np.add.reduceat(c, starts)


def student(mean: ArrayLike, variance: ArrayLike, count: ArrayLike, level: float) -> tuple[NDArray[np.float64], ...]:
    """mean -+ t_{(1 + level) / 2, count - 1} * sqrt(variance / count), element by element: asymptotic.

    ``variance`` is the unbiased sample variance of the ``count`` independent values averaged. Fewer than two values
    say nothing: the interval is then the whole line.
    """
    m, v, n = (np.asarray(part, dtype=np.float64) for part in (mean, variance, count))
    with np.errstate(invalid="ignore", divide="ignore"):
        reach = special.stdtrit(np.maximum(n - 1, 1), (1 + level) / 2) * np.sqrt(np.maximum(v, 0) / n)
    reach = np.where(n >= 2, reach, np.inf)
    return m - reach, m + reach


def too_few(count: float, share: float) -> str:
    """Why an asymptotic interval does not promise its coverage; empty if there are enough values for that.

    Without bounds on the values no interval is valid for every distribution (Bahadur and Savage 1956). Student's t and
    its kin need many values, none of which dominates. The two bounds are rules of thumb, chosen before they were tried;
    ``tools/coverage.py`` simulates what they do: .92 to .96 for lognormal and for rare large changes. That is why
    intervals of real changes are labelled ``asymptotic`` beyond them too; a stricter rule on the values seen does not
    help, because it picks the samples in which large values happen to be missing.

    >>> too_few(1000, 0.01), too_few(40, 0.01)
    ('', 'asymptotic, too few: 40 independent values, 200 are needed')
    >>> too_few(1000, 0.3)
    'asymptotic, too few: one of 1,000 values has 30% of the variance'

    Arguments:
        count: of the independent values whose mean is taken.
        share: of their sum of squared deviations that the most extreme value has.
    """
    if count < _LEAST_VALUES:
        return f"asymptotic, too few: {count:,.0f} independent values, {_LEAST_VALUES} are needed"
    if share > _MOST_SHARE:
        return f"asymptotic, too few: one of {count:,.0f} values has {share:.0%} of the variance"
    return ""


ASYMPTOTIC = "asymptotic"


def asymptotic(count: float, share: float) -> str:
    """The caveat of an interval of real changes, whose coverage is never promised; arguments as of ``too_few``.

    >>> asymptotic(1000, 0.01)
    'asymptotic'
    """
    return too_few(count, share) or ASYMPTOTIC


def ratio_caveat(sizes: NDArray[np.float64], residuals: NDArray[np.float64], *, is_bounded: bool) -> str:
    """Why an interval for a mean over members of clusters of several sizes does not promise its coverage.

    The largest cluster that was not seen could weigh more than all others. Of clusters of one size nothing is hidden.

    >>> ratio_caveat(np.asarray([3.0, 3.0]), np.asarray([0.1, -0.1]), is_bounded=True)
    ''
    >>> ratio_caveat(np.asarray([3.0, 1.0]), np.asarray([0.1, -0.1]), is_bounded=True)
    'asymptotic, too few: 2 independent values, 200 are needed'

    Arguments:
        sizes: (clusters,) how many members each has.
        residuals: (clusters,) size * (mean of the cluster - mean of all).
        is_bounded: whether the values have bounds, as flips have.
    """
    if not is_bounded:
        return asymptotic(len(sizes), largest_share(residuals))
    return too_few(len(sizes), largest_share(sizes)) if len(np.unique(sizes)) > 1 else ""


def largest_share(deviations: NDArray[np.float64]) -> float:
    """The share of the sum of squares that the largest square has; 1 where all are 0, which tells nothing of a spread.

    >>> largest_share(np.asarray([1.0, -3.0, 0.0]))
    0.9
    """
    squares = np.square(deviations)
    total = float(squares.sum())
    return float(squares.max()) / total if total > 0 else 1.0


def weighted_mean(means: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """sum of size * mean / sum of sizes."""
    return float(means @ sizes / sizes.sum())


def bounded_ratio(means: NDArray[np.float64], sizes: NDArray[np.float64], level: float, bounds: Ends) -> Ends:
    """An interval for E[size * mean] / E[size], from independent inputs whose means lie between two bounds.

    The ratio r solves E[size * (mean - r)] = 0. Gaffke's bound (see ``bounded_mean``) for that expectation, with one
    more input of the largest size at a bound, is on the right side of 0 just if r is beyond

        high = quantile_{(1 + level) / 2} of  (sum_i D_i s_i m_i + D_{n+1} S * upper) / (sum_i D_i s_i + D_{n+1} S)

    with D ~ Dirichlet(1, ..., 1), sizes s_i, means m_i and the largest size S, and ``low`` in the same way with the
    lower bound. With equal sizes it is Gaffke's bound. Sizes beyond the largest one seen are not covered. The quantile
    is taken over 10,000 draws from a fixed generator.

    Arguments:
        means: (inputs,) the mean change of each.
        sizes: (inputs,) its number of tokens, at least 1.
        level: coverage.
        bounds: no mean can lie outside.
    """
    pairs, counts = np.unique(np.stack([means, sizes]), axis=1, return_counts=True)
    generator = np.random.Generator(np.random.PCG64(0))
    total, weight = np.zeros(_RESAMPLES), np.zeros(_RESAMPLES)
    for start in range(0, len(counts), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        gammas = generator.standard_gamma(counts[part], size=(_RESAMPLES, len(counts[part])))  # (resamples, pairs)
        total += gammas @ (pairs[0, part] * pairs[1, part])
        weight += gammas @ pairs[1, part]
    extra = generator.standard_exponential(_RESAMPLES) * sizes.max()
    low, high = ((total + extra * bound) / (weight + extra) for bound in bounds)
    tail = (1 - level) / 2
    return float(np.quantile(low, tail)), float(np.quantile(high, 1 - tail))


def student_ratio(means: NDArray[np.float64], sizes: NDArray[np.float64], level: float) -> Ends:
    """The same for real-valued means, by linearisation and Student's t: asymptotic."""
    value = weighted_mean(means, sizes)
    residuals = sizes * (means - value) / sizes.mean()
    variance = residuals.var(ddof=1) if len(means) > 1 else 0.0
    low, high = student(value, variance, len(means), level)
    return float(low), float(high)


def noise_reach(variances: NDArray[np.float64], sizes: NDArray[np.float64], level: float) -> float:
    """Half of a normal interval for the mean over these very inputs, from the noise variance of each input's mean."""
    spread = np.sqrt((sizes**2 * variances).sum()) / sizes.sum()
    return float(special.ndtri((1 + level) / 2) * spread)
