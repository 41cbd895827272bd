"""The report of a result: what its ``report`` method writes."""

from pathlib import Path
from typing import Any

from jostle.estimates import Comparison, Influence, Measurement, Sweep
from jostle.report.html import write
from jostle.report.influence import influence_page
from jostle.report.measurement import measurement_page
from jostle.report.page import Page
from jostle.report.sweep import sweep_page
from jostle.report.worst import worst_page
from jostle.worst.result import WorstCase

Result = Measurement | Comparison | Sweep | WorstCase | Influence


def page_of(result: Result, *, inputs: str = "the inputs given", searched: Any = None) -> Page:
    """The page of a result.

    Arguments:
        result: of ``measure``, ``compare``, ``sweep``, ``worst_case`` or ``influence``.
        inputs: a name of the inputs.
        searched: for a worst case, the inputs themselves, to show some with their worst change.
    """
    if isinstance(result, Sweep):
        return sweep_page(result, inputs=inputs)
    if isinstance(result, WorstCase):
        return worst_page(result, inputs=inputs, searched=searched)
    if isinstance(result, Influence):
        return influence_page(result)
    return measurement_page(result, inputs=inputs)


def write_result(result: Result, path: str | Path, *, inputs: str = "the inputs given", searched: Any = None) -> None:
    """Write the page of a result to an HTML file, whole or not at all; arguments as for ``page_of``."""
    write(page_of(result, inputs=inputs, searched=searched), path)
