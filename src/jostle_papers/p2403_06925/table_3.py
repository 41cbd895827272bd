"""Table 3: the numbers of Table 1 in six settings, the last of which cannot be as printed."""

from jostle.studies.catalogue import register
from jostle.studies.verdict import Expectation, beyond, holds_for_all
from jostle_papers.p2403_06925.table_1 import (
    AS_READ,
    COLUMNS,
    CONVENTIONS,
    GROUPS,
    IMPOSSIBLE,
    LARGEST,
    USUAL,
    CountingStudy,
    Table1Records,
    digits,
    enumeration_agrees,
    first_record,
)

_PRINTED = tuple(name for name, column in COLUMNS.items() if column.is_printed)
_MEANT = tuple(name for name in COLUMNS if name not in _PRINTED)


@register
class Table3(CountingStudy):
    """The twelve numbers of Table 3, and which vocabularies and conventions give their digits."""

    name = "2403.06925/table-3"
    title = "Synthetic tokens: six settings in numbers"
    claim = (
        "As printed, a predictor that uses only the sparse tokens is less sensitive than one that uses only the "
        "frequent tokens in three settings with n_s = 3 and n_d = 1, and more sensitive in three with n_s = 1 and "
        "n_d = 7: Table 3, to four digits."
    )
    source = "Appendix A.1, Table 3"
    version = 1
    columns = tuple(COLUMNS)
    deviations = (
        "The size M of the vocabulary is not printed. M = 59 gives all digits of the first three columns and M = 69 "
        "those of the next two, each the only one that does.",
        f"The last column ({IMPOSSIBLE}) cannot be as printed: its frequent tokens need M >= 75, its number 0.0339 "
        "needs M = 69. It is computed with M = 75, and beyond the paper with m = 33, the most that M = 69 holds. The "
        "other eleven numbers have the digits that are printed.",
        AS_READ,
    )

    def expectations(self, records: Table1Records) -> list[Expectation]:
        claimed = [digits(records, name, group, "Table 3") for name in _PRINTED for group in GROUPS]
        meant = [digits(records, name, group, "Table 3 with m = 33") for name in _MEANT for group in GROUPS]
        others = [name for name in CONVENTIONS if name != USUAL and _fits_all(records, name)]
        statement = f"no other convention gives all possible columns, each row at one M up to {LARGEST}"
        alone = holds_for_all(statement, len(others), len(CONVENTIONS) - 1)
        return [*claimed, *map(beyond, [enumeration_agrees(records), *meant, alone])]


def _fits_all(records: Table1Records, convention: str) -> bool:
    """Whether one vocabulary for each row of the table gives all digits of the columns that can be as printed."""
    possible = [name for name in _PRINTED if name != IMPOSSIBLE]
    rows = [[name for name in possible if name.startswith(start)] for start in ("3", "1")]
    return all(set.intersection(*(_sizes(records, name, convention) for name in row)) for row in rows)


def _sizes(records: Table1Records, name: str, convention: str) -> set[int]:
    """The vocabularies that give the digits of a column."""
    record = first_record(records, name)
    fitting = [found.fitting[convention] for found in (record.sparse, record.frequent)]
    every = set(range(LARGEST + 1))
    return set.intersection(*(every if sizes is None else set(sizes) for sizes in fitting))
