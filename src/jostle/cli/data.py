"""``jostle data``: the state of all datasets, and downloads."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from jostle.cli.output import say

if TYPE_CHECKING:
    from jostle.data.inventory import DatasetState

_HELP = """Show which datasets are here, and download those that are not.

Files are searched in --data DIR, in the folder that the environment
variable JOSTLE_DATA names, and in the user's cache; see docs/data.md.
"""

data = App(name="data", help=_HELP, help_format="plaintext")


@data.command
def status(
    *,
    folder: Annotated[Path | None, Parameter(name="--data", help="Folder of datasets to search first.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")] = False,
) -> None:
    """Show for every dataset its folder, its files, and whether their checksums are right.

    jostle data status
    jostle data status --data ~/datasets --json
    """
    from jostle.data import status as find

    found = find(folder, "all")
    if as_json:
        say(json.dumps([dataset.to_dict() for dataset in found], indent=1))
        return
    table = Table("dataset", "state", "where", "files", "licence", box=None, padding=(0, 2))
    for dataset in found:
        table.add_row(
            dataset.name, dataset.state, dataset.folder or "-", _describe_files(dataset), dataset.licence or "-"
        )
    Console(highlight=False, markup=False).print(table)


@data.command
def get(
    name: Annotated[list[str], Parameter(help="Names of datasets; jostle list datasets shows them.", negative="")],
    /,
    *,
    folder: Annotated[Path | None, Parameter(name="--data", help="Folder for the files, instead of the cache.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")] = False,
    quiet: Annotated[bool, Parameter(negative="", show_default=False, help="Show no progress.")] = False,
) -> None:
    """Download the official files of datasets and compare their checksums.

    Files that are already there are left alone. Mind the licence of each
    dataset; jostle data status prints it.

      jostle data get mnist fashion-mnist
    """
    from jostle.data import fetch, source_of

    for one in name:
        source_of(one)  # an unknown name is an error before any work
    results = []
    for one in dict.fromkeys(name):
        where, downloaded = fetch(one, folder, progress=not quiet)
        results.append({"name": one, "folder": None if where is None else str(where), "downloaded": downloaded})
        if not as_json:
            say(_describe_download(one, where, downloaded))
    if as_json:
        say(json.dumps(results, indent=1))


def _describe_files(dataset: "DatasetState") -> str:
    """Number of right files, and the names of the others."""
    if not dataset.files or dataset.state == "missing":
        return dataset.note
    right = sum(file.state == "ok" for file in dataset.files)
    wrong = [f"{file.name} {file.problem}" for file in dataset.files if file.state == "wrong"]
    missing = [file.name for file in dataset.files if file.state == "missing"]
    parts = [f"{right} of {len(dataset.files)} ok", *(f"wrong: {text}" for text in wrong)]
    return "; ".join([*parts, *([f"missing: {', '.join(missing)}"] if missing else [])])


def _describe_download(name: str, where: Path | None, downloaded: list[str]) -> str:
    if where is None:
        return f"{name}: comes with a Python package, which is installed"
    if not downloaded:
        return f"{name}: already complete in {where}"
    return f"{name}: {', '.join(downloaded)} in {where}"
