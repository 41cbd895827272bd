"""Cells done one after another, or by several processes; what comes out is the same.

A cell is done alone: one thread, float32 by default, global generators seeded by its key. So its record depends on
neither the worker, nor the order, nor what the caller did to torch before.
"""

import contextlib
import hashlib
import json
import random
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jostle.progress import State
from jostle.results import Record
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Study

Show = Callable[[str, State], None]


@dataclass(frozen=True)
class Job:
    """One cell to be done, with all that a process needs for it.

    Arguments:
        study: the class; another process imports its module.
        cell, settings: what to do.
        folder: for checkpoints.
        data, device, networks: as in ``Context``.
    """

    study: type[Study[Any]]
    cell: Cell
    settings: Settings
    folder: Path
    data: Path | None
    device: str
    networks: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Arguments:
        key: of the cell.
        record: None if it failed.
        seconds: how long it took.
        warnings: what was warned about on the way.
        error: type and message of what was raised, in a line.
        trace: the same with its traceback.
    """

    key: str
    record: Record | None
    seconds: float
    warnings: tuple[str, ...] = ()
    error: str = ""
    trace: str = ""


def do(job: Job, report: Callable[[State], None]) -> Outcome:
    """Do one cell; what it raises becomes part of the outcome."""
    started = time.monotonic()
    record: Record | None = None
    error = trace = ""
    with alone(job.cell.key), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            job.folder.mkdir(parents=True, exist_ok=True)
            context = Context(job.folder, report, job.data, job.device, job.networks)
            record = _plain(job.study().measure(job.cell, job.settings, context))
        except Exception as problem:
            error, trace = describe(problem), traceback.format_exc()
    said = tuple(dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught))
    return Outcome(job.cell.key, record, time.monotonic() - started, said, error, trace)


def in_turn(jobs: Iterable[Job], show: Show) -> Generator[Outcome, None, None]:
    """Do all cells in this process."""
    for job in jobs:
        yield do(job, lambda state, key=job.cell.key: show(key, state))  # type: ignore[misc]


def describe(problem: BaseException) -> str:
    """Type and message of an exception in one line.

    >>> describe(ValueError("two\\nlines"))
    'ValueError: two lines'
    """
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}".rstrip(": ")


@contextlib.contextmanager
def alone(key: str) -> Iterator[None]:
    """Inside, global states of torch, numpy and Python are a function of ``key``; afterwards they are as before."""
    seed = int.from_bytes(hashlib.sha256(f"jostle cell {key}".encode()).digest()[:4], "big")
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        try:
            torch.set_num_threads(1)
            torch.set_default_dtype(torch.float32)
            torch.default_generator.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def _plain(record: Any) -> Record:
    """The record as a file gives it back; what JSON cannot hold is an error of the cell."""
    if not isinstance(record, dict):
        raise TypeError(f"measure returned {type(record).__name__}; expected a dict")
    return dict(json.loads(json.dumps(record)))
