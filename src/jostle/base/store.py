"""Records on disk that survive a kill at any moment."""

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jostle.base.errors import FailureError, KeptFileError, UsageError
from jostle.base.files import parse_json

Record = dict[str, Any]

_CHECKSUM = b', "crc32": "%08x"}'


class Store:
    """An append-only file of records, one JSON line each, found again by key.

    A line is written and flushed to disk before ``append`` returns. A kill in the middle of a line leaves a torn last
    line, which the next opening drops; everything before it is whole. A key is written once: appending it again
    raises, so a resumed run cannot count anything twice.

    A line ends with a checksum, the CRC-32 of what stands before it, so that a changed bit or an edited number is an
    error and not another result. Lines of jostle 0.1.0 have none and are taken as they are.

    Arguments:
        path: the file; made, with its folder, when the first record is appended.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise UsageError(f"records {self.path} is a directory; expected a file")
        self._records: dict[str, Record] = {}
        self._size = 0
        for key, record, end in self._whole_lines():
            self._records[key] = record
            self._size = end

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> Record:
        return self._records[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def append(self, key: str, record: Record) -> None:
        """Write one record to disk."""
        if key in self._records:
            raise UsageError(f"the record {key!r} is already in {self.path}")
        line = _with_checksum(json.dumps({"key": key, "record": record}).encode()) + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if file.tell() < self._size:  # truncate would fill the hole with zeros
                    raise FailureError(f"{self.path} was deleted or cut by something else; start again")
                file.truncate(self._size)  # a torn line of an earlier run
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FailureError(f"could not write {self.path}: {error.strerror or error}") from error
        self._size += len(line)
        self._records[key] = json.loads(line)["record"]

    def _whole_lines(self) -> Iterator[tuple[str, Record, int]]:
        """(key, record, end of its line in bytes) of every whole line."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"records {self.path} cannot be read: {error.strerror or error}") from None
        end = 0
        lines = content.split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is torn or empty
            end += len(line) + 1
            try:
                key, record = _read_line(line)
            except ValueError as error:
                said = f"is damaged ({error})" if isinstance(error, _DamageError) else "is not a record"
                advice = "take the line out, or move the file away to start anew"
                raise KeptFileError(f"records {self.path}: line {number} {said}; {advice}", self.path) from None
            yield key, record, end


class _DamageError(ValueError):
    """A line is not what was written."""


def _with_checksum(line: bytes) -> bytes:
    """A JSON object with the CRC-32 of its bytes as one more entry, its last."""
    return line[:-1] + _CHECKSUM % zlib.crc32(line)


def _read_line(line: bytes) -> tuple[str, Record]:
    """Key and record of a line."""
    entry = parse_json(line)
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("key"), str)
        or not isinstance(entry.get("record"), dict)
    ):
        raise ValueError
    if entry.keys() - {"key", "record"}:
        length = len(_CHECKSUM % 0)
        if line != _with_checksum(line[:-length] + b"}"):
            raise _DamageError("its checksum does not fit")
    return entry["key"], entry["record"]
