"""How a work travels: written once, read by every worker of a machine.

Tensors are mapped into memory from a file, so that workers of one machine share them. Functions and classes of a script
or a notebook, which no other process can import, travel by value (``cloudpickle``). A payload is only read by workers
that its writer started, from a folder that nobody else can write to.
"""

import io
import pickle
from pathlib import Path
from typing import IO, Any

import cloudpickle

from jostle.base.errors import UsageError
from jostle.engines.engine import describe


def cannot_travel(what: str, error: BaseException) -> UsageError:
    """The error for something that no other process can be given."""
    return UsageError(
        f"{what} cannot be sent to other processes ({describe(error)}); use one worker, or leave out what cannot be "
        "pickled"
    )


def dumps(thing: Any, what: str) -> bytes:
    """A thing as bytes; ``what`` names it in errors."""
    try:
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:  # whatever __reduce__ and __getstate__ of somebody's class raise
        raise cannot_travel(what, error) from None


loads = pickle.loads


def write(thing: Any, path: Path, what: str) -> None:
    """Write a thing to a file, for ``read``."""
    with path.open("wb") as file:
        dump(thing, file, what)


def dump(thing: Any, file: IO[bytes], what: str) -> None:
    """Write a thing to an open file."""
    if not getattr(thing, "has_tensors", False):  # then nobody need wait for torch
        file.write(dumps(thing, what))
        return
    import torch

    try:
        torch.save(thing, file, pickle_module=cloudpickle, pickle_protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise cannot_travel(what, error) from None


def read(source: Path | bytes) -> Any:
    """What ``write`` wrote to this file, or ``dump`` to these bytes."""
    if isinstance(source, bytes):
        return _read(io.BytesIO(source), source[:2], mmap=False)
    with source.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        return _read(file, start, mmap=True)


def _read(file: IO[bytes], start: bytes, *, mmap: bool) -> Any:
    if start != b"PK":  # what torch writes is a zip file
        return pickle.load(file)
    import torch

    return torch.load(file.name if mmap else file, mmap=mmap, weights_only=False)
