"""Figure 2: layer-norm blow-up against the size of the weights, over learning rates and weight decays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.base.randomness import Stream
from jostle.base.store import Record
from jostle.figures import scatter
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, difference
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below
from jostle_papers.p2402_09963 import runs
from jostle_papers.p2402_09963.regression import least_squares

SENSITIVE = "parity"
BLOWUPS = {"released_blowup": "as in the released code", "blowup": "by the paper's definition"}


@dataclass(frozen=True, kw_only=True)
class Choices(runs.Training):
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


@register
class Figure2(Study[Choices]):
    """Blow-up and parameter norm of networks trained with many learning rates and weight decays."""

    name = "2402.09963/figure-2"
    title = "Layer-norm blow-up against the size of the weights"
    claim = (
        "Networks that compute PARITY trade layer-norm blow-up against the size of their weights, and with more bits "
        "both must grow; for functions of low sensitivity nothing depends on the number of bits."
    )
    source = "Figures 2, 9 and 10"
    version = 1
    scales = {
        "smoke": Choices(seeds=2, **runs.TINY | {"steps": 80}, lowest_lr=2e-3, highest_lr=5e-3),
        "small": Choices(seeds=6, lengths=(4, 8, 12), steps=3000, settle=600),
        "paper": Choices(
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
        "Lengths 4, 8 and 12, PARITY and MAJORITY, and 6 pairs of learning rate and weight decay at small scale; the "
        "paper has 3,000 runs.",
    )

    def cells(self, settings: Choices, seeds: Sequence[int]) -> list[Cell]:
        return [
            Cell.of(target=target, n=n, seed=seed)
            for seed in seeds
            for n in sorted(settings.lengths, reverse=True)
            for target in settings.targets
        ]

    def measure(self, cell: Cell, settings: Choices, context: Context) -> Record:
        lr, decay = drawn(cell.values["seed"], settings)
        values = cell.values
        record = runs.run(values["target"], values["n"], values["seed"], settings, context, lr=lr, weight_decay=decay)
        return {"lr": lr, "weight_decay": decay, **record}

    def figures(self, records: Records[Choices]) -> list[Drawing]:
        return [
            _drawing(records, target, field)
            for target in records.settings.targets
            for field in BLOWUPS
            if runs.converged(records, target)
        ] or [_nothing(records)]

    def expectations(self, records: Records[Choices]) -> list[Expectation]:
        found = []
        for field, label in BLOWUPS.items():
            fitted = {target: _fitted(records, target, field) for target in records.settings.targets}
            length, norm = fitted[SENSITIVE]["n"], fitted[SENSITIVE]["norm"]
            asked = [
                is_above(f"{SENSITIVE}: log blow-up per bit at equal norm, {label}", length, 0.0),
                is_below(f"{SENSITIVE}: log blow-up per unit of norm at equal length, {label}", norm, 0.0),
            ]
            for target in records.settings.targets:
                if target != SENSITIVE:
                    statement = f"log blow-up per bit, {SENSITIVE} - {target}, {label}"
                    asked.append(is_above(statement, difference(length, fitted[target]["n"]), 0.0))
            found += asked if field == "released_blowup" else [beyond(each) for each in asked]
        return [*found, *(runs.counted(records, target) for target in records.settings.targets)]


def drawn(seed: int, settings: Choices) -> tuple[float, float]:
    """Learning rate and weight decay of a seed."""
    first, second = Stream(seed, "learning rate and weight decay").uniforms([0], [0], [0], size=2)[0]
    lr = settings.lowest_lr + first * (settings.highest_lr - settings.lowest_lr)
    return float(lr), float(second * settings.highest_decay)


def _fitted(records: Records[Choices], target: str, field: str) -> dict[str, Measured]:
    counting = runs.converged(records, target)
    columns = {"n": [float(n) for n, _ in counting], "norm": [record["norm"] for _, record in counting]}
    return least_squares([math.log(record[field]) for _, record in counting], columns)


def _drawing(records: Records[Choices], target: str, field: str) -> Drawing:
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for n, record in sorted(runs.converged(records, target), key=lambda pair: pair[0]):
        x, y = groups.setdefault(f"{n} bits", ([], []))
        x.append(record[field])
        y.append(record["norm"])
    return Drawing(
        f"{target}-{field.replace('_', '-')}",
        scatter(groups, x_label=f"blow-up, {BLOWUPS[field]}", y_label="parameter norm", log_x=_is_wide(groups)),
        f"Blow-up and parameter norm of networks that compute {target}, one point for each learning rate and weight "
        f"decay. {runs.left_out(records.where(target=target))}",
        "Points in a plane, coloured by the number of bits.",
    )


def _is_wide(groups: dict[str, tuple[list[float], list[float]]]) -> bool:
    """Whether blow-ups need a logarithmic axis, which over a short range has hardly a number on it."""
    found = [each for x, _ in groups.values() for each in x]
    return max(found) > 10 * min(found)


def _nothing(records: Records[Choices]) -> Drawing:
    """Where no run converged: all runs, which count for nothing."""
    points = [(record["blowup"], record["norm"]) for _, record in records]
    groups = {"not converged": ([x for x, _ in points], [y for _, y in points])}
    return Drawing(
        "not-converged",
        scatter(groups, x_label="blow-up", y_label="parameter norm", log_x=True),
        f"{runs.left_out(records)}",
        "Points in a plane.",
    )
