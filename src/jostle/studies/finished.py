"""Whether a study has been run and nothing has changed since: then its summary answers, and torch is not imported.

After a run, a stamp is written beside the summary: a hash of the sizes and times of the source files of jostle and of
the study's package, of the records, the summary and the figures, of the study's version and of what was asked. As with
``make``, a study is run again (recorded cells are not repeated) as soon as any of them differs.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.base.files import write_text
from jostle.studies import folder as folders
from jostle.studies.catalogue import STUDIES
from jostle.studies.folder import Summary, read_summary

STAMP = ".finished"


def finished(name: str, scale: str, out: Path, seeds: int | None, at_most: int | None) -> Summary | None:
    """The summary of a study whose last run was asked the same, if nothing has changed since; None otherwise.

    Arguments:
        name, scale, out, seeds: as for ``studies.run``, with the study's own settings.
        at_most: the same, if seeds are added until the claim is decided; None if not.
    """
    folder = out / name / scale
    try:
        before = (folder / STAMP).read_text(encoding="utf-8").strip()
        return read_summary(folder) if before == _stamp(name, folder, seeds, at_most) else None
    except (OSError, UsageError):
        return None


def mark_finished(name: str, folder: Path, seeds: int | None, at_most: int | None) -> None:
    """Write the stamp of a run that has just ended; for a study of a running script there is none."""
    with contextlib.suppress(UsageError):
        write_text(folder / STAMP, _stamp(name, folder, seeds, at_most) + "\n")


def _stamp(name: str, folder: Path, seeds: int | None, at_most: int | None) -> str:
    lines = [f"version {current_version(name)}, seeds {seeds}, at most {at_most}"]
    for package in sorted({"jostle", STUDIES.home(name).partition(".")[0]}):
        lines += _sizes_and_times(_place(package), "*.py")
    for pattern in (folders.RECORDS, folders.SUMMARY, f"{folders.FIGURES}/*"):
        lines += _sizes_and_times(folder, pattern)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _sizes_and_times(root: Path, pattern: str) -> Iterator[str]:
    for path in sorted(root.rglob(pattern) if pattern == "*.py" else root.glob(pattern)):
        found = path.stat()
        yield f"{path} {found.st_size} {found.st_mtime_ns}"


def _place(package: str) -> Path:
    """The folder of an installed package."""
    spec = None if package == "__main__" else importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise UsageError(f"the files of {package} are not known")
    return Path(spec.origin).parent


def current_version(name: str) -> int | None:
    """The version of a study now, read in its source where that is enough; None for one that is not installed."""
    if name not in STUDIES:
        return None
    written = None if STUDIES.is_loaded(name) else _written_version(STUDIES.home(name))
    return STUDIES.get(name).version if written is None else written


@functools.cache
def _written_version(home: str) -> int | None:
    """The number that the class body of ``module:Class`` gives as ``version``; None if it gives none."""
    module, _, kind = home.partition(":")
    package, *parts = module.split(".")
    path = _place(package).joinpath(*parts)  # and not find_spec(module), which would import the packages around it
    try:
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return None
    body = [line for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind for line in node.body]
    for line in body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "version":
            value = getattr(line.value, "value", None)
            return value if isinstance(value, int) else None
    return None
