"""Figure 4: what networks make of strings that they were not trained on, for random functions."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle import figures
from jostle.base.progress import part_of
from jostle.boolean import functions, pointwise
from jostle.studies.catalogue import register
from jostle.studies.evidence import bounded, over_seeds, rank_correlation
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, is_less
from jostle_papers.p2402_09963 import bounds, hardness
from jostle_papers.p2402_09963.bounds import CorollaryCase
from jostle_papers.p2402_09963.hardness import CONVERGED, HardnessDesign, HardnessTask, Observation, Trained
from jostle_papers.p2402_09963.hardness.observation import Floats, answers
from jostle_papers.p2402_09963.runs import plan_of
from jostle_papers.trained import mean_and_range

KINDS = {"learned": "learned by a network", "completed": "completed by coins"}

Tables = Mapping[str, list[np.ndarray[Any, Any]]]  # by kind, one for each network


@dataclass(frozen=True, kw_only=True)
class PartSettings(Settings):
    """What is trained.

    Arguments:
        seeds: random functions.
        n: bits.
        sizes: strings that are trained on.
        networks: of each function and size.
        refits: networks trained on all strings of what each of these has learnt.
        dim, batch_size, lr, steps: of training, as in ``HardnessPlan``.
        fit_loss, settle: when it ends, for the chosen strings and for all.
        refit_batch: strings of a step if all strings are trained on.
        directions: on which sharpness is measured.
    """

    seeds: int = 4
    n: int = 8
    sizes: tuple[int, ...] = (32, 64, 128)
    networks: int = 2
    refits: int = 1
    dim: int = 64
    batch_size: int = 128
    refit_batch: int = 256
    lr: float = 1e-3
    steps: int = 6000
    fit_loss: float = 1e-3
    settle: int = 100
    directions: int = 100


@dataclass(frozen=True)
class PartCell(Cell):
    """Networks trained on so many strings of a random function."""

    size: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class PartRecord(Struct):
    """Sensitivities of a random function and of what networks make of it.

    Arguments:
        true: the average sensitivity of the function.
        fits: whether each network has its own strings right.
        steps: of training.
        learned, completed: the average sensitivity of what each network learned, and of a completion by coins.
        refits: by kind, networks trained on all strings of these functions, in their order; their
            ``total_sensitivity`` is that of the function.
    """

    true: float
    fits: tuple[bool, ...]
    steps: int
    learned: tuple[float, ...]
    completed: tuple[float, ...]
    refits: dict[str, tuple[Observation, ...]]

    def sensitivities(self, kind: str) -> tuple[float, ...]:
        """``learned`` or ``completed``."""
        return {"learned": self.learned, "completed": self.completed}[kind]

    def counting_refits(self, kind: str) -> list[Observation]:
        """The refits that count: converged, of a function that was learnt from strings that all fit."""
        refits = self.refits[kind]
        each = len(refits) // len(self.fits)
        return [refit for place, refit in enumerate(refits) if refit.has_converged and self.fits[place // each]]


PartRecords = Records[PartSettings, PartCell, PartRecord]


@register
class Figure4(Study[PartSettings, PartCell, PartRecord]):
    """Average sensitivity of learnt functions, and the sharpness of networks that are trained on all of them."""

    name = "2402.09963/figure-4"
    title = "Generalisation from a part of a random function"
    claim = (
        "Trained on a part of the strings of a random function, networks learn a function that is less sensitive than "
        "it, the more so the fewer strings there are; and networks that compute the learnt function are less sharp "
        "than ones that compute a random completion."
    )
    source = "Figure 4"
    version = 2
    scales = {
        "smoke": PartSettings(
            seeds=1, n=4, sizes=(4, 8), networks=1, dim=8, batch_size=32, refit_batch=32, lr=3e-3, steps=60, settle=5,
            directions=4,
        ),
        "small": PartSettings(),
        "paper": PartSettings(
            seeds=10, n=10, sizes=(128, 256, 512), networks=10, refits=5, dim=128, batch_size=1024, refit_batch=1024,
            lr=3e-4, steps=10_000, fit_loss=0.0,
        ),
    }  # fmt: skip
    deviations = (
        "8 bits, dim 64, batches of 128, lr 1e-3 and 32, 64 or 128 of 256 strings at small scale, until the smoothed "
        "loss is below 1e-3; the paper has 10 bits, dim 128 and 128 to 512 of 1,024 strings for 10,000 steps.",
        "A network whose answers on the strings that it was trained on are not all right is recorded and left out, and "
        f"so is a refit with a mean squared error of {CONVERGED:g} or more, as in the paper.",
        "Every size has random completions; the paper has them for 256 strings only.",
        "Batches drawn with replacement from few strings are evaluated once for each string, with its share.",
    )

    def cells(self, settings: PartSettings, seeds: Sequence[int]) -> list[PartCell]:
        return [PartCell(size, seed) for seed in seeds for size in sorted(settings.sizes, reverse=True)]

    def measure(self, cell: PartCell, settings: PartSettings, context: Context) -> PartRecord:
        seed = cell.seed
        table, tasks, trained = learn_part(cell, settings, context, 0.3)
        learnt = [answers(network, settings.n) for network in trained.networks]
        tables = {
            "learned": [(signs.astype(np.float64) + 1) / 2 for signs in learnt],
            "completed": [hardness.complete_table(task, 100 * seed + place) for place, task in enumerate(tasks)],
        }
        return PartRecord(
            true=total_sensitivity(table),
            fits=tuple(
                bool((found[task.rows] == table[task.rows]).all())
                for found, task in zip(tables["learned"], tasks, strict=True)
            ),
            steps=trained.steps,
            learned=tuple(map(total_sensitivity, tables["learned"])),
            completed=tuple(map(total_sensitivity, tables["completed"])),
            refits=_refit(tables, 100 * seed, settings, context),
        )

    def figures(self, records: PartRecords) -> list[Drawing]:
        sizes = [float(size) for size in sorted(records.settings.sizes)]
        found = {"the random function itself": [_true_sensitivities(records, int(size)) for size in sizes]}
        found |= {name: [_means(records, int(size), kind) for size in sizes] for kind, name in KINDS.items()}
        series = [
            mean_and_range(name, sizes, [list(values.values()) or [float("nan")] for values in columns])
            for name, columns in found.items()
        ]
        drawings = [
            Drawing(
                "sensitivity",
                figures.curves(series, x_label="strings trained on", y_label="average sensitivity", log_x=True),
                f"Average sensitivity of what networks make of a random function of {records.settings.n} bits, the "
                f"mean and the range over functions. {_say_left_out(records)}",
                "Curves of average sensitivity over the number of strings.",
            )
        ]
        groups = {KINDS[kind]: _points(records, kind) for kind in KINDS if _points(records, kind)[0]}
        if groups:
            drawings.append(
                Drawing(
                    "refits",
                    figures.scatter(groups, x_label="average sensitivity", y_label="average direction sharpness"),
                    "Networks trained on all strings of a function: its sensitivity and their sharpness. "
                    f"{_say_left_out(records)}",
                    "Points in a plane, of learnt functions and of random completions.",
                )
            )
        return drawings

    def expectations(self, records: PartRecords) -> list[Expectation]:
        sizes = sorted(records.settings.sizes)
        found = []
        for size in sizes:
            learned = _means(records, size, "learned")
            true = {seed: _true_sensitivities(records, size)[seed] for seed in learned}
            found.append(is_less(f"{size} strings: sensitivity learned - that of the function", learned, true))
        fewest, most = (_means(records, size, "learned") for size in (sizes[0], sizes[-1]))
        both = [seed for seed in fewest if seed in most]
        statement = f"sensitivity learned from {sizes[0]} strings - from {sizes[-1]}"
        found.append(is_less(statement, {s: fewest[s] for s in both}, {s: most[s] for s in both}))
        learned, completed = (_sharpness(records, kind) for kind in KINDS)
        both = [seed for seed in learned if seed in completed]
        found.append(
            is_less(
                "sharpness of refits, learned - completed",
                {s: learned[s] for s in both},
                {s: completed[s] for s in both},
            )
        )
        statement = "rank correlation of sensitivity and sharpness over the refits of a function"
        found.append(is_above(statement, bounded(over_seeds(_correlations(records)), -1.0, 1.0), 0.0))
        return [*found, beyond(bounds.expect_corollary(_cases(records))), *_expect_convergence(records)]


def learn_part(
    cell: PartCell, settings: PartSettings, context: Context, share: float
) -> tuple[Floats, list[HardnessTask], Trained]:
    """The table of a random function, its parts to learn from, and the networks that have learnt them.

    Arguments:
        cell: which function, and how many strings.
        settings: of the study.
        context: of the cell.
        share: of the cell's time that this takes.
    """
    seed = cell.seed
    table: Floats = (functions.random(settings.n, seed=seed).table().astype(np.float64) + 1) / 2
    tasks = [
        hardness.table_task(table, train_size=cell.size, seed=100 * seed + network)
        for network in range(settings.networks)
    ]
    trained = hardness.train(
        tasks, HardnessDesign(dim=settings.dim), plan_of(settings),
        seeds=[100 * seed + place for place in range(len(tasks))],
        folder=context.folder / "part", progress=part_of(context.report, 0.0, share),
    )  # fmt: skip
    return table, tasks, trained


def _cases(records: PartRecords) -> list[CorollaryCase]:
    """Of all refits that count."""
    return [
        CorollaryCase(records.settings.n, refit.total_sensitivity, refit.loss, refit.mean_square_blowup)
        for _, record in records
        for kind in KINDS
        for refit in record.counting_refits(kind)
    ]


def total_sensitivity(table: np.ndarray[Any, Any]) -> float:
    """as_n of a table of labels 0 and 1."""
    return float(pointwise.influences(np.where(table > 0.5, 1, -1).astype(np.int8)).sum())


def _refit(tables: Tables, seed: int, settings: PartSettings, context: Context) -> dict[str, tuple[Observation, ...]]:
    """Networks trained from scratch on all strings of each table, all at once."""
    kinds = [kind for kind, found in tables.items() for _ in found for _ in range(settings.refits)]
    tasks = [hardness.table_task(table) for found in tables.values() for table in found for _ in range(settings.refits)]
    seeds = [1000 + seed + place for place in range(len(tasks))]
    trained = hardness.train(
        tasks, HardnessDesign(dim=settings.dim), plan_of(settings, batch_size=settings.refit_batch), seeds=seeds,
        folder=context.folder / "refits", progress=part_of(context.report, 0.3, 0.95),
    )  # fmt: skip
    refits: dict[str, list[Observation]] = {kind: [] for kind in tables}
    for kind, task, network, own in zip(kinds, tasks, trained.networks, seeds, strict=True):
        found = hardness.observe(network, task, directions=settings.directions, strings=2**settings.n, seed=own)
        assert task.labels is not None
        refits[kind].append(replace(found, total_sensitivity=total_sensitivity(task.labels)))
    return {kind: tuple(found) for kind, found in refits.items()}


def _true_sensitivities(records: PartRecords, size: int) -> dict[int, float]:
    """The sensitivity of each function."""
    return records.where(size=size).by("seed", lambda record: record.true)


def _means(records: PartRecords, size: int, kind: str) -> dict[int, float]:
    """The mean sensitivity over the networks that fit, by function; functions without one are left out."""
    found: dict[int, float] = {}
    for cell, record in records.where(size=size):
        if any(record.fits):
            pairs = zip(record.sensitivities(kind), record.fits, strict=True)
            found[cell.seed] = statistics.fmean(value for value, fits in pairs if fits)
    return found


def _points(records: PartRecords, kind: str) -> tuple[list[float], list[float]]:
    """The sensitivity and the sharpness of each refit that counts."""
    counting = [refit for _, record in records for refit in record.counting_refits(kind)]
    return [refit.total_sensitivity for refit in counting], [refit.sharpness for refit in counting]


def _correlations(records: PartRecords) -> dict[int, float]:
    """Rank correlation of sensitivity and sharpness by function, over refits of both kinds and all sizes."""
    found = {}
    for seed in sorted({cell.seed for cell in records.cells}):
        (x, y), (more_x, more_y) = (_points(records.where(seed=seed), kind) for kind in KINDS)
        found[seed] = rank_correlation([*x, *more_x], [*y, *more_y]).value
    return found


def _sharpness(records: PartRecords, kind: str) -> dict[int, float]:
    """The mean sharpness of refits by function, over all sizes."""
    found: dict[int, list[float]] = {}
    for cell, record in records:
        found.setdefault(cell.seed, []).extend(refit.sharpness for refit in record.counting_refits(kind))
    return {seed: statistics.fmean(values) for seed, values in found.items() if values}


def _counts(records: PartRecords) -> tuple[int, int, int, int]:
    """Networks, those that do not fit, refits, and those that do not count."""
    fits = [each for _, record in records for each in record.fits]
    refits = sum(len(record.refits[kind]) for _, record in records for kind in KINDS)
    counting = sum(len(record.counting_refits(kind)) for _, record in records for kind in KINDS)
    return len(fits), fits.count(False), refits, refits - counting


def _expect_convergence(records: PartRecords) -> list[Expectation]:
    networks, unfitted, refits, unconverged = _counts(records)
    return [
        beyond(holds_for_all("every network has its own strings right", unfitted, networks)),
        beyond(
            holds_for_all(
                f"every refit counts: converged, loss below {CONVERGED:g}, of a network that fits", unconverged, refits
            )
        ),
    ]


def _say_left_out(records: PartRecords) -> str:
    networks, unfitted, refits, unconverged = _counts(records)
    return f"Left out: {unfitted} of {networks} networks that do not fit, {unconverged} of {refits} refits."
