"""Evidence: measured numbers, each with its interval at any level. ``verdict`` decides what follows from them.

The unit is a training seed: ``over_seeds``, ``paired`` and ``log_ratio`` take one number for each seed, as a mapping.
Where a seed gives several numbers, ``mean_by_seed`` averages them first. ``over_sample`` and ``unpaired`` are for
things that are independent by themselves, such as random functions.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate
from jostle.intervals.fixed import Ends, clopper_pearson, student
from jostle.intervals.seeds import careful_freedom, difference_of_means

LEAST_SEEDS, LEAST_CORRELATED = 3, 5
_ROUNDING = 1e-12  # a spread up to this share of the numbers is rounding

Values = Mapping[Any, float] | Sequence[float]
BySeed = Mapping[int, float]


@dataclass(frozen=True)
class Measured:
    """A number, and its interval at any level.

    Arguments:
        value: the number; NaN if there is none.
        ends: gives the ends of the interval at a level.
        doubt: why the number allows no conclusion; empty if it allows one.
        is_exact: computed, not estimated: it has no level and takes no share of the error of a family of findings.
        most_level: the highest level at which there is an interval.
        method: how the interval was made.
        sample: what the interval was made of; None where more of it would not narrow the interval in a known way.
    """

    value: float
    ends: Callable[[float], Ends]
    doubt: str = ""
    is_exact: bool = False
    most_level: float = 1.0
    method: str = ""
    sample: "Sample | None" = None


@dataclass(frozen=True)
class Sample:
    """What an interval of Student's kind was made of: enough to say what more of it would do.

    Arguments:
        count, unit: how many of what, e.g. 3 seeds.
        error: the standard error.
        freedom: its degrees of freedom.
        scale: the number whose standard error it is, from the number that is shown; e.g. a logarithm.
    """

    count: int
    unit: str
    error: float
    freedom: float
    scale: Callable[[float], float] = float


def exact(value: float) -> Measured:
    """A number that was computed, not estimated."""
    return _finite(Measured(float(value), lambda _: (float(value), float(value)), is_exact=True, method="exact"))


def interval(value: float, low: float | None, high: float | None, level: float) -> Measured:
    """A number measured with an interval of one fixed level; None is an end at infinity.

    It cannot support a finding that needs a higher level: measure at that level then.
    """
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    return _finite(Measured(value, lambda _: ends, most_level=level, method=f"interval of level {level:g}"))


def estimated(estimate: Estimate) -> Measured:
    """Any estimate of jostle as evidence, e.g. a measurement: its interval has the one level that it was made at."""
    if not estimate.interval.is_known:
        return _nothing(f"no interval is known: {estimate.interval.method}")
    return interval(estimate.value, estimate.low, estimate.high, estimate.interval.level)


def proportion(successes: int, trials: int) -> Measured:
    """A share of independent trials, with its Clopper-Pearson interval.

    >>> low, high = proportion(5, 1000).ends(0.95)
    >>> round(low, 6), round(high, 6)
    (0.001625, 0.011629)
    """

    def ends(level: float) -> Ends:
        low, high = clopper_pearson(successes, trials, level)
        return float(low), float(high)

    if trials == 0:
        return _nothing("no trials")
    share = successes / trials
    error = math.sqrt(max(share * (1 - share), 1 / (trials + 1)) / trials)
    return Measured(share, ends, method="Clopper-Pearson", sample=Sample(trials, "trials", error, math.inf))


def sample_mean(mean: float, std: float, count: int, unit: str) -> Measured:
    """The mean of independent things of which mean, standard deviation and number were kept, with Student's interval.

    >>> [round(end, 4) for end in sample_mean(-0.01, 0.3, 5000, "images").ends(0.95)]
    [-0.0183, -0.0017]

    Arguments:
        mean, std: of the values; std is the root of the unbiased variance.
        count, unit: how many of what, e.g. 5,000 images.
    """
    if count < LEAST_SEEDS or not (math.isfinite(mean) and std > 0):
        return _nothing(f"{count} {unit} with a standard deviation of {std:g} do not tell how much {unit} differ")

    def ends(level: float) -> Ends:
        low, high = student(mean, std**2, count, level)
        return float(low), float(high)

    sample = Sample(count, unit, std / math.sqrt(count), count - 1)
    return Measured(mean, ends, method=f"Student's t over {count:,} {unit}", sample=sample)


def mean_by_seed(values: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The mean of what each seed gives: several designs, tasks or answers from one seed are not independent.

    >>> mean_by_seed([(0, 1.0), (1, 5.0), (0, 3.0)])
    {0: 2.0, 1: 5.0}

    Arguments:
        values: pairs of a seed and a number.
    """
    found: dict[int, list[float]] = {}
    for seed, value in values:
        found.setdefault(seed, []).append(value)
    return {seed: math.fsum(several) / len(several) for seed, several in found.items()}


def over_seeds(values: BySeed) -> Measured:
    """The mean over seeds, with Student's interval: mean -+ t * s / sqrt(n).

    The interval is for the mean over all possible seeds, if values of seeds are about normally distributed. Fewer than
    three seeds, or seeds that all give the same number, do not tell how much seeds differ.

    >>> low, high = over_seeds({0: 1.0, 1: 2.0, 2: 3.0}).ends(0.95)
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    numbers = list(_keyed(values).values())
    return _student(np.asarray(numbers, dtype=np.float64), max(map(abs, numbers), default=0.0))


def over_sample(values: Sequence[float], unit: str) -> Measured:
    """The mean of things that are independent by themselves, with Student's interval.

    Arguments:
        values: one number for each.
        unit: what they are, e.g. ``networks``.
    """
    return _student(np.asarray(values, dtype=np.float64), max(map(abs, values), default=0.0), unit)


def paired(first: BySeed, second: BySeed) -> Measured:
    """The mean of first - second, seed by seed, with Student's interval.

    Arguments:
        first, second: values by seed, of the same seeds.
    """
    if set(_keyed(first)) != set(_keyed(second)):
        unmatched = sorted(map(str, set(first) ^ set(second)))
        raise UsageError(f"paired values are not of the same seeds: {', '.join(unmatched)} only on one side")
    apart = np.asarray([first[seed] - second[seed] for seed in first], dtype=np.float64)
    return _student(apart, max(map(abs, [*first.values(), *second.values()]), default=0.0))


def unpaired(first: Values, second: Values) -> Measured:
    """The difference of the means of two independent samples, with Welch's interval.

    mean_1 - mean_2 -+ t * sqrt(v_1 / n_1 + v_2 / n_2), with the careful degrees of freedom of ``intervals.seeds``; the
    variances may differ.

    >>> low, high = unpaired([1.0, 2.0, 3.0], [4.0, 6.0, 8.0]).ends(0.95)
    >>> round(low, 3), round(high, 3)
    (-8.654, 0.654)
    """
    samples = [np.asarray(list(v.values() if isinstance(v, Mapping) else v), dtype=np.float64) for v in (first, second)]
    if min(map(len, samples)) < LEAST_SEEDS:
        return _nothing(f"samples of {len(samples[0])} and {len(samples[1])}; at least {LEAST_SEEDS} are needed")
    if not all(np.isfinite(sample).all() for sample in samples):
        return _nothing("some values are NaN or infinite")
    value = float(samples[0].mean() - samples[1].mean())
    errors = [math.sqrt(float(sample.var(ddof=1)) / len(sample)) for sample in samples]
    doubt = "" if any(errors) else "neither sample varies, so how much its values differ is not known"
    sizes = " and ".join(f"{len(sample):,}" for sample in samples)
    unit = "seeds" if isinstance(first, Mapping) and isinstance(second, Mapping) else "values"
    count = min(map(len, samples))
    return _welch(value, errors, [len(s) - 1 for s in samples], count, unit, doubt, f"Welch's t, samples of {sizes}")


def log_ratio(first: BySeed, second: BySeed) -> Measured:
    """Mean log of the first minus mean log of the second, over training seeds; see ``intervals.seeds``.

    The two sides are taken for independent. They need not have the same seeds: a network that did not learn from one
    seed is left out of its side alone.

    >>> found = log_ratio({0: 0.01, 1: 0.012, 2: 0.011}, {0: 0.05, 1: 0.06, 2: 0.04})
    >>> round(found.value, 3), [round(end, 3) for end in found.ends(0.95)]
    (-1.503, [-1.979, -1.028])

    Arguments:
        first, second: a number above 0 for each seed. A sensitivity of 0 is given as (flips + 1/2) / (trials + 1).
    """
    few = f"{len(first)} and {len(second)} seeds; at least {LEAST_SEEDS} are needed on each side"
    if not (_keyed(first) and _keyed(second)):
        return _nothing(few)
    numbers = [*first.values(), *second.values()]
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        return _nothing(f"{sum(not number > 0 for number in numbers)} values are not above 0 and have no logarithm")
    logs = [[math.log(number) for number in side.values()] for side in (first, second)]
    value = float(np.mean(logs[0]) - np.mean(logs[1]))
    if min(len(first), len(second)) < LEAST_SEEDS:
        return Measured(value, lambda _: (-math.inf, math.inf), few)
    doubt = ""
    if all(np.ptp(side) <= _ROUNDING for side in logs):
        doubt = "all seeds of both sides give the same number, so how much seeds differ is not known"
    seeds = f"{len(first)} seeds" if len(first) == len(second) else f"{len(first)} and {len(second)} seeds"
    low, high = difference_of_means(logs[0], logs[1], 0.95)
    count = min(len(first), len(second))
    freedom = 1.5 * (count - 1)  # half-way between n - 1 and 2 (n - 1)
    error = (high - low) / 2 / float(special.stdtrit(freedom, 0.975))
    return Measured(
        value,
        lambda level: difference_of_means(logs[0], logs[1], level),
        doubt,
        method=f"moderated Welch over {seeds}",
        sample=Sample(count, "seeds", error, freedom),
    )


def exponential(measured: Measured, base: float = math.e) -> Measured:
    """``base`` to the power of a measured number: a ratio from its logarithm.

    >>> low, high = exponential(over_seeds({0: 0.9, 1: 1.0, 2: 1.1}), base=10).ends(0.95)
    >>> round(low, 2), round(high, 2)
    (5.64, 17.72)
    """

    def power(exponent: float) -> float:
        return math.inf if exponent * math.log(base) > 690 else float(base**exponent)

    def ends(level: float) -> Ends:
        low, high = measured.ends(level)
        return power(low), power(high)

    def logarithm(ratio: float) -> float:
        return math.log(ratio, base) if ratio > 0 else -math.inf

    sample = None if measured.sample is None else replace(measured.sample, scale=logarithm)
    method = f"{measured.method}, of the logarithm"
    return replace(measured, value=power(measured.value), ends=ends, method=method, sample=sample)


def rank_correlation(first: Values, second: Values, *, unit: str = "things") -> Measured:
    """Spearman's correlation of two numbers of the same things, with the interval of Bonett and Wright (2000).

        atanh(r) -+ z sqrt((1 + r^2 / 2) / (n - 3))

    for things drawn from a larger number of them; asymptotic in n, and close from ten or so on. At r = -+1, where the
    formula says nothing, the end is that of the correlation with two neighbours exchanged.

    >>> found = rank_correlation([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5])
    >>> round(found.value, 4), [round(end, 3) for end in found.ends(0.95)]
    (0.9429, [0.383, 0.996])

    Arguments:
        first, second: values by name (matched by name), or in the same order.
        unit: what they are values of, e.g. ``networks``.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if set(first) != set(second):
            raise UsageError("correlated values are not of the same things")
        first, second = list(first.values()), [second[name] for name in first]
    a, b = (np.asarray(list(part), dtype=np.float64) for part in (first, second))
    if a.shape != b.shape:
        raise UsageError(f"correlated values must match one to one, got {len(a)} and {len(b)}")
    count = len(a)
    if count < LEAST_CORRELATED:
        return _nothing(f"{count} {unit}; at least {LEAST_CORRELATED} are needed for a correlation")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return _nothing("some values are NaN or infinite")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return _nothing("one of the two is the same for all, so there is no correlation")
    value = float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])
    nearest = 1 - 12 / (count * (count**2 - 1))  # with two neighbours exchanged
    inner = min(max(value, -nearest), nearest)
    error = math.sqrt((1 + inner**2 / 2) / (count - 3))

    def ends(level: float) -> Ends:
        reach = float(special.ndtri((1 + level) / 2)) * error
        low, high = math.tanh(math.atanh(inner) - reach), math.tanh(math.atanh(inner) + reach)
        return (-1.0 if value < -nearest - _ROUNDING else low), (1.0 if value > nearest + _ROUNDING else high)

    sample = Sample(count, unit, error, math.inf, lambda r: math.atanh(min(max(r, -nearest), nearest)))
    return Measured(value, ends, method=f"Bonett and Wright, {count} {unit}", sample=sample)


def _ranks(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal numbers share the mean of their ranks.

    Not ``scipy.stats.rankdata``, which gives the same: importing ``scipy.stats`` takes a second.

    >>> _ranks(np.asarray([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def bounded(measured: Measured, least: float, most: float) -> Measured:
    """The same number, where no value below ``least`` or above ``most`` is possible: the interval ends there.

    >>> bounded(over_seeds({0: 0.98, 1: 0.99, 2: 1.0}), 0.0, 1.0).ends(0.95)[1]
    1.0
    """

    def ends(level: float) -> Ends:
        low, high = measured.ends(level)
        return max(low, least), min(high, most)

    return replace(measured, ends=ends)


def difference(first: Measured, second: Measured, *, independent: bool = False) -> Measured:
    """first - second for two numbers with intervals of their own.

    Of independent numbers with Student's intervals, such as slopes through different runs: Welch's interval. Otherwise
    [low_1 - high_2, high_1 - low_2], each interval at half the error: both cover with probability at least ``level``.

    Arguments:
        first, second: the numbers.
        independent: whether what they were measured from is independent.
    """
    doubt = first.doubt or second.doubt
    if independent and first.sample is not None and second.sample is not None:
        samples = first.sample, second.sample
        return _welch(
            first.value - second.value,
            [one.error for one in samples],
            [one.freedom for one in samples],
            min(one.count for one in samples),
            samples[0].unit,
            doubt,
            f"{first.method} and {second.method}, by Welch",
        )

    def ends(level: float) -> Ends:
        a, b = first.ends(split(level)), second.ends(split(level))
        return a[0] - b[1], a[1] - b[0]

    def split(level: float) -> float:
        """Exact numbers take no share of the error."""
        return level if first.is_exact or second.is_exact else 1 - (1 - level) / 2

    both_exact = first.is_exact and second.is_exact
    most = min(part.most_level for part in (first, second))
    return Measured(
        first.value - second.value,
        ends,
        doubt,
        is_exact=both_exact,
        most_level=most if first.is_exact or second.is_exact else 1 - 2 * (1 - most),
        method=f"{first.method} and {second.method}, by the union bound",
    )


def scaled(measured: Measured, factor: float) -> Measured:
    """A number and its interval multiplied by ``factor``.

    >>> scaled(exact(3.0), -2).value
    -6.0
    """

    def ends(level: float) -> Ends:
        low, high = sorted(factor * end for end in measured.ends(level))
        return low, high

    sample = measured.sample
    if sample is not None:
        sample = replace(sample, error=abs(factor) * sample.error)
    return replace(measured, value=factor * measured.value, ends=ends, sample=sample)


def _keyed(values: BySeed) -> BySeed:
    if not isinstance(values, Mapping):
        raise UsageError("values over seeds must be given by seed, as a mapping of seed to number")
    return values


def _welch(
    value: float, errors: Sequence[float], freedoms: Sequence[float], count: int, unit: str, doubt: str, method: str
) -> Measured:
    """A difference with the standard errors of its two sides."""
    freedom = careful_freedom(np.square(errors), np.asarray(freedoms, dtype=np.float64)).item()
    error = math.hypot(*errors)

    def ends(level: float) -> Ends:
        reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
        return value - reach, value + reach

    return Measured(value, ends, doubt, method=method, sample=Sample(count, unit, error, freedom))


def _student(numbers: NDArray[np.float64], magnitude: float, unit: str = "seeds") -> Measured:
    """Student's interval for the mean of one number for each unit, computed from numbers of this magnitude."""
    count = len(numbers)
    if count == 0:
        return _nothing("no values")
    if not np.isfinite(numbers).all():
        return _nothing(f"{np.count_nonzero(~np.isfinite(numbers))} of {count} values are NaN or infinite")
    mean, variance = float(numbers.mean()), float(numbers.var(ddof=1)) if count > 1 else math.nan
    doubt = ""
    if count < LEAST_SEEDS:
        doubt = f"{count} {unit if count > 1 else unit.removesuffix('s')}; at least {LEAST_SEEDS} are needed"
    elif np.ptp(numbers) <= _ROUNDING * magnitude:
        doubt = f"all {count} {unit} give the same number, so how much {unit} differ is not known"

    def ends(level: float) -> Ends:
        low, high = student(mean, variance, count, level)
        return float(low), float(high)

    sample = Sample(count, unit, math.sqrt(variance / count), count - 1) if count > 1 else None
    return Measured(mean, ends, doubt, method=f"Student's t over {count} {unit}", sample=sample)


def _nothing(doubt: str) -> Measured:
    return Measured(math.nan, lambda _: (-math.inf, math.inf), doubt)


def _finite(measured: Measured) -> Measured:
    ends = measured.ends(0.95)
    if not math.isfinite(measured.value) or any(map(math.isnan, ends)):
        return _nothing(f"the value is {measured.value} with interval [{ends[0]}, {ends[1]}]")
    return measured
