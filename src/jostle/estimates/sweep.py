"""``sweep``: the sensitivity of models against the strength of the noise, and where the models cross.

First the call and the loop over strengths, then the ``Sweep`` that it returns, then the ``Family`` of perturbations
that differ in their strength alone, and the sentences that say which model is more sensitive where.
"""

import inspect
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.base import checks, specs
from jostle.base import progress as progress_bar
from jostle.base.errors import FailureError, UsageError, shown
from jostle.base.estimate import OTHER, TARGETS, Interval, in_seconds
from jostle.base.files import write_text
from jostle.base.registry import unknown_name
from jostle.base.table import Row, Tabular
from jostle.engines import Engine, choose
from jostle.estimates import tables as made
from jostle.estimates.measure import Interrupted, JostleWarning, comparison_of, make_comparison, make_run
from jostle.estimates.request import Model, Request
from jostle.estimates.result import (
    REASONS,
    Comparison,
    Difference,
    MeanChange,
    Measurement,
    MeasureSettings,
    Profile,
)
from jostle.perturbations import PERTURBATIONS, Perturbation
from jostle.responses import Response
from jostle.sampling import DefaultPlan, Grid, Plan, TrialEvaluation
from jostle.tokens import TokenView

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ByStrength = dict[float, Comparison]
_EXAMPLES = "'gaussian-noise' (its std), 'sphere' (its radius), or a function from a strength to a perturbation"
_MOST_LISTED = 7  # strengths in a sentence; a longer list is written as from ... to ...


def sweep(
    models: Model | Mapping[str, Model],
    inputs: Any,
    *,
    tokens: TokenView | str,
    stds: Any,
    perturbation: str | Callable[[float], Perturbation] = "gaussian-noise",
    response: Response | str = "flip",
    plan: Plan | DefaultPlan | str | None = None,
    target: str = "dataset",
    average: str = "macro",
    mask: Any = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    engine: Engine | str | None = None,
    workers: int | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> "Sweep":
    """Measure one or several models at several strengths of the noise: which one is more sensitive can change with it.

    All strengths and all models share inputs, their order and the noise: noise of std s is s times the same Gaussian
    numbers. Curves of one seed are therefore smooth, and differences between models paired. The result at a strength is
    that of ``measure`` or ``compare`` with the same seed and plan, except that models are asked about clean inputs once
    for all strengths; where ``max_passes`` ends the sampling, later strengths therefore get a few more trials. The
    result at strength 0 is exactly 0 and costs no pass.

    >>> import torch, jostle
    >>> x = torch.randn(200, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> s = jostle.sweep({"sum": lambda x: x.sum(dim=1), "first": lambda x: x[:, 0]}, x, tokens="coordinates",
    ...                  stds=[0.5, 2], plan=jostle.Grid(10))
    >>> [round(s["sum"][std].value, 2) for std in s.strengths]
    [0.08, 0.24]
    >>> s.crossings()
    ['sum against first: more sensitive at std 0.5 and 2.']

    Arguments:
        models: one model, or a mapping from names to models.
        stds: the strengths, 0 or larger, in any order.
        perturbation: the kind of perturbation that has the strength: ``"gaussian-noise"``, ``"sphere"`` (``stds`` are
            then radii), ``"sphere:relative=true"``, or a function from a strength to a perturbation.
        plan: for each strength, as in ``measure``; with several models sampling continues until it is met for all.
            ``Until(decided=True)`` stops at each strength when the sign of every difference is decided. Rare flips of a
            single model are sought adaptively at each strength, as in ``measure``, with draws of its own; give
            ``Until(..., adaptive=False)`` where a smooth curve matters more than the passes.
        level: coverage of each interval of a measurement, and of all differences of a pair together.
        name: how messages and files call a single model.

    The others are those of ``measure``.

    Raises:
        UsageError: an argument or an input cannot be used; the message is one line.
        Interrupted: on Ctrl-C after the first strength; ``.result`` is a ``Sweep`` of the finished strengths.
    """
    checks.text("name", name)
    strengths, family = read_strengths(stds), family_of(perturbation)
    request = Request.build(
        tokens=tokens,
        perturbation=family.at(strengths[-1]),
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
    named = models if isinstance(models, Mapping) else {name: models}
    result = run_sweep(request, family, strengths, named, inputs, progress, engine=choose(engine, workers))
    for text in result.warnings:
        warnings.warn(text, JostleWarning, stacklevel=2)
    if result.missing:
        raise Interrupted(result)
    return result


def run_sweep(
    request: Request,
    family: "Family",
    strengths: tuple[float, ...],
    models: Mapping[str, Model],
    inputs: Any,
    progress: progress_bar.Progress = False,
    known: Mapping[str, Iterable[str]] | None = None,
    engine: Engine | None = None,
) -> "Sweep":
    """What ``sweep`` returns, without Python warnings; ``missing`` names the strengths that Ctrl-C left unmeasured.

    Arguments:
        request: what is asked at every strength; its perturbation is that of the largest one.
        family: the perturbations.
        strengths: of ``read_strengths``.
        models, inputs, progress, known, engine: as for ``run_request``.
    """
    shared = _shared_level(request.level, strengths, len(models))
    evaluation = request.prepare(models, inputs)
    request = replace(request, plan=request.plan_for(evaluation.inputs))  # one plan for all strengths
    found: dict[float, Comparison] = {}
    shown = closing(progress_bar.reporter(progress, ", ".join(map(str, models))))
    with evaluation.staff.working(engine), shown as report:
        try:
            for strength in strengths:
                here = replace(request, perturbation=family.at(strength))
                told = _part(report, family.parameter, strengths, strength, found)
                found[strength] = _measure_at(strength, family.parameter, here, evaluation, shared, told, known)
        except KeyboardInterrupt as stop:
            first = next((strength for strength in strengths if strength > 0), 0.0)
            if first not in found:
                why = f"before {family.parameter} {first:g}, the first, was measured: nothing is known yet"
                raise KeyboardInterrupt(str(stop) or why) from None
    return Sweep(family.parameter, family.spec, shared, found, strengths[len(found) :])


def _shared_level(level: float, strengths: tuple[float, ...], models: int) -> float:
    """The level of each difference of a pair, if those of all strengths are to hold together at ``level``."""
    count = sum(strength > 0 for strength in strengths)
    shared = 1 - (1 - level) / max(count, 1)
    if models > 1:
        try:
            checks.level(shared)
        except UsageError:
            raise UsageError(
                f"level={level:g} shared by {count} stds needs differences at {shared:.4%}, more than 99.9%: give "
                "fewer stds or a lower level"
            ) from None
    return shared


def _measure_at(
    strength: float,
    parameter: str,
    request: Request,
    evaluation: TrialEvaluation,
    shared: float,
    report: progress_bar.Reporter,
    known: Mapping[str, Iterable[str]] | None,
) -> Comparison:
    """All models at one strength. The evaluation remembers the answers to clean inputs from strength to strength."""
    started = time.perf_counter()
    evaluation.restart(request.perturbation)
    if strength == 0:
        request = replace(request, plan=Grid(draws=1))
        singles, pairs = _unmoved(request, evaluation, shared)
        return make_comparison(request, evaluation, singles, pairs, "complete", time.perf_counter() - started, known)
    run = make_run(request, evaluation, report, shared)
    try:
        run.go()
    except FailureError as error:
        raise FailureError(f"at {parameter} {strength:g}: {error}") from error
    if run.stopped == "interrupted":
        raise KeyboardInterrupt
    return comparison_of(run, time.perf_counter() - started, known)


def _unmoved(
    request: Request, evaluation: TrialEvaluation, shared: float
) -> tuple[list[MeanChange], dict[tuple[int, int], MeanChange]]:
    """Where nothing moves nothing changes, by definition: exactly 0 without asking a model."""
    inputs, count = evaluation.inputs, len(evaluation.functions)
    mask = np.ones((len(inputs), inputs.num_tokens), dtype=bool) if inputs.mask is None else inputs.mask
    places = inputs.profile_positions(*(part.astype(np.int64) for part in np.nonzero(mask)))
    counts = np.bincount(places, minlength=int(np.prod(inputs.positions))).astype(np.int64)
    zeros = np.where(counts > 0, 0.0, np.nan)

    def exact(level: float) -> MeanChange:
        method = "exact: nothing is moved"
        interval = Interval(0.0, 0.0, level, request.target, method)
        other = replace(interval, target=OTHER[request.target])
        profile = Profile(zeros, zeros, zeros, counts, inputs.positions, request.target, "exact", inputs.special_share)
        return MeanChange(0.0, interval, other, np.zeros(len(inputs)), profile, int(counts.sum()))

    pairs = {pair: exact(shared) for pair in itertools.combinations(range(count), 2)}
    return [exact(request.level) for _ in range(count)], pairs


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


@dataclass(frozen=True, eq=False)
class Sweep(Tabular):
    """One or several models at growing strengths of one perturbation, on the same inputs and the same noise.

    ``sweep["vit"][2.0]`` is a ``Measurement``, ``sweep.differences("vit", "mlp")[2.0]`` a paired ``Difference``.
    The interval of a measurement is at ``level`` on its own. The intervals of a pair's differences share that level
    over the strengths (Bonferroni): each is at ``shared_level`` = 1 - (1 - level) / (strengths above 0), so that all of
    one pair hold together at ``level``, and so does its sentence in ``crossings()``. Several pairs do not share.

    Arguments:
        parameter: the name of the strength: ``std``, ``radius``.
        perturbation: its kind, without the strength.
        shared_level: of the intervals of differences.
        at: the models and their differences at each strength, weakest first.
        missing: strengths that were not measured because of an interruption.
    """

    parameter: str
    perturbation: str
    shared_level: float
    at: ByStrength = field(repr=False)
    missing: tuple[float, ...] = ()

    kind: ClassVar[str] = "jostle/sweep"
    version: ClassVar[int] = 1
    tables: ClassVar[tuple[str, ...]] = ("result", "positions")

    def __getitem__(self, name: str) -> dict[float, Measurement]:
        if name not in self.names:
            raise unknown_name("model", name, self.names)
        return {strength: comparison[name] for strength, comparison in self.at.items()}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def names(self) -> list[str]:
        """The models, in the order given."""
        return self._any.names

    @property
    def strengths(self) -> list[float]:
        """The strengths that were measured, weakest first."""
        return list(self.at)

    @property
    def settings(self) -> MeasureSettings:
        """What was measured, on which inputs, and how; ``perturbation`` is that of the strongest noise."""
        return self._any[self.names[0]].settings

    @property
    def level(self) -> float:
        """Coverage of the interval of each measurement."""
        return self.settings.level

    @property
    def passes(self) -> int:
        """The largest number of inputs that any model answered; clean inputs are counted once."""
        return max(sum(measured.passes for measured in self[name].values()) for name in self.names)

    @property
    def warnings(self) -> list[str]:
        """What is suspicious about the models or the numbers, each once."""
        return list(dict.fromkeys(text for comparison in self.at.values() for text in comparison.warnings))

    @property
    def notes(self) -> list[str]:
        """What is worth knowing and nothing to worry about, each once."""
        return list(dict.fromkeys(text for comparison in self.at.values() for text in comparison.notes))

    @property
    def _any(self) -> Comparison:
        return self.at[max(self.at)]

    def differences(self, first: str | None = None, second: str | None = None) -> dict[float, Difference]:
        """Sensitivity of ``first`` minus sensitivity of ``second`` by strength, on the same inputs and noise.

        The intervals hold together for all strengths, see ``Sweep``. With two models the names can be left out.
        """
        if first is None or second is None:
            if first is not None or second is not None or len(self) != 2:
                names = ", ".join(self.names)
                raise UsageError(f"differences needs the names of two models, and the sweep has {names}")
            first, second = self.names
        return {strength: comparison.difference(first, second) for strength, comparison in self.at.items()}

    def crossings(self) -> list[str]:
        """For each pair of models a sentence: where the first is more sensitive, less, or not told apart.

        Strength 0, at which all models are equal, is left out.
        """
        pairs = [(first, second) for place, first in enumerate(self.names) for second in self.names[place + 1 :]]
        moving = [strength for strength in self.at if strength > 0]
        found = {pair: self.differences(*pair) for pair in pairs}
        return [against(*pair, {s: found[pair][s] for s in moving}, self.parameter) for pair in pairs if moving]

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def rows(self, of: str = "result") -> list[Row]:
        """Models and their differences (``against``) at each strength; or the positions of all models."""
        return made.sweep_rows(self, of)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset``: ``value``, ``low``, ``high`` over models, strengths and positions, see ``tables``."""
        return made.sweep_xarray(self)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and text for JSON; the means of every single input are left out."""
        return {
            "kind": self.kind,
            "version": self.version,
            "parameter": self.parameter,
            "perturbation": self.perturbation,
            "strengths": self.strengths,
            "missing": list(self.missing),
            "models": self.names,
            "level": self.level,
            "shared_level": self.shared_level,
            "crossings": self.crossings(),
            "comparisons": [_light(comparison.to_dict()) for comparison in self.at.values()],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Sweep":
        """The sweep that ``to_dict`` wrote."""
        comparisons = [Comparison.from_dict(part) for part in record["comparisons"]]
        return cls(
            parameter=record["parameter"],
            perturbation=record["perturbation"],
            shared_level=record["shared_level"],
            at=dict(zip(record["strengths"], comparisons, strict=True)),
            missing=tuple(record["missing"]),
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def plot(self) -> "Figure":
        """Sensitivity against strength, a line with its band for each model; see ``figures.sweep``."""
        from jostle.figures.lines import sweep_figure

        return sweep_figure(self)

    def report(self, path: str | Path, *, inputs: str = "the inputs given") -> None:
        """Write an HTML page with the numbers, figures and settings, whole or not at all.

        Arguments:
            path: of the page.
            inputs: a name of the inputs, for the page.
        """
        from jostle.report.result import write_result

        write_result(self, path, inputs=inputs)


def _light(record: dict[str, Any]) -> dict[str, Any]:
    """A comparison without the mean of every input: inputs x strengths x pairs of numbers that curves do not need."""
    return record | {
        part: [entry | {"per_input": []} for entry in record[part]] for part in ("measurements", "differences")
    }


def _lines(sweep: Sweep) -> list[str]:
    s = sweep.settings
    inputs, plan = s.lines()
    mark = next(iter(next(iter(sweep.at.values())).measurements.values())).interval.mark
    lines = [f"{s.response}, {s.level:.0%} intervals for {TARGETS[s.target]}, each on its own{mark}", *_table(sweep)]
    if len(sweep) > 1:
        lines += [f"  {sentence}" for sentence in sweep.crossings()]
        lines.append(f"  (paired differences at {sweep.shared_level:.2%}: of a pair, all together {s.level:.0%})")
    lines += [f"  {inputs.rpartition(' ')[0]} perturbation={sweep.perturbation}", f"  {plan}", f"  {_effort(sweep)}"]
    if sweep.missing:
        left_out = join_words([f"{strength:g}" for strength in sweep.missing])
        lines.append(f"  interrupted before {sweep.parameter} {left_out} was measured")
    lines += [f"  warning: {text}" for text in sweep.warnings]
    return lines + [f"  note: {text}" for text in sweep.notes]


def _table(sweep: Sweep) -> list[str]:
    rows = [[sweep.parameter, *sweep.names]]
    for strength, comparison in sweep.at.items():
        measured = [comparison[name] for name in sweep.names]
        rows.append([f"{strength:g}", *(f"{m.value:.4g} [{m.low:.4g}, {m.high:.4g}]" for m in measured)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "   ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _effort(sweep: Sweep) -> str:
    """What the numbers cost, and why sampling ended."""
    seconds = in_seconds(*(comparison[sweep.names[0]].seconds for comparison in sweep.at.values()))
    reasons: dict[str, list[str]] = {}
    for strength, comparison in sweep.at.items():
        if strength > 0:
            reasons.setdefault(comparison.stopped, []).append(f"{strength:g}")
    ends = [
        REASONS[reason] + (f" (at {sweep.parameter} {join_words(found)})" if len(reasons) > 1 else "")
        for reason, found in reasons.items()
    ]
    spent = f"{sweep.passes:,} passes{' of each model' if len(sweep) > 1 else ''}, {seconds}"
    return "; ".join([spent, *ends])


@dataclass(frozen=True)
class Family:
    """Perturbations of one kind that differ in their strength; at strength 0 nothing changes.

    >>> family_of("sphere:relative=true").at(0.5)
    Sphere(radius=0.5, relative=True)

    Arguments:
        parameter: the name of the strength: ``std``, ``radius``.
        spec: the kind, without its strength.
        at: from a strength to the perturbation.
    """

    parameter: str
    spec: str
    at: Callable[[float], Perturbation]


def read_strengths(stds: Any) -> tuple[float, ...]:
    """The strengths from weak to strong, each once."""
    values = stds.tolist() if hasattr(stds, "tolist") else stds
    if isinstance(values, str) or not isinstance(values, Sequence | set | frozenset):
        raise UsageError(f"stds={shown(stds)} must be a list of strengths, for example stds=[0.5, 1, 2, 5]")
    if not values:
        raise UsageError("stds is empty: give the strengths of the noise, for example stds=[0.5, 1, 2, 5]")
    for value in values:
        checks.number("stds", value, least=0)
    return tuple(sorted({float(value) for value in values}))


def family_of(perturbation: Any) -> Family:
    """The family that ``perturbation`` names: a spec without its strength, or a function of the strength."""
    if isinstance(perturbation, Perturbation):
        kind = perturbation.describe()
        raise UsageError(f"perturbation={kind} has its strength already, which stds are to say: give {_EXAMPLES}")
    if not isinstance(perturbation, str) and not callable(perturbation):
        raise UsageError(f"perturbation={perturbation!r} cannot be swept: give {_EXAMPLES}")
    make, parameter = _read(perturbation) if isinstance(perturbation, str) else (perturbation, _first(perturbation))
    try:
        still = make(0.0)
    except (UsageError, TypeError):
        still = None
    if not isinstance(still, Perturbation) or not still.moves_nothing:
        raise UsageError(
            f"perturbation={perturbation!r} has no strength that is 0 where nothing moves: give {_EXAMPLES}"
        )
    kind, _, rest = still.describe().partition(":")
    fixed = [part for part in rest.split(",") if part and part != f"{parameter}=0"]
    return Family(parameter, ":".join([kind, *([",".join(fixed)] if fixed else [])]), make)


def _read(spec: str) -> tuple[Callable[..., Any], str]:
    name, _, rest = spec.partition(":")
    made = PERTURBATIONS.get(name)
    positional, named = specs.arguments(rest)
    allowed = list(inspect.signature(made).parameters)
    for key in named:
        if key not in allowed:
            raise unknown_name(f"option of {name}", key, allowed)
    parameter = _first(made)
    if positional or parameter in named:
        raise UsageError(f"perturbation={spec!r} has its {parameter} already, which stds are to say: give {name!r}")
    return partial(made, **named), parameter


def _first(make: Callable[..., Any]) -> str:
    """The name of the first argument; for a function that does not tell, ``strength``."""
    try:
        return next(iter(inspect.signature(make).parameters), "strength")
    except (TypeError, ValueError):
        return "strength"


def against(first: str, second: str, differences: Mapping[float, Difference], parameter: str = "std") -> str:
    """A sentence: at which strengths ``first`` is more sensitive than ``second``, less, or not told apart.

    Strengths come from weak to strong, so that a crossing of the two models reads from left to right.

    Arguments:
        first, second: names of the models.
        differences: ``first - second`` at each strength, weakest first.
        parameter: the name of the strength.
    """
    words = [(_word(difference), strength) for strength, difference in differences.items()]
    rows = itertools.groupby(words, key=lambda pair: pair[0])
    parts = [f"{word} at {parameter} {_strengths([strength for _, strength in row])}" for word, row in rows]
    return f"{first} against {second}: {'; '.join(parts)}."


def join_words(parts: Sequence[str], joint: str = "and") -> str:
    """Words as a list within a sentence.

    >>> join_words(["MLP"]), join_words(["MLP", "CNN", "ViT"], "or")
    ('MLP', 'MLP, CNN or ViT')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joint} {parts[-1]}"


def _word(difference: Difference) -> str:
    return {1: "more sensitive", -1: "less sensitive", 0: "not told apart"}[difference.direction]


def _strengths(strengths: Sequence[float]) -> str:
    if len(strengths) <= _MOST_LISTED:
        return join_words([f"{strength:g}" for strength in strengths])
    return f"{strengths[0]:g} to {strengths[-1]:g} (all {len(strengths)} measured there)"
