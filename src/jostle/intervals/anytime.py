"""Intervals for samples that are looked at while they grow. Pure functions of counts.

Confidence sequences (``bernoulli``, ``bounded``, ``asymptotic``) hold at every stopping time: one may look after every
draw and stop for any reason, and with probability at least ``level`` the interval covers at all times together.
Intervals for a sample size fixed beforehand, which are narrower, are in ``fixed``.

``stopped_proportion`` is the interval of a sample that stopped because that interval was narrow enough. A confidence
sequence is valid whatever made one stop, and pays for that with about 2.5 times the draws of a fixed sample. The rule
"stop when the Clopper-Pearson interval is narrow enough" is a special one: near its stopping time the sample size
hardly depends on the estimate any more (Chow and Robbins 1965), so the plain interval is almost right, and a slightly
raised level makes it right for every p (Frey 2010, "Fixed-width sequential confidence intervals for a proportion").
Both intervals are used together, with alpha = 1 - level split between them:

    a tenth of alpha     a confidence sequence, reported if something else ends the sampling
    the rest             the Clopper-Pearson interval at level 1 - c alpha, reported where it is first narrow enough,
                         with c = 0.6 for a half-width and c = 0.7 for a relative precision

The factors are calibrated, not derived: the exact coverage, by dynamic programming over all paths, is at least
1 - 0.9 alpha for levels from 0.8 to 0.99, half-widths from 0.002 to 0.2, relative precisions from 0.1 to 0.5, looks at
every draw or seldom, and p on a fine grid (tests/intervals/test_sequential.py). A relative precision is met after about
the same number of successes whatever p is, so there is less to choose by stopping, and its interval needs less. The
price is about 1.3 times the draws of a fixed sample for a half-width, and 1.2 for a relative precision of 0.1.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from jostle.intervals.fixed import Ends, clopper_pearson, grouped

Horizon = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Capital = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_BETS = 24
_HORIZON_SHARES = 8.0 ** -np.arange(5)
_HORIZON_WEIGHTS = np.array([0.8, 0.05, 0.05, 0.05, 0.05])
_SEQUENCE_SHARE = 0.1
_PEEKED_SHARE, _PEEKED_RELATIVE = 0.6, 0.7
_ROWS_AT_ONCE = 64
_GRID, _HALVINGS = 36, 14


def bernoulli(
    successes: ArrayLike, trials: ArrayLike, level: float, horizon: Horizon
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A confidence sequence for a proportion, element by element: a beta-binomial mixture tuned for every candidate.

    For each candidate p, with s successes in n trials,

        M_n(p) = B(k p + s, k (1 - p) + n - s) / B(k p, k (1 - p)) / (p^s (1 - p)^(n - s))

    is a martingale that starts at 1 if p is true, so P[M_n(p) >= 1 / alpha for some n] <= alpha (Ville). The interval
    is {p: M_n(p) < 1 / alpha}. The prior weight k decides at which n the interval is narrowest. A CS is a family of
    tests, one for each p, so k may depend on p: we take k = horizon(p) / c, where horizon(p) is the sample size at
    which sampling is expected to stop if p is the truth, and c = -2 log alpha + log(1 - 2 log alpha) puts the optimum
    of the normal mixture there. No pilot is needed, and the price over a fixed sample is about 2.5 times the draws,
    against 4 to 5 for one k for all p. One fifth of the weight goes to horizons 8, 64, 512 and 4096 times shorter, so
    that an early stop is not punished.

    Source: mixture and inequality as in Howard, Ramdas, McAuliffe and Sekhon (2021); tuning by candidate is ours.

    >>> low, high = bernoulli(5, 1000, 0.95, lambda p: np.full_like(p, 1000.0))
    >>> round(float(low), 4), round(float(high), 4)
    (0.0006, 0.015)
    """
    s, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    centre = np.divide(s, n, out=np.full(s.shape, 0.5), where=n > 0).reshape(-1)
    ends = np.empty((2, s.size))
    for rows in _parts(s.size):
        capital = log_mixture(s.reshape(-1, 1)[rows], n.reshape(-1, 1)[rows], level, horizon)
        ends[:, rows] = hull(capital, centre[rows], level, (0.0, 1.0))
    return ends[0].reshape(s.shape)[()], ends[1].reshape(s.shape)[()]


def log_mixture(successes: NDArray[np.float64], trials: NDArray[np.float64], level: float, horizon: Horizon) -> Capital:
    """log M_n(p) of ``bernoulli`` as a function of the candidates p, which broadcast against the counts."""
    log_threshold = -np.log1p(-level)
    tuning = 2 * log_threshold + np.log1p(2 * log_threshold)

    def capital(p: NDArray[np.float64]) -> NDArray[np.float64]:
        shares, weights = (part.reshape(-1, *[1] * p.ndim) for part in (_HORIZON_SHARES, np.log(_HORIZON_WEIGHTS)))
        prior = np.maximum(horizon(p) / tuning * shares, 1e-3)  # (shares, ..., candidates)
        a, b = prior * p, prior * (1 - p)
        log_mixtures = special.betaln(a + successes, b + trials - successes) - special.betaln(a, b)
        log_likelihood = special.xlogy(successes, p) + special.xlog1py(trials - successes, -p)
        return np.asarray(np.logaddexp.reduce(log_mixtures + weights, axis=0) - log_likelihood)

    return capital


def bounded(
    values: ArrayLike, counts: ArrayLike, level: float, bounds: Ends
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A confidence sequence for the mean of variables between two bounds with few distinct values, by betting.

    For a candidate m the capital of a bet lambda is prod_t (1 + lambda (x_t - m)), which is a martingale if m is the
    mean; the average over 48 bets, both signs, log-spaced up to the largest that cannot go bankrupt, is one too, and
    the interval holds the m whose capital stays below 1 / alpha. With few distinct values the capital is a function of
    their counts. Source: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".

    Arguments:
        values: (values,) that can occur.
        counts: (..., values) how often each has been observed so far; an interval for each row.
        level: coverage over all times together.
        bounds: no observation can lie outside.
    """
    x, c = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    rows, total = c.reshape(-1, c.shape[-1]), c.reshape(-1, c.shape[-1]).sum(axis=1)
    centre = np.divide(rows @ x, total, out=np.full(len(rows), sum(bounds) / 2), where=total > 0)
    ends = np.empty((2, len(rows)))
    for part in _parts(len(rows)):
        ends[:, part] = hull(log_bets(x, rows[part], bounds), centre[part], level, bounds)
    return ends[0].reshape(c.shape[:-1])[()], ends[1].reshape(c.shape[:-1])[()]


def bounded_ends(values: ArrayLike, counts: ArrayLike, level: float, bounds: Ends) -> Ends:
    """``bounded`` for many distinct values, in increasing order: they are grouped, and rounding errs outward.

    >>> low, high = bounded_ends([0.0, 0.5, 1.0], [90, 20, 10], 0.95, (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.085, 0.286)
    """
    x, c = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    down, up, c = grouped(x, c)
    return float(bounded(down, c, level, bounds)[0]), float(bounded(up, c, level, bounds)[1])


def log_bets(values: NDArray[np.float64], counts: NDArray[np.float64], bounds: Ends) -> Capital:
    """The logarithm of the mean capital of all bets of ``bounded``: candidates (rows, count) to (rows, count).

    Arguments:
        values: (values,) or (rows, values).
        counts: (rows, values).
        bounds: no value can lie outside.
    """
    shares = np.geomspace(1e-4, 0.9, _BETS)
    x = np.broadcast_to(values, counts.shape)

    def capital(m: NDArray[np.float64]) -> NDArray[np.float64]:
        below, above = (np.maximum(gap, 1e-12)[..., None] for gap in (m - bounds[0], bounds[1] - m))
        bets = np.concatenate([shares / below, -shares / above], axis=-1)  # (rows, candidates, bets)
        log_capital = np.zeros(bets.shape)
        for value, count in zip(x.T, counts.T, strict=True):  # one value at a time: the others take no memory
            log_capital += count[:, None, None] * np.log1p(bets * (value[:, None] - m)[..., None])
        most = log_capital.max(axis=-1, keepdims=True)
        return np.asarray(np.log(np.exp(log_capital - most).mean(axis=-1)) + most[..., 0])

    return capital


def asymptotic(
    mean: ArrayLike, variance: ArrayLike, count: ArrayLike, level: float, horizon: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A confidence sequence for the mean of unbounded variables, element by element, valid for large samples only.

    mean -+ sqrt(variance) * sqrt(2 (n r + 1) / (n^2 r) * log(sqrt(n r + 1) / alpha)), with r tuned so that it is
    narrowest near ``horizon`` draws. Nothing exact exists without bounds. Source: Waudby-Smith, Arbour, Sinha, Kennedy
    and Ramdas (2024), "Time-uniform central limit theory and asymptotic confidence sequences".
    """
    m, v, n = (np.asarray(part, dtype=np.float64) for part in (mean, variance, count))
    log_threshold = -np.log1p(-level)
    r = (2 * log_threshold + np.log1p(2 * log_threshold)) / np.maximum(horizon, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = 2 * (n * r + 1) / (n**2 * r) * (np.log(n * r + 1) / 2 + log_threshold)
        reach = np.where(n >= 2, np.sqrt(v * spread), np.inf)
    m = np.where(n >= 2, m, 0.0)
    return (m - reach)[()], (m + reach)[()]


def sequence_level(level: float) -> float:
    """The level of the confidence sequence that runs beside the stopping rule."""
    return 1 - _SEQUENCE_SHARE * (1 - level)


def stopped_proportion(
    successes: ArrayLike, trials: ArrayLike, level: float, *, is_relative: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The interval that the stopping rule looks at, and the answer if it stops there; element by element.

    >>> low, high = stopped_proportion(24, 4800, 0.95)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0031, 0.0077)

    Arguments:
        successes, trials: so far.
        level: coverage.
        is_relative: whether the rule asks for a relative precision, and not for a half-width.
    """
    low, high = clopper_pearson(successes, trials, peeked_level(level, is_relative=is_relative))
    return low, high


def peeked_level(level: float, *, is_relative: bool = False) -> float:
    """The raised level of an interval that decides when to stop, and is the answer there.

    >>> round(peeked_level(0.95), 3), round(peeked_level(0.95, is_relative=True), 3)
    (0.97, 0.965)
    """
    return 1 - (_PEEKED_RELATIVE if is_relative else _PEEKED_SHARE) * (1 - level)


def hull(
    log_capital: Capital,
    centre: NDArray[np.float64],
    level: float,
    bounds: Ends,
) -> NDArray[np.float64]:
    """(2, rows): the smallest interval that holds every candidate whose capital is below 1 / (1 - level).

    A grid that is dense near the centre finds the outermost accepted point on each side; the end is then halved in
    between that and the next, rejected point, and the rejected side is returned, so that rounding errs outward.

    Arguments:
        log_capital: from candidates (rows, count) to the logarithm of the capital against each.
        centre: (rows,) a candidate with little capital against it, accepted at every level.
        level: coverage.
        bounds: of the candidates.
    """
    log_threshold = -np.log1p(-level)
    shares = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, _GRID)])

    rows, points = len(centre), len(shares)
    goals = np.broadcast_to(bounds, (rows, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        paths = centre[:, None, None] + (goals - centre[:, None])[..., None] * shares  # (rows, ends, points)
        inside = (log_capital(paths.reshape(rows, -1)) < log_threshold).reshape(rows, 2, points)
        last = np.where(inside.any(axis=2), points - 1 - inside[..., ::-1].argmax(axis=2), 0)
        ahead = np.minimum(last + 1, points - 1)  # if the bound itself is accepted, it is the end
        here, there = (np.take_along_axis(paths, places[..., None], axis=2)[..., 0] for places in (last, ahead))
        for _ in range(_HALVINGS):
            middle = (here + there) / 2
            is_inside = log_capital(middle) < log_threshold
            here, there = np.where(is_inside, middle, here), np.where(is_inside, there, middle)
    ends = np.where((last == ahead) | (centre[:, None] == goals), goals, there)
    return np.clip(ends.T, *bounds)


def _parts(count: int) -> Iterator[slice]:
    """Slices of ``count`` rows, few enough at a time to fit in a cache."""
    return (slice(start, start + _ROWS_AT_ONCE) for start in range(0, count, _ROWS_AT_ONCE))
