"""Reports: one self-contained HTML page with text, figures, tables and the data behind them.

``page`` has the parts of a page. ``html`` turns a page into HTML, with ``page.html.j2``, ``page.css`` and ``page.js``,
and reads the data of a page back. ``measurement``, with ``positions``, ``texts`` and ``images``, ``sweep``, ``worst``
and ``influence`` make the pages of results; every result has a method ``report`` that writes its page.
"""

from jostle.report.html import recover, render, write
from jostle.report.page import Entry, HeatMap, Page, Passage, Picture, Section, Table, Token

__all__ = [
    "Entry",
    "HeatMap",
    "Page",
    "Passage",
    "Picture",
    "Section",
    "Table",
    "Token",
    "recover",
    "render",
    "write",
]
