"""``stability``: how much of a model's answer is left when all tokens are replaced by rho-correlated ones.

First the call, then ``run_stability`` behind it, the noise that is chosen for the inputs, and the ``Stability`` that it
returns. It is a sweep over 1 - rho in which all tokens move: what is lost is measured, and stability is what is left.
"""

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import UsageError
from jostle.base.estimate import OTHER, TARGETS, Estimate, Interval, Target, in_seconds, provenance
from jostle.base.files import write_text
from jostle.base.table import Row, Tabular
from jostle.estimates.clean import clean_outputs
from jostle.estimates.measure import Interrupted, JostleWarning
from jostle.estimates.request import Model, Request
from jostle.estimates.result import REASONS, Floats, Measurement, MeasureSettings
from jostle.estimates.sweep import Family, Sweep, run_sweep
from jostle.estimates.tables import stability_rows
from jostle.intervals import fixed
from jostle.perturbations import Correlated
from jostle.responses import Response
from jostle.sampling import DefaultPlan, Grid, Plan, Until
from jostle.sampling.plans import Batching
from jostle.tokens import Columns, Embeddings, Inputs, TextView, TokenFunction, TokenView, Whole
from jostle.tokens.sites import word_embedding
from jostle.tokens.text import padding_id

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Of = Literal["agreement", "correlation"]
OF: dict[str, str] = {
    "agreement": "the probability of the same prediction",
    "correlation": "E[f(x) f(y)] / E[f(x)^2]",
}
BITS = (-1.0, 1.0)
STILL = Correlated(1.0)  # fits all inputs, until their noise is chosen
_READ_FOR_SCALE = 256  # inputs whose numbers say how large the noise is
_DRAWS = 10  # of each input where a grid is needed


def stability(
    model: Model,
    inputs: Any,
    *,
    tokens: TokenView | str = "whole",
    rho: float | Sequence[float] = 0.9,
    response: str = "agreement",
    centred: bool = False,
    vocabulary: Any = None,
    centre: float | None = None,
    std: float | None = None,
    plan: Plan | DefaultPlan | str | None = None,
    target: str = "dataset",
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> "Stability":
    """Noise stability (arXiv 2602.08287): all tokens of x become rho-correlated ones, y; how much of f(x) is in f(y)?

        agreement:    P(prediction of y = prediction of x)            1 at rho = 1
        correlation:  E[f(x) . f(y)] / E[f(x) . f(x)]                 1 at rho = 1

    over the inputs x and the noise. ``Correlated`` says what y is: an Ornstein-Uhlenbeck step for real numbers, a
    uniform replacement of each token with probability 1 - rho for ids and bits. For a function of uniform bits with
    values -1 and 1, correlation is the stability of Boolean analysis, sum over k of rho^k W_k, which
    ``jostle.boolean`` computes exactly, and agreement is (1 + correlation) / 2. Several rho are measured in one call,
    with the same inputs and the same noise, and share the clean passes.

    >>> import torch, jostle
    >>> bits = torch.randint(2, (500, 9), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    >>> s = jostle.stability(lambda x: x.prod(dim=1), bits, rho=[0.5, 0.9, 1.0], response="correlation")
    >>> [round(s.at(rho).value, 1) for rho in s.rhos]  # parity of 9 bits: rho^9
    [0.0, 0.4, 1.0]

    Arguments:
        model: an ``nn.Module`` (put in eval mode and put back) or any callable from a batch to outputs.
        inputs: a tensor (N, ...), a mapping of tensors with an attention mask, a ``Dataset`` or a ``DataLoader``.
        tokens: for texts ``Embeddings()`` (noise in the vectors) or ``Words()`` (ids are replaced); their padding
            stays. All numbers of other inputs move, whatever a token is.
        rho: the correlation, or several for the curve.
        response: ``"agreement"`` of predictions, or ``"correlation"`` of real outputs.
        centred: whether correlation is that of f - mean f over these inputs: without the part that never changes.
        vocabulary: what replaces ids: a number V for ids 0 .. V - 1, or the ids; by default the words of the model. For
            inputs that are all -1 or 1 it is these two, by default.
        centre, std: of real-valued tokens, see ``Correlated``; by default mean and standard deviation of the inputs'
            numbers (for embeddings, of the embedded tokens), to three digits.
        plan: as in ``measure``, for each rho. By default ``Until(half_width=0.01)``; for correlation half widths are
            those of the correlation, and a population needs a ``Grid``, by default of 10 draws.
        target, level, seed, batch_size, device, progress, name: as in ``measure``.

    Raises:
        UsageError: an argument or an input cannot be used; the message is one line.
        Interrupted: on Ctrl-C after the first rho; ``.result`` is a ``Stability`` of the finished ones.
    """
    checks.text("name", name)
    request = Request.build(
        tokens=tokens,
        perturbation=STILL,
        plan=plan,
        target=target,
        level=level,
        seed=seed,
        batch_size=batch_size,
        device=device,
    )
    noise = {"vocabulary": vocabulary, "centre": centre, "std": std}
    result = run_stability(
        request, model, inputs, rho, as_response(response), centred=centred, noise=noise, progress=progress, name=name
    )
    for text in result.warnings:
        warnings.warn(text, JostleWarning, stacklevel=2)
    if result.missing:
        raise Interrupted(result)
    return result


def run_stability(
    request: Request,
    model: Model,
    inputs: Any,
    rho: float | Sequence[float],
    response: Of,
    *,
    centred: bool = False,
    noise: Mapping[str, Any] | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
    known: Iterable[str] = (),
) -> "Stability":
    """What ``stability`` returns, without Python warnings; ``missing`` names the rho that Ctrl-C left unmeasured.

    Arguments:
        request: what is asked; its perturbation and its response are chosen here.
        model, inputs, rho, response, centred, progress, name: as for ``stability``.
        noise: ``vocabulary``, ``centre`` and ``std`` of the noise; None for those of the inputs.
        known: warnings about the model that are known before it is asked.
    """
    rhos = read_rhos(rho)
    request = replace(request, tokens=move_all(request.tokens), perturbation=STILL)
    held = request.read_inputs(inputs, [model])
    function = TokenFunction(model, held, name, request.device)
    made, notes = choose_noise(function, batching=Batching(held, request.batch_size), **(noise or {}))
    by_strength = {1 - each: each for each in rhos}
    strengths = tuple(sorted(by_strength))
    family = Family("1 - rho", made.describe(), lambda strength: replace(made, rho=by_strength[strength]))
    request = replace(request, perturbation=family.at(strengths[-1]))
    if held.padding is None:
        request.perturbation.check(held.sample_token())
    size = OutputSize.none()
    if response == "correlation":
        request = replace(request, plan=_plan_of_ratio(request))
        size = measure_size(function, Batching(held, request.batch_size), centred=centred)
    plan = request.plan_for(held)
    if response == "correlation":
        request = replace(request, response=LostCorrelation(size.mean), plan=_scaled(plan, size.mean_square))
    sweep = run_sweep(request, family, strengths, {name: model}, held, progress, {name: known})
    return _stability(sweep, by_strength, response, plan, size, function.passes, notes)


def move_all(view: TokenView) -> TokenView:
    """The view that moves all tokens of an input at once."""
    if isinstance(view, TextView | Columns):
        return replace(view, whole=True)
    if not isinstance(view, Whole):
        raise UsageError(
            f"tokens={view.describe()} of stability: all tokens move at once; use whole or, for texts, embeddings or "
            "words"
        )
    return view


def read_rhos(rho: Any) -> tuple[float, ...]:
    """Correlations in increasing order, each once."""
    values = rho.tolist() if hasattr(rho, "tolist") else rho
    listed = (
        list(values) if isinstance(values, Sequence | set | frozenset) and not isinstance(values, str) else [values]
    )
    if not listed:
        raise UsageError("rho is empty: give correlations from 0 to 1, for example rho=[0.5, 0.9]")
    return tuple(sorted({checks.number("rho", each, least=-1, most=1) for each in listed}))


def as_response(response: str) -> Of:
    """``response`` if it is ``agreement`` or ``correlation``."""
    if not isinstance(response, str) or response not in OF:
        raise checks.wrong("response", response, " or ".join(f"{name} ({text})" for name, text in OF.items()))
    return response  # type: ignore[return-value]


def choose_noise(
    function: TokenFunction,
    *,
    batching: Batching,
    vocabulary: Any = None,
    centre: float | None = None,
    std: float | None = None,
) -> tuple[Correlated, list[str]]:
    """The kind of noise for these inputs, at rho = 0, and what people should know about it."""
    held = function.inputs
    is_text = held.padding is not None
    if vocabulary is not None:
        if is_text and isinstance(held.view, Embeddings):
            raise UsageError("vocabulary= is for token ids, and embeddings are vectors: leave it out, or use words")
        return Correlated(0.0, vocabulary), []
    if not (is_text and isinstance(held.view, Embeddings)):
        numbers = _numbers(held)
        if numbers.dtype == torch.uint8:
            Correlated(0.0).check(numbers)  # raises: images from 0 to 255 are to be scaled first
        if not numbers.is_floating_point():
            return _any_word(function)
        if centre is None and std is None and bool((numbers.abs() == 1).all()):
            return Correlated(0.0, BITS), ["all numbers are -1 or 1: each is drawn anew with probability 1 - rho"]
    else:
        numbers = _embedded(function, batching) if centre is None or std is None else torch.zeros(1)
    notes = []
    if held.units is not None and centre is None and std is None:
        return Correlated(0.0), ["centre and std of the noise are those of each column"]
    if centre is None or std is None:
        found = (
            float(f"{float(numbers.double().mean()):.3g}"),
            float(f"{float(numbers.double().std(correction=0)):.3g}"),
        )
        what = "embedded tokens" if is_text else "the inputs' numbers"
        notes.append(f"centre {found[0]:g} and std {found[1]:g} of the noise are those of {what}")
        centre, std = found[0] if centre is None else centre, found[1] if std is None else std
    return Correlated(0.0, centre=centre, std=std), notes


def _numbers(held: Inputs) -> Tensor:
    """The numbers of the first inputs, (some, ...)."""
    return held.batch(np.arange(min(_READ_FOR_SCALE, len(held))))[held.key]


def _any_word(function: TokenFunction) -> tuple[Correlated, list[str]]:
    table = word_embedding(function.model) if isinstance(function.model, nn.Module) else None
    if not isinstance(table, nn.Embedding):
        raise UsageError(
            "inputs are whole numbers: give vocabulary=, the tokens that can replace one, for example vocabulary=1000 "
            "for ids 0 to 999"
        )
    pad = {padding_id([function.model]), function.inputs.pad}
    ids = [number for number in range(table.num_embeddings) if number not in pad]
    return Correlated(0.0, ids), [f"a token becomes any of the {len(ids):,} words of the model, all equally likely"]


def _embedded(function: TokenFunction, batching: Batching) -> Tensor:
    """The embedded tokens of the first texts, (tokens, dim), without padding."""
    held, found = function.inputs, list[Tensor]()
    first = np.arange(min(_READ_FOR_SCALE, len(held)))
    with function.evaluating():
        for index in first[batching.order(first)].reshape(-1, 1):  # one by one: no padding among them
            batch, _ = batching.batch(index)
            real = held.real(batch)

            def look(embedded: Tensor, real: Tensor = real) -> Tensor:
                found.append(embedded[real.to(embedded.device)].detach().cpu())
                return embedded

            function(batch, look)
    return torch.cat(found)


@dataclass(frozen=True, eq=False)
class OutputSize:
    """How large a model's outputs are, without which a correlation has no scale.

    Arguments:
        mean: (outputs,) subtracted from outputs: their mean over the inputs, or 0.
        squares: (N,) |f(x) - mean|^2 of each input; empty where predictions are compared.
    """

    mean: Tensor
    squares: Floats

    @classmethod
    def none(cls) -> "OutputSize":
        """For predictions, which have no size."""
        return cls(torch.zeros(()), np.empty(0))

    @property
    def mean_square(self) -> float:
        """E|f(x) - mean|^2 over the inputs; 1 for predictions."""
        return float(self.squares.mean()) if len(self.squares) else 1.0


def measure_size(function: TokenFunction, batching: Batching, *, centred: bool) -> OutputSize:
    """Ask the model about all inputs as they are."""
    outputs = clean_outputs(function, batching).reshape(len(function.inputs), -1)
    if not bool(outputs.isfinite().all()):
        raise UsageError(f"{function.name} has outputs that are NaN or infinite: their correlation is undefined")
    mean = outputs.mean(dim=0) if checks.truth("centred", centred) else torch.zeros(outputs.shape[1])
    squares = (outputs - mean).square().sum(dim=1)
    if float(squares.sum()) == 0:
        what = "the same for all inputs" if centred else "0 for all inputs"
        raise UsageError(f"outputs of {function.name} are {what}: their correlation is undefined")
    return OutputSize(mean.double(), squares.numpy())


@dataclass(frozen=True, eq=False)
class LostCorrelation(Response):
    """|g(x)|^2 - g(x) . g(y) with g = f - mean: 0 if nothing changes; its mean over E|g|^2 is 1 - correlation.

    Arguments:
        mean: (outputs,), or 0.
    """

    mean: Tensor
    name: ClassVar[str] = "correlation"

    def reference(self, outputs: Tensor) -> Tensor:
        return outputs.reshape(len(outputs), -1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        before = reference.double()
        return ((before - self.mean) * (before - self.reference(outputs).double())).sum(dim=1)


def _plan_of_ratio(request: Request) -> Plan | DefaultPlan:
    """The plan for a ratio of means, in units of the correlation."""
    plan = request.plan
    if isinstance(plan, DefaultPlan):
        is_population = request.target == "population"
        return Grid(_DRAWS) if is_population else Until(half_width=plan.half_width, max_passes=plan.max_passes)
    if isinstance(plan, Until) and request.target == "population":
        raise UsageError("response='correlation' and target='population' need plan=Grid(...): it is a ratio of means")
    return plan


def _scaled(plan: Plan, mean_square: float) -> Plan:
    """The plan in units of the lost product, whose mean over ``mean_square`` is the lost correlation."""
    if isinstance(plan, Until) and plan.half_width is not None:
        return replace(plan, half_width=plan.half_width * mean_square)
    return plan


@dataclass(frozen=True, eq=False, kw_only=True)
class StabilityPoint(Estimate):
    """Noise stability at one rho.

    Arguments:
        value, interval: the estimate, and its interval for the target that was asked for.
        rho: the correlation.
        other: the interval for the other target; ``is_known`` is false where there is none.
        trials: pairs of x and y behind it.
        stopped: why sampling ended.
        per_input: (N,) the stability of each input, NaN where it was not visited; empty if read from a file.
    """

    rho: float
    other: Interval
    trials: int
    stopped: str
    per_input: Floats = field(repr=False, default_factory=lambda: np.empty(0))

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON; without the single inputs."""
        ends: dict[str, Any] = {each.target: each.to_dict() for each in (self.interval, self.other)}
        return {"rho": self.rho, "value": self.value, "trials": self.trials, "stopped": self.stopped, **ends}

    @classmethod
    def from_dict(cls, record: dict[str, Any], target: Target) -> "StabilityPoint":
        """The point that ``to_dict`` wrote."""
        ends = [Interval.from_dict(each, record[each]) for each in (target, OTHER[target])]
        same = {key: record[key] for key in ("rho", "value", "trials", "stopped")}
        return cls(interval=ends[0], other=ends[1], **same)


@dataclass(frozen=True, eq=False, kw_only=True)
class Stability(Tabular):
    """Noise stability of one model over rho. ``value``, ``low`` and ``high`` are those of the only rho, if it is one.

    Arguments:
        name: of the model.
        response: ``agreement`` or ``correlation``.
        points: in order of rho; each interval is at the stated level on its own.
        settings: what was measured, on which inputs; ``perturbation`` is the noise at rho = 0.
        passes: inputs that the model answered.
        seconds: wall-clock time.
        warnings, notes, provenance: as for a ``Measurement``.
        missing: rho that were not measured because of an interruption.
    """

    name: str
    response: Of
    points: tuple[StabilityPoint, ...] = field(repr=False)
    settings: MeasureSettings
    passes: int
    seconds: float
    warnings: list[str]
    notes: list[str]
    provenance: dict[str, str] = field(repr=False)
    missing: tuple[float, ...] = ()

    kind: ClassVar[str] = "jostle/stability"
    version: ClassVar[int] = 1

    @property
    def rhos(self) -> list[float]:
        """The correlations that were measured, in increasing order."""
        return [point.rho for point in self.points]

    def at(self, rho: float) -> StabilityPoint:
        """Stability at one rho."""
        for point in self.points:
            if math.isclose(point.rho, rho, abs_tol=1e-12):
                return point
        raise UsageError(f"rho={rho!r} was not measured; there are {', '.join(f'{each:g}' for each in self.rhos)}")

    @property
    def _only(self) -> StabilityPoint:
        if len(self.points) != 1:
            raise UsageError(f"there are {len(self.points)} rho: use at(rho).value, .low and .high")
        return self.points[0]

    @property
    def value(self) -> float:
        """The stability at the only rho."""
        return self._only.value

    @property
    def low(self) -> float:
        """The lower end of its interval."""
        return self._only.low

    @property
    def high(self) -> float:
        """The upper end of its interval."""
        return self._only.high

    def __str__(self) -> str:
        s = self.settings
        lines = [
            f"{self.name}: noise stability, {OF[self.response]}; {s.level:.0%} intervals for {TARGETS[s.target]}"
            + self.points[0].interval.mark,
            *(
                f"  rho {point.rho:<6g} {point.value:.4g}   [{point.low:.4g}, {point.high:.4g}]"
                for point in self.points
            ),
        ]
        spent = (
            f"{sum(point.trials for point in self.points):,} trials, {self.passes:,} passes, {in_seconds(self.seconds)}"
        )
        reasons = dict.fromkeys(REASONS[point.stopped] for point in self.points if point.rho < 1)
        lines += [f"  {line}" for line in (*s.lines(), "; ".join([spent, *reasons]))]
        if self.missing:
            lines.append(f"  interrupted before rho {', '.join(f'{rho:g}' for rho in self.missing)} was measured")
        lines += [f"  warning: {text}" for text in self.warnings]
        return "\n".join(lines + [f"  note: {text}" for text in self.notes])

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """A row for each rho."""
        return stability_rows(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single inputs, as plain numbers and text for JSON."""
        same = ("name", "response", "passes", "warnings", "notes", "provenance")
        return {
            "kind": self.kind,
            "version": self.version,
            **{key: getattr(self, key) for key in same},
            "points": [point.to_dict() for point in self.points],
            "settings": asdict(self.settings),
            "seconds": round(self.seconds, 3),
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Stability":
        """What ``to_dict`` wrote."""
        same = ("name", "response", "passes", "warnings", "notes", "provenance", "seconds")
        settings = MeasureSettings(**record["settings"])
        return cls(
            points=tuple(StabilityPoint.from_dict(part, settings.target) for part in record["points"]),
            settings=settings,
            missing=tuple(record["missing"]),
            **{key: record[key] for key in same},
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def plot(self) -> "Figure":
        """The curve over rho with its band; see ``figures.stability_figure``."""
        from jostle.figures.lines import stability_figure

        return stability_figure(self)


def _stability(
    sweep: Sweep,
    by_strength: Mapping[float, float],
    response: Of,
    plan: Plan,
    size: OutputSize,
    passes: int,
    notes: list[str],
) -> Stability:
    """What is left, from what a sweep found to be lost."""
    (name,) = sweep.names
    measured = {by_strength[strength]: found for strength, found in sweep[name].items()}
    points = [_point(rho, found, size) for rho, found in sorted(measured.items())]
    settings = replace(sweep.settings, response=response, perturbation=sweep.perturbation, plan=plan.describe())
    return Stability(
        name=name,
        response=response,
        points=tuple(points),
        settings=settings,
        passes=passes + sweep.passes,
        seconds=sum(found.seconds for found in measured.values()),
        warnings=list(sweep.warnings),
        notes=[*notes, *sweep.notes],
        provenance=provenance(),
        missing=tuple(sorted(by_strength[strength] for strength in sweep.missing)),
    )


def _point(rho: float, found: Measurement, size: OutputSize) -> StabilityPoint:
    unit = size.mean_square
    dataset, population = (_left(each, unit) for each in (found.dataset, found.population))
    per_input = 1 - found.per_input
    if len(size.squares):
        population = _ratio(found, size)
        with np.errstate(invalid="ignore", divide="ignore"):
            per_input = 1 - found.per_input / size.squares
    ends = (dataset, population) if found.target == "dataset" else (population, dataset)
    return StabilityPoint(
        value=1 - found.value / unit,
        interval=ends[0],
        rho=rho,
        other=ends[1],
        trials=found.trials,
        stopped=found.stopped,
        per_input=per_input,
    )


def _left(lost: Interval, unit: float) -> Interval:
    return replace(lost, low=1 - lost.high / unit, high=1 - lost.low / unit)


def _ratio(found: Measurement, size: OutputSize) -> Interval:
    """The interval for 1 - E[lost product] / E|g|^2 over a population of inputs, by linearisation: asymptotic.

    Both means are over the inputs, so that an input whose outputs are large counts for more. Known for a grid, in which
    all inputs are visited equally often.
    """
    level = found.settings.level
    is_exact = found.settings.plan.startswith("grid") and bool(np.isfinite(found.per_input).all())
    if not is_exact:
        return Interval(-math.inf, math.inf, level, "population", "unknown: needs plan=Grid(...)", is_known=False)
    value, unit = found.value / size.mean_square, size.mean_square
    residuals = (found.per_input - value * size.squares) / unit
    variance = residuals.var(ddof=1) if len(residuals) > 1 else 0.0
    low, high = fixed.student(1 - value, variance, len(residuals), level)
    caveat = fixed.asymptotic(len(residuals), fixed.largest_share(residuals))
    return Interval(float(low), float(high), level, "population", "ratio over inputs, Student's t", caveat=caveat)
