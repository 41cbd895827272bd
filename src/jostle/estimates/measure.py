"""``measure`` and ``compare``: the public calls, ``run_request``, which all of them call, and what becomes its result.

The settings are in ``request``, the loop of each plan in ``runs``, the counts in ``tallies`` and ``draws``, and how
models are asked in ``sampling.evaluation``.
"""

import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import UsageError
from jostle.base.estimate import PROCESSES, provenance
from jostle.base.progress import Reporter
from jostle.base.trackers import make_senders
from jostle.engines import Engine, choose
from jostle.estimates.per_input import plan_for_clusters, plan_for_labels, refine
from jostle.estimates.request import Model, Request
from jostle.estimates.result import Comparison, Difference, MeanChange, Measurement
from jostle.estimates.runs import GridRun, UntilRun
from jostle.estimates.samples import TrialRecorder, with_samples
from jostle.perturbations import Perturbation
from jostle.responses import Response
from jostle.sampling import DefaultPlan, Plan, TrialEvaluation, Until
from jostle.tokens import TokenView

if TYPE_CHECKING:
    from jostle.estimates.influence_result import Influence
    from jostle.estimates.stability import Stability
    from jostle.estimates.sweep import Sweep

AnyResult = TypeVar("AnyResult", Measurement, Comparison)


class JostleWarning(UserWarning):
    """Something suspicious about a model or a measurement that the reader of the number should know."""


class Interrupted(KeyboardInterrupt):
    """Raised when Ctrl-C ends a measurement after its first results.

    ``result`` holds them: a ``Measurement``, ``Comparison``, ``Sweep``, ``Stability`` or ``Influence`` whose intervals
    are valid.
    """

    def __init__(self, result: "Measurement | Comparison | Influence | Sweep | Stability") -> None:
        super().__init__("interrupted; .result holds what was known by then")
        self.result = result


def measure(
    model: Model,
    inputs: Any,
    *,
    tokens: TokenView | str,
    perturbation: Perturbation | str,
    response: Response | str = "flip",
    plan: Plan | DefaultPlan | str | None = None,
    target: str = "dataset",
    average: str = "macro",
    mask: Any = None,
    labels: Any = None,
    cluster: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    engine: Engine | str | None = None,
    workers: int | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
    samples: bool = False,
    tracker: Any = (),
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
        model: an ``nn.Module`` (put in eval mode and put back), any callable from a batch to outputs, an estimator of
            scikit-learn, a session of ONNX Runtime, or a ``transformers.pipeline``.
        inputs: a tensor or array (N, ...), a mapping of tensors with an attention mask, texts, a frame of pandas or
            polars, a ``Dataset`` or a ``DataLoader``: see ``docs/your-models.md``.
        tokens: what a token is: ``Coordinates()``, ``Rows()``, ``Patches(4)``, ``Whole()``, for texts ``Embeddings()``
            or ``Words()``, for tables ``Columns()``, or a spec: ``"patches:4"``.
        perturbation: what a token becomes: ``GaussianNoise(std=1.0)``, ``SignFlip()``, ... or a spec.
        response: what counts as a change: ``"flip"``, ``"margin"``, ... or an object of ``jostle.responses``.
        plan: when to stop: ``Until(half_width=0.01)``, ``Until(relative=0.1)``, or ``Grid(draws=5)``, the papers'
            protocol. By default ``Until``, to 0.01 for flips and to 5 % for other responses; or the exact grid if the
            perturbation has no randomness and there are at most 10,000 tokens: see ``sampling.DefaultPlan``.
        target: ``"dataset"`` (the inputs given) or ``"population"`` (where they came from): which interval is ``low``
            and ``high`` and decides when to stop.
        average: ``"macro"``: inputs weigh the same whatever their number of tokens; or ``"micro"``: all tokens weigh
            the same, so that long texts weigh more.
        mask: (N, T), true for tokens that may be jostled; by default the mapping's own attention mask.
        labels: (N,) the right classes. The result then says whether sensitive predictions tend to be wrong
            (``certainty``); the model answers the visited inputs once more.
        cluster: (N,) what each input belongs to, such as its document or speaker, by name or number: the population
            interval then takes clusters, not inputs, for independent. Needs ``Grid``, by default ``Grid(1)``.
        level: coverage of the intervals.
        seed: the same seed gives the same noise for every batch size, and for every model.
        batch_size: the most inputs that the model is given at once; by default as many as suit the model, up to 256;
            batches of texts may be smaller, see ``docs/text.md``.
        device: where the model runs; by default where it is.
        engine: where units of the measurement are evaluated: ``serial``, ``processes``, ``ray``, ``torchrun``, or an
            engine of ``jostle.engines``, which takes its CPUs and GPUs. No engine changes a number. By default this
            process, and several if that saves time, see docs/cluster.md.
        workers: how many processes, or workers of a Ray cluster, each with one thread.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
        name: how messages and files call the model.
        samples: whether to keep what became of every input and token (``.samples``); all inputs are then drawn alike.
        tracker: one or several experiment trackers that get the numbers: TensorBoard's ``SummaryWriter``,
            ``wandb.run``, ``mlflow``, ...

    Raises:
        UsageError: an argument or an input cannot be used; the message is one line.
        Interrupted: on Ctrl-C after the first results; ``.result`` holds them.
    """
    checks.text("name", name)
    request = Request.build(
        tokens=tokens,
        perturbation=perturbation,
        response=response,
        plan=plan,
        target=target,
        average=average,
        mask=mask,
        level=level,
        seed=seed,
        batch_size=batch_size,
        device=device,
    )
    senders, doing = make_senders(tracker), choose(engine, workers)  # raise before any work
    found = _run_refined(request, {name: model}, inputs, progress, labels, cluster, samples, doing)[name]
    return _deliver(found, tracker if senders else ())


def compare(
    models: Mapping[str, Model],
    inputs: Any,
    *,
    tokens: TokenView | str,
    perturbation: Perturbation | str,
    response: Response | str = "flip",
    plan: Plan | DefaultPlan | str | None = None,
    target: str = "dataset",
    average: str = "macro",
    mask: Any = None,
    labels: Any = None,
    cluster: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    engine: Engine | str | None = None,
    workers: int | None = None,
    progress: progress_bar.Progress = False,
    samples: bool = False,
    tracker: Any = (),
) -> Comparison:
    """Measure several models on the same inputs and the same noise, with intervals for their paired differences.

    Sharing inputs and noise narrows the interval of a difference: between architectures like taking 1.0 to 1.3 times
    the draws, between checkpoints of one network several times. With ``Until``, sampling stops when every model's
    interval is narrow enough, at about 1.3 to 1.5 times the draws of a sample whose size was known. If only the order
    of the models matters, ``Until(decided=True)`` stops much sooner: when the sign of every difference is decided.
    Arguments are those of ``measure``; ``models`` maps names to models.

    >>> import torch, jostle
    >>> bits = torch.randint(2, (200, 9), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    >>> c = jostle.compare({"parity": lambda x: x.prod(dim=1), "majority": lambda x: x.sum(dim=1)}, bits,
    ...                    tokens="coordinates", perturbation="sign-flip", plan=jostle.Grid(1))
    >>> c.difference("parity", "majority").verdict
    'parity is more sensitive than majority'
    """
    request = Request.build(
        tokens=tokens,
        perturbation=perturbation,
        response=response,
        plan=plan,
        target=target,
        average=average,
        mask=mask,
        level=level,
        seed=seed,
        batch_size=batch_size,
        device=device,
    )
    senders, doing = make_senders(tracker), choose(engine, workers)
    found = _run_refined(request, models, inputs, progress, labels, cluster, samples, doing)
    return _deliver(found, tracker if senders else ())


def _deliver(result: AnyResult, tracker: Any) -> AnyResult:
    """Give the warnings of ``result``, send its numbers and return it; raise it if Ctrl-C ended it."""
    for warning in result.warnings:
        warnings.warn(warning, JostleWarning, stacklevel=3)
    if result.stopped == "interrupted":
        raise Interrupted(result)
    result.send_to(tracker)
    return result


def _run_refined(
    request: Request,
    models: Mapping[str, Model],
    inputs: Any,
    progress: progress_bar.Progress,
    labels: Any,
    cluster: Any,
    samples: bool,
    engine: Engine,
) -> Comparison:
    """``run_request``, with what labels and clusters add."""
    checks.truth("samples", samples)
    if labels is None and cluster is None:
        return run_request(request, models, inputs, progress, samples=samples, engine=engine)
    held = request.read_inputs(inputs, models.values())
    request = plan_for_labels(request, len(held)) if cluster is None else plan_for_clusters(request)
    found = run_request(request, models, held, progress, samples=samples, engine=engine)
    return refine(found, request, models, held, labels, cluster)


def run_request(
    request: Request,
    models: Mapping[str, Model],
    inputs: Any,
    progress: progress_bar.Progress = False,
    known: Mapping[str, Iterable[str]] | None = None,
    samples: bool = False,
    engine: Engine | None = None,
) -> Comparison:
    """What ``compare`` returns, without Python warnings, and also after Ctrl-C: ``stopped`` is then ``interrupted``.

    Arguments:
        request: what is asked.
        models: by name.
        inputs: whatever ``Request.prepare`` takes.
        progress: as for ``measure``.
        known: warnings about models, by name, that are known before they are asked; they come after the others.
        samples: as for ``measure``.
        engine: who evaluates; None for this process.
    """
    started = time.perf_counter()
    request = plan_for_labels(request) if samples else request
    evaluation = request.prepare(models, inputs)
    shown = closing(progress_bar.reporter(progress, ", ".join(map(str, models))))
    with evaluation.staff.working(engine), shown as report:
        run = make_run(request, evaluation, report)
        run.recorder = TrialRecorder(evaluation.inputs, request, len(models)) if samples else None
        run.go()
    found = comparison_of(run, time.perf_counter() - started, known)
    return found if run.recorder is None else with_samples(found, run.recorder.samples())


def make_run(
    request: Request, evaluation: TrialEvaluation, report: Reporter, pair_level: float | None = None
) -> GridRun | UntilRun:
    """The loop of the request's plan, ready to go.

    Arguments:
        request: what is asked.
        evaluation: of ``request.prepare``.
        report: told about progress.
        pair_level: of the intervals of differences, which decide nothing; by default the request's level.
    """
    plan = request.plan_for(evaluation.inputs)
    if isinstance(plan, Until):
        if plan.decided and len(evaluation.functions) < 2:
            raise UsageError("Until(decided=True) decides which of several models is more sensitive: give at least two")
        return UntilRun(request, plan, evaluation, report, pair_level)
    return GridRun(request, plan, evaluation, report, pair_level)


def comparison_of(
    run: GridRun | UntilRun, seconds: float, known: Mapping[str, Iterable[str]] | None = None
) -> Comparison:
    """What a run found; ``known`` is as for ``run_request``."""
    singles = [tally.estimate() for tally in run.singles]
    pairs = {pair: tally.estimate() for pair, tally in run.pairs.items()}
    return make_comparison(run.request, run.evaluation, singles, pairs, run.stopped, seconds, known)


def make_comparison(
    request: Request,
    evaluation: TrialEvaluation,
    singles: list[MeanChange],
    pairs: Mapping[tuple[int, int], MeanChange],
    stopped: str,
    seconds: float,
    known: Mapping[str, Iterable[str]] | None = None,
) -> Comparison:
    """Estimates as measurements and differences, with the name, passes and warnings of each model.

    Arguments:
        request, evaluation: what was asked of whom.
        singles: one estimate a model.
        pairs: for models a < b, the estimate of (change of a) - (change of b).
        stopped, seconds: why sampling ended, and after how long.
        known: as for ``run_request``.
    """
    settings, origin = request.settings(evaluation.inputs), provenance()
    if evaluation.staff.told:
        origin[PROCESSES] = evaluation.staff.told
    measurements = {}
    for function, estimate, lost in zip(evaluation.functions, singles, evaluation.nonfinite.tolist(), strict=True):
        told = [*function.warnings, *_nonfinite_warning(function.name, lost, estimate)]
        parts = {**vars(estimate), "profile": replace(estimate.profile, names=evaluation.inputs.token_names)}
        measurements[function.name] = Measurement(
            **parts,
            name=function.name,
            settings=settings,
            passes=function.passes,
            stopped=stopped,
            nonfinite=lost,
            warnings=[*told, *(known or {}).get(function.name, ())],
            notes=[*evaluation.inputs.notes, *function.notes, *estimate.caveats],
            seconds=seconds,
            provenance=origin,
        )
    names = list(measurements)
    differences = [Difference(**vars(pair), first=names[a], second=names[b]) for (a, b), pair in pairs.items()]
    return Comparison(measurements, differences)


def _nonfinite_warning(name: str, nonfinite: int, estimate: MeanChange) -> list[str]:
    if not nonfinite:
        return []
    trials = estimate.trials + nonfinite
    return [
        f"{nonfinite:,} of {trials:,} trials of {name} have no finite response (an output is NaN or infinite, or the "
        "change is undefined); they are left out, and the rest is what is estimated"
    ]
