"""Texts in a report: clean answers of models, flips by token, and passages shaded by them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.progress import Progress, State, reporter
from jostle.estimates.request import Request
from jostle.integrations.text_pieces import Piece
from jostle.report.page import Passage, Token
from jostle.responses import Flip
from jostle.sampling import Grid, TrialEvaluation

Models = Mapping[str, Callable[..., Any]]
Texts = Mapping[str, Tensor]
Floats = NDArray[np.float64]

LEGEND_SHARES = (0.05, 0.25, 0.5, 0.75, 1.0)
_TRIALS_AT_ONCE = 512
NEW_PREDICTION = 2  # predictions begin at -1, a sign; a change of 0 is none
_UNREAD_SHOWN = 160  # characters shown of the part that a model does not read


def rows_of(texts: Texts, rows: NDArray[np.int64]) -> dict[str, Tensor]:
    """Some rows of encoded texts."""
    return {key: tensor[torch.from_numpy(rows)] for key, tensor in texts.items()}


def clean_answers(models: Models, inputs: Any, request: Request) -> dict[str, Tensor]:
    """The outputs of each model for the clean inputs, (inputs, classes), in float64."""
    with _evaluating(models, inputs, request) as evaluation:
        batching = evaluation.batching
        order = batching.order(np.arange(len(evaluation.inputs)))
        found = {}
        for function in evaluation.functions:
            parts = [function(batching.batch(order[cut])[0]).double() for cut in batching.cuts(order)]
            found[function.name] = torch.cat(parts)[torch.from_numpy(np.argsort(order))]
    return found


@dataclass(frozen=True)
class NewPrediction(Flip):
    """0 if the prediction stays, else the new one plus 2: a class from 0 on, or a sign from -1 on."""

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        after = self.reference(outputs)
        return ((after != reference) * (after + NEW_PREDICTION)).double()


@dataclass(frozen=True)
class FlipCounts:
    """What jostling each token of some inputs does to the predictions of models.

    Arguments:
        flips: for each model (inputs, tokens), the number of draws that flip the prediction; NaN where there is no
            token, or one that is not jostled. Tokens are numbered from the start of their text, whatever the padding.
        becomes: for each model, by (input, token), the class that most of these flips lead to; for a single output 1 if
            it is positive, else 0.
        draws: of each token.
    """

    flips: dict[str, Floats]
    becomes: dict[str, dict[tuple[int, int], int]]
    draws: int


def flip_counts(
    models: Models, inputs: Texts | Tensor, request: Request, draws: int, progress: Progress = False
) -> FlipCounts:
    """Jostle each token of inputs alone, and count flips and what they lead to.

    All models get the same noise. A perturbation without randomness is drawn once.

    Arguments:
        models: by name.
        inputs: encoded texts, (texts, columns) each entry, or images.
        request: what a token is and becomes; a change is a flip, whatever its response.
        draws: how often each token is jostled.
        progress: as for ``jostle.measure``.
    """
    with _evaluating(models, inputs, request, NewPrediction()) as evaluation:
        held, plan = evaluation.inputs, Grid(1 if request.perturbation.is_deterministic else draws)
        counts = np.full((len(models), len(held), held.num_tokens), np.nan)
        after = [defaultdict[tuple[int, int], Counter[int]](Counter) for _ in models]
        report, all_rows = reporter(progress, "examples"), np.arange(len(held))
        for trials in plan.blocks(held, all_rows, _TRIALS_AT_ONCE):
            numbers = held.addresses(trials.inputs, trials.tokens)
            counts[:, trials.inputs, numbers] = 0.0
            changes = np.nan_to_num(evaluation.changes(trials))
            for model, change in enumerate(changes):
                np.add.at(counts[model], (trials.inputs, numbers), change > 0)
                for place in np.flatnonzero(change):
                    after[model][int(trials.inputs[place]), int(numbers[place])][
                        max(int(change[place]) - NEW_PREDICTION, 0)
                    ] += 1
            done = int(trials.inputs.max()) + 1
            report(State(done / len(held), evaluation.passes, f"{done} of {len(held)} examples"))
        report.close()
    most = [{place: seen.most_common(1)[0][0] for place, seen in table.items()} for table in after]
    return FlipCounts(dict(zip(models, counts, strict=True)), dict(zip(models, most, strict=True)), plan.draws)


def root_mean_square(models: Models, texts: Texts, request: Request) -> dict[str, float]:
    """For each model, the root mean square of the entries of embedded tokens that may be jostled."""
    found = {}
    with _evaluating(models, texts, request) as evaluation:
        inputs, batching = evaluation.inputs, evaluation.batching
        chosen = batching.order(np.arange(len(inputs)))
        mask = np.ones((len(inputs), inputs.num_tokens), bool) if inputs.mask is None else inputs.mask
        for function in evaluation.functions:
            squares: list[Tensor] = []
            for cut in batching.cuts(chosen):
                batch, first = batching.batch(chosen[cut])
                part = torch.from_numpy(mask[chosen[cut], first:])

                def collect(embedded: Tensor, part: Tensor = part, squares: list[Tensor] = squares) -> Tensor:
                    kept = part[:, : embedded.shape[1]].to(embedded.device)
                    squares.append(embedded.detach().double().square().mean(dim=2)[kept].cpu())
                    return embedded

                function(batch, collect)
            found[function.name] = float(torch.cat(squares).mean().sqrt())
    return found


@contextmanager
def _evaluating(
    models: Models, inputs: Any, request: Request, response: Flip | None = None
) -> Iterator[TrialEvaluation]:
    """An evaluation of models on inputs, in which a change is a flip; inside, the models are in eval mode."""
    evaluation = replace(request, response=response or Flip()).prepare(models, inputs)
    with ExitStack() as modes:
        for function in evaluation.functions:
            modes.enter_context(function.evaluating())
        evaluation.check()
        yield evaluation


def passage(
    pieces: Sequence[Piece],
    counts: NDArray[np.float64],
    draws: int,
    label: str = "",
    becomes: Mapping[int, str] | None = None,
) -> Passage:
    """One text, each token shaded by its share of flips.

    >>> pieces = [Piece("[CLS]", (0,), is_special=True), Piece("not", (1,)), Piece(" "), Piece("bad", (2,))]
    >>> shown = passage(pieces, np.array([np.nan, 3, 0]), 4, becomes={1: "positive"})
    >>> [(token.text, token.share, token.hint) for token in shown.tokens][1:]
    [('not', 0.75, '3 of 4 draws flip (75 %), most to positive'), (' ', None, ''), ('bad', 0.0, '0 of 4 draws flip (0 %)')]

    Arguments:
        pieces: of the text, from ``TextReader.pieces``.
        counts: (tokens,) draws that flipped the prediction, NaN for tokens that were not jostled.
        draws: of each token.
        label: a line above the text.
        becomes: by token, the class that most of its flips lead to, in words.
    """  # noqa: E501 - the output is one line
    return Passage([_token(piece, counts, draws, becomes or {}) for piece in pieces], label)


def flips_said(flips: float, draws: int, becomes: str | None = None) -> str:
    """The flips of a token in words.

    >>> flips_said(3, 4, "cat"), flips_said(1, 1), flips_said(0, 1)
    ('3 of 4 draws flip (75 %), most to cat', 'flips', 'does not flip')
    """
    if draws == 1:
        return ("flips" if flips else "does not flip") + (f" to {becomes}" if becomes and flips else "")
    said = f"{flips:.0f} of {draws} draws flip ({flips / draws:.0%})".replace("%", " %")
    return f"{said}, most to {becomes}" if becomes and flips else said


def legend(draws: int, level: str = "") -> list[Token]:
    """The legend of the shades."""
    times = f"{draws:,} draws for each token" if draws > 1 else "one change for each token"
    shades = [Token(f"{share:.0%}".replace("%", " %"), share) for share in LEGEND_SHARES] if draws > 1 else []
    ends = [Token("never", 0.0, "no draw flips the prediction"), *shades]
    return [
        Token("flips the prediction:"),
        *(ends if draws > 1 else [ends[0], Token("always", 1.0)]),
        Token(times + level),
    ]


def _token(piece: Piece, counts: NDArray[np.float64], draws: int, becomes: Mapping[int, str]) -> Token:
    """A piece of a text with its shade and tooltip."""
    if piece.is_unread:
        more = len(piece.text) > _UNREAD_SHOWN
        return Token(piece.text[:_UNREAD_SHOWN] + (" …" if more else ""), None, "not read: the text is cut before it")
    jostled = [number for number in piece.tokens if np.isfinite(counts[number])]
    if not jostled:
        hint = "not jostled" if piece.tokens else ""
        return Token(piece.text, None, hint, piece.is_special)
    flips = [float(counts[number]) for number in jostled]
    shown = ", ".join(flips_said(flip, draws, becomes.get(number)) for flip, number in zip(flips, jostled, strict=True))
    if len(flips) > 1:
        shown = f"{len(flips)} tokens: {shown}"
    return Token(piece.text, max(flips) / draws, shown, piece.is_special)
