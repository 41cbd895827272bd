"""What a study is: one figure or table of a paper, from cells to records, figures and expectations.

A study only says what to do; ``runner`` does it. To add one, write a file with a subclass of ``Study`` and
``@register`` on it, and publish it as an entry point of the group ``jostle.studies``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

from jostle.base.errors import UsageError
from jostle.base.progress import State
from jostle.base.specs import written
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import SCALES, Settings, plain_settings
from jostle.studies.verdict import Expectation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAME = re.compile(r"[a-z0-9.]+(-[a-z0-9.]+)*/[a-z0-9.]+(-[a-z0-9.]+)*")


class Cell:
    """One piece of work that is done and recorded as a whole, e.g. one network on one dataset from one seed.

    A study has a frozen dataclass of its own for its cells, or several. The fields, numbers and texts, tell one cell
    from another.

    >>> @dataclass(frozen=True)
    ... class RunCell(Cell):
    ...     model: str
    ...     n: int
    ...     std: float
    ...     seed: int
    >>> RunCell("transformer", n=10, std=0.5, seed=0).key
    'transformer/n=10/std=0.5/seed=0'
    """

    @property
    def values(self) -> Mapping[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @cached_property
    def key(self) -> str:
        """Readable, unique in the study, the same in every run: texts as they are, numbers with their name."""
        return "/".join(_part(name, value) for name, value in self.values.items())


@dataclass(frozen=True)
class Context:
    """What surrounds the work on one cell.

    Arguments:
        folder: an existing folder for the checkpoints of this cell. It stays after a kill. It is removed once the cell
            is recorded, unless the study keeps checkpoints.
        report: a function that is told the progress of the cell.
        data: the folder of datasets; None for the usual places.
        device: where networks run.
        networks: the folder of trained networks that all studies share; None for this cell's own folder.
    """

    folder: Path
    report: Callable[[State], None]
    data: Path | None = None
    device: str = "cpu"
    networks: Path | None = None


@dataclass(frozen=True)
class Drawing:
    """One figure of a study.

    Arguments:
        stem: name of its file without the ending.
        figure: from ``jostle.figures``.
        caption: what the figure shows.
        alt: a description for people who cannot see the figure.
    """

    stem: str
    figure: "Figure"
    caption: str
    alt: str


AnySettings = TypeVar("AnySettings", bound=Settings)
AnyCell = TypeVar("AnyCell", bound=Cell)
AnyRecord = TypeVar("AnyRecord", bound=Struct)


class Study(ABC, Generic[AnySettings, AnyCell, AnyRecord]):
    """One figure or table of a paper: what is measured, at three scales, and what the paper lets one expect.

    ``Study[Figure3Settings, Figure3Cell, Figure3Record]`` names three frozen dataclasses: what can be chosen, one piece
    of work, and what is recorded of it. Each may be a union of several.

    A cell's record must depend on its values and the settings only. The runner helps: each cell starts with torch on
    one thread, float32 by default, and global generators seeded by the cell's key.

    Attributes:
        name: ``paper/item``, e.g. ``2403.06925/figure-4``.
        title: a heading.
        claim: what the paper claims, in one sentence.
        source: the place of the claim in the paper.
        version: to be raised whenever the numbers change.
        scales: settings for ``smoke`` (seconds, nothing to download), ``small`` (minutes on two cores) and ``paper``.
        deviations: differences from the paper, a sentence each.
        level: of every interval, two-sided.
        earlier_looks: numbers of seeds at which it was judged before, where its records do not show it.
        keeps_checkpoints: whether the checkpoint folders of finished cells stay.
        record_type: the type of the records, taken from the annotation of ``measure``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    claim: ClassVar[str]
    source: ClassVar[str]
    version: ClassVar[int]
    scales: ClassVar[Mapping[str, Settings]]
    deviations: ClassVar[Sequence[str]] = ()
    level: ClassVar[float] = 0.95
    earlier_looks: ClassVar[Sequence[int]] = ()
    keeps_checkpoints: ClassVar[bool] = False
    record_type: ClassVar[Any] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "measure" in vars(cls):
            cls.record_type = get_type_hints(cls.measure).get("return")

    @abstractmethod
    def cells(self, settings: AnySettings, seeds: Sequence[int]) -> Sequence[AnyCell]:
        """All cells, in the order in which they are started and reported; a further seed only adds cells."""

    @abstractmethod
    def measure(self, cell: AnyCell, settings: AnySettings, context: Context) -> AnyRecord:
        """The record of one cell."""

    @abstractmethod
    def figures(self, records: Records[AnySettings, AnyCell, AnyRecord]) -> list[Drawing]:
        """The figures, from the records alone."""

    @abstractmethod
    def expectations(self, records: Records[AnySettings, AnyCell, AnyRecord]) -> list[Expectation]:
        """What the paper lets one expect of these records, by the functions of ``verdict``."""


AnyStudy = Study[Any, Any, Any]


def _part(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{name}={written(value) if isinstance(value, float) else value}"


def check_declared(study: type[AnyStudy]) -> None:
    """Raise if the class lacks an attribute that a study must have."""
    label = f"study class {study.__qualname__}"
    for attribute in ("name", "title", "claim", "source"):
        text = getattr(study, attribute, None)
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{label} has {attribute}={text!r}; expected text")
    if not _NAME.fullmatch(study.name):
        raise UsageError(
            f"{label} has name={study.name!r}; expected paper/item in lower case, e.g. 2403.06925/figure-4"
        )
    version = getattr(study, "version", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UsageError(f"{label} has version={version!r}; expected a whole number of at least 1")
    if isinstance(study.deviations, str):
        raise UsageError(f"{label} has one text as deviations; expected a list of sentences")
    kinds = get_args(study.record_type) or (study.record_type,)
    if not all(isinstance(kind, type) and issubclass(kind, Struct) for kind in kinds):
        raise UsageError(
            f"{label} must annotate measure with the type of its records, a frozen dataclass that inherits from Struct"
        )
    scales = getattr(study, "scales", {})
    if set(scales) != set(SCALES) or not all(isinstance(settings, Settings) for settings in scales.values()):
        raise UsageError(f"{label} has scales for {sorted(scales)}; expected Settings for {', '.join(SCALES)}")
    for settings in scales.values():
        plain_settings(settings)


def make_cells(study: AnyStudy, settings: Settings, seeds: Sequence[int]) -> list[Cell]:
    """The cells of ``study``, after a check of their keys."""
    cells = list(study.cells(settings, seeds))
    keys = [cell.key for cell in cells]
    repeated = sorted({key for key in keys if keys.count(key) > 1}) if len(set(keys)) < len(keys) else []
    if repeated:
        raise UsageError(f"study {study.name} has more than one cell with the key {repeated[0]!r}")
    if not cells:
        raise UsageError(f"study {study.name} has no cells under these settings")
    return cells
