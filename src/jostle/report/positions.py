"""The sections on positions: the mean change by position of the token, with intervals."""

from collections.abc import Iterable, Sequence

import numpy as np

from jostle.base.estimate import TARGETS
from jostle.estimates import Measurement
from jostle.figures import Series, curves, svg
from jostle.figures.columns import columns_figure, largest_columns
from jostle.figures.profile import grid_shape, profile_svg
from jostle.figures.style import quantity
from jostle.report.groups import Group, Integers, blocks, choose_groups, group, ranges
from jostle.report.page import Entry, HeatMap, Section, Table, Value

_RANGES = (12, 6, 4, 3, 2)  # rows of the table of positions; fewer where chance is all there is to see
_LEAST_TRIALS = 10  # rows with fewer are left out of the figure: their intervals would fill it
_MOST_NUMBERS = 8  # a map with more columns has no room for numbers
_DIM = "Chance alone makes such differences"
_STILL = "No change was seen at any of them"


def position_sections(measured: Sequence[Measurement]) -> list[Section]:
    """Heat maps if positions form a grid, points for columns of a table, else a line for each model.

    Nothing for a single position.
    """
    profile = measured[0].profile
    if len(profile.values) < 2:
        return []
    shape = grid_shape(measured[0])
    if shape is not None:
        return [_maps(measured, shape)]
    if profile.names:
        return [_columns(measured)]
    if len(profile.positions) > 1:
        return [Section(f"Where: {m.name}", figure_svg=profile_svg(m), caption=_certainty(m)) for m in measured]
    return [_lines(measured)]


def _why(parts: Sequence[Group]) -> str:
    """Why positions cannot be told apart."""
    return _DIM if any(one.value for one in parts if one.trials) else _STILL


def _maps(measured: Sequence[Measurement], shape: tuple[int, int]) -> Section:
    """One map for each model, all on one colour scale."""
    chosen, is_told = choose_groups(measured, blocks(shape))
    side = int(np.sqrt(len(chosen[0])))
    found = {m.name: [group(m, places) for places in chosen] for m in measured}
    darkest = max((one.value for parts in found.values() for one in parts if one.trials), default=0.0) or 1.0
    columns = int(np.ceil(shape[1] / side))
    maps = [
        HeatMap(
            name,
            columns,
            shares=[float(np.clip(one.value / darkest, 0, 1)) if one.trials else None for one in parts],
            hints=[_hint(one, shape) for one in parts],
            texts=[_written(one.value, darkest) for one in parts] if columns <= _MOST_NUMBERS else (),
            caption="" if is_told[name] else f"Positions cannot be told apart. {_why(parts)}.",
            ratio=shape[1] / shape[0],
            sizes=(_sides(shape[0], side), _sides(shape[1], side)),
        )
        for name, parts in found.items()
    ]
    joined = f" A square is {side} x {side} positions, since single ones differ by little more than chance."
    joined = joined if side > 1 else ""
    shared = " All models have one colour scale." if len(measured) > 1 else ""
    return Section(
        "Where",
        text=f"The {quantity(measured[0])} by position of the token.{joined} Point at or tap a square to see its "
        "interval. Rows and columns count from 0.",
        maps=maps,
        scale=(f"{quantity(measured[0])} 0", f"{darkest:.3g}"),
        caption=_certainty(measured[0], found[measured[0].name]) + shared,
    )


def _sides(length: int, side: int) -> list[int]:
    """How many positions each square of a row has; the last one may have fewer."""
    return [min(side, length - start) for start in range(0, length, side)]


def _hint(one: Group, shape: tuple[int, int]) -> str:
    """Where a group is, its number, interval and trials."""
    rows, columns = np.unravel_index(one.places, shape)
    where = f"{_span('row', rows)}, {_span('column', columns)}"
    if not one.trials:
        return f"{where}: never jostled"
    count = f"{one.trials:,} trial{'' if one.trials == 1 else 's'}"
    return f"{where}: {one.value:.4f} [{one.low:.4f}, {one.high:.4f}], {count}"


def _span(word: str, numbers: Integers) -> str:
    first, last = int(numbers.min()), int(numbers.max())
    return f"{word} {first}" if first == last else f"{word}s {first} to {last}"


def _written(value: float, darkest: float) -> str:
    """A number for a square: two digits of the largest."""
    digits = int(np.clip(1 - np.floor(np.log10(darkest)), 0, 4))
    return "" if np.isnan(value) else f"{value:.{digits}f}" if value else "0"


def _certainty(m: Measurement, groups: Sequence[Group] = ()) -> str:
    """The caption of a heat map: the number of trials of a square, and the width of its interval."""
    profile = m.profile
    if groups:
        known = [one for one in groups if one.trials]
        counts = np.asarray([one.trials for one in known])
        widths = np.asarray([one.high - one.low for one in known]) / 2
    else:
        counts, widths = profile.counts[profile.counts > 0], (profile.high - profile.low)[profile.counts > 0] / 2
    if not widths.any():
        return "The mean change by position, exact for the inputs given: every token of every input was jostled."
    least, most = int(counts.min()), int(counts.max())
    trials = f"about {np.median(counts):,.0f} trials" if most <= 2 * least else f"{least:,} to {most:,} trials"
    level = f"{m.settings.level:.0%}".replace("%", " %")
    return (
        f"The mean change by position: {trials} each, typical interval \N{PLUS-MINUS SIGN}{np.median(widths):.2g} "
        f"({level} for {TARGETS[profile.target]}, each on its own)."
    )


def _columns(measured: Sequence[Measurement]) -> Section:
    """The columns of a table as points, and all of them as a table."""
    names, order = measured[0].profile.names, largest_columns(measured)
    parts = {m.name: [group(m, np.asarray([number])) for number in order] for m in measured}
    rows: list[list[Value | Entry]] = [
        [names[number], *(_entry(groups[place]) for groups in parts.values())] for place, number in enumerate(order)
    ]
    drawn = [svg(columns_figure(measured, narrow=narrow)) for narrow in (False, True)]
    target = f"{measured[0].settings.level:.0%} for {TARGETS[measured[0].profile.target]}".replace("%", " %")
    return Section(
        "Which columns",
        text=f"The {quantity(measured[0])} when one column alone is jostled, the most sensitive columns first.",
        figure_svg=drawn[0],
        narrow_svg=drawn[1],
        caption=f"Lines are the intervals of each column on its own, {target}.",
        alt="A point with its interval for each column of the table.",
        table=Table(["column", *parts], rows),
    )


def _lines(measured: Sequence[Measurement]) -> Section:
    """One line for each model over ranges of positions, and the same as a table."""
    profile = measured[0].profile
    cuts = {len(cut): cut for most in _RANGES if (cut := ranges(profile.counts, most))}
    chosen, is_told = choose_groups(measured, list(cuts.values()))
    groups = {m.name: [group(m, places) for places in chosen] for m in measured}
    rows: list[list[Value | Entry]] = []
    for number, places in enumerate(chosen):
        entries = [_entry(parts[number]) for parts in groups.values()]
        first, last = int(places[0]), int(places[-1])
        name = str(first) if first == last else f"{first} to {last}"
        rows.append([Entry(name, first), *entries, int(profile.counts[places].sum())])
    text = "Positions count from 0, the first token of an input."
    if profile.counts[chosen[-1][-1]] * 2 < profile.counts.max():
        text += " Few inputs are long, so later positions have fewer trials each and are grouped in wider ranges."
    notes = [
        f"{name}: {_DIM.lower()}; its positions cannot be told apart." for name, told in is_told.items() if not told
    ]
    place, level = "position of the token in its input", f"{measured[0].settings.level:.0%}".replace("%", " %")
    lines = [_series(name, parts) for name, parts in groups.items()]
    drawn = [
        svg(curves(lines, x_label=place, y_label=quantity(measured[0]), narrow=narrow)) for narrow in (False, True)
    ]
    return Section(
        "Where in the input",
        text=text,
        figure_svg=drawn[0],
        narrow_svg=drawn[1],
        caption="A point for each row of the table, in the middle of its positions; bands are the intervals of each "
        f"row on its own, {level} for {TARGETS[profile.target]}.{_left_out(groups.values())}",
        alt="A line of the mean change against the position of the token, with a band.",
        table=Table(["positions", *groups, "trials"], rows),
        notes=notes,
    )


def _entry(one: Group) -> Entry:
    """The mean of a group with its interval, for the table."""
    if not one.trials:
        return Entry("", one.value)
    is_bounded = np.isfinite(one.low) and np.isfinite(one.high)
    ends = f" [{one.low:.4f}, {one.high:.4f}]" if is_bounded else ""
    return Entry(f"{one.value:.4f}{ends}", one.value)


def _series(name: str, groups: Sequence[Group]) -> Series:
    """The groups as a line, with a gap where the figure leaves one out."""
    middles = [float(one.places[0] + one.places[-1]) / 2 for one in groups]
    shown = np.asarray([(g.value, g.low, g.high) if _is_shown(g, groups) else (np.nan,) * 3 for g in groups])
    return Series(name, middles, *shown.T)


def _is_shown(one: Group, groups: Sequence[Group]) -> bool:
    """Whether the figure shows a group: if it is exact or has enough trials, or if no group has enough."""
    has_few = all(other.trials < _LEAST_TRIALS for other in groups)
    return has_few or one.trials >= _LEAST_TRIALS or one.low == one.high


def _left_out(models: Iterable[Sequence[Group]]) -> str:
    """The sentence about groups that the figure leaves out; empty if it shows all of them."""
    if all(_is_shown(one, groups) for groups in models for one in groups if one.trials):
        return ""
    return f" Rows of fewer than {_LEAST_TRIALS} trials are left out, and the line has a gap there."
