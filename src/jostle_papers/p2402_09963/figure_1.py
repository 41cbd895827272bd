"""Figures 1 and 5: the sharpness of networks that compute a function, against the number of bits."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.base.store import Record
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, difference, over_seeds
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, within
from jostle_papers.p2402_09963 import runs
from jostle_papers.p2402_09963.hardness import TARGETS
from jostle_papers.p2402_09963.regression import size, slope, times

SENSITIVE = "parity"
FACTOR = 5.0  # by which slopes of the other functions must be smaller
PRINTED = {30: 1.0}  # the sharpness of parity that Figure 1 reaches


@dataclass(frozen=True, kw_only=True)
class Choices(runs.Training):
    """What is trained.

    Arguments:
        targets: functions by name; parity is one of them.
    """

    targets: tuple[str, ...] = TARGETS

    def __post_init__(self) -> None:
        runs.check_named("targets", self.targets, SENSITIVE)


@register
class Figure1(Study[Choices]):
    """Average direction sharpness, blow-up and parameter norm of networks trained on functions of n bits."""

    name = "2402.09963/figure-1"
    title = "Sharpness against the number of bits"
    claim = (
        "Networks that compute PARITY are the sharper the more bits there are; for MAJORITY, FIRST and MEAN, whose "
        "sensitivity is low, sharpness barely increases."
    )
    source = "Figures 1 and 5 to 8"
    version = 1
    scales = {
        "smoke": Choices(seeds=1, targets=("parity", "majority"), **runs.TINY),
        "small": Choices(lengths=(4, 6, 8, 10, 12), settle=1000),
        "paper": Choices(seeds=10, lengths=tuple(range(4, 31)), steps=10_000, fit_loss=0.0, strings=1024),
    }
    deviations = (
        runs.STOPPED,
        runs.FILTERED,
        runs.FRESH,
        "No curriculum over lengths is used up to 12 bits, which the paper's network, batch and learning rate learn "
        "in some hundred steps; `curriculum` trains on shorter strings first where more bits need it.",
        "Lengths from 4 to 12 with 3 seeds at small scale; the paper has 4 to 30 with 10. In a trial PARITY of 16 bits "
        "fitted after 1,179 steps and was at a loss of 0.0011 after 800 more, just above what counts.",
    )

    def cells(self, settings: Choices, seeds: Sequence[int]) -> list[Cell]:
        return [
            Cell.of(target=target, n=n, seed=seed)
            for seed in seeds
            for n in sorted(settings.lengths, reverse=True)  # the longest first, so that no worker waits for it
            for target in settings.targets
        ]

    def measure(self, cell: Cell, settings: Choices, context: Context) -> Record:
        return runs.run(cell.values["target"], cell.values["n"], cell.values["seed"], settings, context)

    def figures(self, records: Records[Choices]) -> list[Drawing]:
        drawn = {
            "sharpness": ("average direction sharpness", "Sharpness, in units where labels are -1 and 1,"),
            "released_blowup": ("blow-up, as in the released code", "The product of 1 / std over layer norms"),
            "norm": ("parameter norm", "The norm of all weights but positions"),
        }
        return [
            Drawing(
                field.replace("_", "-"),
                runs.over_lengths(
                    {target: _points(records, target, field) for target in records.settings.targets}, label
                ),
                f"{what} against the number of bits, the mean and the range over seeds. {runs.left_out(records)}",
                f"Curves of {label} over the number of bits, one for each function.",
            )
            for field, (label, what) in drawn.items()
        ]

    def expectations(self, records: Records[Choices]) -> list[Expectation]:
        steep = _slope(records, SENSITIVE, "sharpness")
        found = [is_above(f"{SENSITIVE}: slope of sharpness over the number of bits", steep, 0.0)]
        others = [target for target in records.settings.targets if target != SENSITIVE]
        for target in others:
            flat = size(_slope(records, target, "sharpness"))
            statement = f"slope of {SENSITIVE} - {FACTOR:g} |slope of {target}|"
            found.append(is_above(statement, difference(steep, times(flat, FACTOR)), 0.0))
        found += _printed(records)
        return [*found, *_further(records)]


def _slope(records: Records[Choices], target: str, field: str) -> Measured:
    return slope(_points(records, target, field))


def _printed(records: Records[Choices]) -> list[Expectation]:
    """The level of the figure, where training was as long as the paper's."""
    is_theirs = records.settings.fit_loss == 0 and records.settings.dim == 128
    asked = []
    for n, level in PRINTED.items():
        values = [record["sharpness"] for length, record in runs.converged(records, SENSITIVE) if length == n]
        if is_theirs and values:
            asked.append(within(f"{SENSITIVE}: sharpness at {n} bits", over_seeds(values), level, 0.2))
    return asked


def _further(records: Records[Choices]) -> list[Expectation]:
    """Blow-up, the two definitions of sharpness, and what was left out."""
    by_seed: dict[int, list[float]] = {}
    for cell, record in records:
        if record["has_converged"]:
            apart = record["released_sharpness"] / record["sharpness"] - 1
            by_seed.setdefault(cell.values["seed"], []).append(apart)
    ratios = over_seeds([statistics.fmean(values) for values in by_seed.values()])
    return [
        beyond(is_above(f"{SENSITIVE}: slope of the blow-up", _slope(records, SENSITIVE, "released_blowup"), 0.0)),
        beyond(within("released sharpness / the paper's - 1, mean over converged runs", ratios, 0.0, 0.1)),
        *(runs.counted(records, target) for target in records.settings.targets),
    ]


def _points(records: Records[Choices], target: str, field: str) -> list[tuple[float, float]]:
    """Number of bits and a field of the runs that count."""
    return [(float(n), record[field]) for n, record in runs.converged(records, target)]
