"""A study of your own: which squares of a checkerboard does the network use?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jostle
from jostle import figures
from jostle.studies import (
    Cell,
    Context,
    Drawing,
    Expectation,
    Records,
    Settings,
    Struct,
    Study,
    holds_for_all,
    register,
)


@dataclass(frozen=True, kw_only=True)
class CheckerboardSettings(Settings):
    """What is tried.

    Arguments:
        shares: how much the mean of the image counts in each network.
    """

    seeds: int = 1
    shares: tuple[float, ...] = (0.0, 0.5)


@dataclass(frozen=True)
class CheckerboardCell(Cell):
    """One piece of work: one network."""

    share: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class CheckerboardRecord(Struct):
    """What is recorded of a network."""

    sensitivity: float


CheckerboardRecords = Records[CheckerboardSettings, CheckerboardCell, CheckerboardRecord]


@register
class Checkerboard(Study[CheckerboardSettings, CheckerboardCell, CheckerboardRecord]):
    """Turning one of 64 squares changes the prediction only if it is the one in the corner."""

    name = "plugin/checkerboard"
    title = "One square decides"
    claim = "The prediction changes for 1 of 64 squares."
    source = "the example plug-in"
    version = 1
    scales: ClassVar = {scale: CheckerboardSettings() for scale in ("smoke", "small", "paper")}

    def cells(self, settings: CheckerboardSettings, seeds: Sequence[int]) -> list[CheckerboardCell]:
        """A cell for each network."""
        return [CheckerboardCell(share, seed) for share in settings.shares for seed in seeds]

    def measure(self, cell: CheckerboardCell, settings: CheckerboardSettings, context: Context) -> CheckerboardRecord:
        """Its sensitivity, exactly."""
        model = jostle.models.create("checkerboard-net", share=cell.share)
        boards = jostle.data.load("checkerboards", split="test")
        measured = jostle.measure(model, boards, tokens="coordinates", perturbation="negative")
        return CheckerboardRecord(sensitivity=measured.value)

    def figures(self, records: CheckerboardRecords) -> list[Drawing]:
        """Sensitivity against the share of the mean."""
        shares = [cell.share for cell, _ in records]
        series = figures.Series("checkerboard-net", shares, [record.sensitivity for _, record in records])
        figure = figures.curves([series], x_label="share of the mean", y_label="sensitivity")
        return [Drawing("sensitivity", figure, "Sensitivity of the networks.", "A line at 1/64.")]

    def expectations(self, records: CheckerboardRecords) -> list[Expectation]:
        """What must hold for every network."""
        wrong = sum(record.sensitivity != 1 / 64 for _, record in records)
        return [holds_for_all("1 of 64 squares flips the prediction", wrong, len(records))]
