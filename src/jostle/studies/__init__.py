"""Studies: one figure or table of a paper each, from pieces of work to a verdict. This is the framework.

* ``study``: what a study is, with its cells. ``settings``: what it can choose. ``schema``: both and records as JSON.
* ``catalogue``: all studies by name. They come from packages that publish them, such as ``jostle_papers``.
* ``runner``: runs one, with ``workers`` for the cells and ``folder`` for the files.
* ``records``: finished cells, as figures and expectations read them.
* ``evidence``: numbers with intervals. ``verdict``: what follows from them. ``looks``: what judging twice costs.
* ``scoreboard``: all runs as a table. ``page``: the same as an HTML page.

``page`` is not imported here, nor is anything that draws: matplotlib takes a while, and most processes do not draw.
"""

from jostle.studies.catalogue import STUDIES, get, names, register
from jostle.studies.evidence import (
    Measured,
    difference,
    estimated,
    exact,
    exponential,
    interval,
    log_ratio,
    mean_by_seed,
    over_sample,
    over_seeds,
    paired,
    proportion,
    scaled,
    unpaired,
)
from jostle.studies.folder import Summary, told
from jostle.studies.records import Records
from jostle.studies.runner import CellsFailedError, Result, run
from jostle.studies.schema import IfGiven, Struct, from_plain, to_plain
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
    is_smaller,
    is_within_factor,
    overall,
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
    "IfGiven",
    "Measured",
    "Records",
    "Result",
    "Row",
    "Settings",
    "Struct",
    "Study",
    "Summary",
    "Verdict",
    "beyond",
    "decide",
    "difference",
    "doubted",
    "estimated",
    "exact",
    "exponential",
    "from_plain",
    "get",
    "holds_for_all",
    "interval",
    "is_above",
    "is_below",
    "is_less",
    "is_smaller",
    "is_within_factor",
    "log_ratio",
    "markdown",
    "mean_by_seed",
    "names",
    "over_sample",
    "over_seeds",
    "overall",
    "paired",
    "proportion",
    "register",
    "run",
    "scaled",
    "scoreboard",
    "to_plain",
    "told",
    "unpaired",
    "within",
]
