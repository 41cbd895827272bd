"""Mutated files for every reader: each is read or refused in one line, and none runs code that is in it.

A reader whose format has a checksum must notice every change: it gives what was written, or refuses.
"""

import contextlib
import os
import pickle
import random
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chaos import samples
from chaos.forks import Running
from chaos.mutations import damage
from chaos.record import Count
from jostle.base.errors import JostleError

_AT_ONCE = 40  # files that one process reads
_SECONDS = 20  # that one file may take
CANARY = "canary"  # a folder that code in a file would make
_REFUSED, _READ = "refused in one line", "read"


class Harmful:
    """What a pickle holds that runs code when it is loaded."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (CANARY,)


@dataclass(frozen=True)
class Reader:
    """A reader of files.

    Arguments:
        name: of the format.
        suffix: of its files.
        contents: of two or more good files.
        read: reads a file; what it returns can be compared.
        notices: whether every change must be noticed, because the format has a checksum.
    """

    name: str
    suffix: str
    contents: tuple[bytes, ...]
    read: Callable[[Path], Any]
    notices: bool = False


def run(work: Path, number: int, seed: int, keep: Callable[[Count], None], tried: Mapping[str, int]) -> None:
    """Read so many mutated files, the same number for each reader; arguments as of ``kills.run``."""
    rng = random.Random(seed)
    readers = samples.readers(work / "good")
    for reader in readers:
        assert all(try_file(reader, work, content)[0] == _READ for content in reader.contents), reader.name
    count, done = Count(), 0
    while done < number:
        for reader in sorted(readers, key=lambda one: tried.get(one.name, 0)):
            if done < number:
                attack(reader, work, rng, count, min(_AT_ONCE, number - done))
                done += min(_AT_ONCE, number - done)
        keep(count)
    keep(count)


def attack(reader: Reader, work: Path, rng: random.Random, count: Count, number: int) -> None:
    """Read so many mutated files in a process of its own; if it dies, the last file is to blame."""
    folder = work / "mutated"
    folder.mkdir(parents=True, exist_ok=True)
    mutants = [_mutant(reader, rng) for _ in range(number)]
    report = folder / "report"
    report.unlink(missing_ok=True)

    def act() -> int:
        with report.open("a", encoding="utf-8") as file:
            for place, content in enumerate(mutants):
                ending, what = try_file(reader, folder, content, mutants_of=reader.contents)
                file.write(f"{place}\t{ending}\t{what!r}\n")
                file.flush()
        return 0

    ended = Running(act, folder).outcome(_SECONDS * number)
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    for line in lines:
        _, ending, what = line.split("\t", maxsplit=2)
        if ending in (_REFUSED, _READ):
            count.ended[ending] += 1
        else:
            count.fault(ending, f"{reader.name}: {what}")
    count.tried["files"] += number
    count.where[reader.name] += number
    if ended.code or ended.is_late:
        kind = "hang" if ended.is_late else "crash"
        blamed = folder / f"blamed-{reader.name.replace(' ', '-')}{reader.suffix}"
        if len(lines) < number:
            blamed.write_bytes(mutants[len(lines)])
        count.fault(
            kind,
            f"{reader.name}: exit code {ended.code} at file {len(lines)}, kept as {blamed.name}: {ended.err[-800:]}",
        )


def try_file(
    reader: Reader, folder: Path, content: bytes, mutants_of: tuple[bytes, ...] | None = None
) -> tuple[str, str]:
    """Read one file; how it ended, and what is to be said about it."""
    path = folder / f"file{reader.suffix}"
    path.write_bytes(content)
    canary = folder / CANARY
    try:
        with _alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = reader.read(path)
    except JostleError as error:
        lines = len(str(error).splitlines())
        ending = (_REFUSED, "") if lines == 1 else ("several lines", str(error))
    except TimeoutError:
        ending = "hang", _kept(reader, folder, content)
    except MemoryError:
        ending = "memory", _kept(reader, folder, content)
    except BaseException:
        ending = "traceback", f"{_kept(reader, folder, content)} {traceback.format_exc()[-1500:]}"
    else:
        ending = _READ, ""
        if mutants_of is not None and reader.notices and not any(_same(found, one) for one in _good(reader, folder)):
            ending = "silent wrong number", f"{_kept(reader, folder, content)} {str(found)[:300]}"
    if canary.exists():
        canary.rmdir()
        ending = "code executed", _kept(reader, folder, content)
    return ending


_good_values: dict[tuple[str, int], list[Any]] = {}


def _good(reader: Reader, folder: Path) -> list[Any]:
    """What the good files of a reader hold."""
    key = (reader.name, os.getpid())
    if key not in _good_values:
        values = []
        for content in reader.contents:
            path = folder / f"good{reader.suffix}"
            path.write_bytes(content)
            values.append(reader.read(path))
        _good_values[key] = values
    return _good_values[key]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if hasattr(one, "shape") and hasattr(other, "shape"):  # arrays and tensors
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    return bool(one == other)


def _kept(reader: Reader, folder: Path, content: bytes) -> str:
    """Keep a file that shows a fault; its name."""
    path = folder / f"fault-{reader.name.replace(' ', '-')}-{time.time_ns()}{reader.suffix}"
    path.write_bytes(content)
    return path.name


def _mutant(reader: Reader, rng: random.Random) -> bytes:
    if rng.random() < 0.02:
        return pickle.dumps(Harmful())
    return damage(rng.choice(reader.contents), rng, rng.choice(reader.contents))


@contextlib.contextmanager
def _alarm() -> Any:
    def ring(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
