"""Tables on the command line: a csv file of numbers and categories with named columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.model import parameter_type
from jostle.cli import large_csv
from jostle.cli.options import SubjectOptions
from jostle.cli.texts import class_names
from jostle.data import table_file, text_csv


def is_table(options: SubjectOptions) -> bool:
    """Whether the data are a file of numbers with names of columns."""
    if not options.data.startswith(text_csv.PREFIX) or getattr(options, "text", None):
        return False
    file, named = text_csv.read_spec(options.data)
    if set(named) & {"text", "second"}:
        return False
    large_csv.check_ordinary(file)
    if not large_csv.is_large(file):
        return table_file.is_table(file)
    header, *first = large_csv.first_rows(file)
    return "text" not in header and bool(first) and any(large_csv.is_number(cell) for cell in first[0])


def read_table(
    options: SubjectOptions, models: Mapping[str, Any], label: str | None
) -> tuple[Any, Tensor | None, list[str]]:
    """The rows of a file of numbers, the class of each if it is known, and what people should know.

    Arguments:
        options: of the command.
        models: by name; a module says of which type its numbers are.
        label: the column of labels.
    """
    file, named = text_csv.read_spec(options.data)
    if set(named) - {"label"}:
        raise UsageError(f"--data {options.data}: of a table of numbers only label= can be named")
    if options.split != "train":
        raise UsageError(f"--split {options.split}: --data {options.data} has no splits: leave --split out")
    names = class_names(next(iter(models.values())))
    column, said = label or named.get("label"), list[str]()
    opened: tuple[Any, Tensor | None, list[str]] | None = None
    if large_csv.is_large(file):
        opened = large_csv.open_table(file, column, names, options.limit, parameter_type(models.values()))
    if opened is None:
        with large_csv.small_file(file, options.limit) as (small, said):
            opened = table_file.load_table(small, label=column, names=names, limit=options.limit)
    found, labels, notes = opened
    _check_features(getattr(found, "names", ()), models, options.data)
    units = "noise is in units of each column: of its standard deviation in these rows"
    return found, labels, [*said, *notes, units]


def _check_features(names: Sequence[str], models: Mapping[str, Any], data: str) -> None:
    """Refuse columns that an estimator was not fitted on; often one of them holds the right classes."""
    for name, model in models.items():
        features = list(getattr(getattr(model, "estimator", None), "feature_names_in_", []))
        extra = [column for column in names if column not in features]
        if features and extra and len(names) - len(extra) == len(features):
            raise UsageError(
                f"--data {data}: {name} was not fitted on {', '.join(extra)}; if {extra[0]} holds the right classes, "
                f"give --label {extra[0]}, and leave other columns out of the file"
            )
