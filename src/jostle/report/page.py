"""The parts of a report: page, sections, tables, passages. Text is plain text; `backticks` set code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jostle.base import checks
from jostle.base.errors import UsageError

Value = str | int | float
TONES = ("good", "bad", "open")
_LONG = 40  # characters
_MOST_STACKED = 12  # rows of a table; a longer one is scrolled on narrow screens


@dataclass(frozen=True)
class Entry:
    """One entry of a table: its text, and the key by which readers sort its column.

    Arguments:
        text: as shown, e.g. ``0.012 [0.010, 0.014]``; several lines are below each other.
        sort_key: a number or text; by default ``text``. An entry with a number as key is aligned right.
        tone: the colour of the text: one of ``TONES``, or none.
        link: the title of a section of the page; the text becomes a link to it.
    """

    text: str
    sort_key: Value | None = None
    tone: str = ""
    link: str = ""

    def __post_init__(self) -> None:
        if self.tone:
            checks.choice("tone", self.tone, TONES)

    @property
    def lines(self) -> list[str]:
        """The lines of ``text``."""
        return self.text.splitlines()

    @property
    def is_long(self) -> bool:
        """Whether it is prose, which a narrow screen shows below the name of its column and not beside it."""
        return len(self.text) > _LONG

    @property
    def key(self) -> Value:
        """``sort_key``, or ``text`` without one."""
        return self.text if self.sort_key is None else self.sort_key

    @property
    def is_number(self) -> bool:
        """Whether the entry is sorted as a number."""
        return isinstance(self.key, int | float)


@dataclass(frozen=True)
class Table:
    """Rows of entries under named columns; the first entry of a row names the row. Readers can sort by any column.

    >>> Table(["model", "flips"], [["vit", 0.0123456]]).entries()
    [[Entry(text='vit', sort_key=None, tone='', link=''), Entry(text='0.01235', sort_key=0.0123456, tone='', link='')]]

    Arguments:
        columns: the headings.
        rows: text, numbers (shown with four digits) or ``Entry``; one for each column.
        caption: what the table shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Value | Entry]]
    caption: str = ""

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise UsageError(f"row {index} of the table has {len(row)} entries for {len(self.columns)} columns")

    def entries(self) -> list[list[Entry]]:
        """``rows`` with every value as an entry."""
        return [[_entry(value) for value in row] for row in self.rows]

    @property
    def is_stacked(self) -> bool:
        """Whether a narrow screen shows the entries of a row below each other: if they are wide and rows are few."""
        has_lines = any(len(entry.lines) > 1 for row in self.entries() for entry in row)
        return has_lines or (len(self.columns) > 2 and len(self.rows) <= _MOST_STACKED)

    def numeric(self) -> list[bool]:
        """For each column, whether all its entries are numbers or empty, and at least one is a number."""
        columns = zip(*self.entries(), strict=True) if self.rows else [()] * len(self.columns)
        return [
            any(entry.is_number for entry in column) and all(entry.is_number or not entry.text for entry in column)
            for column in columns
        ]


@dataclass(frozen=True)
class Token:
    """A piece of a passage and how much it is shaded.

    Arguments:
        text: as in the passage, with the spaces around it.
        share: the shade, from 0, none, to 1, the darkest; None for a piece that was not measured.
        hint: the tooltip; by default the share in percent.
        is_added: whether it is a piece that the author did not write, such as a separator; set smaller.
    """

    text: str
    share: float | None = None
    hint: str = ""
    is_added: bool = False

    def __post_init__(self) -> None:
        if self.share is not None:
            checks.number(f"share of the token {self.text!r}", self.share, least=0, most=1)

    @property
    def percent(self) -> int:
        """The share in whole percent; a share above 0 is at least 1."""
        share = self.share or 0.0
        return max(round(100 * share), 1 if share > 0 else 0)

    @property
    def tooltip(self) -> str:
        """``hint``, or the share in percent, or nothing."""
        return self.hint or ("" if self.share is None else f"{self.percent} %")


@dataclass(frozen=True)
class Passage:
    """A text whose tokens are shaded, e.g. by how often jostling each of them flips the prediction.

    Arguments:
        tokens: in order; their texts joined are the text.
        label: a line above the text, e.g. prediction and truth.
    """

    tokens: Sequence[Token]
    label: str = ""


@dataclass(frozen=True)
class HeatMap:
    """A grid of squares, each in the colour of its value, alone or over a picture.

    Arguments:
        title: above it, e.g. the name of a model.
        columns: how many squares a row has.
        sizes: the relative heights of the rows and widths of the columns, if they are not all equal.
        shares: of each square, row by row: its place on the colour scale, from 0 to 1; None for a square without value.
        hints: the tooltip of each square.
        texts: in the squares, e.g. their numbers; none by default.
        picture: an image below the squares, as an address that begins with ``data:``; none by default.
        caption: below it.
        ratio: width divided by height.
    """

    title: str
    columns: int
    shares: Sequence[float | None]
    hints: Sequence[str]
    texts: Sequence[str] = ()
    picture: str = ""
    caption: str = ""
    ratio: float = 1.0
    sizes: tuple[Sequence[int], Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if not len(self.shares) == len(self.hints) or (self.texts and len(self.texts) != len(self.shares)):
            raise UsageError(f"the map {self.title!r} must have one hint, and one text or none, for each square")
        if self.picture and not self.picture.startswith("data:image/"):
            raise UsageError(f"the picture of the map {self.title!r} must be an address that begins with data:image/")
        for share in self.shares:
            if share is not None:
                checks.number(f"share of a square of {self.title!r}", share, least=0, most=1)

    @property
    def alt_text(self) -> str:
        """Title, caption and the darkest square, for readers who cannot see the map."""
        known = {place: share for place, share in enumerate(self.shares) if share}
        darkest = self.hints[max(known, key=known.__getitem__)] if known else ""
        return ": ".join(part for part in (self.title, self.caption, darkest and f"most at {darkest}") if part)

    @property
    def template(self) -> str:
        """Rows and columns as a style sheet has them."""
        if self.sizes is None:
            return f"repeat({len(self.shares) // self.columns}, 1fr) / repeat({self.columns}, 1fr)"
        return " / ".join(" ".join(f"{size}fr" for size in part) for part in self.sizes)

    @property
    def squares(self) -> list[tuple[str, str, str]]:
        """For each square the class of its colour, its hint and its text."""
        texts = self.texts or [""] * len(self.shares)
        return [
            ("none" if share is None else f"h{heat_level(share)}", hint, text)
            for share, hint, text in zip(self.shares, self.hints, texts, strict=True)
        ]


@dataclass(frozen=True)
class Picture:
    """An image, e.g. an input as it is.

    Arguments:
        title: above it.
        picture: its address, which begins with ``data:image/``.
        caption: below it.
        ratio: width divided by height.
    """

    title: str
    picture: str
    caption: str = ""
    ratio: float = 1.0

    def __post_init__(self) -> None:
        if not self.picture.startswith("data:image/"):
            raise UsageError(f"the picture {self.title!r} must be an address that begins with data:image/")


HEAT_LEVELS = 20  # colours of a heat map beside that of 0


def heat_level(share: float) -> int:
    """The number of a colour: 0 for 0, and from 1 on for what is larger.

    >>> heat_level(0.0), heat_level(0.001), heat_level(0.5), heat_level(1.0)
    (0, 1, 10, 20)
    """
    return max(round(share * HEAT_LEVELS), 1 if share > 0 else 0)


@dataclass(frozen=True)
class Section:
    """One part of a page: paragraphs, figure, maps, legend, passages, table, notes. Only the title is required.

    Arguments:
        title: the heading.
        text: paragraphs.
        figure_svg: an ``<svg>`` element made by ``jostle.figures.svg``. It is not escaped.
        caption: of the figure.
        table: a table.
        notes: remarks and warnings, set apart.
        alt: a description of the figure for readers who cannot see it; by default title and caption.
        passages: texts with shaded tokens.
        legend: the meaning of the shades: shaded words above the passages.
        is_listed: whether it is in the table of contents; a section that continues the one before need not be.
        narrow_svg: the same figure for a phone; without it a narrow screen scrolls the wide one.
        maps: pictures and heat maps, side by side where there is room.
        scale: the two ends of the colour scale of the maps, as text.
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
    narrow_svg: str | None = None
    maps: Sequence[HeatMap | Picture] = ()
    scale: tuple[str, str] | None = None

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
        sections: a page of four or more has a table of contents.
        settings: what was measured and how, by name.
        footer: where the page comes from.
        meaning: what the answer means, in two sentences for people who do not know the words.
        command: the command line that makes the page again.
        data: anything that JSON can hold, stored in the page for ``recover``. NaN and infinity become null.
    """

    title: str
    lead: str
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)
    footer: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    meaning: str = ""
    command: str = ""


def _entry(value: Value | Entry) -> Entry:
    if isinstance(value, Entry):
        return value
    if isinstance(value, str):
        return Entry(value)
    return Entry(f"{value:,}" if isinstance(value, int) else f"{value:.4g}".replace("-", "\N{MINUS SIGN}"), value)
