"""``measure`` and ``compare``: the two calls most people need."""

import time
import warnings
from collections.abc import Mapping
from typing import Any

from jostle import progress as progress_bar
from jostle.estimates.comparison import Comparison, Difference
from jostle.estimates.estimate import Estimate
from jostle.estimates.measurement import Measurement
from jostle.estimates.preparing import Choices, Model, prepared
from jostle.estimates.run import Outcome, Run
from jostle.estimates.settings import Settings
from jostle.perturbations import Perturbation
from jostle.provenance import provenance
from jostle.responses import Response
from jostle.sampling import Evaluation, Plan
from jostle.tokens import TokenView


class JostleWarning(UserWarning):
    """Something about a model or a measurement that the reader of the number should know."""


class Interrupted(KeyboardInterrupt):
    """Raised when a measurement is interrupted after something is known.

    ``result`` holds it: a ``Measurement`` or a ``Comparison`` whose intervals are valid.
    """

    def __init__(self, result: Measurement | Comparison) -> None:
        super().__init__("interrupted; .result holds what was known by then")
        self.result = result


def measure(
    model: Model,
    inputs: Any,
    *,
    tokens: TokenView | str,
    perturbation: Perturbation | str,
    response: Response | str = "flip",
    plan: Plan | str | None = None,
    target: str = "dataset",
    average: str = "macro",
    mask: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 128,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> Measurement:
    """How often, or how much, the output changes when one token of an input is jostled.

        S = mean over inputs x, tokens tau of x, noise of  R(f(x), f(x with token tau jostled))

    For ``response="flip"`` this is paper 1's normalised sensitivity (2403.06925, Eq. 2).

    >>> import torch, jostle
    >>> parity = lambda x: x.prod(dim=1)
    >>> bits = torch.randint(2, (100, 8), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    >>> m = jostle.measure(parity, bits, tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1))
    >>> m.value, m.low, m.high
    (1.0, 1.0, 1.0)

    Arguments:
        model: an ``nn.Module`` (put in eval mode and put back) or any callable from a batch to outputs.
        inputs: a tensor (N, ...), a mapping of tensors with an attention mask, a ``Dataset`` or a ``DataLoader``.
        tokens: what a token is: ``Coordinates()``, ``Rows()``, ``Patches(4)``, ``Whole()``, for text ``Embeddings()``
            or ``Words()``, or a spec: ``"patches:4"``.
        perturbation: what a token becomes: ``GaussianNoise(std=1.0)``, ``SignFlip()``, ... or a spec.
        response: what counts as a change: ``"flip"``, ``"margin"``, ... or an object of ``jostle.responses``.
        plan: when to stop: ``Until(half_width=0.01)``, ``Until(relative=0.1)``, or ``Grid(draws=5)``, the papers'
            protocol. By default ``Until``, to 0.01 for flips and to 5 % for other responses; or the exact grid where a
            perturbation has no randomness and there are at most 10,000 tokens to flip.
        target: ``"dataset"`` or ``"population"``: which interval is ``low`` and ``high`` and decides when to stop.
        average: ``"macro"``: inputs weigh the same whatever their number of tokens; or ``"micro"``: all tokens weigh
            the same, so that long texts weigh more.
        mask: (N, T), true for tokens that may be jostled; by default the mapping's own attention mask.
        level: coverage of the intervals.
        seed: the same seed gives the same noise for every batch size, and for every model.
        batch_size: how many inputs the model answers at once; of text at most, see ``docs/text.md``.
        device: where the model runs; by default where it is.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
        name: how messages and files call the model.

    Raises:
        UsageError: one line on what cannot be used as given.
        Interrupted: on Ctrl-C once something is known; ``.result`` holds it.
    """
    choices = Choices(tokens, perturbation, response, plan, target, average, mask, level, seed, batch_size, device)
    try:
        return _compared({name: model}, inputs, choices, progress)[name]
    except Interrupted as interrupted:
        known = interrupted.result
        raise Interrupted(known[name] if isinstance(known, Comparison) else known) from None


def compare(
    models: Mapping[str, Model],
    inputs: Any,
    *,
    tokens: TokenView | str,
    perturbation: Perturbation | str,
    response: Response | str = "flip",
    plan: Plan | str | None = None,
    target: str = "dataset",
    average: str = "macro",
    mask: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 128,
    device: str | None = None,
    progress: progress_bar.Progress = False,
) -> Comparison:
    """Measure several models on the same inputs and the same noise, with intervals for their paired differences.

    Sharing inputs and noise makes differences several times sharper than two separate measurements. With ``Until``,
    sampling stops when every model's interval is narrow enough. Arguments are those of ``measure``; ``models`` maps
    names to models.

    >>> import torch, jostle
    >>> bits = torch.randint(2, (200, 9), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    >>> c = jostle.compare({"parity": lambda x: x.prod(dim=1), "majority": lambda x: x.sum(dim=1)}, bits,
    ...                    tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1))
    >>> c.difference("parity", "majority").verdict
    'parity is more sensitive than majority'
    """
    choices = Choices(tokens, perturbation, response, plan, target, average, mask, level, seed, batch_size, device)
    return _compared(models, inputs, choices, progress)


def _compared(models: Mapping[str, Model], inputs: Any, chosen: Choices, progress: progress_bar.Progress) -> Comparison:
    started = time.perf_counter()
    asked = prepared(models, inputs, chosen)
    settings, functions = asked.settings, asked.evaluation.functions
    report = progress_bar.reporter(progress, ", ".join(function.name for function in functions))
    try:
        outcome = Run(
            asked.evaluation, asked.plan, settings.level, settings.target, settings.seed, report, settings.average
        ).go()
    finally:
        report.close()
    result = comparison_of(asked.evaluation, settings, outcome, time.perf_counter() - started)
    for warning in dict.fromkeys(text for m in result.measurements.values() for text in m.warnings):
        warnings.warn(warning, JostleWarning, stacklevel=3)
    if outcome.stopped == "interrupted":
        raise Interrupted(result)
    return result


def comparison_of(evaluation: Evaluation, settings: Settings, outcome: Outcome, seconds: float) -> Comparison:
    """What a run found, with the name, passes and warnings of each model."""
    origin = provenance()
    measurements = {
        function.name: Measurement(
            name=function.name,
            settings=settings,
            estimate=estimate,
            passes=function.passes,
            stopped=outcome.stopped,
            nonfinite=int(nonfinite),
            warnings=function.warnings + _nonfinite_warning(function.name, int(nonfinite), estimate),
            seconds=seconds,
            provenance=origin,
        )
        for function, estimate, nonfinite in zip(
            evaluation.functions, outcome.singles, evaluation.nonfinite, strict=True
        )
    }
    names = list(measurements)
    differences = [Difference(names[a], names[b], settings.target, pair) for (a, b), pair in outcome.pairs.items()]
    return Comparison(measurements, differences)


def _nonfinite_warning(name: str, nonfinite: int, estimate: Estimate) -> list[str]:
    if not nonfinite:
        return []
    trials = estimate.trials + nonfinite
    return [
        f"{nonfinite:,} of {trials:,} trials of {name} have no finite response (an output is NaN or infinite, or the "
        "change is undefined); they are left out, and the rest is what is estimated"
    ]
