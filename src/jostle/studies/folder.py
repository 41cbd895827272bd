"""The folder of one study at one scale: whose it is, what is in it, and that only one run writes there.

    <out>/<study>/<scale>/records.jsonl      one line for each finished cell, after one that says whose they are
                          figures/*.svg
                          summary.json       verdict, findings and all that a report needs; made of the records
                          checkpoints/       of cells under way

    <out>/networks/                          trained networks that studies share

Settings other than the study's own have a folder of their own, ``<scale>-modified-<hash>``.
"""

import contextlib
import datetime
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from jostle.base.errors import FailureError, UsageError
from jostle.base.store import Record, Store

RECORDS, SUMMARY, FIGURES, CHECKPOINTS = "records.jsonl", "summary.json", "figures", "checkpoints"
NETWORKS, LOCK = "networks", ".lock"
ASIDE = ".before-"  # in the name of a folder that --fresh put aside

_SAFE = re.compile(r"[^A-Za-z0-9=._-]+")


@dataclass(frozen=True)
class Identity:
    """Whose records a folder holds; they are never mixed with others.

    Arguments:
        name, version: of the study.
        scale: which settings were started from.
        settings: all of them, as a file holds them.
        modified: those that are not the study's own.
    """

    name: str
    version: int
    scale: str
    settings: dict[str, Any]
    modified: dict[str, Any]

    def folder(self, out: Path) -> Path:
        """Where this belongs under ``out``."""
        if not self.modified:
            return out / self.name / self.scale
        digest = hashlib.sha256(json.dumps(self.modified, sort_keys=True).encode()).hexdigest()
        return out / self.name / f"{self.scale}-modified-{digest[:8]}"


def open_store(folder: Path, identity: Identity, about: Mapping[str, Any]) -> Store:
    """The records in ``folder``, after making sure that they are of this study, version and settings.

    Arguments:
        folder: made if need be.
        identity: whose records are to be there.
        about: what else to write beside it in a new folder: title and claim.
    """
    store = Store(folder / RECORDS)
    mine = vars(identity)
    if "study" not in store:
        if len(store):
            raise UsageError(f"folder {folder} holds records that are no study's; give another --out")
        store.append("study", {**mine, **about})
    theirs = store["study"]
    for key, value in mine.items():
        if _saying(theirs.get(key)) != _saying(value):
            was, now = _differing(theirs.get(key), value)
            raise UsageError(
                f"folder {folder} holds records with {key} {was}, now it is {now}; "
                "--fresh puts them aside and starts anew, or give another --out"
            )
    return store


def _saying(value: Any) -> Any:
    """Settings without the empty ones, so that records stay valid when a study can choose more than it could."""
    if not isinstance(value, dict):
        return value
    return {name: one for name, one in value.items() if one not in (None, "", [], {})}


def _differing(was: Any, now: Any) -> tuple[Any, Any]:
    """Of two dicts only the entries that are not the same."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        return was, now
    keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    return tuple({key: side[key] for key in keys if key in side} for side in (was, now))  # type: ignore[return-value]


def put_aside(folder: Path) -> None:
    """Move what is in ``folder`` to a new folder beside it, so that a new run finds nothing and nothing is lost.

    The lock stays, because the caller holds it and Windows does not move an open file. Records move last: after a kill
    in the middle, ``--fresh`` can be given again.
    """
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%f")
    aside = folder.with_name(f"{folder.name}{ASIDE}{now}")
    aside.mkdir()
    for path in sorted(folder.iterdir(), key=lambda path: path.name == RECORDS):
        if path.name != LOCK:
            path.rename(aside / path.name)


@contextlib.contextmanager
def only_here(folder: Path) -> Iterator[None]:
    """Hold ``folder`` for this run: two writers would cut off each other's records. A kill lets go of it too."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK).acquire(blocking=False)
    except Timeout:
        raise UsageError(f"folder {folder} is in use by another run; wait for it or give another --out") from None
    except OSError as error:
        raise UsageError(f"folder {folder} cannot be written: {error.strerror or error}; give another --out") from None
    with lock:
        yield


def checkpoint_folder(folder: Path, key: str) -> Path:
    """The folder of one cell's checkpoints: its key, with a hash where a file system would not take the key."""
    name = _SAFE.sub("_", key)[:80]
    if name != key or name.startswith("."):
        name = f"{name.lstrip('.')}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
    return folder / CHECKPOINTS / name


def remove_checkpoints(folder: Path, key: str) -> None:
    """Remove a cell's checkpoints, and the folder of all of them if it is then empty."""
    shutil.rmtree(checkpoint_folder(folder, key), ignore_errors=True)
    with contextlib.suppress(OSError):
        (folder / CHECKPOINTS).rmdir()


def read_summary(folder: Path) -> Record | None:
    """What the last complete run in ``folder`` found; None if there was none."""
    try:
        return dict(json.loads((folder / SUMMARY).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise UsageError(f"{folder / SUMMARY} is damaged ({error}); start the study again to write it anew") from None
    except OSError as error:
        raise FailureError(f"{folder / SUMMARY} cannot be read: {error.strerror or error}") from None
