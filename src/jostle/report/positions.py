"""The sections on positions: the mean change by position of the token, with intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jostle.base import specs
from jostle.base.estimate import TARGETS
from jostle.estimates import Measurement
from jostle.figures import Series, curves, svg
from jostle.figures.maps import largest
from jostle.figures.profile import profile_svg
from jostle.figures.style import is_flip, quantity
from jostle.intervals import anytime, fixed
from jostle.report.page import Entry, Section, Table, Value
from jostle.sampling import PLANS, Plan, Until

_GROUPS = 12  # rows of the table of positions
_LEAST_TRIALS = 10  # rows with fewer are left out of the figure: their intervals would fill it
_SHORTEST_HORIZON = 16.0  # the same as for the positions of a profile


def position_sections(measured: Sequence[Measurement]) -> list[Section]:
    """A heat map for each model if positions form a grid, else one section with a line for each model."""
    profile = measured[0].profile
    if len(profile.values) < 2:
        return []
    if len(profile.positions) > 1:
        darkest = largest([m.profile.values for m in measured])
        shared = " All models have one colour scale." if len(measured) > 1 else ""
        return [
            Section(f"Where: {m.name}", figure_svg=profile_svg(m, darkest), caption=_certainty(m) + shared)
            for m in measured
        ]
    return [_lines(measured)]


def _certainty(m: Measurement) -> str:
    """The caption of a heat map: the number of trials of a position, and the width of its interval."""
    profile = m.profile
    known = profile.counts > 0
    counts, widths = profile.counts[known], (profile.high - profile.low)[known] / 2
    if not widths.any():
        return "The mean change by position, exact for the inputs given: every token of every input was jostled."
    least, most = int(counts.min()), int(counts.max())
    trials = f"about {np.median(counts):,.0f} trials" if most <= 2 * least else f"{least:,} to {most:,} trials"
    level = f"{m.settings.level:.0%}".replace("%", " %")
    return (
        f"The mean change by position: {trials} each, typical interval \N{PLUS-MINUS SIGN}{np.median(widths):.2g} "
        f"({level} for {TARGETS[profile.target]}, each position on its own). Point at a position to see its interval."
    )


def _lines(measured: Sequence[Measurement]) -> Section:
    """One line for each model over ranges of positions, and the same as a table."""
    profile, ranges = measured[0].profile, _ranges(measured[0].profile.counts)
    groups = {m.name: [_group(m, start, stop) for start, stop in ranges] for m in measured}
    rows: list[list[Value | Entry]] = []
    for number, (start, stop) in enumerate(ranges):
        entries = [_entry(parts[number]) for parts in groups.values()]
        name = str(start) if stop - start == 1 else f"{start} to {stop - 1}"
        rows.append([Entry(name, start), *entries, int(profile.counts[start:stop].sum())])
    text = "Positions count from 0, the first token of an input."
    if profile.counts[ranges[-1][1] - 1] * 2 < profile.counts.max():
        text += " Few inputs are long, so later positions have fewer trials each and are grouped in wider ranges."
    place, level = "position of the token in its input", f"{measured[0].settings.level:.0%}".replace("%", " %")
    lines = [_series(name, parts) for name, parts in groups.items()]
    return Section(
        "Where in the input",
        text=text,
        figure_svg=svg(curves(lines, x_label=place, y_label=quantity(measured[0]))),
        caption="A point for each row of the table, in the middle of its positions; bands are the intervals of each "
        f"row on its own, {level} for {TARGETS[profile.target]}.{_left_out(groups.values())}",
        alt="A line of the mean change against the position of the token, with a band.",
        table=Table(["positions", *groups, "trials"], rows),
    )


@dataclass(frozen=True)
class _Group:
    """The mean change over positions ``start`` .. ``stop`` - 1, NaN where there is no trial."""

    start: int
    stop: int
    value: float
    low: float
    high: float
    trials: int


def _group(m: Measurement, start: int, stop: int) -> _Group:
    """The mean over all trials at these positions, with an interval.

    Flips are independent draws given the inputs. So flips at several positions are counted together, and the interval
    is that of a single position: a confidence sequence if sampling stopped early, otherwise Clopper and Pearson's. For
    other responses, and for adaptive draws, only intervals by position are known. Their mean is wider than necessary;
    if means are about normal, it covers however the positions depend on each other.
    """
    profile = m.profile
    counts = profile.counts[start:stop]
    known, trials = counts > 0, int(counts.sum())
    if not trials:
        return _Group(start, stop, np.nan, np.nan, np.nan, 0)
    value, low, high = (
        float(part[start:stop][known] @ counts[known] / trials) for part in (profile.values, profile.low, profile.high)
    )
    if profile.method.startswith("weighted"):  # adaptive draws: trials say nothing about the weight of a position
        value, low, high = (
            float(part[start:stop][known].mean()) for part in (profile.values, profile.low, profile.high)
        )
    elif is_flip(m) and profile.target == "dataset" and profile.method != "exact":
        low, high = _pooled_interval(m, round(value * trials), trials, (stop - start) / len(profile.values))
    return _Group(start, stop, value, low, high, trials)


def _pooled_interval(m: Measurement, flips: int, trials: int, share: float) -> tuple[float, float]:
    """The interval of a share of flips at some positions, which are ``share`` of all positions."""
    level = m.settings.level
    plan = specs.build(PLANS, m.settings.plan, "plan", Plan)
    if isinstance(plan, Until):
        low, high = anytime.bernoulli(
            flips, trials, level, lambda p: np.maximum(plan.horizon(p, level) * share, _SHORTEST_HORIZON)
        )
        return float(low), float(high)
    low, high = fixed.clopper_pearson(flips, trials, level)
    return float(low), float(high)


def _entry(group: _Group) -> Entry:
    """The mean of a group with its interval, for the table."""
    if not group.trials:
        return Entry("", group.value)
    is_bounded = np.isfinite(group.low) and np.isfinite(group.high)
    ends = f" [{group.low:.4f}, {group.high:.4f}]" if is_bounded else ""
    return Entry(f"{group.value:.4f}{ends}", group.value)


def _series(name: str, groups: Sequence[_Group]) -> Series:
    """The groups as a line, with a gap where the figure leaves one out."""
    middles = [(group.start + group.stop - 1) / 2 for group in groups]
    shown = np.asarray([(g.value, g.low, g.high) if _is_shown(g, groups) else (np.nan,) * 3 for g in groups])
    return Series(name, middles, *shown.T)


def _is_shown(group: _Group, groups: Sequence[_Group]) -> bool:
    """Whether the figure shows a group: if it is exact or has enough trials, or if no group has enough."""
    has_few = all(other.trials < _LEAST_TRIALS for other in groups)
    return has_few or group.trials >= _LEAST_TRIALS or group.low == group.high


def _left_out(models: Iterable[Sequence[_Group]]) -> str:
    """The sentence about groups that the figure leaves out; empty if it shows all of them."""
    if all(_is_shown(group, groups) for groups in models for group in groups if group.trials):
        return ""
    return f" Rows of fewer than {_LEAST_TRIALS} trials are left out, and the line has a gap there."


def _ranges(counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of positions with about the same number of trials, from the first position with trials to the last."""
    first, last = np.flatnonzero(counts)[[0, -1]].tolist()
    if last - first < _GROUPS:
        return [(place, place + 1) for place in range(first, last + 1)]
    shares = np.cumsum(counts[: last + 1]) / counts.sum()
    ends = np.unique(np.searchsorted(shares, np.arange(1, _GROUPS + 1) / _GROUPS - 1e-9) + 1)
    ends[-1] = last + 1
    return list(zip([first, *ends[:-1].tolist()], ends.tolist(), strict=True))
