"""The loop: take trials from a plan, ask the models, count, look, stop.

From arguments to something that can be run: what ``measure``, ``compare`` and ``sweep`` have in common.

``measure`` and ``compare``: the two calls most people need.
"""

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jostle.base import progress as progress_bar
from jostle.base import specs
from jostle.base.errors import FailureError, UsageError
from jostle.base.estimate import Target
from jostle.base.progress import Reporter, State
from jostle.base.provenance import provenance
from jostle.estimates.result import (
    Comparison,
    Difference,
    MeanChange,
    Measurement,
    Settings,
    checked_average,
    checked_level,
    checked_target,
    checked_whole,
)
from jostle.estimates.tallies import BINARY, REAL, TERNARY, GridTally, Support, UntilTally
from jostle.perturbations import PERTURBATIONS, Perturbation
from jostle.responses import RESPONSES, Response
from jostle.sampling import PLANS, Evaluation, Grid, Plan, Trials, Until
from jostle.tokens import VIEWS, Inputs, TextView, TokenFunction, TokenView
from jostle.tokens.text import padding_id

Tally = GridTally | UntilTally
Pair = tuple[int, int]


@dataclass
class Outcome:
    """What a run knows when it ends.

    Arguments:
        singles: one estimate a model.
        pairs: for models a < b, the estimate of (change of a) - (change of b), trial by trial on the same noise.
        stopped: why it ended: ``complete``, ``precision``, ``max_passes``, ``all-inputs-visited`` or ``interrupted``.
    """

    singles: list[MeanChange]
    pairs: dict[Pair, MeanChange]
    stopped: str


class Run:
    """One pass of a plan over several models.

    Arguments:
        evaluation: the models, inputs, jostle and response.
        plan: which triples, and when to stop.
        level, target: of the intervals; ``target`` is the one a stopping rule looks at.
        seed: of the order and of the choice of triples.
        report: told about progress.
        average: ``macro``, inputs weigh the same, or ``micro``, tokens do.
        pair_level: of the intervals of differences, which decide nothing; ``level`` unless given.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        plan: Plan,
        level: float,
        target: Target,
        seed: int,
        report: Reporter,
        average: str = "macro",
        pair_level: float | None = None,
    ) -> None:
        self.evaluation, self.plan, self.seed, self.report = evaluation, plan, seed, report
        self.level, self.target, self.average = level, target, average
        count = len(evaluation.functions)
        single, paired = (BINARY, TERNARY) if evaluation.response.is_binary else (REAL, REAL)
        self.singles = [self._tally(single, level, decides_alone=count == 1) for _ in range(count)]
        of_pairs = level if pair_level is None else pair_level
        self.pairs = {pair: self._tally(paired, of_pairs, decides_alone=False) for pair in _pairs(count)}

    def go(self) -> Outcome:
        """Run to the end, or to an interruption after which something is known."""
        with ExitStack() as modes:
            for function in self.evaluation.functions:
                modes.enter_context(function.evaluating())
                function.check_steady(self.evaluation.response.describe())
            self.evaluation.check()
            try:
                stopped = self._until(self.plan) if isinstance(self.plan, Until) else self._grid(self.plan)
            except KeyboardInterrupt:
                if not self._has_results():
                    raise
                stopped = "interrupted"
        if stopped == "max_passes" and not self._has_results():
            raise UsageError(f"{self.plan.describe()} ended before a single trial; give a larger max_passes")
        if not self._has_results():
            raise FailureError(
                "nothing could be measured: no trial has a finite response (NaN outputs, or an undefined change)"
            )
        pairs = {pair: self._estimate(tally) for pair, tally in self.pairs.items()}
        return Outcome([self._estimate(tally) for tally in self.singles], pairs, stopped)

    def _estimate(self, tally: Tally) -> MeanChange:
        """What a tally knows, and where special tokens are, which only the inputs know."""
        estimate = tally.estimate()
        return replace(estimate, profile=replace(estimate.profile, special=self.evaluation.inputs.special_share))

    def _tally(self, support: Support, level: float, *, decides_alone: bool) -> Tally:
        inputs = self.evaluation.inputs
        if isinstance(self.plan, Until):
            return UntilTally(
                len(inputs),
                inputs.positions,
                self.plan,
                support,
                level,
                self.target,
                decides_alone,
                self.average,
            )
        exact, draws = self.evaluation.perturbation.is_deterministic, self.plan.draws
        return GridTally(len(inputs), inputs.positions, draws, support, level, self.target, exact, average=self.average)

    def _grid(self, plan: Grid) -> str:
        inputs, size, done = self.evaluation.inputs, self.evaluation.batch_size, 0
        order = plan.order(inputs, self.seed)
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            self.evaluation.prepare(chosen)
            for trials in plan.blocks(inputs, chosen, block=16 * size):
                self._take(trials)
                done += len(np.unique(trials.inputs))
                tallies = [tally for tally in self.singles if isinstance(tally, GridTally)]
                summary = "  ".join(f"{tally.value:.4f} ± {tally.half_width:.4f}" for tally in tallies)
                self.report(State(done / len(inputs), self.evaluation.passes, summary))
        return "complete"

    def _until(self, plan: Until) -> str:
        tallies = [tally for tally in self.singles if isinstance(tally, UntilTally)]
        for start, stop in plan.looks():
            trials = plan.trials(self.evaluation.inputs, self.seed, start, stop, self.average)
            room = plan.max_passes - self.evaluation.passes
            affordable = int(np.searchsorted(self.evaluation.new_passes(trials), room, side="right"))
            self._take(trials[:affordable])
            looked_at = [tally.candidate() for tally in tallies]
            intervals = [(tally.value, look.low, look.high) for tally, look in zip(tallies, looked_at, strict=True)]
            share = min(plan.share_done(*interval) for interval in intervals)
            summary = "  ".join(f"{value:.4f} [{low:.4f}, {high:.4f}]" for value, low, high in intervals)
            self.report(State(share, self.evaluation.passes, summary))
            may_stop = all(tally.may_stop for tally in tallies)
            if may_stop and all(plan.is_met(*interval) for interval in intervals):
                for tally in tallies:
                    tally.settle()
                return "precision"
            if affordable < len(trials):
                return "max_passes"
            if self.target == "population" and tallies[0].has_visited_all:
                return "all-inputs-visited"
        raise AssertionError("looks() is endless")

    def _take(self, trials: Trials) -> None:
        changes = self.evaluation.changes(trials) if len(trials) else np.empty((len(self.singles), 0))
        inputs = self.evaluation.inputs
        trials = Trials(trials.inputs, inputs.profile_positions(trials.inputs, trials.tokens), trials.draws)
        for tally, change in zip(self.singles, changes, strict=True):
            tally.add(trials, change)
        for (a, b), tally in self.pairs.items():
            tally.add(trials, changes[a] - changes[b])

    def _has_results(self) -> bool:
        return all(tally.trials > 0 for tally in self.singles)


def _pairs(count: int) -> Iterator[Pair]:
    return itertools.combinations(range(count), 2)


Model = Callable[..., Any]

_FEW_TOKENS = 10_000


@dataclass(frozen=True)
class Choices:
    """The arguments of ``measure`` as given."""

    tokens: TokenView | str
    perturbation: Perturbation | str
    response: Response | str
    plan: Plan | str | None
    target: str
    average: str
    mask: Any
    level: float
    seed: int
    batch_size: int
    device: str | None


class Prepared(NamedTuple):
    """Models and inputs that are ready to be asked, when to stop, and what to write down."""

    evaluation: Evaluation
    plan: Plan
    settings: Settings


def prepared(models: Mapping[str, Model], inputs: Any, chosen: Choices) -> Prepared:
    """Check all arguments, and hold them together; nothing is asked of a model yet."""
    if not isinstance(models, Mapping) or not models:
        raise UsageError("models must be a mapping from names to models with at least one entry")
    view = specs.build(VIEWS, chosen.tokens, "tokens", TokenView)
    jostle = specs.build(PERTURBATIONS, chosen.perturbation, "perturbation", Perturbation)
    change = specs.build(RESPONSES, chosen.response, "response", Response)
    pad = padding_id(models.values()) if isinstance(view, TextView) else None
    held = Inputs(inputs, view, chosen.mask, pad)
    plan = _default_plan(held, jostle, change) if chosen.plan is None else specs.build(PLANS, chosen.plan, "plan", Plan)
    if isinstance(plan, Grid) and jostle.is_deterministic:
        plan = Grid(draws=1)
    held.check_finite()
    if not isinstance(view, TextView):  # of text, once the models are in eval mode: they may have to embed it
        jostle.check(held.sample_token())
    target = checked_target(chosen.target)
    settings = Settings(
        tokens=view.describe(),
        perturbation=jostle.describe(),
        response=change.describe(),
        plan=plan.describe(),
        target=target,
        level=checked_level(chosen.level),
        seed=checked_whole("seed", chosen.seed),
        num_inputs=len(held),
        num_tokens=held.num_tokens,
        average=checked_average(chosen.average, plan, target),
    )
    functions = [TokenFunction(model, held, str(name), chosen.device) for name, model in models.items()]
    batch_size = checked_whole("batch_size", chosen.batch_size, least=1)
    return Prepared(Evaluation(functions, jostle, change, settings.seed, batch_size), plan, settings)


def _default_plan(inputs: Inputs, perturbation: Perturbation, response: Response) -> Plan:
    if perturbation.is_deterministic and len(inputs) * inputs.num_tokens <= _FEW_TOKENS:
        return Grid(draws=1)
    return Until(half_width=0.01) if response.is_binary else Until(relative=0.05)


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


def _nonfinite_warning(name: str, nonfinite: int, estimate: MeanChange) -> list[str]:
    if not nonfinite:
        return []
    trials = estimate.trials + nonfinite
    return [
        f"{nonfinite:,} of {trials:,} trials of {name} have no finite response (an output is NaN or infinite, or the "
        "change is undefined); they are left out, and the rest is what is estimated"
    ]
