"""Verdicts from intervals alone: what is expected, what was found, and whether the two agree. Rule: docs/verdicts.md.

An ``Expectation`` is judged by its own interval, whatever else a study expects: one fact has one verdict. ``decide``
judges all of them, and ``overall`` says what follows for the claim. It agrees if all of its expectations do; that needs
no correction. It disagrees if one of them does by Holm's rule, and is ALIKE if one of them is by the same rule.
"""

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.intervals.seeds import MOST_TIMES, count_needed
from jostle.studies.evidence import BySeed, Measured, exponential, log_ratio, paired, proportion
from jostle.studies.schema import IfGiven, Struct

ALIKE_FACTOR = 1.25  # two sensitivities whose ratio lies within it count as alike
ALIKE_ACCURACY = 0.02  # and two accuracies that differ by no more than this


class Verdict(enum.StrEnum):
    """Whether what was found agrees with what was expected.

    ALIKE says of an expected difference that there is none worth telling: the whole interval lies so near to no
    difference that a larger one is excluded, on both sides (three-sided testing, Goeman, Solari and Stijnen 2010).
    """

    AGREES = "AGREES"
    DISAGREES = "DISAGREES"
    ALIKE = "ALIKE"
    UNDECIDED = "UNDECIDED"


_AGAINST = (Verdict.DISAGREES, Verdict.ALIKE)  # verdicts that keep a claim from agreeing


@dataclass(frozen=True)
class Finding(Struct):
    """One expectation, judged.

    Arguments:
        statement: what is expected, in a sentence.
        expected: the same in symbols, e.g. ``< 0``.
        verdict: whether it was found.
        value, low, high: what was measured; None where there is no number or no end.
        level: of the interval; None for what was computed exactly.
        reason: why it is undecided, or what the verdict rests on.
        is_beyond: whether it is a question beyond the paper's claim; then it is no part of the study's verdict.
        by_holm: of an expectation of the claim that disagrees or is alike: whether it also is among all of them.
        needs: of an undecided one: what would decide it.
    """

    statement: str
    expected: str
    verdict: Verdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    reason: str = ""
    is_beyond: bool = False
    by_holm: IfGiven[bool | None] = None
    needs: IfGiven[str] = ""

    @property
    def measured(self) -> str:
        """Value and interval in a few characters, e.g. ``0.012 [0.01, 0.014]``."""
        if self.value is None:
            return "nothing"
        if self.level is None:
            return f"{self.value:.4g}"
        low = "-∞" if self.low is None else f"{self.low:.4g}"
        high = "∞" if self.high is None else f"{self.high:.4g}"
        return f"{self.value:.4g} [{low}, {high}]"


@dataclass(frozen=True)
class Expectation:
    """Something a paper lets one expect, with the evidence about it.

    Arguments:
        statement: in a sentence.
        judge: gives the finding at a level of the intervals.
        is_exact: whether it rests on no interval, so that it takes no share of the error.
        is_beyond: whether it is beyond the paper's claim; see ``beyond``.
    """

    statement: str
    judge: Callable[[float], Finding]
    is_exact: bool = False
    is_beyond: bool = False


def beyond(expectation: Expectation) -> Expectation:
    """The same as a question of our own beyond the paper's claim: judged and shown, but no part of the verdict."""
    return replace(expectation, is_beyond=True)


def doubted(expectation: Expectation, reason: str, needs: str = "") -> Expectation:
    """The same expectation, undecided for this reason whatever the interval is.

    Arguments:
        expectation: what is expected.
        reason: why it allows no conclusion.
        needs: what would decide it; more of what the interval was made of would not.
    """

    def judge(level: float) -> Finding:
        return replace(expectation.judge(level), verdict=Verdict.UNDECIDED, reason=reason, needs=needs)

    return replace(expectation, judge=judge)


def is_below(statement: str, measured: Measured, bound: float, *, alike: float | None = None) -> Expectation:
    """Expect measured < bound: agrees if the interval ends below it, disagrees if it starts at or above it.

    Arguments:
        statement: what is measured.
        measured: with its interval.
        bound: that it must stay below.
        alike: a distance from the bound that is not worth telling: if the interval reaches over the bound and no
            farther than this to either side, the verdict is ALIKE. None where every distance counts.
    """
    return _one_sided(statement, f"< {bound:g}", measured, bound, lambda low, high: (high < bound, low >= bound), alike)


def is_above(statement: str, measured: Measured, bound: float, *, alike: float | None = None) -> Expectation:
    """Expect measured > bound: agrees if the interval starts above it, disagrees if it ends at or below it.

    The arguments are those of ``is_below``.
    """
    return _one_sided(statement, f"> {bound:g}", measured, bound, lambda low, high: (low > bound, high <= bound), alike)


def is_less(statement: str, first: BySeed, second: BySeed) -> Expectation:
    """Expect first < second on average over seeds, by the paired difference first - second; needs three seeds.

    For numbers that are not above 0, such as slopes; sensitivities are compared as ratios, by ``is_smaller``.

    Where each side has an interval of its own instead of seeds: ``is_below(statement, difference(a, b), 0)``.
    """
    return is_below(statement, paired(first, second), 0.0)


def is_smaller(statement: str, first: BySeed, second: BySeed, factor: float = 1.0) -> Expectation:
    """Expect first / second < factor over training seeds, by ``log_ratio``; the finding shows the ratio.

    If first < second is all that is expected, and the whole interval of the ratio lies within ``ALIKE_FACTOR`` of 1,
    the two are ALIKE.

    Arguments:
        statement: what is compared, e.g. ``sensitivity of vit-small / of resnet-18``.
        first, second: a number above 0 for each seed.
        factor: the ratio must lie below it; it belongs to the claim, not to the data.
    """
    checks.number("factor", factor, above=0)
    near = (1 / ALIKE_FACTOR, ALIKE_FACTOR) if factor == 1 else None
    ratio = exponential(log_ratio(first, second))
    return _three_sided(
        statement, f"< {factor:g}", ratio, factor, lambda low, high: (high < factor, low >= factor), near
    )


def is_within_factor(statement: str, first: BySeed, second: BySeed, factor: float = 1.5) -> Expectation:
    """Expect 1 / factor <= first / second <= factor over training seeds: the two are alike.

    Agrees if the whole interval of the ratio lies there, disagrees if none of it does. Two one-sided tests, each with
    the error of one side: an intersection, so nothing is divided between them.
    """
    if not (factor > 1 and math.isfinite(factor)):
        raise UsageError(f"factor={factor} of {statement!r} must be finite and above 1")
    return _expect(
        statement,
        f"between 1/{factor:g} and {factor:g}",
        exponential(log_ratio(first, second)),
        lambda low, high: _sides(1 / factor <= low and high <= factor, high < 1 / factor or low > factor),
        _from_nearest(1 / factor, factor),
    )


def within(statement: str, measured: Measured, target: float, margin: float) -> Expectation:
    """Expect abs(measured - target) <= margin: agrees if the whole interval lies there, disagrees if none of it does.

    The margin says which difference does not matter; it belongs to the claim, not to the data.
    """
    if not (margin >= 0 and math.isfinite(margin)):
        raise UsageError(f"margin={margin} of {statement!r} must be finite and not negative")
    least, most = target - margin, target + margin
    return _expect(
        statement,
        f"{target:g} ± {margin:g}",
        measured,
        lambda low, high: _sides(least <= low and high <= most, high < least or low > most),
        _from_nearest(least, most),
    )


def holds_for_all(statement: str, violations: int, tested: int, *, exhaustive: bool = True) -> Expectation:
    """Expect something of every case: one violation disagrees.

    Without a violation the finding agrees if all possible cases were tested. A sample of the cases, however large,
    leaves it undecided, and the finding states an upper bound for the share of violations.
    """
    if not 0 <= violations <= tested:
        raise UsageError(f"{statement!r}: {violations} violations in {tested} cases cannot be")

    def judge(level: float) -> Finding:
        if tested == 0:
            return Finding(statement, "0 violations", Verdict.UNDECIDED, reason="no case was tested")
        if violations == 0 and not exhaustive:
            low, high = proportion(0, tested).ends(level)
            reason = f"no violation in a sample of {tested:,} cases; the interval is for the share of violations"
            return Finding(statement, "0 violations", Verdict.UNDECIDED, 0.0, low, high, level, reason)
        verdict = Verdict.DISAGREES if violations else Verdict.AGREES
        reason = f"{violations:,} violations among {'all' if exhaustive else 'a sample of'} {tested:,} cases"
        return Finding(statement, "0 violations", verdict, float(violations), reason=reason)

    return Expectation(statement, judge, is_exact=exhaustive or violations > 0)


def decide(
    expectations: Sequence[Expectation], *, scale: str, level: float = 0.95, share: float = 1.0
) -> list[Finding]:
    """Judge all expectations of a study.

    Arguments:
        expectations: what the study expects.
        scale: at ``smoke`` nothing is decided, whatever the intervals are.
        level: of every two-sided interval, so that each wrong verdict has half of the rest as its chance.
        share: of the error that this look has; see ``looks``.
    """
    own = 1 - (1 - level) * share
    findings = [replace(asked.judge(own), is_beyond=asked.is_beyond) for asked in expectations]
    if scale == "smoke":
        said = "smoke scale shows that it runs and decides nothing"
        return [replace(finding, verdict=Verdict.UNDECIDED, reason=said, needs="") for finding in findings]
    claimed = [place for place, asked in enumerate(expectations) if not asked.is_beyond]
    sampled = [place for place in claimed if not expectations[place].is_exact]
    held = _holm(expectations, sampled, own)
    for place in claimed:
        if findings[place].verdict in _AGAINST:
            is_sure = place in held or place not in sampled
            findings[place] = replace(findings[place], by_holm=is_sure, reason=_with_holm(findings[place], is_sure))
    return findings


def overall(findings: Sequence[Finding]) -> Verdict:
    """The verdict of a study, from the findings of the claim: all agree, or one does not by Holm's rule."""
    claimed = [finding for finding in findings if not finding.is_beyond]
    for against in _AGAINST:
        if any(finding.verdict == against and finding.by_holm is not False for finding in claimed):
            return against
    agrees = claimed and all(finding.verdict == Verdict.AGREES for finding in claimed)
    return Verdict.AGREES if agrees else Verdict.UNDECIDED


def _holm(expectations: Sequence[Expectation], places: Sequence[int], level: float) -> set[int]:
    """Those that disagree or are alike by Holm's step-down rule: at error / m, the rest at error / (m - 1)...

    Holm (1979). With m expectations the chance that a true one is among those found false is at most that of one.
    """
    found: set[int] = set()
    while len(found) < len(places):
        stricter = 1 - (1 - level) / (len(places) - len(found))
        left = [place for place in places if place not in found]
        more = {place for place in left if expectations[place].judge(stricter).verdict in _AGAINST}
        if not more:
            break
        found |= more
    return found


def _with_holm(finding: Finding, is_sure: bool) -> str:
    if is_sure:
        return finding.reason
    said = "disagrees" if finding.verdict == Verdict.DISAGREES else "is alike"
    return f"{finding.reason}; {said} by itself, but not among all expectations of the claim (Holm)".lstrip("; ")


def _sides(agrees: bool, disagrees: bool, is_alike: bool = False) -> Verdict:
    if agrees or disagrees:
        return Verdict.AGREES if agrees else Verdict.DISAGREES
    return Verdict.ALIKE if is_alike else Verdict.UNDECIDED


def _one_sided(
    statement: str,
    expected: str,
    measured: Measured,
    bound: float,
    sides: Callable[[float, float], tuple[bool, bool]],
    alike: float | None,
) -> Expectation:
    if alike is not None:
        checks.number("alike", alike, above=0)
    near = None if alike is None else (bound - alike, bound + alike)
    return _three_sided(statement, expected, measured, bound, sides, near)


def _three_sided(
    statement: str,
    expected: str,
    measured: Measured,
    bound: float,
    sides: Callable[[float, float], tuple[bool, bool]],
    near: tuple[float, float] | None,
) -> Expectation:
    """Expect one side of a bound; alike if the interval reaches over the bound but stays in ``near``."""

    def rule(low: float, high: float) -> Verdict:
        return _sides(*sides(low, high), near is not None and near[0] <= low and high <= near[1])

    def room(place: Callable[[float], float], value: float) -> float:
        """How far the ends may lie from the value for a verdict: clear of the bound, or within what is near it."""
        clear = abs(place(value) - place(bound))
        if near is None:
            return clear
        return max(clear, min(place(value) - place(near[0]), place(near[1]) - place(value)))

    return _expect(statement, expected, measured, rule, room)


def _from_nearest(*bounds: float) -> Callable[[Callable[[float], float], float], float]:
    """How far the ends may lie from the value: up to the nearest bound."""
    return lambda place, value: min(abs(place(value) - place(bound)) for bound in bounds)


def _expect(
    statement: str,
    expected: str,
    measured: Measured,
    rule: Callable[[float, float], Verdict],
    room: Callable[[Callable[[float], float], float], float],
) -> Expectation:
    """An expectation about a number.

    Arguments:
        statement: what is measured.
        expected: where it must lie, in symbols.
        measured: with its interval.
        rule: the verdict for the ends of the interval.
        room: how far the ends may lie from a value for a verdict, on a scale of the numbers.
    """

    def judge(level: float) -> Finding:
        low, high = measured.ends(level)
        doubt = measured.doubt or _lacking(measured, level)
        verdict = Verdict.UNDECIDED if doubt else rule(low, high)
        stated = None if measured.is_exact else min(level, measured.most_level)
        value, least, most = (number if math.isfinite(number) else None for number in (measured.value, low, high))
        needs = "" if doubt or verdict != Verdict.UNDECIDED else _needs(measured, room, level)
        return Finding(statement, expected, verdict, value, least, most, stated, doubt or measured.method, needs=needs)

    return Expectation(statement, judge, measured.is_exact)


def _needs(measured: Measured, room: Callable[[Callable[[float], float], float], float], level: float) -> str:
    """About how much of what the interval was made of would decide."""
    sample = measured.sample
    if sample is None:
        return ""
    distance = room(sample.scale, measured.value)
    count = count_needed(distance, sample.error, sample.freedom, sample.count, level)
    if count is None:
        return f"more than {MOST_TIMES * sample.count:,} {sample.unit}: too close to the bound"
    return f"about {count:,} {sample.unit}"


def _lacking(measured: Measured, level: float) -> str:
    if level <= measured.most_level + 1e-12:
        return ""
    return f"its interval has level {measured.most_level:g}, {level:g} is needed"
