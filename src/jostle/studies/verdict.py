"""Verdicts from intervals alone: what is expected, what was found, and whether the two agree.

An ``Expectation`` can be judged at any level, and ``decide`` chooses the level. The findings of one study share the
error of 1 - level (Bonferroni): with m findings that rest on intervals, each interval has level 1 - (1 - level) / m,
and then all intervals cover together with probability at least ``level``. The claims of a paper are one family, and our
questions beyond them are another: they are corrected separately.
"""

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.studies.evidence import BySeed, Measured, Values, exponential, log_ratio, paired, proportion
from jostle.studies.schema import Struct


class Verdict(enum.StrEnum):
    """Whether what was found agrees with what was expected."""

    AGREES = "AGREES"
    DISAGREES = "DISAGREES"
    UNDECIDED = "UNDECIDED"


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


def doubted(expectation: Expectation, reason: str) -> Expectation:
    """The same expectation, undecided for this reason whatever the interval is."""

    def judge(level: float) -> Finding:
        return replace(expectation.judge(level), verdict=Verdict.UNDECIDED, reason=reason)

    return replace(expectation, judge=judge)


def is_below(statement: str, measured: Measured, bound: float) -> Expectation:
    """Expect measured < bound: agrees if the interval ends below it, disagrees if it starts at or above it."""
    return _expect(statement, f"< {bound:g}", measured, lambda low, high: _sides(high < bound, low >= bound))


def is_above(statement: str, measured: Measured, bound: float) -> Expectation:
    """Expect measured > bound: agrees if the interval starts above it, disagrees if it ends at or below it."""
    return _expect(statement, f"> {bound:g}", measured, lambda low, high: _sides(low > bound, high <= bound))


def is_less(statement: str, first: Values, second: Values) -> Expectation:
    """Expect first < second on average over seeds, by the paired difference first - second; needs three seeds.

    Where each side has an interval of its own instead of seeds: ``is_below(statement, difference(a, b), 0)``.
    """
    return is_below(statement, paired(first, second), 0.0)


def is_smaller(statement: str, first: BySeed, second: BySeed, factor: float = 1.0) -> Expectation:
    """Expect first / second < factor over training seeds, by ``log_ratio``; the finding shows the ratio.

    Arguments:
        statement: what is compared, e.g. ``sensitivity of vit-small / of resnet-18``.
        first, second: a number above 0 for each seed.
        factor: the ratio must lie below it; it belongs to the claim, not to the data.
    """
    return is_below(statement, exponential(log_ratio(first, second)), checks.number("factor", factor, above=0))


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


def shared_level(count: int, level: float = 0.95) -> float:
    """The level that each of ``count`` intervals needs, for all of them to cover together with probability ``level``.

    >>> round(shared_level(5), 4)
    0.99
    """
    return 1 - (1 - level) / max(count, 1)


def decide(
    expectations: Sequence[Expectation], *, scale: str, level: float = 0.95, family: int | None = None
) -> list[Finding]:
    """Judge all expectations of a study.

    Arguments:
        expectations: what the study expects.
        scale: at ``smoke`` nothing is decided, whatever the intervals are.
        level: coverage of all intervals of the claim together, and of all beyond the claim together.
        family: number of findings that share the error; by default the number of findings of the same kind that rest
            on intervals.
    """
    counted = [asked.is_beyond for asked in expectations if not asked.is_exact]
    each = {kind: shared_level(counted.count(kind) if family is None else family, level) for kind in (False, True)}
    findings = [replace(asked.judge(each[asked.is_beyond]), is_beyond=asked.is_beyond) for asked in expectations]
    if scale != "smoke":
        return findings
    said = "smoke scale shows that it runs and decides nothing"
    return [replace(finding, verdict=Verdict.UNDECIDED, reason=said) for finding in findings]


def overall(findings: Sequence[Finding]) -> Verdict:
    """The verdict of a study, from the findings of the claim: disagrees if any of them does, agrees if all do."""
    verdicts = [finding.verdict for finding in findings if not finding.is_beyond]
    if Verdict.DISAGREES in verdicts:
        return Verdict.DISAGREES
    return Verdict.AGREES if set(verdicts) == {Verdict.AGREES} else Verdict.UNDECIDED


def _sides(agrees: bool, disagrees: bool) -> Verdict:
    return Verdict.AGREES if agrees else Verdict.DISAGREES if disagrees else Verdict.UNDECIDED


def _expect(statement: str, expected: str, measured: Measured, rule: Callable[[float, float], Verdict]) -> Expectation:
    def judge(level: float) -> Finding:
        low, high = measured.ends(level)
        doubt = measured.doubt or _lacking(measured, level)
        verdict = Verdict.UNDECIDED if doubt else rule(low, high)
        stated = None if measured.is_exact else min(level, measured.most_level)
        value, least, most = (number if math.isfinite(number) else None for number in (measured.value, low, high))
        return Finding(statement, expected, verdict, value, least, most, stated, doubt or measured.method)

    return Expectation(statement, judge, measured.is_exact)


def _lacking(measured: Measured, level: float) -> str:
    if level <= measured.most_level + 1e-12:
        return ""
    return f"its interval has level {measured.most_level:g}, {level:g} is needed among this many findings"
