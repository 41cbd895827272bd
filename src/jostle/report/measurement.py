"""The page of a measurement or a comparison: the numbers, the positions, and examples if there are any."""

from collections.abc import Mapping, Sequence
from typing import Any

from jostle.base.estimate import TARGETS
from jostle.estimates import Comparison, Difference, Measurement
from jostle.figures import differences, svg
from jostle.figures.style import is_flip, quantity
from jostle.report.page import Entry, Page, Section, Table, Value
from jostle.report.positions import position_sections

_AUROC = "AUROC is the probability that a wrong prediction flips more often than a right one: 0.5 says nothing."


def measurement_page(
    result: Measurement | Comparison,
    *,
    inputs: str,
    examples: Sequence[Section] = (),
    settings: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    columns: Mapping[str, Mapping[str, str]] | None = None,
    data: Mapping[str, Any] | None = None,
    command: str = "",
) -> Page:
    """The report of a result of ``measure`` or ``compare``.

    Arguments:
        result: of ``measure`` or ``compare``.
        inputs: a name of the inputs, e.g. the spec of the data.
        examples: sections with passages, shown after the numbers.
        settings: more settings to show, by name.
        notes: more remarks than those of the result.
        columns: more columns of the table of models, e.g. their accuracy: for each heading, a text for each model.
        data: more data for the page.
        command: the command line that makes the page again.
    """
    measured = list(result.measurements.values()) if isinstance(result, Comparison) else [result]
    pairs = result.differences if isinstance(result, Comparison) else []
    shared = measured[0].settings
    sections = [_numbers(measured, notes, columns or {})]
    sections += [_pairs(pairs)] if pairs else []
    sections += certainty_sections(measured)
    sections += position_sections(measured)
    origin = measured[0].provenance
    return Page(
        title="Jostle one token: does the prediction hold?" if is_flip(measured[0]) else "Jostle one token",
        lead=_lead(measured, inputs),
        sections=[*sections, *examples],
        settings={
            "inputs": f"{inputs}: {shared.num_inputs:,} inputs, up to {shared.num_tokens:,} tokens each",
            "token": shared.tokens,
            "perturbation": shared.perturbation,
            "response": shared.response,
            "plan": shared.plan,
            "average": "inputs weigh the same" if shared.average == "macro" else "tokens weigh the same",
            "interval": f"{shared.level:.0%} for {TARGETS[shared.target]}{measured[0].interval.mark}".replace(
                "%", " %"
            ),
            "seed": str(shared.seed),
            **(settings or {}),
        },
        footer=f"Made by jostle {origin['jostle']} with torch {origin['torch']}, {origin['time']}.",
        data={"result": result.to_dict(), **(data or {})},
        meaning=_meaning(measured, pairs),
        command=command,
    )


_CAVEAT = (
    "It holds for these inputs, this perturbation and these weights; a stronger or weaker one can give another answer."
)


def _meaning(measured: Sequence[Measurement], pairs: Sequence[Difference]) -> str:
    """What the numbers mean, in two sentences."""
    if not is_flip(measured[0]):
        least, most = (pick(measured, key=lambda m: m.value) for pick in (min, max))
        which = f"{most.name} moves most and {least.name} least" if len(measured) > 1 else f"{most.name} moves"
        return f"This is by how much {which} on average when one token of an input is changed. {_CAVEAT}"
    if len(measured) == 1:
        return f"{_of_a_thousand(measured[0])}. {_CAVEAT}"
    least, most = (pick(measured, key=lambda m: m.value) for pick in (min, max))
    told = [pair for pair in pairs if {pair.first, pair.second} == {least.name, most.name} and pair.direction]
    decided = "more than chance explains" if told else "but chance may explain the difference"
    return (
        f"One changed token changes the prediction of {most.name} most often ({percent(most.value)}) and that of "
        f"{least.name} least often ({percent(least.value)}), {decided}. {_CAVEAT}"
    )


def _of_a_thousand(m: Measurement) -> str:
    """A share of flips as a count of changed inputs."""
    start, count = "Of 1,000 inputs in which one token is changed like this,", round(1000 * m.value)
    if m.value == 0:
        return f"In {m.trials:,} trials, each with one token changed like this, no prediction of {m.name} changed"
    return f"{start} {f'about {count:,} get' if count else 'fewer than one gets'} another prediction by {m.name}"


def percent(value: float) -> str:
    """A share in percent, with two digits, or as many more as tell it from 100 %.

    >>> percent(0.0234), percent(0.5), percent(0.0), percent(0.996), percent(1.0)
    ('2.3 %', '50 %', '0 %', '99.6 %', '100 %')
    """
    number = 100 * value
    if abs(number) < 99.5:
        return f"{number:.2g} %"
    texts = (f"{number:.{digits}f}" for digits in range(6))
    return f"{next((text for text in texts if number >= 100 or float(text) < 100), '100')} %"


def _finer(value: float) -> str:
    """A share in percent with one digit after the point at least.

    >>> _finer(0.2249), _finer(0.00123), _finer(0.0), _finer(1.0)
    ('22.5 %', '0.12 %', '0 %', '100 %')
    """
    number = 100 * value
    return f"{number:.1f} %" if 1 <= number < 100 else percent(value)


def _shown(m: Measurement, value: float) -> str:
    """A value of a measurement, flips in percent."""
    return _finer(value) if is_flip(m) else f"{value:.4g}"


def _lead(measured: Sequence[Measurement], inputs: str) -> str:
    """The result in a sentence."""

    def numbers_of(m: Measurement) -> str:
        level = f"{m.settings.level:.0%}".replace("%", " %")
        numbers = f"{_shown(m, m.value)} ({level} interval: {_shown(m, m.low)} to {_shown(m, m.high)})"
        if m.low == m.high:
            numbers = f"exactly {_shown(m, m.value)}"
        return numbers.replace(" %", "\N{NO-BREAK SPACE}%")

    start = f"Jostling one token of an input of {inputs}"
    if not is_flip(measured[0]):
        parts = "; ".join(f"{m.name} {numbers_of(m)}" for m in measured)
        return f"{start} gives a mean {measured[0].settings.response} of: {parts}."
    if len(measured) == 1:
        return f"{start} flips the prediction in {numbers_of(measured[0])} of cases."
    parts = "; ".join(f"{m.name} {numbers_of(m)}" for m in measured)
    return f"{start} flips the prediction in this share of cases: {parts}."


def _numbers(
    measured: Sequence[Measurement], notes: Sequence[str], columns: Mapping[str, Mapping[str, str]]
) -> Section:
    """The table of models."""
    names = ["model", quantity(measured[0])]
    names += [f"interval for {TARGETS['dataset']}", f"interval for {TARGETS['population']}", *columns, "trials"]
    rows: list[list[Value | Entry]] = [
        [
            m.name,
            Entry(f"{m.value:.4f}" if is_flip(m) else f"{m.value:.4g}", m.value),
            Entry(f"[{m.dataset.low:.4f}, {m.dataset.high:.4f}]", m.dataset.low),
            Entry(f"[{m.population.low:.4f}, {m.population.high:.4f}]", m.population.low)
            if m.population.is_known
            else Entry(f"none with average={m.settings.average}", float("nan")),
            *(texts.get(m.name, "") for texts in columns.values()),
            m.trials,
        ]
        for m in measured
    ]
    warnings = [text for m in measured for text in m.warnings]
    return Section("How often", table=Table(names, rows), notes=list(dict.fromkeys([*notes, *warnings])))


def certainty_sections(measured: Sequence[Measurement]) -> list[Section]:
    """Whether sensitive predictions tend to be wrong: a section for the models whose right answers are known."""
    known = [(m, m.certainty) for m in measured if m.certainty is not None]
    if not known:
        return []
    rows: list[list[Value | Entry]] = [
        [m.name, each.label, each.inputs, Entry(f"{each.share:.3f}", each.share), f"[{each.low:.3f}, {each.high:.3f}]"]
        for m, certainty in known
        for each in certainty.bins
    ]
    return [
        Section(
            "Is the model sure?",
            text=[
                *(f"{m.name}: {'; '.join(certainty.lines())}." for m, certainty in known),
                *([_AUROC] if any(certainty.has_both for _, certainty in known) else []),
            ],
            table=Table(
                ["model", "prediction", "inputs", "share wrong", "interval"],
                rows,
                caption="The share of wrong predictions, by how often one jostled token flips the prediction.",
            ),
        )
    ]


def _pairs(pairs: Sequence[Difference]) -> Section:
    """The differences between models, as a figure and a table."""
    rows: list[list[Value | Entry]] = [
        [f"{d.first} - {d.second}", Entry(f"{d.value:+.4f}", d.value), f"[{d.low:+.4f}, {d.high:+.4f}]", d.verdict]
        for d in pairs
    ]
    return Section(
        "Side by side",
        text="All models had the same inputs and the same noise, so differences are more precise than single values.",
        figure_svg=svg(differences(pairs)),
        narrow_svg=svg(differences(pairs, narrow=True)),
        caption="Differences with their intervals; if zero is outside, the models differ.",
        table=Table(["pair", "difference", "interval", "result"], rows),
    )
