"""What a report on texts shows beside the measurement: clean answers, and how often each token of a few flips."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.perturbations import Perturbation
from jostle.progress import Progress, State, reporter
from jostle.responses import RESPONSES
from jostle.sampling import Evaluation, Grid
from jostle.tokens import Inputs, TextView, TokenFunction
from jostle.tokens.text import padding_id

Models = Mapping[str, Callable[..., Any]]
Texts = Mapping[str, Tensor]
Floats = NDArray[np.float64]

_TRIALS_AT_ONCE = 512


@dataclass(frozen=True)
class Way:
    """How texts are asked about.

    Arguments:
        view: what a token is.
        perturbation: what a token becomes.
        seed: of the noise.
        batch_size: most texts of a batch.
        device: where models run; None for where they are.
        progress: of ``flip_counts``: a bar on a terminal, plain lines elsewhere, nothing, or your own function.
    """

    view: TextView
    perturbation: Perturbation
    seed: int = 0
    batch_size: int = 128
    device: str | None = None
    progress: Progress = False


def taken(texts: Texts, rows: NDArray[np.int64]) -> dict[str, Tensor]:
    """These rows of encoded texts."""
    return {key: tensor[torch.from_numpy(rows)] for key, tensor in texts.items()}


def clean_answers(models: Models, texts: Texts, way: Way) -> dict[str, Tensor]:
    """What each model answers about the texts as they are, (texts, classes), in float64."""
    with _asking(models, texts, way) as evaluation:
        batching = evaluation.batching
        order = batching.order(np.arange(len(evaluation.inputs)))
        found = {}
        for function in evaluation.functions:
            parts = [function(batching.batch(order[cut])[0]).double() for cut in batching.cuts(order)]
            found[function.name] = torch.cat(parts)[torch.from_numpy(np.argsort(order))]
    return found


def flip_counts(models: Models, texts: Texts, way: Way, draws: int) -> tuple[dict[str, Floats], int]:
    """How many of ``draws`` jostles of each token flip a prediction, (texts, tokens) a model, and how many were made.

    Tokens are numbered from the start of their text, whatever the padding; NaN stands where there is no token, or none
    that may be jostled. All models get the same noise. A perturbation without randomness is drawn once.
    """
    with _asking(models, texts, way) as evaluation:
        inputs, plan = evaluation.inputs, Grid(1 if way.perturbation.is_deterministic else draws)
        counts = np.full((len(models), len(inputs), inputs.num_tokens), np.nan)
        report, all_rows = reporter(way.progress, "examples"), np.arange(len(inputs))
        for trials in plan.blocks(inputs, all_rows, _TRIALS_AT_ONCE):
            numbers = inputs.addresses(trials.inputs, trials.tokens)
            counts[:, trials.inputs, numbers] = 0.0
            changes = np.nan_to_num(evaluation.changes(trials))
            for model, change in enumerate(changes):
                np.add.at(counts[model], (trials.inputs, numbers), change)
            done = int(trials.inputs.max()) + 1
            report(State(done / len(inputs), evaluation.passes, f"{done} of {len(inputs)} texts"))
        report.close()
    return dict(zip(models, counts, strict=True)), plan.draws


def root_mean_square(models: Models, texts: Texts, way: Way) -> dict[str, float]:
    """For each model, the root of the mean square of an entry of the embedded tokens that may be jostled."""
    found = {}
    with _asking(models, texts, way) as evaluation:
        inputs, batching = evaluation.inputs, evaluation.batching
        chosen = batching.order(np.arange(len(inputs)))
        mask = np.ones((len(inputs), inputs.num_tokens), bool) if inputs.mask is None else inputs.mask
        for function in evaluation.functions:
            squares: list[Tensor] = []
            for cut in batching.cuts(chosen):
                batch, first = batching.batch(chosen[cut])
                part = torch.from_numpy(mask[chosen[cut], first:])

                def look(embedded: Tensor, part: Tensor = part, squares: list[Tensor] = squares) -> Tensor:
                    kept = part[:, : embedded.shape[1]].to(embedded.device)
                    squares.append(embedded.detach().double().square().mean(dim=2)[kept].cpu())
                    return embedded

                function(batch, look)
            found[function.name] = float(torch.cat(squares).mean().sqrt())
    return found


@contextmanager
def _asking(models: Models, texts: Texts, way: Way) -> Iterator[Evaluation]:
    """Models that can be asked about texts, in eval mode within."""
    inputs = Inputs(dict(texts), way.view, None, padding_id(models.values()))
    functions = [TokenFunction(model, inputs, name, way.device) for name, model in models.items()]
    evaluation = Evaluation(functions, way.perturbation, RESPONSES.get("flip")(), way.seed, way.batch_size)
    with ExitStack() as modes:
        for function in functions:
            modes.enter_context(function.evaluating())
        evaluation.check()
        yield evaluation
