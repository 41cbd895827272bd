"""The page of a sweep: sensitivity against the strength of the noise, and where models cross."""

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.base.estimate import TARGETS
from jostle.estimates import Sweep
from jostle.figures import svg
from jostle.figures.lines import sweep_figure
from jostle.figures.style import is_flip, quantity
from jostle.report.page import Entry, Page, Section, Table, Value


def sweep_page(
    result: Sweep,
    *,
    inputs: str,
    settings: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    command: str = "",
) -> Page:
    """The report of a result of ``sweep``.

    Arguments:
        result: of ``sweep``.
        inputs: a name of the inputs, e.g. the spec of the data.
        settings: more settings to show, by name.
        notes: more remarks than those of the result.
        data: more data for the page.
        command: the command line that makes the page again.
    """
    last = result[result.names[0]][result.strengths[-1]]
    shared, origin, mark = result.settings, last.provenance, last.interval.mark
    sections = [_curves(result, [*notes, *result.warnings, *result.notes])]
    sections += [_pairs(result)] if len(result) > 1 else []
    return Page(
        title="How strong must the noise be?",
        lead=_lead(result, inputs),
        sections=sections,
        settings={
            "inputs": f"{inputs}: {shared.num_inputs:,} inputs, up to {shared.num_tokens:,} tokens each",
            "token": shared.tokens,
            "perturbation": result.perturbation,
            "response": shared.response,
            "plan": shared.plan,
            "interval": f"{shared.level:.0%} for {TARGETS[shared.target]}{mark}".replace("%", " %"),
            "seed": str(shared.seed),
            **(settings or {}),
        },
        footer=f"Made by jostle {origin['jostle']} with torch {origin['torch']}, {origin['time']}.",
        data={"result": result.to_dict(), **(data or {})},
        meaning=_meaning(result),
        command=command,
    )


def _lead(result: Sweep, inputs: str) -> str:
    crossings = result.crossings()
    if crossings:
        return " ".join(crossings)
    [name], low, high = result.names, result.strengths[0], result.strengths[-1]
    ends = [result[name][strength].value for strength in (low, high)]
    return (
        f"{name} on {inputs}: the {quantity(result[name][high])} goes from {ends[0]:.3g} at {result.parameter} {low:g} "
        f"to {ends[1]:.3g} at {result.parameter} {high:g}."
    )


def _meaning(result: Sweep) -> str:
    first = result[result.names[0]][result.strengths[-1]]
    what = "how often one changed token changes the prediction" if is_flip(first) else "how far one changed token moves"
    reversal = (
        "A model that is safest against weak noise need not be safest against strong noise, so a single strength can "
        "mislead."
    )
    alone = "The steeper the line, the more the strength of the change matters."
    return f"The lines show {what} as the change grows. {reversal if len(result) > 1 else alone}"


def _curves(result: Sweep, notes: Sequence[str]) -> Section:
    rows: list[list[Value | Entry]] = []
    for strength in result.strengths:
        entries = []
        for name in result.names:
            m = result[name][strength]
            entries.append(Entry(f"{m.value:.4f} [{m.low:.4f}, {m.high:.4f}]", m.value))
        rows.append([Entry(f"{strength:g}", strength), *entries])
    return Section(
        "Against the strength",
        figure_svg=svg(sweep_figure(result)),
        narrow_svg=svg(sweep_figure(result, narrow=True)),
        caption="The same inputs, tokens and noise directions for all models and all strengths; bands are the "
        "intervals of the table.",
        alt="A line for each model of its sensitivity against the strength of the noise, with a band.",
        table=Table([result.parameter, *result.names], rows),
        notes=list(dict.fromkeys(notes)),
    )


def _pairs(result: Sweep) -> Section:
    pairs = [(a, b) for place, a in enumerate(result.names) for b in result.names[place + 1 :]]
    rows: list[list[Value | Entry]] = []
    for first, second in pairs:
        for strength, pair in result.differences(first, second).items():
            ends = Entry(f"[{pair.low:+.4f}, {pair.high:+.4f}]", pair.low)
            rows.append([f"{first} - {second}", strength, Entry(f"{pair.value:+.4f}", pair.value), ends, pair.verdict])
    return Section(
        "Pair by pair",
        text="Each difference is taken trial by trial: the same input, token and noise for both models. The intervals "
        "of one pair hold together for all strengths.",
        table=Table(["pair", result.parameter, "difference", "interval", "result"], rows),
    )
