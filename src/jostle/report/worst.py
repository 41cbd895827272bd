"""The page of a worst case: how far one token can move the output, and the changes that were found."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jostle.base import specs
from jostle.base.estimate import TARGETS
from jostle.figures import svg
from jostle.report.images import Developer
from jostle.report.page import Entry, HeatMap, Page, Passage, Picture, Section, Table, Token, Value
from jostle.tokens import VIEWS, Inputs, Patches, TokenView
from jostle.worst.picture import Shown, caption, choose_shown, class_name, radius_figure, token_labels
from jostle.worst.result import AtRadius, MeanOverInputs, WorstCase


def worst_page(
    result: WorstCase,
    *,
    inputs: str,
    searched: Any = None,
    words: Sequence[str] | None = None,
    examples: int = 6,
    classes: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    command: str = "",
) -> Page:
    """The report of a result of ``worst_case``.

    Arguments:
        result: of ``worst_case``.
        inputs: a name of the inputs, e.g. the spec of the data.
        searched: the inputs themselves; without them there are no examples.
        words: for token ids, the word of each id.
        examples: how many inputs are shown with the worst change of them, those that change most first.
        classes: the names of classes, if they have any.
        settings: more settings to show, by name.
        notes: more remarks than those of the result.
        command: the command line that makes the page again.
    """
    s, origin = result.settings, result.provenance
    sections = [_numbers(result, notes)]
    if searched is not None and examples > 0:
        sections += _examples(result, searched, words, examples, classes)
    unit = s.unit if s.unit == "absolute length" else f"of {s.unit}"
    return Page(
        title="The worst that one token can do",
        lead=_lead(result, inputs),
        sections=sections,
        settings={
            "inputs": f"{inputs}: {s.num_inputs:,} inputs, up to {s.num_tokens:,} tokens each",
            "model": result.name,
            "token": s.tokens,
            "response": s.response,
            "radii": f"{', '.join(specs.written(radius) for radius in s.radii)} ({unit})",
            "search": f"{s.draws} random changes, then {s.starts} ascents of {s.steps} steps; positions: {s.positions}",
            "interval": f"{s.level:.0%} for {TARGETS['population']}{result.at().largest.interval.mark}".replace(
                "%", " %"
            ),
            "passes": f"{result.passes:,}",
            "seed": str(s.seed),
            **(settings or {}),
        },
        footer=f"Made by jostle {origin['jostle']} with torch {origin['torch']}, {origin['time']}.",
        data={"result": result.to_dict()},
        meaning=_meaning(result),
        command=command,
    )


def _lead(result: WorstCase, inputs: str) -> str:
    radius = specs.written(result.radii[-1])
    times = "as long as the token" if radius == "1" else f"{radius} times as long as the token"
    unit = result.settings.unit
    size = times if result.settings.relative else f"of length {radius}"
    if not result.settings.relative and unit != "absolute length":
        size = f"{radius} times {unit}"
    found = result.at().largest
    if result.settings.is_flip:
        what = "the worst one" if result.settings.positions == "worst" else "one"
        if found.value == 0:
            return f"No change of {what} of the tokens of {inputs}, at most {size}, was found to flip {result.name}."
        return (
            f"A change of {what} of its tokens, at most {size}, was found to flip the prediction of {result.name} for "
            f"{found.value:.0%} of the inputs of {inputs}.".replace("%", " %")
        )
    return (
        f"The largest {result.settings.response} that was found by moving one token of {inputs}, at most {size}, is "
        f"{found.value:.4g} on average."
    )


def _meaning(result: WorstCase) -> str:
    row = result.at()
    end = "What was found is a lower bound: a better search may find more, and a small number is no proof of safety."
    if result.settings.is_flip:
        if row.largest.value == 0:
            return f"Neither random changes of this length nor the search flipped a prediction. {end}"
        mean, worst = (f"{part.value:.1%}".replace("%", " %") for part in (row.mean, row.largest))
        return f"Random changes of this length flip the prediction in {mean} of cases, the worst ones in {worst}. {end}"
    gap = f"{row.largest.value / row.mean.value:.3g} times" if row.mean.value > 0 else "unlike"
    return (
        f"Random changes of this length move the output by {row.mean.value:.3g} on average, the worst that was found "
        f"is {gap} that. {end}"
    )


def _numbers(result: WorstCase, notes: Sequence[str]) -> Section:
    """The table over the radii, and their curves."""
    rows: list[list[Value | Entry]] = []
    for radius in result.radii:
        row = result.at(radius)
        parts = (row.mean, row.max_of_draws, row.largest)
        rows.append([Entry(specs.written(radius), radius), *(_written(part) for part in parts), _gap(row)])
    over = "at its worst position" if result.at().over == "max" else "averaged over its positions"
    return Section(
        "How far",
        text=f"Each number is the mean over inputs of what one token can do to an input, {over}: on average over "
        f"random changes, at most over {result.settings.draws} random changes, and at most over all that was found.",
        figure_svg=svg(radius_figure(result)) if len(result.radii) > 1 else None,
        narrow_svg=svg(radius_figure(result, narrow=True)) if len(result.radii) > 1 else None,
        caption="Bands are intervals for the population of the inputs." if len(result.radii) > 1 else "",
        table=Table(["radius", "mean of draws", "largest of draws", "largest found", "found / mean"], rows),
        notes=list(dict.fromkeys([*notes, *result.warnings, *result.notes])),
    )


def _written(mean: MeanOverInputs) -> Entry:
    return Entry(f"{mean.value:.4g} [{mean.low:.4g}, {mean.high:.4g}]", mean.value)


def _gap(row: AtRadius) -> Entry:
    if not row.mean.value > 0:
        return Entry("", float("nan"))
    ratio = row.largest.value / row.mean.value
    return Entry(f"{ratio:.3g}", ratio)


def _examples(
    result: WorstCase, searched: Any, words: Sequence[str] | None, count: int, classes: Sequence[str]
) -> list[Section]:
    """The inputs that change most, each with its worst change."""
    view = specs.build(VIEWS, result.settings.tokens, "tokens", TokenView)
    held = Inputs(searched, view)
    values = np.where(np.isfinite(result.values[-1]), result.values[-1], -np.inf).max(axis=1)
    order = np.argsort(-values, kind="stable")[:count].tolist()
    chosen = [choose_shown(result, index) for index in order]
    rows = np.asarray([shown.input for shown in chosen], dtype=np.int64)
    given = held.batch(rows)[held.key]
    is_image = isinstance(view, Patches) and given.dim() in (3, 4) and (given.dim() == 3 or given.shape[1] in (1, 3))
    if is_image:
        developer = Developer(searched, given)
        return [
            _image(result, shown, view, given[place], developer, classes, is_first=not place)
            for place, shown in enumerate(chosen)
        ]
    passages = [
        _passage(result, shown, token_labels(held, shown, given[place], words), classes)
        for place, shown in enumerate(chosen)
    ]
    legend = [Token("can be changed:"), Token("little", 0.0), Token("more", 0.5), Token("most", 1.0)]
    return [Section("The changes that were found", passages=passages, legend=legend)]


def _image(
    result: WorstCase,
    shown: Shown,
    view: TokenView,
    clean: Any,
    developer: Developer,
    classes: Sequence[str],
    *,
    is_first: bool,
) -> Section:
    """One image before and after, with its worst patch, and the patch itself enlarged."""
    import torch

    change = torch.from_numpy(result.changes[shown.place, shown.input, shown.position]).to(clean.dtype)
    at = torch.tensor([shown.position])
    token = view.pick(clean[None], torch.zeros(1, dtype=torch.int64), at)
    after = view.put(clean[None].clone(), at, token + change)[0]
    row, column = divmod(shown.position, result.positions[-1])
    ratio = clean.shape[-1] / clean.shape[-2]
    rows, columns = result.positions[-2:]
    is_patch = [1.0 if place == shown.position else None for place in range(rows * columns)]
    hints = ["the worst patch" if share else "" for share in is_patch]
    before = developer.address(clean)
    pictures: list[HeatMap | Picture] = [
        Picture("before", before, _said(result, shown, classes, is_after=False), ratio),
        HeatMap("the patch", columns, is_patch, hints, picture=before, ratio=ratio),
        Picture("after", developer.address(after), _said(result, shown, classes, is_after=True), ratio),
    ]
    worst = "The inputs that change most, each with the worst change of its worst patch."
    clipped = "Pixels that the change makes darker than black or lighter than white are shown as black or white."
    counted = "Inputs, tokens, rows and columns count from 0."
    return Section(
        "The changes that were found" if is_first else f"Input {shown.input}",
        text=f"{worst} {clipped} {counted}" if is_first else (),
        maps=pictures,
        caption=f"Patch in row {row}, column {column}: {caption(result, shown, classes)}.",
        is_listed=is_first,
    )


def _said(result: WorstCase, shown: Shown, classes: Sequence[str], *, is_after: bool) -> str:
    if result.predictions is None or result.clean_predictions is None:
        return ""
    after = result.predictions[shown.place, shown.input, shown.position]
    number = int(after if is_after else result.clean_predictions[shown.input])
    return f"predicted {'' if number < len(classes) else 'class '}{class_name(number, classes)}"


def _passage(result: WorstCase, shown: Shown, labels: Sequence[str], classes: Sequence[str]) -> Passage:
    """A text whose tokens are darker the more they can be changed."""
    found = result.values if result.margins is None else -result.margins
    depth = found[shown.place, shown.input]
    known = np.isfinite(depth)
    low, high = (float(depth[known].min()), float(depth[known].max())) if known.any() else (0.0, 1.0)
    tokens = []
    for position, label in enumerate(labels):
        if not label:
            continue
        share = (depth[position] - low) / ((high - low) or 1.0) if known[position] else None
        is_worst = position == shown.position
        hint = "the worst token" if is_worst else "not searched" if share is None else "can be changed less"
        tokens.append(Token(f"{label} ", None if share is None else float(share), hint))
    return Passage(tokens, caption(result, shown, classes))
