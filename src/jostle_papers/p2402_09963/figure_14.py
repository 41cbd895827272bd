"""Figure 14: sharpness of networks that compute PARITY and are trained on for a hundred thousand steps."""

import math
import statistics
from collections.abc import Sequence

from jostle.studies.catalogue import register
from jostle.studies.evidence import over_sample
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, is_below, within
from jostle_papers.p2402_09963 import bounds
from jostle_papers.p2402_09963.figure_3 import (
    DECAY,
    SENSITIVE,
    DroppedRun,
    LearningCell,
    LearningRecord,
    LearningRecords,
    LearningSettings,
    counting_runs,
    draw_over_steps,
    expect_convergence,
    follow_cell,
    looked_at,
)
from jostle_papers.p2402_09963.hardness import CONVERGED
from jostle_papers.p2402_09963.hardness.course import HardnessLook

LEVEL = 1.25  # a factor within which sharpness has levelled off
_TENTH = 0.1
_NORMS = 4  # of the paper's network: two blocks, two in each


@register
class Figure14(Study[LearningSettings, LearningCell, LearningRecord]):
    """Loss, sharpness, blow-up and parameter norm of networks along a long training on PARITY."""

    name = "2402.09963/figure-14"
    title = "Sharpness of PARITY after a long training"
    claim = (
        "Trained on for 100,000 steps (at our setting, small scale: 6 bits and dim 32, not 25 and 128), the sharpness "
        "of networks that compute PARITY levels off at a value that is not trivial: from the middle of training to its "
        "end it changes by a factor of less than 1.25, and stays above what it was before the loss dropped."
    )
    source = "Figure 14"
    version = 1
    scales = {
        "smoke": LearningSettings(
            seeds=1, n=3, decays=(DECAY,), controls=(), dim=8, batch_size=64, lr=1e-2, steps=300, every=10, later=20,
            soon=20, late=200, directions=4,
        ),
        "small": LearningSettings(
            seeds=3, n=6, decays=(DECAY,), controls=(), dim=32, steps=100_000, every=50, later=1000, soon=1000,
            late=95_000, directions=100,
        ),
        "paper": LearningSettings(
            seeds=101, n=25, decays=(0.0, DECAY), controls=(), steps=100_000, every=100, later=1000, soon=1000,
            late=80_000, directions=500, strings=1024,
        ),
    }  # fmt: skip
    deviations = (
        "6 bits, dim 32, 3 seeds and weight decay 0.1 at small scale; the paper has 25 bits, dim 128, 101 seeds, and "
        "no weight decay as well.",
        '"Asymptotes" is put into a number before the run: the mean over the last tenth of the time after '
        "convergence and that over the tenth before its middle differ by a factor of less than 1.25.",
        "Sharpness is the paper's squared change of the function on the sphere, along 100 directions that are the same "
        "at all looks at a network and fresh for every seed; the released code has the increase of the loss.",
        "Why sharpness grows was looked into after the run: a LayerNorm undoes the size of the weights before it, so "
        "weight decay shrinks them at lr x decay a step and nothing resists; each norm's 1 / std, a factor of the "
        "blow-up, then grows at that rate. The rate of the blow-up is beyond the claim, and its margin of a quarter "
        "was chosen after a look.",
        "Runs that do not converge, or too late for `late` steps after it, are recorded, counted and left out.",
    )

    def cells(self, settings: LearningSettings, seeds: Sequence[int]) -> list[LearningCell]:
        return [LearningCell(target, decay, seed) for seed in seeds for target, decay in settings.runs()]

    def measure(self, cell: LearningCell, settings: LearningSettings, context: Context) -> LearningRecord:
        return follow_cell(cell, settings, context)

    def figures(self, records: LearningRecords) -> list[Drawing]:
        return [
            draw_over_steps(records, "sharpness", "average direction sharpness", lambda look: look.sharpness),
            draw_over_steps(records, "loss", "mean squared error", lambda look: look.loss, log_y=True),
            draw_over_steps(
                records, "released-blowup", "blow-up, as in the released code", lambda look: look.released_blowup
            ),
            draw_over_steps(records, "norm", "parameter norm", lambda look: look.norm),
        ]

    def expectations(self, records: LearningRecords) -> list[Expectation]:
        found = []
        for decay in records.settings.decays:
            asked = _expect_level(records, decay)
            found += asked if decay == DECAY else [beyond(each) for each in asked]
            found += [beyond(each) for each in _further(records, decay)]
        return [*found, beyond(bounds.expect_corollary(looked_at(records))), *expect_convergence(records)]


def _expect_level(records: LearningRecords, decay: float) -> list[Expectation]:
    late, held = records.settings.late, counting_runs(records, SENSITIVE, decay)
    where = f"weight decay {decay:g}"
    levels = [math.log(_mean(run, late, 1.0) / _mean(run, late, 0.5)) for run in held]
    left = [math.log(_mean(run, late, 1.0) / run.before.sharpness) for run in held]
    return [
        within(
            f"{where}: log of sharpness over the last tenth / over the tenth before the middle",
            over_sample(levels, "runs"),
            0.0,
            round(math.log(LEVEL), 3),
        ),
        is_above(
            f"{where}: log of sharpness over the last tenth / before the loss dropped", over_sample(left, "runs"), 0.0
        ),
    ]


def _further(records: LearningRecords, decay: float) -> list[Expectation]:
    """That sharpness falls at first, what weight decay does, and that networks compute PARITY to the end."""
    soon, late, held = records.settings.soon, records.settings.late, counting_runs(records, SENSITIVE, decay)
    where = f"weight decay {decay:g}"
    falls = [math.log(_mean(run, late, 1.0) / at.sharpness) for run in held if (at := run.after(soon))]
    ends = [(run.converged, run.looks[-1]) for run in held]
    lost = sum(last.loss >= CONVERGED for _, last in ends)
    norms, blowups = ([_change(pair, name) for pair in ends] for name in ("norm", "released_blowup"))
    asked = [
        is_below(
            f"{where}: log of sharpness over the last tenth / {soon} steps after convergence",
            over_sample(falls, "runs"),
            0.0,
        ),
        holds_for_all(f"{where}: every run that counts ends with a loss below {CONVERGED:g}", lost, len(held)),
    ]
    if decay > 0:
        free = _NORMS * records.settings.lr * decay
        asked += [
            within(
                f"{where}: growth of the log of the blow-up a step / {_NORMS} lr decay, "
                f"from {_TENTH * late:g} steps after convergence on",
                over_sample([_growth(run, late) / free for run in held], "runs"),
                1.0,
                0.25,
            ),
            is_below(f"{where}: log of the norm at the end / at convergence", over_sample(norms, "runs"), 0.0),
            is_above(f"{where}: log of the blow-up at the end / at convergence", over_sample(blowups, "runs"), 0.0),
        ]
    return asked


def _growth(run: DroppedRun, late: int) -> float:
    """The slope of the logarithm of the blow-up over steps, once gradients are too small to hold weights up."""
    looks = [look for look in run.looks if look.step >= run.converged.step + _TENTH * late]
    blowups = [math.log(look.released_blowup) for look in looks]
    return statistics.linear_regression([look.step for look in looks], blowups).slope


def _mean(run: DroppedRun, late: int, until: float) -> float:
    """The mean sharpness over a tenth of the ``late`` steps after convergence, up to the share ``until`` of them."""
    first, last = ((run.converged.step + share * late) for share in (until - _TENTH, until))
    return statistics.fmean(look.sharpness for look in run.looks if first <= look.step <= last)


def _change(pair: tuple[HardnessLook, HardnessLook], name: str) -> float:
    return math.log(getattr(pair[1], name) / getattr(pair[0], name))
