"""A study of your own: which squares of a checkerboard does the network use?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import jostle
from jostle.figures import Series, curves
from jostle.studies import Cell, Context, Drawing, Expectation, Records, Settings, Study, holds_for_all, register


@dataclass(frozen=True, kw_only=True)
class CheckerboardSettings(Settings):
    """What is tried.

    Arguments:
        shares: how much the mean of the image counts in each network.
    """

    seeds: int = 1
    shares: tuple[float, ...] = (0.0, 0.5)


@register
class Checkerboard(Study[CheckerboardSettings]):
    """Turning one of 64 squares changes the prediction only if it is the one in the corner."""

    name = "plugin/checkerboard"
    title = "One square decides"
    claim = "The prediction changes for 1 of 64 squares."
    source = "the example plug-in"
    version = 1
    scales: ClassVar = {scale: CheckerboardSettings() for scale in ("smoke", "small", "paper")}

    def cells(self, settings: CheckerboardSettings, seeds: Sequence[int]) -> list[Cell]:
        """A cell for each network."""
        return [Cell.of(share=share, seed=seed) for share in settings.shares for seed in seeds]

    def measure(self, cell: Cell, settings: CheckerboardSettings, context: Context) -> dict[str, float]:
        """Its sensitivity, exactly."""
        model = jostle.models.create("checkerboard-net", share=cell.values["share"])
        boards = jostle.data.load("checkerboards", split="test")
        measured = jostle.measure(model, boards, tokens="coordinates", perturbation="negative")
        return {"sensitivity": measured.value}

    def figures(self, records: Records[CheckerboardSettings]) -> list[Drawing]:
        """Sensitivity against the share of the mean."""
        shares = [float(cell.values["share"]) for cell, _ in records]
        found = [float(value) for value in records.column("sensitivity")]
        series = Series("checkerboard-net", shares, found)
        figure = curves([series], x_label="share of the mean", y_label="sensitivity")
        return [Drawing("sensitivity", figure, "Sensitivity of the networks.", "A line at 1/64.")]

    def expectations(self, records: Records[CheckerboardSettings]) -> list[Expectation]:
        """What must hold for every network."""
        wrong = sum(value != 1 / 64 for value in records.column("sensitivity"))
        return [holds_for_all("1 of 64 squares flips the prediction", wrong, len(records))]
