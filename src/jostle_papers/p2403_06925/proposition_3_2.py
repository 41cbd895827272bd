"""Proposition 3.2: a function of small maximum sensitivity changes little under noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base.store import Record
from jostle.boolean import cube, fourier, functions, pointwise, stability
from jostle.boolean.random_networks import random_networks
from jostle.figures import scatter
from jostle.studies.catalogue import register
from jostle.studies.evidence import proportion
from jostle.studies.records import Records
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_below

Signs = NDArray[np.int8]

_ROUNDING = 1e-12
SHOWN = 0.9  # the correlation at which functions are drawn one by one
_AT_ONCE = 4096  # tables held at once

STRUCTURED = (
    "parity", "sparse-parity:k=3", "majority", "first", "and", "or", "tribes:width=3", "bent", "not-all-equal",
    "threshold:weights=6/5/5/4/3/3/2/2/1/1/1/1", "junta:k=4,seed=1", "decision-list",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Choices(Settings):
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


@register
class Proposition32(Study[Choices]):
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
        "smoke": Choices(seeds=1),
        "small": Choices(exhaustive=(1, 2, 3, 4), random=(6, 8, 10, 12), count=1000),
        "paper": Choices(exhaustive=(1, 2, 3, 4), random=(6, 8, 10, 12, 14), count=5000),
    }
    deviations = (
        "The paper proves the proposition and has no experiment; every number here is ours.",
        "Beyond the paper: Huang's inequality, on which the proof rests, and a bound by the average sensitivity, "
        "Var (1 - rho^(S / Var)) / 2, which is never weaker.",
    )

    def cells(self, settings: Choices, seeds: Sequence[int]) -> list[Cell]:
        exhaustive = [Cell.of(kind="every function", n=n) for n in settings.exhaustive]
        structured = [Cell.of(kind="structured", function=name, n=settings.structured) for name in STRUCTURED]
        random = [Cell.of(kind="random functions", n=n, seed=seed) for n in settings.random for seed in seeds]
        networks = [
            Cell.of(kind="random networks", network=name, n=10, seed=seed)
            for name in settings.networks
            for seed in seeds
        ]
        return [*exhaustive, *structured, *random, *networks]

    def measure(self, cell: Cell, settings: Choices, context: Context) -> Record:
        rhos = np.asarray(settings.rhos)
        return _joined([_tested(tables, rhos) for tables in _tables(cell.values, settings)], settings.rhos)

    def figures(self, records: Records[Choices]) -> list[Drawing]:
        most = max(max(x) for x, _ in _groups(records, "max_sensitivity").values())
        reach = np.linspace(0, most, 200)
        return [
            _drawing(records, "max_sensitivity", "maximum sensitivity S_max", "by Proposition 3.2", reach, reach**2),
            _drawing(records, "total_sensitivity", "total sensitivity S", "by S, for balanced f", reach, reach),
        ]

    def expectations(self, records: Records[Choices]) -> list[Expectation]:
        every, structured = records.where(kind="every function"), records.where(kind="structured")
        sampled = [records.where(kind=kind) for kind in ("random functions", "random networks")]
        most = max(records.settings.exhaustive)
        found = [
            _none(f"Proposition 3.2 for every function of up to {most} bits", every, "violations"),
            _none("Proposition 3.2 for the functions of the library", structured, "violations"),
            _none("degree <= S_max^2 (Huang) for all functions tested", records, "huang_violations"),
            beyond(_none("the bound by the average sensitivity for all tested", records, "average_violations")),
        ]
        for part, name in zip(sampled, ("functions", "networks"), strict=True):
            share = proportion(sum(part.column("violations")), sum(part.column("tested")))
            found.append(is_below(f"share of random {name} that violate Proposition 3.2", share, 0.002))
        return found


def _groups(records: Records[Choices], field: str) -> dict[str, tuple[list[float], list[float]]]:
    """(a sensitivity, the disagreement) of the functions kept for figures, by kind."""
    parts = {
        "functions of the library": records.where(kind="structured"),
        "random functions": records.where(kind="random functions"),
    }
    networks = records.where(kind="random networks")
    parts |= {f"random {name}": networks.where(network=name) for name in records.settings.networks}
    return {name: (_values(part, field), _values(part, "disagreement")) for name, part in parts.items()}


def _values(part: Records[Choices], field: str) -> list[float]:
    return [value for points in part.column("points") for value in points[field]]


def _drawing(
    records: Records[Choices], field: str, axis: str, line: str, reach: NDArray[np.float64], power: NDArray[np.float64]
) -> Drawing:
    """Disagreement against one of the two sensitivities, and the bound that follows from it."""
    figure = scatter(
        _groups(records, field),
        x_label=axis,
        y_label=f"Pr[f(x) != f(x')] at rho = {SHOWN:g}",
        lines={f"bound {line}": (reach, (1 - SHOWN**power) / 2)},
    )
    return Drawing(
        f"against-{field.replace('_', '-')}",
        figure,
        f"Each point is a function: how often it differs between {SHOWN:g}-correlated inputs, against its {axis}; "
        f"dashed, the bound {line}.",
        f"A scatter of disagreement against {axis}; no point lies above the dashed bound.",
    )


def _tables(values: Any, settings: Choices) -> Iterator[Signs]:
    """The functions of a cell as tables (count, 2^n), some at a time."""
    n, kind = values["n"], values["kind"]
    if kind == "every function":
        for start in range(0, 2**2**n, _AT_ONCE):
            yield cube.points(2**n, start, min(start + _AT_ONCE, 2**2**n))  # a table is a point of a larger cube
    elif kind == "structured":
        yield functions.create(values["function"], n=n).table()[None]
    elif kind == "random functions":
        draw = np.random.default_rng([values["seed"], n])
        for start in range(0, settings.count, 250):
            count = min(250, settings.count - start)
            yield (2 * draw.integers(0, 2, size=(count, 2**n), dtype=np.int8) - 1).astype(np.int8)
    else:
        ensemble = random_networks(
            values["network"], n, max(10, settings.count // 5), seed=values["seed"], threshold="median"
        )
        yield ensemble.signs


def _tested(tables: Signs, rhos: NDArray[np.float64]) -> dict[str, Any]:
    """What each of several functions does: (count,) or (count, rhos)."""
    n = cube.dimension(tables)
    largest = pointwise.sensitivities(tables).max(axis=-1).astype(np.float64)
    members = np.eye(n + 1)[cube.degrees(n)]  # (2^n, n + 1)
    weight = np.square(fourier.coefficients(tables)) @ members
    degree = n - np.argmax(weight[:, ::-1] > _ROUNDING, axis=1)
    disagreement = (1 - weight @ rhos ** np.arange(n + 1)[:, None]) / 2
    variance, total = weight[:, 1:].sum(axis=1), weight @ np.arange(n + 1)
    return {
        "max_sensitivity": largest,
        "total_sensitivity": total,
        "degree": degree,
        "disagreement": disagreement,
        "bound": stability.disagreement_bound(largest[:, None], rhos),
        "average_bound": stability.average_bound(variance[:, None], total[:, None], rhos),
    }


def _joined(parts: list[dict[str, Any]], rhos: tuple[float, ...]) -> Record:
    """Counts over all functions of a cell, and what a figure needs of a few of them."""
    whole = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    slack = whole["bound"] - whole["disagreement"]
    ratio = whole["disagreement"] / np.maximum(whole["bound"], _ROUNDING)
    few = np.linspace(0, len(slack) - 1, min(60, len(slack))).astype(int)
    return {
        "tested": len(slack),
        "violations": int((slack < -_ROUNDING).any(axis=1).sum()),
        "huang_violations": int((whole["degree"] > whole["max_sensitivity"] ** 2).sum()),
        "average_violations": int((whole["average_bound"] - whole["disagreement"] < -_ROUNDING).any(axis=1).sum()),
        "least_slack": float(slack.min()),
        "median_ratio": np.median(ratio, axis=0).tolist(),
        "max_sensitivity": float(whole["max_sensitivity"].mean()),
        "disagreement": whole["disagreement"].mean(axis=0).tolist(),
        "bound": whole["bound"].mean(axis=0).tolist(),
        "average_bound": whole["average_bound"].mean(axis=0).tolist(),
        "points": {
            "max_sensitivity": whole["max_sensitivity"][few].tolist(),
            "total_sensitivity": whole["total_sensitivity"][few].round(9).tolist(),
            "disagreement": whole["disagreement"][few, list(rhos).index(SHOWN)].round(9).tolist(),
        },
    }


def _none(statement: str, part: Records[Choices], field: str) -> Expectation:
    return holds_for_all(statement, sum(part.column(field)), sum(part.column("tested")))
