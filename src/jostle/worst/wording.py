"""A worst case in words."""

from typing import TYPE_CHECKING

from jostle.specs import written

if TYPE_CHECKING:
    from jostle.worst.result import AtRadius, WorstCase

_COLUMNS = ("mean of draws", "max of draws", "largest found")


def lines(w: "WorstCase") -> list[str]:
    """The result as lines of text: a table over the radii, what was done, and what to know about it."""
    s = w.settings
    return [
        f"{w.name}: {_title(w)}; all are lower bounds",
        *_table([w.at(radius) for radius in w.radii], s.level),
        *_worst_position(w),
        f"  {s.num_inputs:,} inputs of {s.num_tokens:,} tokens; tokens={s.tokens} response={s.response} "
        f"positions={s.positions}",
        f"  {_effort(w)}",
        *(f"  warning: {warning}" for warning in w.warnings),
    ]


def _title(w: "WorstCase") -> str:
    s = w.settings
    unit = "the token's norm" if s.relative else "absolute length"
    if s.is_flip:
        what = "share of inputs with a flippable token" if s.positions == "worst" else "share of tokens flippable"
    else:
        where = "at its worst position" if s.positions == "worst" else "over positions"
        what = f"{s.response} of an input, {'largest ' if s.positions == 'worst' else 'mean '}{where}"
    return f"{what} within a radius, in units of {unit}"


def _table(rows: "list[AtRadius]", level: float) -> list[str]:
    head = f"  {'radius':>8}{_COLUMNS[0]:>15}{_COLUMNS[1]:>15}{_COLUMNS[2]:>16}   {level:.0%} interval over inputs"
    body = [
        f"  {written(row.radius):>8}{row.mean.value:>15.4g}{row.max_of_draws.value:>15.4g}"
        f"{row.largest.value:>16.4g}   [{row.largest.low:.4g}, {row.largest.high:.4g}]"
        for row in rows
    ]
    return [head, *body]


def _worst_position(w: "WorstCase") -> list[str]:
    """What the worst position of an input adds, where every position was searched."""
    if w.settings.positions == "worst" or w.settings.num_tokens == 1:
        return []
    worst = w.at(over="max").largest
    what = "inputs with a flippable token" if w.settings.is_flip else "at the worst position of each input"
    return [f"  {what}, radius {written(w.radii[-1])}: {worst}"]


def _effort(w: "WorstCase") -> str:
    s = w.settings
    if w.has_gradient:
        how = f"{s.draws} draws, then {s.starts} starts of {s.steps} steps"
        if s.candidates:
            how += f" at the {s.candidates} most promising positions of each input"
    else:
        how = f"no gradients: the largest of {s.draws} draws and deletion"
    return f"{how}; seed={s.seed}; {w.passes:,} passes, {w.seconds:.1f} s"
