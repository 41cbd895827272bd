"""A measurement or a comparison as a page: the number, where it happens, and examples if there are any."""

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.base.estimate import TARGETS
from jostle.estimates import Comparison, Difference, Measurement
from jostle.figures import differences, svg
from jostle.figures.style import quantity
from jostle.report.page import Cell, Page, Section, Table, Value
from jostle.report.positions import is_flip, where


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
    sections += where(measured)
    origin = measured[0].provenance
    return Page(
        title="Jostle one token: does the prediction hold?" if is_flip(measured[0]) else "Jostle one token",
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


def percent(value: float) -> str:
    """A share in percent, with two digits.

    >>> percent(0.0234), percent(0.5), percent(0.0)
    ('2.3 %', '50 %', '0 %')
    """
    number = 100 * value
    return f"{number:.2g} %" if abs(number) < 99.5 else f"{number:.0f} %"


def _shown(m: Measurement, value: float) -> str:
    return percent(value) if is_flip(m) else f"{value:.4g}"


def _lead(measured: Sequence[Measurement], inputs: str) -> str:
    def said(m: Measurement) -> str:
        level = f"{m.settings.level:.0%}".replace("%", " %")
        numbers = f"{_shown(m, m.value)} ({level} interval: {_shown(m, m.low)} to {_shown(m, m.high)})"
        return numbers.replace(" %", "\N{NO-BREAK SPACE}%")

    start = f"Jostling one token of an input of {inputs}"
    if not is_flip(measured[0]):
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
            Cell(f"{m.value:.4f}" if is_flip(m) else f"{m.value:.4g}", m.value),
            Cell(f"[{m.dataset.low:.4f}, {m.dataset.high:.4f}]", m.dataset.low),
            Cell(f"[{m.population.low:.4f}, {m.population.high:.4f}]", m.population.low)
            if m.population.is_known
            else Cell(f"none with average={m.settings.average}", float("nan")),
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
