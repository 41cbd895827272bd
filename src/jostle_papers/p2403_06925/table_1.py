"""Table 1: the sensitivity of predictors that use only the sparse or only the frequent tokens.

``CountingStudy`` is what Tables 1 and 3 share; Table 3 is ``table_3.py``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from jostle import figures
from jostle.estimates import measure
from jostle.figures import Series
from jostle.perturbations import UniformToken
from jostle.sampling import Grid
from jostle.studies.catalogue import register
from jostle.studies.evidence import exact
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, within
from jostle.tokens import Coordinates
from jostle_papers.p2403_06925.synthetic import SparseFrequent, counting, counting_sensitivity, exact_sensitivity

GROUPS = ("sparse", "frequent")
_ROUNDING = 0.00005  # of four printed digits
LARGEST = 300  # the largest vocabulary that is tried for the printed digits


@dataclass(frozen=True)
class Column:
    """One column of Table 3.

    Arguments:
        task: n_s, n_f, n_d, m, and the M with which the column's row can be had.
        printed: the sensitivity with sparse and with frequent tokens only.
        is_printed: whether the setting is the paper's; the last of the six cannot be.
        in_table_1: whether Table 1 has it too.
    """

    task: SparseFrequent
    printed: tuple[float, float]
    is_printed: bool = True
    in_table_1: bool = False


# Table 3 from left to right. M is not printed: 59 and 69 are the only sizes that give the digits.
COLUMNS = {
    "3, 3, 1, 6": Column(SparseFrequent(3, 3, 1, 6, 59), (0, 0.1315)),
    "3, 5, 1, 16": Column(SparseFrequent(3, 5, 1, 16, 59), (0, 0.2878), in_table_1=True),
    "3, 7, 1, 28": Column(SparseFrequent(3, 7, 1, 28, 59), (0, 0.4502)),
    "1, 7, 7, 10": Column(SparseFrequent(1, 7, 7, 10, 69), (0.0339, 0)),
    "1, 17, 7, 20": Column(SparseFrequent(1, 17, 7, 20, 69), (0.0339, 0), in_table_1=True),
    "1, 32, 7, 36": Column(SparseFrequent(1, 32, 7, 36, 75), (0.0339, 0)),
    "1, 32, 7, 33": Column(SparseFrequent(1, 32, 7, 33, 69), (0.0339, 0), is_printed=False),
}
IMPOSSIBLE = "1, 32, 7, 36"


@dataclass(frozen=True)
class Convention:
    """What the paper leaves open.

    Arguments:
        tie: by how much a count of 0 is a change.
        includes_present: whether the distribution of replacements may draw the present token.
    """

    tie: Fraction
    includes_present: bool


CONVENTIONS = {
    "0 is a change, any token": Convention(Fraction(1), True),
    "0 is half a change, any token": Convention(Fraction(1, 2), True),
    "0 is no change, any token": Convention(Fraction(0), True),
    "0 is a change, another token": Convention(Fraction(1), False),
    "0 is half a change, another token": Convention(Fraction(1, 2), False),
    "0 is no change, another token": Convention(Fraction(0), False),
}
USUAL = next(iter(CONVENTIONS))
AS_READ = (
    "A count that becomes 0 is a change, and replacements are uniform over all M tokens, the present one included: no "
    "other reading tried gives the digits."
)


@dataclass(frozen=True, kw_only=True)
class Table1Settings(Settings):
    """How much is computed.

    Arguments:
        seeds: samples of sequences.
        enumerated: sequences of which all T M replacements are tried.
        sampled: sequences of which each token is replaced once, at random.
    """

    seeds: int = 3
    enumerated: int = 20
    sampled: int = 100


@dataclass(frozen=True)
class Table1Cell(Cell):
    """One column of Table 3, with sequences of its own for each seed."""

    column: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class SampledSensitivity(Struct):
    """A sampled number and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PredictorRecord(Struct):
    """The sensitivity of the predictor that uses one group of tokens only.

    Arguments:
        printed: by the paper.
        closed_form: exactly.
        fraction: the same as numerator and denominator.
        enumerated: over all replacements in some sequences.
        sampled: over some replacements in more sequences.
        fitting: by convention, the vocabularies that give the printed digits; None for all of them.
    """

    printed: int | float
    closed_form: float
    fraction: tuple[int, int]
    enumerated: float
    sampled: SampledSensitivity
    fitting: dict[str, tuple[int, ...] | None]


@dataclass(frozen=True, kw_only=True)
class Table1Record(Struct):
    """One column of the table.

    Arguments:
        vocabulary: M.
        least_vocabulary: the smallest M that the setting allows.
        sparse, frequent: the two predictors.
    """

    vocabulary: int
    least_vocabulary: int
    sparse: PredictorRecord
    frequent: PredictorRecord

    def predictor(self, group: str) -> PredictorRecord:
        """The predictor that uses the tokens of one of ``GROUPS``."""
        return self.sparse if group == "sparse" else self.frequent


Table1Records = Records[Table1Settings, Table1Cell, Table1Record]


class CountingStudy(Study[Table1Settings, Table1Cell, Table1Record]):
    """Closed form, enumeration and sampling of the same numbers. A subclass has the columns and the expectations."""

    columns: ClassVar[tuple[str, ...]]  # names of ``COLUMNS``
    scales = {
        "smoke": Table1Settings(seeds=1, enumerated=2, sampled=10),
        "small": Table1Settings(),
        "paper": Table1Settings(enumerated=200, sampled=1000),
    }

    def cells(self, settings: Table1Settings, seeds: Sequence[int]) -> list[Table1Cell]:
        return [Table1Cell(column, seed) for column in self.columns for seed in seeds]

    def measure(self, cell: Table1Cell, settings: Table1Settings, context: Context) -> Table1Record:
        column, seed = COLUMNS[cell.column], cell.seed
        few = column.task.sample(settings.enumerated, seed=seed, split="enumerated")
        many = column.task.sample(settings.sampled, seed=seed, split="sampled")

        def predictor(group: str) -> PredictorRecord:
            function, size = counting(column.task, group), column.task.vocabulary
            sampled = measure(
                function, many.inputs, tokens=Coordinates(), perturbation=UniformToken(size), plan=Grid(1), seed=seed
            )
            value = counting_sensitivity(column.task, group)
            return PredictorRecord(
                printed=column.printed[GROUPS.index(group)],
                closed_form=float(value),
                fraction=(value.numerator, value.denominator),
                enumerated=exact_sensitivity(function, few.inputs, size),
                sampled=SampledSensitivity(value=sampled.value, low=sampled.low, high=sampled.high),
                fitting={name: _fitting(column, group, how) for name, how in CONVENTIONS.items()},
            )

        sparse, frequent = map(predictor, GROUPS)
        return Table1Record(
            vocabulary=column.task.vocabulary,
            least_vocabulary=column.task.least_vocabulary,
            sparse=sparse,
            frequent=frequent,
        )

    def figures(self, records: Table1Records) -> list[Drawing]:
        rows = {}
        for name in self.columns:
            record = first_record(records, name)
            pairs = [_computed_and_printed(group, record.predictor(group)) for group in GROUPS]
            rows[f"({name})"] = [series for pair in pairs for series in pair]
        more = (
            ""
            if all(COLUMNS[name].is_printed for name in self.columns)
            else (" The last row is not the paper's but what the one above may mean.")
        )
        return [
            Drawing(
                "by-column",
                figures.dots(rows, x_label="sensitivity"),
                "Sensitivity of the predictors that use only the sparse and only the frequent tokens, computed and as "
                f"printed, by (n_s, n_f, n_d, m).{more}",
                "For each column of the table the computed and the printed sensitivities of two predictors, which lie "
                "on each other.",
            )
        ]


@register
class Table1(CountingStudy):
    """The four numbers of Table 1."""

    name = "2403.06925/table-1"
    title = "Synthetic tokens: using the sparse or the frequent ones, in numbers"
    claim = (
        "A predictor that uses only the sparse tokens is less sensitive than one that uses only the frequent tokens "
        "in case 1, and more sensitive in case 2: Table 1, to four digits."
    )
    source = "Section 4.1, Table 1"
    version = 1
    columns = tuple(name for name, column in COLUMNS.items() if column.in_table_1)
    deviations = (
        "The size M of the vocabulary is not printed. M = 59 gives all digits of case 1 and M = 69 those of case 2, "
        "each the only one that does.",
        AS_READ,
    )

    def expectations(self, records: Table1Records) -> list[Expectation]:
        claimed = [digits(records, name, group, "Table 1") for name in self.columns for group in GROUPS]
        return [*claimed, beyond(enumeration_agrees(records))]


def enumeration_agrees(records: Table1Records) -> Expectation:
    """That trying all replacements gives what the formula gives; NaN is not what it gives."""
    differing = sum(
        not abs(found.enumerated - found.closed_form) <= 1e-12
        for _, record in records
        for found in (record.sparse, record.frequent)
    )
    return holds_for_all("enumeration gives what the closed form gives", differing, 2 * len(records))


def _computed_and_printed(group: str, found: PredictorRecord) -> list[Series]:
    return [Series(group, [0.0], [found.closed_form]), Series(f"{group}, printed", [0.0], [found.printed])]


def first_record(records: Table1Records, column: str) -> Table1Record:
    """The record of the first seed: what is computed exactly is the same for all."""
    part = records.where(column=column)
    return part[part.cells[0]]


def _fits(value: Fraction, printed: float) -> bool:
    """Whether a number has the four digits that are printed."""
    return abs(float(value) - printed) <= _ROUNDING


def _fitting(column: Column, group: str, how: Convention) -> tuple[int, ...] | None:
    """The vocabularies that give the printed digits, None for all of them."""
    task, printed = column.task, column.printed[GROUPS.index(group)]
    sizes = range(task.least_vocabulary, LARGEST + 1)

    def value(size: int) -> Fraction:
        sized = _with_vocabulary(task, size)
        return counting_sensitivity(sized, group, tie=how.tie, includes_present=how.includes_present)

    fitting = tuple(size for size in sizes if _fits(value(size), printed))
    return None if len(fitting) == len(sizes) else fitting


def _with_vocabulary(task: SparseFrequent, size: int) -> SparseFrequent:
    return SparseFrequent(**{**vars(task), "vocabulary": size})


def digits(records: Table1Records, name: str, group: str, where: str) -> Expectation:
    """That a number of a table has the digits that are printed."""
    column, found = COLUMNS[name], first_record(records, name).predictor(group)
    size = f"M = {column.task.vocabulary}{', the least there can be' if name == IMPOSSIBLE else ''}"
    statement = f"{where}, ({name}), {size}: sensitivity with {group} tokens only"
    return within(statement, exact(found.closed_form), found.printed, _ROUNDING)
