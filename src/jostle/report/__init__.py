"""One self-contained HTML page: text, figures, tables, and the data behind them. Left of here: figures.

``page`` says what a page is, ``rendering`` writes it down with ``page.html.j2``, ``page.css`` and ``page.js``,
``embedding`` puts data into the page and gets it back.
"""

from jostle.report.html import recover, render, write
from jostle.report.page import Cell, Page, Passage, Section, Table, Token

__all__ = ["Cell", "Page", "Passage", "Section", "Table", "Token", "recover", "render", "write"]
