"""Records in, figure out; no statistics here. Left of here: estimates. Right of here: report.

Every function returns a ``matplotlib.figure.Figure`` made without pyplot, so that nothing global changes and no window
opens. ``svg`` makes text for an HTML page of it, ``save`` a file. ``curves.py`` is the file to imitate.
"""

from jostle.figures.boolean import boolean_figure
from jostle.figures.curves import Series, curves
from jostle.figures.differences import differences
from jostle.figures.heat_maps import heat_maps
from jostle.figures.output import save, svg
from jostle.figures.points import dots, scatter
from jostle.figures.profile import profile_figure
from jostle.figures.style import Look, looks

__all__ = [
    "Look",
    "Series",
    "boolean_figure",
    "curves",
    "differences",
    "dots",
    "heat_maps",
    "looks",
    "profile_figure",
    "save",
    "scatter",
    "svg",
]
