"""Proposition 3.2: a function of small maximum sensitivity changes little under noise."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jostle import figures
from jostle.boolean import cube, fourier, functions, pointwise, stability
from jostle.boolean.ensembles import random_networks
from jostle.studies.catalogue import register
from jostle.studies.evidence import proportion
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_below

Signs = NDArray[np.int8]
Floats = NDArray[np.float64]

_ROUNDING = 1e-12
SHOWN = 0.9  # the correlation at which functions are drawn one by one
_AT_ONCE = 4096  # tables held at once

STRUCTURED = (
    "parity", "sparse-parity:k=3", "majority", "first", "and", "or", "tribes:width=3", "bent", "not-all-equal",
    "threshold:weights=6/5/5/4/3/3/2/2/1/1/1/1", "junta:k=4,seed=1", "decision-list",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BoundSettings(Settings):
    """What is tested.

    Arguments:
        exhaustive: numbers of bits of which every function is tested.
        structured: number of bits of the functions of the library.
        random: numbers of bits of random functions.
        count: random functions and random networks, each.
        networks: architectures with random weights, of 10 bits.
        rhos: correlations of x and x'.
    """

    seeds: int = 3
    exhaustive: tuple[int, ...] = (1, 2, 3)
    structured: int = 12
    random: tuple[int, ...] = (6, 8)
    count: int = 50
    networks: tuple[str, ...] = ("transformer", "lstm", "mlp", "state-space", "mixer")
    rhos: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True)
class EveryCell(Cell):
    """Every function of n bits."""

    kind: Literal["every function"] = "every function"
    n: int


@dataclass(frozen=True, kw_only=True)
class StructuredCell(Cell):
    """A function of the library."""

    kind: Literal["structured"] = "structured"
    function: str
    n: int


@dataclass(frozen=True, kw_only=True)
class RandomCell(Cell):
    """Random functions."""

    kind: Literal["random functions"] = "random functions"
    n: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class RandomNetworkCell(Cell):
    """Networks with random weights."""

    kind: Literal["random networks"] = "random networks"
    network: str
    n: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class FunctionPoints(Struct):
    """Some functions of a cell one by one, for figures; disagreement at the correlation ``SHOWN``."""

    max_sensitivity: tuple[float, ...]
    total_sensitivity: tuple[float, ...]
    disagreement: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class BoundRecord(Struct):
    """What was found about the functions of a cell.

    Arguments:
        tested: how many there are.
        violations: of Proposition 3.2. ``huang_violations``, ``average_violations``: of the other two inequalities.
        least_slack: the smallest bound - disagreement.
        median_ratio: disagreement / bound at each correlation.
        max_sensitivity: mean over functions.
        disagreement, bound, average_bound: means over functions at each correlation.
        points: some functions one by one.
    """

    tested: int
    violations: int
    huang_violations: int
    average_violations: int
    least_slack: float
    median_ratio: tuple[float, ...]
    max_sensitivity: float
    disagreement: tuple[float, ...]
    bound: tuple[float, ...]
    average_bound: tuple[float, ...]
    points: FunctionPoints


BoundCell = EveryCell | StructuredCell | RandomCell | RandomNetworkCell
BoundRecords = Records[BoundSettings, BoundCell, BoundRecord]


@register
class Proposition32(Study[BoundSettings, BoundCell, BoundRecord]):
    """Pr[f(x) != f(x')] <= (1 - rho^(S_max^2)) / 2, on every small function and on many large ones."""

    name = "2403.06925/proposition-3.2"
    title = "Low maximum sensitivity means stability to noise"
    claim = (
        "For every f into {-1, 1} with maximum sensitivity S_max and rho-correlated x and x', "
        "Pr[f(x) != f(x')] <= (1 - rho^(S_max^2)) / 2."
    )
    source = "Proposition 3.2"
    version = 1
    scales = {
        "smoke": BoundSettings(seeds=1),
        "small": BoundSettings(exhaustive=(1, 2, 3, 4), random=(6, 8, 10, 12), count=1000),
        "paper": BoundSettings(exhaustive=(1, 2, 3, 4), random=(6, 8, 10, 12, 14), count=5000),
    }
    deviations = (
        "The paper proves the proposition and has no experiment; every number here is ours.",
        "Beyond the paper: Huang's inequality, on which the proof rests, and a bound by the average sensitivity, "
        "Var (1 - rho^(S / Var)) / 2, which is never weaker.",
    )

    def cells(self, settings: BoundSettings, seeds: Sequence[int]) -> list[BoundCell]:
        exhaustive = [EveryCell(n=n) for n in settings.exhaustive]
        structured = [StructuredCell(function=name, n=settings.structured) for name in STRUCTURED]
        random = [RandomCell(n=n, seed=seed) for n in settings.random for seed in seeds]
        networks = [RandomNetworkCell(network=name, n=10, seed=seed) for name in settings.networks for seed in seeds]
        return [*exhaustive, *structured, *random, *networks]

    def measure(self, cell: BoundCell, settings: BoundSettings, context: Context) -> BoundRecord:
        rhos = np.asarray(settings.rhos)
        return _sum_up([_test(tables, rhos) for tables in _tables(cell, settings)], settings.rhos)

    def figures(self, records: BoundRecords) -> list[Drawing]:
        largest, total = (lambda points: points.max_sensitivity), (lambda points: points.total_sensitivity)
        most = max(max(x) for x, _ in _groups(records, largest).values())
        reach = np.linspace(0, most, 200)
        return [
            _drawing(
                "against-max-sensitivity",
                _groups(records, largest),
                "maximum sensitivity S_max",
                "by Proposition 3.2",
                (reach, (1 - SHOWN ** (reach**2)) / 2),
            ),
            _drawing(
                "against-total-sensitivity",
                _groups(records, total),
                "total sensitivity S",
                "by S, for balanced f",
                (reach, (1 - SHOWN**reach) / 2),
            ),
        ]

    def expectations(self, records: BoundRecords) -> list[Expectation]:
        every, structured = records.where(kind="every function"), records.where(kind="structured")
        sampled = [records.where(kind=kind) for kind in ("random functions", "random networks")]
        most = max(records.settings.exhaustive)
        found = [
            _none(f"Proposition 3.2 for every function of up to {most} bits", every, lambda one: one.violations),
            _none("Proposition 3.2 for the functions of the library", structured, lambda one: one.violations),
            _none("degree <= S_max^2 (Huang) for all functions tested", records, lambda one: one.huang_violations),
            beyond(
                _none(
                    "the bound by the average sensitivity for all tested", records, lambda one: one.average_violations
                )
            ),
        ]
        for part, name in zip(sampled, ("functions", "networks"), strict=True):
            share = proportion(sum(record.violations for _, record in part), sum(record.tested for _, record in part))
            found.append(is_below(f"share of random {name} that violate Proposition 3.2", share, 0.002))
        return found


Read = Callable[[FunctionPoints], tuple[float, ...]]
Points = tuple[list[float], list[float]]


def _groups(records: BoundRecords, sensitivity: Read) -> dict[str, Points]:
    """(a sensitivity, the disagreement) of the recorded functions, by kind."""
    parts = {
        "functions of the library": records.where(kind="structured"),
        "random functions": records.where(kind="random functions"),
    }
    networks = records.where(kind="random networks")
    parts |= {f"random {name}": networks.where(network=name) for name in records.settings.networks}
    return {
        name: (_values(part, sensitivity), _values(part, lambda points: points.disagreement))
        for name, part in parts.items()
    }


def _values(part: BoundRecords, read: Read) -> list[float]:
    return [value for _, record in part for value in read(record.points)]


def _drawing(stem: str, groups: dict[str, Points], axis: str, line: str, bound: tuple[Floats, Floats]) -> Drawing:
    """Disagreement against one of the two sensitivities, and the bound that follows from it."""
    figure = figures.scatter(
        groups,
        x_label=axis,
        y_label=f"Pr[f(x) != f(x')] at rho = {SHOWN:g}",
        lines={f"bound {line}": bound},
    )
    return Drawing(
        stem,
        figure,
        f"Each point is a function: how often it differs between {SHOWN:g}-correlated inputs, against its {axis}; "
        f"dashed, the bound {line}.",
        f"A scatter of disagreement against {axis}; no point lies above the dashed bound.",
    )


def _tables(cell: BoundCell, settings: BoundSettings) -> Iterator[Signs]:
    """The functions of a cell as tables (count, 2^n), some at a time."""
    n = cell.n
    if isinstance(cell, EveryCell):
        for start in range(0, 2**2**n, _AT_ONCE):
            yield cube.points(2**n, start, min(start + _AT_ONCE, 2**2**n))  # a table is a point of a larger cube
    elif isinstance(cell, StructuredCell):
        yield functions.create(cell.function, n=n).table()[None]
    elif isinstance(cell, RandomCell):
        draw = np.random.default_rng([cell.seed, n])
        for start in range(0, settings.count, 250):
            count = min(250, settings.count - start)
            yield (2 * draw.integers(0, 2, size=(count, 2**n), dtype=np.int8) - 1).astype(np.int8)
    else:
        ensemble = random_networks(cell.network, n, max(10, settings.count // 5), seed=cell.seed, threshold="median")
        yield ensemble.signs


@dataclass(frozen=True)
class _Tested:
    """Sensitivity, degree, disagreement and bounds of several functions.

    Arguments:
        max_sensitivity, total_sensitivity, degree: (count,).
        disagreement, bound, average_bound: (count, rhos).
    """

    max_sensitivity: Floats
    total_sensitivity: Floats
    degree: NDArray[np.int64]
    disagreement: Floats
    bound: Floats
    average_bound: Floats


def _test(tables: Signs, rhos: Floats) -> _Tested:
    n = cube.dimension(tables)
    largest = pointwise.sensitivities(tables).max(axis=-1).astype(np.float64)
    members = np.eye(n + 1)[cube.degrees(n)]  # (2^n, n + 1)
    weight = np.square(fourier.coefficients(tables)) @ members
    degree = n - np.argmax(weight[:, ::-1] > _ROUNDING, axis=1)
    disagreement = (1 - weight @ rhos ** np.arange(n + 1)[:, None]) / 2
    variance, total = weight[:, 1:].sum(axis=1), weight @ np.arange(n + 1)
    return _Tested(
        max_sensitivity=largest,
        total_sensitivity=total,
        degree=degree,
        disagreement=disagreement,
        bound=stability.disagreement_bound(largest[:, None], rhos),
        average_bound=stability.average_bound(variance[:, None], total[:, None], rhos),
    )


def _sum_up(parts: Sequence[_Tested], rhos: tuple[float, ...]) -> BoundRecord:
    """Counts over all functions of a cell, and a few functions for the figures."""
    whole = _Tested(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})
    slack = whole.bound - whole.disagreement
    ratio = whole.disagreement / np.maximum(whole.bound, _ROUNDING)
    few = np.linspace(0, len(slack) - 1, min(60, len(slack))).astype(int)
    points = FunctionPoints(
        max_sensitivity=tuple(whole.max_sensitivity[few].tolist()),
        total_sensitivity=tuple(whole.total_sensitivity[few].round(9).tolist()),
        disagreement=tuple(whole.disagreement[few, list(rhos).index(SHOWN)].round(9).tolist()),
    )
    return BoundRecord(
        tested=len(slack),
        violations=int((slack < -_ROUNDING).any(axis=1).sum()),
        huang_violations=int((whole.degree > whole.max_sensitivity**2).sum()),
        average_violations=int((whole.average_bound - whole.disagreement < -_ROUNDING).any(axis=1).sum()),
        least_slack=float(slack.min()),
        median_ratio=tuple(np.median(ratio, axis=0).tolist()),
        max_sensitivity=float(whole.max_sensitivity.mean()),
        disagreement=tuple(whole.disagreement.mean(axis=0).tolist()),
        bound=tuple(whole.bound.mean(axis=0).tolist()),
        average_bound=tuple(whole.average_bound.mean(axis=0).tolist()),
        points=points,
    )


def _none(statement: str, part: BoundRecords, count: Callable[[BoundRecord], int]) -> Expectation:
    """That no function violates an inequality."""
    return holds_for_all(statement, sum(part.column(count)), sum(part.column(lambda record: record.tested)))
