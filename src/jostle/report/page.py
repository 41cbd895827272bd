"""What a report is made of. All text is plain text: it is escaped, and `backticks` set code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name

Value = str | int | float
TONES = ("good", "bad", "open")


@dataclass(frozen=True)
class Cell:
    """What one cell of a table shows, and what its column is sorted by.

    Arguments:
        text: as shown, e.g. ``0.012 [0.010, 0.014]``; several lines are set one below the other.
        sort_key: a number or text; by default ``text``. A number makes the cell a number: aligned right.
        tone: the colour of the text, beside what it says: one of ``TONES``, or none.
        link: the title of the section of the page to which the text leads.
    """

    text: str
    sort_key: Value | None = None
    tone: str = ""
    link: str = ""

    def __post_init__(self) -> None:
        if self.tone and self.tone not in TONES:
            raise unknown_name("tone", self.tone, TONES)

    @property
    def lines(self) -> list[str]:
        """The lines of ``text``."""
        return self.text.splitlines()

    @property
    def key(self) -> Value:
        """``sort_key``, or ``text`` where there is none."""
        return self.text if self.sort_key is None else self.sort_key

    @property
    def is_number(self) -> bool:
        """Whether the cell is sorted as a number."""
        return isinstance(self.key, int | float)


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the first cell of a row names the row. Readers can sort by any column.

    >>> Table(["model", "flips"], [["vit", 0.0123456]]).cells()
    [[Cell(text='vit', sort_key=None, tone='', link=''), Cell(text='0.01235', sort_key=0.0123456, tone='', link='')]]

    Arguments:
        columns: the headings.
        rows: text, numbers (shown with four digits) or ``Cell``, as many in each row as there are columns.
        caption: what the table shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Value | Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise UsageError(f"row {index} of the table has {len(row)} cells for {len(self.columns)} columns")

    def cells(self) -> list[list[Cell]]:
        """``rows`` with every value as a cell."""
        return [[_cell(value) for value in row] for row in self.rows]

    def has_lines(self) -> bool:
        """Whether a cell has several lines: then the cells of a row stand below each other on narrow screens."""
        return any(len(cell.lines) > 1 for row in self.cells() for cell in row)

    def numeric(self) -> list[bool]:
        """For each column whether it is one of numbers; empty cells do not count against it."""
        columns = zip(*self.cells(), strict=True) if self.rows else [()] * len(self.columns)
        return [
            any(cell.is_number for cell in column) and all(cell.is_number or not cell.text for cell in column)
            for column in columns
        ]


@dataclass(frozen=True)
class Token:
    """A piece of a passage and how much it is shaded.

    Arguments:
        text: as it stands in the passage, with the spaces around it.
        share: from 0, no shade, to 1, the darkest; None for what was not measured.
        hint: what a reader sees who points at it; by default the share in percent.
        is_added: whether it is no part of the text as it was written, such as a separator; set smaller.
    """

    text: str
    share: float | None = None
    hint: str = ""
    is_added: bool = False

    def __post_init__(self) -> None:
        if self.share is not None and not 0 <= self.share <= 1:
            raise UsageError(f"share={self.share!r} of the token {self.text!r} must be from 0 to 1, or None")

    @property
    def percent(self) -> int:
        """The share in whole percent; what is more than 0 is at least 1."""
        share = self.share or 0.0
        return max(round(100 * share), 1 if share > 0 else 0)

    @property
    def said(self) -> str:
        """``hint``, or the share in percent, or nothing."""
        return self.hint or ("" if self.share is None else f"{self.percent} %")


@dataclass(frozen=True)
class Passage:
    """A text whose tokens are shaded, e.g. by how often jostling each of them flips the prediction.

    Arguments:
        tokens: in order; their texts together are the text.
        label: what stands above it, e.g. prediction and truth.
    """

    tokens: Sequence[Token]
    label: str = ""


@dataclass(frozen=True)
class Section:
    """One part of a page: paragraphs, figure, legend, passages, table, notes; all but the title may be missing.

    Arguments:
        title: the heading.
        text: paragraphs.
        figure_svg: an ``<svg>`` element as ``jostle.figures.svg`` makes it. It goes into the page as it is.
        caption: of the figure.
        table: a table.
        notes: remarks and warnings, set apart.
        alt: what the figure shows, for people who cannot see it; by default title and caption.
        passages: texts with shaded tokens.
        legend: what the shades mean: words shaded as tokens are, above the passages.
        is_listed: whether the table of contents has it; a section that goes on with the one before need not be there.
    """

    title: str
    text: Sequence[str] = ()
    figure_svg: str | None = None
    caption: str = ""
    table: Table | None = None
    notes: Sequence[str] = ()
    alt: str = ""
    passages: Sequence[Passage] = ()
    legend: Sequence[Token] = ()
    is_listed: bool = True

    def __post_init__(self) -> None:
        for name in ("text", "notes"):
            if isinstance(getattr(self, name), str):  # one paragraph, not one for each letter
                object.__setattr__(self, name, (getattr(self, name),))

    @property
    def alt_text(self) -> str:
        """``alt``, or title and caption."""
        return self.alt or ": ".join(part for part in (self.title, self.caption) if part)


@dataclass(frozen=True)
class Page:
    """A report.

    Arguments:
        title: of the page.
        lead: the answer in a sentence or two.
        sections: a table of contents appears from four on.
        settings: what was measured and how, by name.
        footer: where the page comes from.
        data: anything JSON can hold; goes into the page, ``recover`` reads it back. NaN and infinity become null.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)
    footer: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


def _cell(value: Value | Cell) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value)
    return Cell(f"{value:,}" if isinstance(value, int) else f"{value:.4g}".replace("-", "\N{MINUS SIGN}"), value)
