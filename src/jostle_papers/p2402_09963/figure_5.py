"""Figures 5 to 8, lower rows: functions of low sensitivity on long strings, with tokens of four numbers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below
from jostle_papers.p2402_09963 import bounds, runs
from jostle_papers.p2402_09963.hardness import TARGETS
from jostle_papers.p2402_09963.regression import least_squares, slope
from jostle_papers.p2402_09963.runs import RunCell, RunRecord, RunSettings, keep_converged

INSENSITIVE = tuple(target for target in TARGETS if target != "parity")
_WITH_BLOWUP = "exponent of the blow-up in the sharpness, among seeds of the same function and length"
BARELY = 0.25  # exponent of n: sharpness that doubles while n becomes sixteen times as large
THEIR_LENGTHS = (4, 31, 57, 84, 111, 138, 164, 191, 218, 245, 271, 298, 325, 352, 378, 405, 432, 459, 485, 512)


@dataclass(frozen=True, kw_only=True)
class Figure5Settings(RunSettings):
    """What is trained.

    Arguments:
        targets: functions by name.
    """

    targets: tuple[str, ...] = INSENSITIVE

    def __post_init__(self) -> None:
        runs.check_named("targets", self.targets, "majority")


Figure5Records = Records[Figure5Settings, RunCell, RunRecord]
Read = Callable[[RunRecord], float]

READ: dict[str, tuple[str, Read]] = {
    "sharpness": ("average direction sharpness", lambda record: record.sharpness),
    "released-blowup": ("blow-up, as in the released code", lambda record: record.released_blowup),
    "norm": ("parameter norm", lambda record: record.norm),
}


@register
class Figure5(Study[Figure5Settings, RunCell, RunRecord]):
    """Sharpness, blow-up and norm of small networks on MAJORITY, FIRST and MEAN of many bits."""

    name = "2402.09963/figure-5"
    title = "Functions of low sensitivity on long strings"
    claim = (
        "The sharpness of networks that compute MAJORITY, FIRST or MEAN, with tokens of four numbers, barely increases "
        "with the number of bits: slower than its fourth root (at our setting, small scale: 4 to 64 bits; the paper "
        "has up to 512, and does not say what barely is)."
    )
    source = "Figures 5 to 8, lower rows"
    version = 1
    scales = {
        "smoke": Figure5Settings(seeds=1, targets=("majority",), **runs.TINY | {"dim": 4, "lengths": (4, 12)}),
        "small": Figure5Settings(lengths=(4, 16, 64), dim=4, batch_size=128, steps=10_000, fit_loss=0.0),
        "paper": Figure5Settings(
            seeds=10, lengths=THEIR_LENGTHS, dim=4, batch_size=128, steps=10_000, fit_loss=0.0, strings=1024
        ),
    }
    deviations = (
        "Lengths 4, 16 and 64 with 3 seeds at small scale; the paper has 20 lengths up to 512 and 10 seeds. Training "
        "is the paper's. A trial with ten times its learning rate and an early end was not: a network for 128 bits had "
        "a blow-up of a thousand there.",
        runs.FILTERED,
        runs.FRESH,
        "From 250 bits on a constant passes the paper's filter for MEAN, whose labels have a variance of 1 / (4 n).",
        '"Barely" is put into a number before the run: the exponent of n is below 0.25. That of PARITY from 4 to 12 '
        "bits is about 0.9, with the paper's network.",
        "A step is 0.02 sqrt(weights) long, 0.335 with tokens of four numbers; levels are not those of Figure 1.",
        "How sharpness goes with blow-up among the seeds of one function and length was asked after the run, to "
        "explain how much seeds differ.",
    )

    def cells(self, settings: Figure5Settings, seeds: Sequence[int]) -> list[RunCell]:
        return [
            RunCell(target, n, seed)
            for seed in seeds
            for n in sorted(settings.lengths, reverse=True)  # the longest first, so that no worker waits for it
            for target in settings.targets
        ]

    def measure(self, cell: RunCell, settings: Figure5Settings, context: Context) -> RunRecord:
        return runs.train_and_observe(cell, settings, context)

    def figures(self, records: Figure5Records) -> list[Drawing]:
        return [
            Drawing(
                stem,
                runs.over_lengths(
                    {target: _points(records, target, read) for target in records.settings.targets}, label,
                    log_x=True, log_y=True,
                ),
                f"The {label} against the number of bits, with tokens of {records.settings.dim} numbers, the mean and "
                f"the range over seeds. {runs.say_left_out(records)}",
                f"Curves of {label} over the number of bits, one for each function.",
            )
            for stem, (label, read) in READ.items()
        ]  # fmt: skip

    def expectations(self, records: Figure5Records) -> list[Expectation]:
        found = []
        for stem, (label, read) in READ.items():
            for target in records.settings.targets:
                points = [(math.log(n), math.log(value)) for n, value in _points(records, target, read)]
                expected = is_below(f"{target}: exponent of n in the {label}", slope(points), BARELY)
                found.append(expected if stem == "sharpness" else beyond(expected))
        held = keep_converged(records)
        found.append(beyond(is_above(_WITH_BLOWUP, _with_blowup(held), 0.0)))
        cases = [bounds.case_of(cell.target, cell.n, record) for cell, record in held]
        found.append(beyond(bounds.expect_corollary(cases)))
        return [*found, *(runs.expect_convergence(records, target) for target in records.settings.targets)]


def _points(records: Figure5Records, target: str, read: Read) -> list[tuple[float, float]]:
    """The number of bits and a value of each run that counts."""
    return [(float(cell.n), read(record)) for cell, record in keep_converged(records.where(target=target))]


def _with_blowup(held: Figure5Records) -> Measured:
    """The exponent b of sharpness ~ blow-up^b, where each function and length has a level of its own."""
    kinds = [(cell.target, cell.n) for cell, _ in held]
    levels = {f"{target}, {n}": [float(kind == (target, n)) for kind in kinds] for target, n in sorted(set(kinds))[1:]}
    blowups = [math.log(record.released_blowup) for _, record in held]
    found = least_squares([math.log(record.sharpness) for _, record in held], {"blow-up": blowups, **levels})
    return found["blow-up"]
