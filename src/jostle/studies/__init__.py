"""Studies: a figure or a table of a paper, from cells to a verdict. Left of here: demo. Right of here: cli.

``study`` says what a study is, ``settings`` and ``records`` what it works on, ``catalogue`` lists them. ``runner`` runs
one, with ``work``, ``workers`` and ``folder``; ``evidence`` and ``verdict`` decide; ``scoreboard`` and ``page`` report.
"""

from jostle.studies.catalogue import STUDIES, get, names, register
from jostle.studies.evidence import (
    Measured,
    difference,
    exact,
    interval,
    over_seeds,
    paired,
    proportion,
    recorded,
    unpaired,
)
from jostle.studies.records import Records
from jostle.studies.runner import CellsFailedError, Result, run
from jostle.studies.scoreboard import Row, markdown, scoreboard
from jostle.studies.settings import SCALES, Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import (
    Expectation,
    Finding,
    Verdict,
    beyond,
    decide,
    doubted,
    holds_for_all,
    is_above,
    is_below,
    is_less,
    overall,
    shared_level,
    within,
)

__all__ = [
    "SCALES",
    "STUDIES",
    "Cell",
    "CellsFailedError",
    "Context",
    "Drawing",
    "Expectation",
    "Finding",
    "Measured",
    "Records",
    "Result",
    "Row",
    "Settings",
    "Study",
    "Verdict",
    "beyond",
    "decide",
    "difference",
    "doubted",
    "exact",
    "get",
    "holds_for_all",
    "interval",
    "is_above",
    "is_below",
    "is_less",
    "markdown",
    "names",
    "over_seeds",
    "overall",
    "paired",
    "proportion",
    "recorded",
    "register",
    "run",
    "scoreboard",
    "shared_level",
    "unpaired",
    "within",
]
