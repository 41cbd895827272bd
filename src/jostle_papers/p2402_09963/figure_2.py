"""Figure 2: layer-norm blow-up against the size of the weights, over learning rates and weight decays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle import figures
from jostle.base.randomness import Stream
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, difference
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below
from jostle_papers.p2402_09963 import bounds, runs
from jostle_papers.p2402_09963.regression import least_squares
from jostle_papers.p2402_09963.runs import RunCell, RunRecord, RunSettings, keep_converged

SENSITIVE = "parity"
THEIRS = "as in the released code"  # the blow-up that the paper draws


@dataclass(frozen=True, kw_only=True)
class Figure2Settings(RunSettings):
    """What is trained.

    Arguments:
        seeds: each with a learning rate and a weight decay of its own.
        targets: functions by name; parity is one of them.
        lowest_lr, highest_lr: learning rates are uniform in between.
        highest_decay: weight decays are uniform between 0 and this.
    """

    targets: tuple[str, ...] = ("parity", "majority")
    lowest_lr: float = 1e-4
    highest_lr: float = 5e-4
    highest_decay: float = 0.4

    def __post_init__(self) -> None:
        runs.check_named("targets", self.targets, SENSITIVE)


@dataclass(frozen=True, kw_only=True)
class RatesRecord(Struct):
    """The learning rate and the weight decay of a run."""

    lr: float
    weight_decay: float


@dataclass(frozen=True, kw_only=True)
class Figure2Record(RunRecord, RatesRecord):
    """How a network was trained, then what was measured of it."""

    def blowups(self) -> dict[str, float]:
        """The blow-up by both definitions."""
        return {THEIRS: self.released_blowup, "by the paper's definition": self.blowup}


Figure2Records = Records[Figure2Settings, RunCell, Figure2Record]
STEMS = {THEIRS: "released-blowup", "by the paper's definition": "blowup"}


@register
class Figure2(Study[Figure2Settings, RunCell, Figure2Record]):
    """Blow-up and parameter norm of networks trained with many learning rates and weight decays."""

    name = "2402.09963/figure-2"
    title = "Layer-norm blow-up against the size of the weights"
    claim = (
        "Networks that compute PARITY (at small scale of 4 to 12 bits) trade layer-norm blow-up against the size of "
        "their weights, and with more bits both must grow, more than for functions of low sensitivity."
    )
    source = "Figures 2, 9 and 10"
    version = 1
    scales = {
        "smoke": Figure2Settings(seeds=2, **runs.TINY | {"steps": 80}, lowest_lr=2e-3, highest_lr=5e-3),
        "small": Figure2Settings(seeds=6, lengths=(4, 8, 12), steps=3000, settle=600),
        "paper": Figure2Settings(
            seeds=125, lengths=(5, 10, 15, 20), targets=("parity", "majority", "first", "mean"), steps=10_000,
            fit_loss=0.0, strings=1024,
        ),
    }  # fmt: skip
    deviations = (
        runs.STOPPED,
        runs.FILTERED,
        "What the figure shows is put into numbers by least squares: log blow-up = constant + a n + b norm, over runs.",
        "The released blow-up (no eps, no 1 +, last token only in the last layer) is what the paper draws; the paper's "
        "own definition is beside it.",
        "Lengths 4, 8 and 12, PARITY and MAJORITY, and as many pairs of learning rate and weight decay as seeds at "
        "small scale; the paper has 3,000 runs.",
    )

    def cells(self, settings: Figure2Settings, seeds: Sequence[int]) -> list[RunCell]:
        return [
            RunCell(target, n, seed)
            for seed in seeds
            for n in sorted(settings.lengths, reverse=True)
            for target in settings.targets
        ]

    def measure(self, cell: RunCell, settings: Figure2Settings, context: Context) -> Figure2Record:
        lr, decay = draw_rates(cell.seed, settings)
        record = runs.train_and_observe(cell, settings, context, lr=lr, weight_decay=decay)
        return Figure2Record(lr=lr, weight_decay=decay, **vars(record))

    def figures(self, records: Figure2Records) -> list[Drawing]:
        return [
            _draw(records, target, kind)
            for target in records.settings.targets
            for kind in STEMS
            if len(keep_converged(records.where(target=target)))
        ] or [_draw_all(records)]

    def expectations(self, records: Figure2Records) -> list[Expectation]:
        found = []
        for kind in STEMS:
            fitted = {target: _fit(records, target, kind) for target in records.settings.targets}
            length, norm = fitted[SENSITIVE]["n"], fitted[SENSITIVE]["norm"]
            asked = [
                is_above(f"{SENSITIVE}: log blow-up per bit at equal norm, {kind}", length, 0.0),
                is_below(f"{SENSITIVE}: log blow-up per unit of norm at equal length, {kind}", norm, 0.0),
            ]
            for target in records.settings.targets:
                if target != SENSITIVE:
                    statement = f"log blow-up per bit, {SENSITIVE} - {target}, {kind}"
                    asked.append(is_above(statement, difference(length, fitted[target]["n"], independent=True), 0.0))
            found += asked if kind == THEIRS else [beyond(each) for each in asked]
        held = keep_converged(records)
        cases = [bounds.case_of(cell.target, cell.n, record) for cell, record in held]
        found.append(beyond(bounds.expect_corollary(cases)))
        return [*found, *(runs.expect_convergence(records, target) for target in records.settings.targets)]


def draw_rates(seed: int, settings: Figure2Settings) -> tuple[float, float]:
    """The learning rate and the weight decay of a seed."""
    first, second = Stream(seed, "learning rate and weight decay").uniforms([0], [0], [0], size=2)[0]
    lr = settings.lowest_lr + first * (settings.highest_lr - settings.lowest_lr)
    return float(lr), float(second * settings.highest_decay)


def _fit(records: Figure2Records, target: str, kind: str) -> dict[str, Measured]:
    """Log blow-up as a constant plus multiples of n and of the norm, over the runs that count."""
    counting = list(keep_converged(records.where(target=target)))
    columns = {"n": [float(cell.n) for cell, _ in counting], "norm": [record.norm for _, record in counting]}
    return least_squares([math.log(record.blowups()[kind]) for _, record in counting], columns)


def _draw(records: Figure2Records, target: str, kind: str) -> Drawing:
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for cell, record in sorted(keep_converged(records.where(target=target)), key=lambda pair: pair[0].n):
        x, y = groups.setdefault(f"{cell.n} bits", ([], []))
        x.append(record.blowups()[kind])
        y.append(record.norm)
    return Drawing(
        f"{target}-{STEMS[kind]}",
        figures.scatter(groups, x_label=f"blow-up, {kind}", y_label="parameter norm", log_x=_is_wide(groups)),
        f"Blow-up and parameter norm of networks that compute {target}, one point for each learning rate and weight "
        f"decay. {runs.say_left_out(records.where(target=target))}",
        "Points in a plane, coloured by the number of bits.",
    )


def _is_wide(groups: dict[str, tuple[list[float], list[float]]]) -> bool:
    """Whether blow-ups need a logarithmic axis, which over a short range has hardly a number on it."""
    found = [each for x, _ in groups.values() for each in x]
    return max(found) > 10 * min(found)


def _draw_all(records: Figure2Records) -> Drawing:
    """All runs, where none of them converged and counts."""
    groups = {"not converged": (records.column(lambda one: one.blowup), records.column(lambda one: one.norm))}
    return Drawing(
        "not-converged",
        figures.scatter(groups, x_label="blow-up", y_label="parameter norm", log_x=True),
        f"{runs.say_left_out(records)}",
        "Points in a plane.",
    )
