"""The page of an influence: which tokens the next word hangs on, and the whole matrix."""

from collections.abc import Mapping

import numpy as np

from jostle.estimates.influence_result import Influence, PromptInfluence, concentration_lines
from jostle.figures.influence import entry_hint, influence_svg
from jostle.report.page import Entry, Page, Passage, Section, Table, Token, Value
from jostle.report.texts import LEGEND_SHARES

_ROWS = 12  # tokens in the table of a prompt
_BOUNDED = ("next-token-flip", "label-flip", "total-variation")


def influence_page(result: Influence, settings: Mapping[str, str] | None = None) -> Page:
    """The report of a result of ``influence``.

    Arguments:
        result: of ``influence``.
        settings: more settings to show, by name.
    """
    asked = result.settings
    sections = [_texts(result)]
    for number, prompt in enumerate(result.prompts):
        sections.append(_matrix(result, prompt, "" if len(result) == 1 else f", prompt {number + 1}"))
    precision = "a tenth of the largest" if asked.half_width is None else f"{asked.half_width:g}"
    return Page(
        title="Which token does the next one hang on?",
        lead=_lead(result),
        sections=sections,
        settings={
            "model": result.name,
            "token": asked.tokens,
            "perturbation": asked.perturbation,
            "response": asked.response,
            "precision": f"half of an interval is at most {precision}, or {asked.max_passes:,} passes are over",
            "interval": f"{asked.level:.0%} for all entries together{result.mark}".replace("%", " %"),
            "passes": f"{result.passes:,}; one pass gives the changes at all later tokens",
            "seed": str(asked.seed),
            **(settings or {}),
        },
        footer=f"Made by jostle {result.provenance['jostle']} with torch {result.provenance['torch']}, "
        f"{result.provenance['time']}.",
        data={"result": result.to_dict()},
    )


def _lead(result: Influence) -> str:
    carried = "; ".join(concentration_lines(result.concentration, len(result) > 1)) + "."
    if len(result) > 1:
        return carried
    last, said = result[0].tokens[-1].strip(), result[0].predictions[-1].strip()
    return f"After \N{LEFT DOUBLE QUOTATION MARK}{last}\N{RIGHT DOUBLE QUOTATION MARK} the model predicts " + (
        f"\N{LEFT DOUBLE QUOTATION MARK}{said}\N{RIGHT DOUBLE QUOTATION MARK}. {carried}"
    )


def _texts(result: Influence) -> Section:
    """The prompts, each token shaded by its influence on the last prediction."""
    passages = [_passage(prompt, result.settings.response, len(result) > 1) for prompt in result.prompts]
    shades = [Token(f"{share:.0%}".replace("%", " %"), share) for share in LEGEND_SHARES]
    return Section(
        "The text",
        text="Each token is shaded by its influence on the last prediction, the word after the arrow: how much that "
        "changes when the token alone is jostled. Point at or tap a token to see the number and its interval.",
        passages=passages,
        legend=[Token("influence:"), *shades] if result.settings.response in _BOUNDED else [],
        notes=[*result.notes, *result.warnings],
    )


def _passage(prompt: PromptInfluence, response: str, is_labelled: bool) -> Passage:
    """One prompt in shades, and what the model predicts after it; above it, how few of its tokens matter."""
    values = prompt.on()[0]
    top = 1.0 if response in _BOUNDED else float(np.nanmax(values)) or 1.0
    tokens = [
        Token(text, float(value) / top, entry_hint(prompt, i, -1), prompt.is_special[i])
        if np.isfinite(value)
        else Token(text, None, "not jostled", prompt.is_special[i])
        for i, (text, value) in enumerate(zip(prompt.tokens, values, strict=True))
    ]
    tokens.append(Token(f" \N{RIGHTWARDS ARROW} {prompt.predictions[-1].strip()}", None, "what the model predicts"))
    return Passage(tokens, "; ".join(concentration_lines(prompt.concentration, False)) if is_labelled else "")


def _unmoved(prompt: PromptInfluence) -> str:
    """Which rows are empty for another reason."""
    still = list(
        dict.fromkeys(token.strip() for token, draws in zip(prompt.tokens, prompt.draws, strict=True) if not draws)
    )
    if not still:
        return ""
    return f", or the token was not jostled: {', '.join(still[:3])}" + (" and others" if len(still) > 3 else "")


def _matrix(result: Influence, prompt: PromptInfluence, which: str) -> Section:
    """The matrix as a figure, and the strongest tokens as a table."""
    values, low, high = prompt.on()
    order = [i for i in np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable").tolist() if np.isfinite(values[i])]
    rows: list[list[Value | Entry]] = [
        [
            Entry(f"{prompt.tokens[i].strip() or repr(prompt.tokens[i])}", i),
            i,
            Entry(f"{values[i]:.3f} [{low[i]:.3f}, {high[i]:.3f}]", float(values[i])),
            prompt.draws[i],
        ]
        for i in order[:_ROWS]
    ]
    return Section(
        f"Every token and every prediction{which}",
        text="Down: the token that is jostled. Across: the token after which the model predicts the next one. A row is "
        "read off one pass for each draw. Where a square is empty, the model cannot see the token that moves, since it "
        f"reads in order{_unmoved(prompt)}.",
        figure_svg=influence_svg(prompt, result.settings.response),
        caption="Point at or tap a square to see its tokens, number and interval. The intervals of all squares hold "
        "together.",
        alt="A matrix of the influence of each token on each later prediction.",
        table=Table(["token", "position", "influence on the last prediction", "draws"], rows),
    )
