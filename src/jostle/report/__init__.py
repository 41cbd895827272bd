"""Reports: one self-contained HTML page with text, figures, tables and the data behind them.

``page`` has the parts of a page. ``html`` turns a page into HTML, with ``page.html.j2``, ``page.css`` and ``page.js``,
and reads the data of a page back. ``measurement``, ``positions`` and ``texts`` make the pages of measurements.
"""

from jostle.report.html import recover, render, write
from jostle.report.page import Entry, Page, Passage, Section, Table, Token

__all__ = ["Entry", "Page", "Passage", "Section", "Table", "Token", "recover", "render", "write"]
