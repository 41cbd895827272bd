"""What a command writes: refused before any work where it would replace what is read, printed before it is saved."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.base.files import check_writable

_EXAMPLES = {
    "--report": "report.html",
    "--picture": "flip.png",
    "--figure": "figure.svg",
    "--plot": "sweep.svg",
    "--out": "corruptions.png",
}
_RESULT = b'"kind": "jostle/'  # near the beginning of every result
_BEGINNING = 64  # bytes


def check_outputs(outputs: Mapping[str, Path | None], read: Iterable[tuple[str, str | Path | None]]) -> None:
    """Raise, before any work, unless every output can be written and replaces neither what is read nor another output.

    Arguments:
        outputs: files that will be written, by the option that names them; None if it does not.
        read: files, folders and specs of models and data, each with its option.
    """
    named = {flag: path for flag, path in outputs.items() if path is not None}
    sources = list(read)
    for flag, path in named.items():
        for source, spec in sources:
            if spec is not None and _replaces(path, str(spec)):
                raise UsageError(f"{flag} {path} would replace a file that {source} {spec} reads; give another name")
    flags = list(named)
    for place, flag in enumerate(flags):
        for other in flags[:place]:
            if _is_same(named[flag], named[other]):
                raise UsageError(
                    f"{other} {named[other]} and {flag} {named[flag]} are one file; give each its own name"
                )
    for flag, path in named.items():
        check_writable(path, _EXAMPLES.get(flag, "result.json"))


def say(text: str) -> None:
    """Print at once; if nobody reads any more, as behind ``| head``, go on: files are still to be written."""
    try:
        print(text, flush=True)  # noqa: T201
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replaces(path: Path, spec: str) -> bool:
    return any(_is_in(path, place) if place.is_dir() else _is_same(path, place) for place in _places(spec))


def _places(spec: str) -> Iterator[Path]:
    """Files and folders that exist and that a spec may name: ``x.npy``, ``csv:FILE:text=a``, ``py:my_model:make``, ...

    >>> list(_places("nothing:of:the=kind"))
    []
    """
    kind, _, rest = spec.partition(":")
    names = [spec]
    if kind != "zoo":  # whose names are of networks
        names += [rest, rest.rpartition(":")[0], rest.partition(":")[0]]
    names += [part.partition("=")[2] for part in rest.replace(":", ",").split(",")]
    if kind == "py":
        names.append(f"{rest.partition(':')[0].replace('.', '/')}.py")
    for name in filter(None, dict.fromkeys(names)):
        place = os.path.expanduser(name)  # noqa: PTH111 - the same of Path raises where there is no such user
        if os.path.exists(place):  # noqa: PTH110 - and here where a name is too long
            yield Path(place)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return path.resolve() == other.resolve()


def _is_in(path: Path, folder: Path) -> bool:
    """Whether a path is a file in a folder of images or of a model already, and not a result of an earlier run."""
    if not path.is_file() or folder.resolve() not in path.resolve().parents:
        return False
    with path.open("rb") as file:
        return path.suffix != ".html" and _RESULT not in file.read(_BEGINNING)
