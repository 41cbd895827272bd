"""A measurement or a comparison as a page: the number, where it happens, and examples if there are any."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jostle.estimates import Comparison, Difference, Measurement
from jostle.figures import Series, curves, differences, profile_figure, svg
from jostle.figures.profile import quantity
from jostle.intervals import TARGETS
from jostle.report.page import Cell, Page, Section, Table, Value

_GROUPS = 12  # rows of the table of positions
_LEAST_TRIALS = 10  # a position with fewer is left out of the figure: its interval is almost all there is


def measured_page(
    result: Measurement | Comparison,
    *,
    inputs: str,
    examples: Sequence[Section] = (),
    settings: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    columns: Mapping[str, Mapping[str, str]] | None = None,
    data: Mapping[str, Any] | None = None,
) -> Page:
    """The report of what ``measure`` or ``compare`` returned.

    Arguments:
        result: what was measured.
        inputs: what the inputs are called, e.g. the spec of the data.
        examples: sections with passages, shown after the numbers.
        settings: more of what was done, by name.
        notes: remarks beside those of the result.
        columns: more columns of the table of models, e.g. their accuracy: for each heading, a text for each model.
        data: more data for the page.
    """
    measured = list(result.measurements.values()) if isinstance(result, Comparison) else [result]
    pairs = result.differences if isinstance(result, Comparison) else []
    chosen = measured[0].settings
    sections = [_numbers(measured, notes, columns or {})]
    sections += [_pairs(pairs)] if pairs else []
    sections += _positions(measured)
    origin = measured[0].provenance
    return Page(
        title="Jostle one token: does the prediction hold?" if _is_flip(measured[0]) else "Jostle one token",
        lead=_lead(measured, inputs),
        sections=[*sections, *examples],
        settings={
            "inputs": f"{inputs}: {chosen.num_inputs:,} inputs, up to {chosen.num_tokens:,} tokens each",
            "token": chosen.tokens,
            "jostle": chosen.perturbation,
            "response": chosen.response,
            "plan": chosen.plan,
            "average": "inputs weigh the same" if chosen.average == "macro" else "tokens weigh the same",
            "interval": f"{chosen.level:.0%} for {TARGETS[chosen.target]}".replace("%", " %"),
            "seed": str(chosen.seed),
            **(settings or {}),
        },
        footer=f"Made by jostle {origin['jostle']} with torch {origin['torch']}, {origin['time']}.",
        data={"result": result.to_dict(), **(data or {})},
    )


def _is_flip(m: Measurement) -> bool:
    return m.settings.response.split(":")[0] == "flip"


def percent(value: float) -> str:
    """A share in percent, with two digits.

    >>> percent(0.0234), percent(0.5), percent(0.0)
    ('2.3 %', '50 %', '0 %')
    """
    number = 100 * value
    return f"{number:.2g} %" if abs(number) < 99.5 else f"{number:.0f} %"


def _shown(m: Measurement, value: float) -> str:
    return percent(value) if _is_flip(m) else f"{value:.4g}"


def _lead(measured: Sequence[Measurement], inputs: str) -> str:
    def said(m: Measurement) -> str:
        level = f"{m.settings.level:.0%}".replace("%", " %")
        numbers = f"{_shown(m, m.value)} ({level} interval: {_shown(m, m.low)} to {_shown(m, m.high)})"
        return numbers.replace(" %", "\N{NO-BREAK SPACE}%")

    start = f"Jostling one token of an input of {inputs}"
    if not _is_flip(measured[0]):
        parts = "; ".join(f"{m.name} {said(m)}" for m in measured)
        return f"{start} gives a mean {measured[0].settings.response} of: {parts}."
    if len(measured) == 1:
        return f"{start} flips the prediction in {said(measured[0])} of cases."
    parts = "; ".join(f"{m.name} in {said(m)}" for m in measured)
    return f"{start} flips the prediction: of {parts} of cases."


def _numbers(
    measured: Sequence[Measurement], notes: Sequence[str], columns: Mapping[str, Mapping[str, str]]
) -> Section:
    names = ["model", quantity(measured[0])]
    names += [f"interval for {TARGETS['dataset']}", f"interval for {TARGETS['population']}", *columns, "trials"]
    rows: list[list[Value | Cell]] = [
        [
            m.name,
            Cell(f"{m.value:.4f}" if _is_flip(m) else f"{m.value:.4g}", m.value),
            Cell(f"[{m.dataset.low:.4f}, {m.dataset.high:.4f}]", m.dataset.low),
            Cell(f"[{m.population.low:.4f}, {m.population.high:.4f}]", m.population.low),
            *(texts.get(m.name, "") for texts in columns.values()),
            m.trials,
        ]
        for m in measured
    ]
    warnings = [text for m in measured for text in m.warnings]
    return Section("How often", table=Table(names, rows), notes=list(dict.fromkeys([*notes, *warnings])))


def _pairs(pairs: Sequence[Difference]) -> Section:
    rows: list[list[Value | Cell]] = [
        [f"{d.first} - {d.second}", Cell(f"{d.value:+.4f}", d.value), f"[{d.low:+.4f}, {d.high:+.4f}]", d.verdict]
        for d in pairs
    ]
    return Section(
        "Side by side",
        text="Every model met the same inputs and the same noise, so differences are sharper than the numbers alone.",
        figure_svg=svg(differences(pairs)),
        caption="Differences with their intervals; where zero is outside, the models differ.",
        table=Table(["pair", "difference", "interval", "what it says"], rows),
    )


def _positions(measured: Sequence[Measurement]) -> list[Section]:
    profile = measured[0].profile
    if len(profile.values) < 2:
        return []
    if len(profile.positions) > 1:
        return [
            Section(f"Where: {m.name}", figure_svg=svg(profile_figure(m)), caption="The mean change by position.")
            for m in measured
        ]
    place = "position of the token in its input"
    figure = curves([_series(m) for m in measured], x_label=place, y_label=quantity(measured[0]))
    groups = _groups(profile.counts)
    rows: list[list[Value | Cell]] = []
    for start, stop in groups:
        means = [_mean(m, start, stop) for m in measured]
        cells = [Cell(f"{mean:.4f}" if np.isfinite(mean) else "", float(mean)) for mean in means]
        name = str(start) if stop - start == 1 else f"{start} to {stop - 1}"
        rows.append([Cell(name, start), *cells, int(profile.counts[start:stop].sum())])
    return [
        Section(
            "Where in the input",
            text="Positions count from 0, the first token of an input. Few inputs are long, so later positions rest on "
            "fewer trials, and their bands are wider.",
            figure_svg=svg(figure),
            caption=f"By position, where there are at least {_LEAST_TRIALS} trials; bands are intervals of each "
            "position on its own.",
            alt="A line of the mean change against the position of the token, with a band.",
            table=Table(["positions", *(m.name for m in measured), "trials"], rows),
        )
    ]


def _series(m: Measurement) -> Series:
    shown = np.flatnonzero(m.profile.counts >= min(_LEAST_TRIALS, m.profile.counts.max()))
    return Series(m.name, shown, m.profile.values[shown], m.profile.low[shown], m.profile.high[shown])


def _groups(counts: np.ndarray[Any, np.dtype[np.int64]]) -> list[tuple[int, int]]:
    """Ranges of positions that hold about as many trials each, as far as there are any."""
    first, last = np.flatnonzero(counts)[[0, -1]].tolist()
    if last - first < _GROUPS:
        return [(place, place + 1) for place in range(first, last + 1)]
    shares = np.cumsum(counts[: last + 1]) / counts.sum()
    ends = np.unique(np.searchsorted(shares, np.arange(1, _GROUPS + 1) / _GROUPS - 1e-9) + 1)
    ends[-1] = last + 1
    return list(zip([first, *ends[:-1].tolist()], ends.tolist(), strict=True))


def _mean(m: Measurement, start: int, stop: int) -> float:
    """The mean over the trials of these positions."""
    counts, values = m.profile.counts[start:stop], m.profile.values[start:stop]
    is_there = counts > 0
    return float(values[is_there] @ counts[is_there] / counts.sum()) if is_there.any() else float("nan")
