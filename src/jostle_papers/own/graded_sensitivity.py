"""Our own question: how sharp are networks that compute functions of graded sensitivity, from AND to PARITY?

First the functions, of several families, then the study.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jostle import figures, landscape
from jostle.base.progress import part_of
from jostle.base.registry import unknown_name
from jostle.base.specs import written
from jostle.boolean import functions, pointwise
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, bounded, over_seeds, paired, proportion, rank_correlation
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, is_below
from jostle_papers.p2402_09963 import hardness
from jostle_papers.p2402_09963.hardness import CONVERGED, HardnessDesign
from jostle_papers.p2402_09963.hardness.observation import moved_tables, step_length
from jostle_papers.p2402_09963.regression import slope
from jostle_papers.p2402_09963.runs import FitRecord, check_named, keep_converged, plan_of

FAMILIES = ("sparse parities", "juntas", "thresholds", "formulas", "times parity", "random")
TIMES = "parity times "
_JUNTAS = ((2, 0), (3, 1), (4, 3), (5, 2), (6, 0))  # bits and seeds: sensitivities 1, 1.5, 2.25, 2.625 and 3.4375
_MAIN = 0.02  # the released code's step of each weight


def members(family: str, n: int) -> list[str]:
    """The functions of a family on n bits, n even, by the names that ``truth_table`` knows."""
    if family not in FAMILIES:
        raise unknown_name("family", family, FAMILIES)
    return {
        "sparse parities": [f"sparse-parity:k={k}" for k in range(1, n + 1)],
        "juntas": [*(f"junta:k={k},seed={seed}" for k, seed in _JUNTAS if k < n), f"dictator:coordinate={n - 1}"],
        "thresholds": [
            "majority", f"threshold:theta={n // 4}", f"threshold:theta={n // 2}",
            f"threshold:weights={'/'.join(str(weight) for weight in range(n, 0, -1))}",
        ],
        "formulas": ["and", "or", "not-all-equal", "tribes:width=2", f"tribes:width={n // 2}", "decision-list",
                     "multiplexer"],
        "times parity": [f"{TIMES}{other}" for other in ("majority", "multiplexer", "tribes:width=2", "decision-list")],
        "random": [*(f"random:seed={seed}" for seed in range(3)), "bent"],
    }[family]  # fmt: skip


def truth_table(name: str, n: int) -> NDArray[np.int8]:
    """The values -1 and 1 of a function at all 2^n strings.

    A function times the parity of all bits has sensitivity n - as_n: a bit that decided the function no longer does,
    and the other way round. The multiplexer reads the first a + 2^a bits, with the largest a that n bits allow.

    >>> from jostle.boolean import pointwise
    >>> [float(pointwise.influences(truth_table(name, 6)).sum()) for name in ("majority", "parity times majority")]
    [1.875, 4.125]
    """
    if name.startswith(TIMES):
        return truth_table(name.removeprefix(TIMES), n) * functions.parity(n).table().astype(np.int8)
    if name == "multiplexer":
        seen = max(a + 2**a for a in range(1, n) if a + 2**a <= n)
        return np.repeat(functions.multiplexer(seen).table(), 2 ** (n - seen)).astype(np.int8)
    return functions.create(name, n).table().astype(np.int8)


@dataclass(frozen=True, kw_only=True)
class GradedSettings(Settings):
    """What is trained.

    Arguments:
        n: bits, even.
        families: of functions.
        dim: of the network's tokens.
        batch_size, lr, weight_decay, steps, fit_loss, settle: as in ``HardnessPlan``.
        directions: of steps of the weights.
        stds: of each weight's step, so that a step has length std sqrt(weights); 0.02 is one of them.
    """

    n: int = 8
    families: tuple[str, ...] = FAMILIES
    dim: int = 64
    batch_size: int = 1024
    lr: float = 5e-4
    weight_decay: float = 0.1
    steps: int = 4000
    fit_loss: float = 0.005
    settle: int = 400
    directions: int = 100
    stds: tuple[float, ...] = (0.01, _MAIN, 0.04)

    def __post_init__(self) -> None:
        check_named("stds", list(map(written, self.stds)), written(_MAIN))


@dataclass(frozen=True)
class GradedCell(Cell):
    """A network on a function of a family."""

    target: str
    family: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class CopiesRecord(Struct):
    """A network and its copies after steps of one length, where labels are -1 and 1; means over copies.

    Arguments:
        sharpness: the squared distance of a copy.
        bound: the least distance that the inequality allows.
        sensitivity: of a copy.
        violations: copies that are closer than that.
    """

    sharpness: float
    bound: float
    sensitivity: float
    violations: int


@dataclass(frozen=True, kw_only=True)
class GradedRecord(FitRecord):
    """What is measured of a network.

    Arguments:
        total_sensitivity: of the function.
        loss: mean squared error where labels are 0 and 1, on all strings.
        is_right: whether all strings are right.
        has_converged: whether the network counts.
        norm: of all weights but positions.
        moved: copies by the std of the step, as text.
    """

    total_sensitivity: float
    loss: float
    is_right: bool
    has_converged: bool
    norm: float
    moved: dict[str, CopiesRecord]

    def copies(self, std: float = _MAIN) -> CopiesRecord:
        """The copies after steps of ``std`` on each weight."""
        return self.moved[written(std)]


GradedRecords = Records[GradedSettings, GradedCell, GradedRecord]


@register
class GradedSensitivity(Study[GradedSettings, GradedCell, GradedRecord]):
    """The sharpness of transformers that compute functions from AND to PARITY, against as_n / n."""

    name = "jostle/graded-sensitivity"
    title = "Sharpness against sensitivity over many functions, with the theoretical floor"
    claim = "Networks that compute a more sensitive function tend to be sharper, over functions of many kinds."
    source = "Theorem 6 of 2402.09963 and the inequality behind it; the functions are ours"
    version = 1
    scales = {
        "smoke": GradedSettings(
            seeds=1, n=4, families=("sparse parities", "thresholds"), dim=8, batch_size=64, lr=5e-3, steps=60,
            fit_loss=0.02, settle=20, directions=4, stds=(_MAIN, 0.1),
        ),
        "small": GradedSettings(),
        "paper": GradedSettings(seeds=10, n=10, dim=128, lr=3e-4, steps=10_000, fit_loss=0.0),
    }  # fmt: skip
    deviations = (
        "The paper has four functions at many lengths and random functions; here 33 functions of 8 bits, from AND "
        "(as_n = 1/16) to PARITY (8), learnt from all strings.",
        "dim 64 and lr 5e-4, and a network that fits is settled and left alone, instead of dim 128, lr 3e-4 and 10,000 "
        "steps; at paper scale as there, with 10 bits.",
        f"A network counts if all strings are right and its mean squared error is below {CONVERGED:g} times 4 "
        "Var(label), which for a function that is nearly constant is a smaller number than the paper's.",
        "The floor as_n / n is the paper's limit for n to infinity first and a small step then: networks of 8 bits may "
        "lie below it, the more so the smaller the step. What holds at every n and step is the inequality between a "
        "network and its copy.",
        "The interval over functions takes them for a sample of functions like these; they were chosen, not drawn.",
    )

    def cells(self, settings: GradedSettings, seeds: Sequence[int]) -> list[GradedCell]:
        return [
            GradedCell(target, family, seed)
            for seed in seeds
            for family in reversed(settings.families)  # what takes longest first
            for target in members(family, settings.n)
        ]

    def measure(self, cell: GradedCell, settings: GradedSettings, context: Context) -> GradedRecord:
        n, signs = settings.n, truth_table(cell.target, settings.n)
        task = hardness.table_task((signs.astype(np.float64) + 1) / 2, name=cell.target)
        trained = hardness.train(
            task, HardnessDesign(dim=settings.dim), plan_of(settings), seeds=[cell.seed], folder=context.folder,
            progress=part_of(context.report, 0.0, 0.7),
        )  # fmt: skip
        network = trained.networks[0]
        moved, outputs = {}, np.empty(0)
        for std in settings.stds:
            rho = step_length(network, std)
            outputs, copies = moved_tables(network, n, rho=rho, directions=settings.directions, seed=cell.seed)
            moved[written(std)] = _compare(2 * outputs - 1, 2 * copies - 1)
        loss, scale = float(np.square(outputs - (signs + 1) / 2).mean()), task.scale()
        is_right = bool(((outputs > 0.5) == (signs > 0)).all())
        return GradedRecord(
            fitted=trained.fitted[0],
            steps=trained.steps,
            total_sensitivity=float(pointwise.influences(signs).sum()),
            loss=loss,
            is_right=is_right,
            has_converged=is_right and loss < CONVERGED * scale,
            norm=landscape.parameter_norm(network, skip=landscape.POSITIONS),
            moved=moved,
        )

    def figures(self, records: GradedRecords) -> list[Drawing]:
        counting = keep_converged(records)
        counting = counting if len(counting) else records
        common = f"{records.settings.n} bits, one point for each network. {_say_left_out(records)}"
        return [
            _draw_sharpness(counting, common),
            _draw_steps(counting, common),
            _draw_copies(counting, common),
        ]

    def expectations(self, records: GradedRecords) -> list[Expectation]:
        what = "rank correlation of sensitivity and sharpness"
        means = {target: _mean(by_seed) for target, by_seed in _sharpness(records, _MAIN).items()}
        copies = len(records) * records.settings.directions * len(records.settings.stds)
        violations = sum(record.copies(std).violations for _, record in records for std in records.settings.stds)
        found = [
            is_above(f"{what}, over {len(means)} functions", _correlation(records, means), 0.0),
            is_above(f"{what} of these functions, over seeds", _correlation_over_seeds(records), 0.0),
        ]
        theorem = holds_for_all("no copy is closer than its sensitivity allows", violations, copies)
        return [*found, *(beyond(each) for each in [theorem, *_further(records, means)])]


def _compare(clean: NDArray[np.float64], copies: NDArray[np.float64]) -> CopiesRecord:
    """A network's function and its copies', (2^n,) and (directions, 2^n), where labels are -1 and 1."""
    gaps = [landscape.sensitivity_gap(clean, copy) for copy in copies]
    return CopiesRecord(
        sharpness=statistics.fmean(gap.distance for gap in gaps),
        bound=statistics.fmean(gap.bound for gap in gaps),
        sensitivity=statistics.fmean(gap.second for gap in gaps),
        violations=sum(not gap.holds for gap in gaps),
    )


def _further(records: GradedRecords, means: dict[str, float]) -> list[Expectation]:
    """Parities and the others apart, equal sensitivities, the floor at each step, copies, and networks left out."""
    n, sharpness = records.settings.n, _sharpness(records, _MAIN)
    others = {target: value for target, value in means.items() if not target.startswith("sparse-parity")}
    asked = [
        is_above("sparse parities of k bits: slope of sharpness over k", _slope_over_k(sharpness, n), 0.0),
        is_above("rank correlation over functions that are no parities", _correlation(records, others), 0.0),
        is_above(
            f"log sharpness at n / 2: random functions - parity of {n // 2} bits", _to_parity(sharpness, n // 2), 0.0
        ),
        is_below("log sharpness: random functions - parity of all bits", _to_parity(sharpness, n), 0.0),
    ]
    for std in records.settings.stds:
        found = {target: _mean(by_seed) for target, by_seed in _sharpness(records, std).items()}
        floors = _sensitivities(records)
        above = sum(value > floors[target] / n for target, value in found.items())
        statement = f"std {written(std)}: share of functions whose networks lie above the floor as_n / n"
        asked.append(is_above(statement, proportion(above, len(found)), 0.5))
    sensitive = records.keep(lambda _, record: record.total_sensitivity >= n / 2)
    random = records.keep(lambda cell, _: _is_random(cell.target))
    return [
        *asked,
        is_above(
            "sensitive functions, as_n >= n / 2: share of it that copies lose",
            _mean_over_functions(sensitive, _share_lost),
            0.0,
        ),
        is_above("random functions: share of as_n that copies lose", _mean_over_functions(random, _share_lost), 0.0),
        is_above(
            "share of the sharpness that the inequality asks for, mean over functions",
            _mean_over_functions(records, lambda record: record.copies().bound / record.copies().sharpness),
            0.5,
        ),
        holds_for_all("every network converged", len(records) - len(keep_converged(records)), len(records)),
    ]


def _share_lost(record: GradedRecord) -> float:
    """The share of its sensitivity that a network's copies lose: 1 - as_n(copy) / as_n(function)."""
    return 1 - record.copies().sensitivity / record.total_sensitivity


def _slope_over_k(sharpness: dict[str, dict[int, float]], n: int) -> Measured:
    """The slope for each seed, whose networks have first weights and directions in common."""
    lines: dict[int, list[tuple[float, float]]] = {}
    for k in range(1, n + 1):
        for seed, value in sharpness.get(f"sparse-parity:k={k}", {}).items():
            lines.setdefault(seed, []).append((float(k), value))
    return over_seeds({seed: slope(line).value for seed, line in lines.items()})


def _sharpness(records: GradedRecords, std: float) -> dict[str, dict[int, float]]:
    """By function and seed, of the networks that count."""
    found: dict[str, dict[int, float]] = {}
    for cell, record in keep_converged(records):
        found.setdefault(cell.target, {})[cell.seed] = record.copies(std).sharpness
    return found


def _sensitivities(records: GradedRecords) -> dict[str, float]:
    return {cell.target: record.total_sensitivity for cell, record in records}


def _correlation(records: GradedRecords, means: dict[str, float]) -> Measured:
    """Of sensitivity and sharpness, over functions."""
    sensitivities = _sensitivities(records)
    return rank_correlation({target: sensitivities[target] for target in means}, means, unit="functions")


def _correlation_over_seeds(records: GradedRecords) -> Measured:
    """The mean over seeds of the correlation among these functions, no more than 1."""
    found: dict[int, dict[str, float]] = {}
    for target, by_seed in _sharpness(records, _MAIN).items():
        for seed, value in by_seed.items():
            found.setdefault(seed, {})[target] = value
    return bounded(over_seeds({seed: _correlation(records, values).value for seed, values in found.items()}), -1.0, 1.0)


def _is_random(target: str) -> bool:
    return target.startswith("random:")


def _to_parity(sharpness: dict[str, dict[int, float]], bits: int) -> Measured:
    """Random functions against the parity of some bits, by the logarithm of sharpness, seed by seed."""
    parity = sharpness.get(f"sparse-parity:k={bits}", {})
    random = [by_seed for target, by_seed in sharpness.items() if _is_random(target)]
    logs = {seed: [math.log(by_seed[seed]) for by_seed in random if seed in by_seed] for seed in parity}
    means = {seed: statistics.fmean(found) for seed, found in logs.items() if found}
    return paired(means, {seed: math.log(parity[seed]) for seed in means})


def _mean_over_functions(records: GradedRecords, read: Callable[[GradedRecord], float]) -> Measured:
    """The mean over functions for each seed, of networks that count."""
    found: dict[int, list[float]] = {}
    for cell, record in keep_converged(records):
        found.setdefault(cell.seed, []).append(read(record))
    return over_seeds({seed: statistics.fmean(values) for seed, values in found.items()})


def _mean(by_seed: dict[int, float]) -> float:
    return statistics.fmean(by_seed.values())


def _draw_sharpness(counting: GradedRecords, common: str) -> Drawing:
    n = counting.settings.n
    points = {
        family: ([record.total_sensitivity / n for record in held], [record.copies().sharpness for record in held])
        for family, held in _by_family(counting).items()
    }
    return Drawing(
        "sharpness",
        figures.scatter(points, x_label="average sensitivity as_n / n", y_label="average direction sharpness",
                lines={"floor as_n / n": ([0.0, 1.0], [0.0, 1.0])}),
        f"Sharpness under steps of std {_MAIN} on each weight against the sensitivity of the function, "
        f"{common}",
        "Points in a plane, coloured by family, and a dashed diagonal.",
    )  # fmt: skip


def _draw_steps(counting: GradedRecords, common: str) -> Drawing:
    x = counting.column(lambda record: record.total_sensitivity / counting.settings.n)
    points = {
        f"std {written(std)}": (x, [record.copies(std).sharpness for _, record in counting])
        for std in counting.settings.stds
    }
    above = "; ".join(
        f"{name} {sum(y > at for at, y in zip(*pair, strict=True))} of {len(pair[0])} networks"
        for name, pair in points.items()
    )
    return Drawing(
        "steps",
        figures.scatter(points, x_label="average sensitivity as_n / n", y_label="average direction sharpness",
                lines={"floor as_n / n": ([0.005, 1.0], [0.005, 1.0])}, log_x=True, log_y=True),
        f"The same under shorter and longer steps, {common} Above the floor: {above}.",
        "Points in a plane, coloured by the length of the step, and a dashed diagonal.",
    )  # fmt: skip


def _draw_copies(counting: GradedRecords, common: str) -> Drawing:
    points = {
        family: ([record.copies().bound for record in held], [record.copies().sharpness for record in held])
        for family, held in _by_family(counting).items()
    }
    highest = max(max(y) for _, y in points.values())
    return Drawing(
        "copies",
        figures.scatter(points, x_label="what the inequality asks for, the mean over copies",
                y_label="average direction sharpness", lines={"equal": ([0.0, highest], [0.0, highest])}),
        "Squared distance between a network and its copies, and what the difference of their sensitivities "
        f"asks for, (sqrt as_n(f) - sqrt as_n(g))^2 / n; std {_MAIN}, {common}",
        "Points above a dashed diagonal.",
    )  # fmt: skip


def _by_family(counting: GradedRecords) -> dict[str, list[GradedRecord]]:
    """Records by family, those of the sparse parities first."""
    found: dict[str, list[GradedRecord]] = {}
    for cell, record in reversed(list(counting)):
        found.setdefault(cell.family, []).append(record)
    return found


def _say_left_out(records: GradedRecords) -> str:
    missing = [cell.key for cell, record in records if not record.has_converged]
    if len(missing) == len(records):
        return f"None of the {len(records)} networks converged; all of them are drawn, and count for nothing."
    text = f"{len(missing)} of {len(records)} networks did not converge and are left out"
    return f"{text}: {', '.join(missing)}." if missing else f"All {len(records)} networks converged."
