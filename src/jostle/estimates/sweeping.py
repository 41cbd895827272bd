"""``sweep``: the sensitivity of models against the strength of the noise."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jostle import progress as progress_bar
from jostle.errors import FailureError, UsageError
from jostle.estimates.comparison import Comparison
from jostle.estimates.estimate import Estimate, Profile
from jostle.estimates.measuring import Interrupted, JostleWarning, comparison_of
from jostle.estimates.preparing import Choices, Model, Prepared, prepared
from jostle.estimates.run import Outcome, Run
from jostle.estimates.settings import Settings, checked_level
from jostle.estimates.sweep_result import Sweep
from jostle.estimates.sweep_strengths import Family, checked_strengths, family_of
from jostle.intervals import Interval
from jostle.perturbations import Perturbation
from jostle.responses import Response
from jostle.sampling import Evaluation, Grid, Plan
from jostle.tokens import TokenView


class InterruptedSweep(Interrupted):
    """Raised when a sweep is interrupted after a strength is finished; ``result`` holds the finished ones."""

    result: Sweep  # type: ignore[assignment]

    def __init__(self, result: Sweep) -> None:
        KeyboardInterrupt.__init__(self, "interrupted; .result holds the strengths that were finished by then")
        self.result = result


def sweep(
    models: Model | Mapping[str, Model],
    inputs: Any,
    *,
    tokens: TokenView | str,
    stds: Any,
    perturbation: str | Callable[[float], Perturbation] = "gaussian-noise",
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
) -> Sweep:
    """Measure one or several models at several strengths of the noise: which one is more sensitive can change with it.

    All strengths and all models share inputs, their order and the noise: noise of std s is s times the same Gaussian
    numbers. Curves of one seed are therefore smooth, and differences between models paired. Each strength is what
    ``measure`` or ``compare`` gives for it with the same seed and plan, except that clean inputs are asked about once
    for all strengths; where ``max_passes`` ends the sampling, later strengths therefore get a few more trials. A
    strength of 0 is exactly 0 and costs no pass.

    >>> import torch, jostle
    >>> x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    >>> s = jostle.sweep({"sum": lambda x: x.sum(dim=1), "first": lambda x: x[:, 0]}, x, tokens="coordinates",
    ...                  stds=[0.5, 2], plan=jostle.Grid(10))
    >>> [round(s["sum"][std].value, 2) for std in s.strengths]
    [0.08, 0.24]
    >>> s.crossings()
    ['sum against first: more sensitive at std 0.5 and 2.']

    Arguments:
        models: one model, or a mapping from names to models.
        stds: the strengths, 0 or larger, in any order.
        perturbation: the kind of jostle that has the strength: ``"gaussian-noise"``, ``"sphere"`` (``stds`` are then
            radii), ``"sphere:relative=true"``, or a function from a strength to a perturbation.
        plan: for each strength, as in ``measure``; with several models it goes on until it is met for all.
        level: coverage of each interval of a measurement, and of all differences of a pair together.
        name: how messages and files call a single model.

    The others are those of ``measure``.

    Raises:
        UsageError: one line on what cannot be used as given.
        Interrupted: on Ctrl-C once a strength is finished; ``.result`` is a ``Sweep`` of the finished ones.
    """
    strengths, family = checked_strengths(stds), family_of(perturbation)
    named = models if isinstance(models, Mapping) else {name: models}
    shared = _shared_level(checked_level(level), strengths, len(named))
    if not named:
        raise UsageError("models is empty: give a model, or a mapping from names to models")
    strongest = family.at(strengths[-1])
    choices = Choices(tokens, strongest, response, plan, target, average, mask, level, seed, batch_size, device)
    asked = prepared(named, inputs, choices)
    report = progress_bar.reporter(progress, ", ".join(map(str, named)))
    found: dict[float, Comparison] = {}
    try:
        for strength in strengths:
            shown = _part(report, family.parameter, strengths, strength, found)
            found[strength] = _at(strength, family, asked, shared, shown)
    except KeyboardInterrupt:
        if not any(strength > 0 for strength in found):
            raise
    finally:
        report.close()
    result = Sweep(family.parameter, family.spec, shared, found, strengths[len(found) :])
    for text in result.warnings:
        warnings.warn(text, JostleWarning, stacklevel=2)
    if result.missing:
        raise InterruptedSweep(result)
    return result


def _shared_level(level: float, strengths: tuple[float, ...], models: int) -> float:
    """The level of each difference of a pair, if those of all strengths are to hold together at ``level``."""
    count = sum(strength > 0 for strength in strengths)
    shared = 1 - (1 - level) / max(count, 1)
    if models > 1:
        try:
            checked_level(shared)
        except UsageError:
            raise UsageError(
                f"level={level:g} shared by {count} stds needs differences at {shared:.4%}, more than 99.9%: give "
                "fewer stds or a lower level"
            ) from None
    return shared


def _at(strength: float, family: Family, asked: Prepared, shared: float, report: progress_bar.Reporter) -> Comparison:
    """All models at one strength.

    The evaluation goes from strength to strength and keeps the answers to clean inputs; what it counts begins anew.
    """
    started = time.perf_counter()
    evaluation, plan, settings = asked
    evaluation.perturbation = family.at(strength)
    evaluation.nonfinite[:] = 0
    for function in evaluation.functions:
        function.passes, function.warnings = 0, []
    here = replace(settings, perturbation=evaluation.perturbation.describe())
    if strength == 0:
        plan_here = replace(here, plan=Grid(draws=1).describe())
        return comparison_of(evaluation, plan_here, _unmoved(evaluation, here, shared), time.perf_counter() - started)
    try:
        outcome = Run(evaluation, plan, here.level, here.target, here.seed, report, here.average, shared).go()
    except FailureError as error:
        raise FailureError(f"at {family.parameter} {strength:g}: {error}") from error
    if outcome.stopped == "interrupted":
        raise KeyboardInterrupt
    return comparison_of(evaluation, here, outcome, time.perf_counter() - started)


def _unmoved(evaluation: Evaluation, settings: Settings, shared: float) -> Outcome:
    """Where nothing moves nothing changes, by definition: exactly 0 without asking anybody."""
    inputs, count = evaluation.inputs, len(evaluation.functions)
    mask = np.ones((len(inputs), inputs.num_tokens), dtype=bool) if inputs.mask is None else inputs.mask
    places = inputs.profile_positions(*(part.astype(np.int64) for part in np.nonzero(mask)))
    counts = np.bincount(places, minlength=int(np.prod(inputs.positions))).astype(np.int64)
    zeros = np.where(counts > 0, 0.0, np.nan)

    def exact(level: float) -> Estimate:
        method = "exact: nothing is moved"
        dataset = Interval(0.0, 0.0, level, "dataset", method)
        population = Interval(0.0, 0.0, level, "population", method)
        profile = Profile(zeros, zeros, zeros, counts, inputs.positions, settings.target, "exact", inputs.special_share)
        return Estimate(0.0, dataset, population, np.zeros(len(inputs)), profile, int(counts.sum()))

    pairs = {(a, b): exact(shared) for a in range(count) for b in range(a + 1, count)}
    return Outcome([exact(settings.level) for _ in range(count)], pairs, "complete")


def _part(
    report: progress_bar.Reporter,
    parameter: str,
    strengths: tuple[float, ...],
    strength: float,
    found: Mapping[float, Comparison],
) -> progress_bar.Reporter:
    """A reporter of one strength that tells ``report`` how far the whole sweep is."""
    before = sum(max(comparison[name].passes for name in comparison) for comparison in found.values())

    def tell(state: progress_bar.State) -> None:
        share = (len(found) + state.share) / len(strengths)
        report(
            replace(
                state, share=share, passes=before + state.passes, summary=f"{parameter} {strength:g}: {state.summary}"
            )
        )

    return progress_bar.reporter(tell, "")
