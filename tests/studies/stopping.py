"""Cells whose training is stopped and taken up again."""

from pathlib import Path
from typing import Any

import pytest

from jostle.studies import Cell, Struct
from jostle.studies.study import AnyStudy, Context
from jostle_papers.stacked.adamw import StackedAdamW


class Stop(BaseException):
    """As sudden as a kill: nothing between it and the test catches it."""


def stopped_and_resumed(study: AnyStudy, cell: Cell, settings: Any, folder: Path, at: int) -> tuple[Struct, int]:
    """The record of a cell that was stopped before step ``at``, and the steps that it took afterwards."""
    context, step, taken = Context(folder, lambda _: None), StackedAdamW.step, [0]

    def counted(self: StackedAdamW, *arguments: Any) -> None:
        taken[0] += 1
        step(self, *arguments)

    def stopping(self: StackedAdamW, *arguments: Any) -> None:
        if taken[0] == at - 1:
            raise Stop
        counted(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StackedAdamW, "step", stopping)
        with pytest.raises(Stop):
            study.measure(cell, settings, context)
        taken[0] = 0
        patch.setattr(StackedAdamW, "step", counted)
        return study.measure(cell, settings, context), taken[0]
