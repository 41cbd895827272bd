"""Arrays of numbers in MATLAB 5 files, the format of SVHN.

scipy reads these files too, but a damaged one can end the whole process there. Here every length is checked against
what is left of the file, so that damage is an error of one line. The format: MAT-File Level 5, chapter 1 of MathWorks'
"MAT-File Format".
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jostle.base.errors import UsageError

_HEADER = 128
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_MATRIX, _COMPRESSED, _COMPLEX = 14, 15, 0x0800
_MOST = 2**31  # bytes of one unpacked array


def read_matlab_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of real numbers in a file, by name; cells, structures, texts and complex numbers are left out.

    Arguments:
        path: a file of MATLAB 5 to 7.2, or of ``scipy.io.savemat``.
    """
    try:
        content = path.read_bytes()
        order = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(content[124:_HEADER])
        if order is None:
            raise ValueError("no header of such a file")
        found = {}
        for kind, part in _elements(content[_HEADER:], order):
            if kind == _COMPRESSED:
                [(kind, part)] = _elements(_unpacked(part), order)
            if kind == _MATRIX:
                found.update(_array(part, order))
    except (ValueError, struct.error, zlib.error, UnicodeDecodeError, TypeError) as error:
        raise UsageError(f"{path} cannot be read as a MATLAB 5 file ({error})") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    return found


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """(type, bytes) of every element; a small one has type and length in four bytes, and its data in four more."""
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from(order + "II", content, at)
        if kind >> 16:
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start = at + 8
            end = start + size + (0 if kind == _COMPRESSED else -size % 8)
        if start + size > len(content) or (start == at + 4 and size > 4):
            raise ValueError("cut off")
        yield kind, content[start : start + size]
        at = end


def _unpacked(part: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(part, _MOST)
    if not unpacker.eof:
        raise ValueError("cut off, or too large")
    return found


def _array(part: bytes, order: str) -> dict[str, NDArray[Any]]:
    """The array of a matrix element, by its name; empty if it holds no real numbers."""
    parts = list(_elements(part, order))
    if len(parts) < 4:
        return {}
    flags = struct.unpack_from(order + "I", parts[0][1])[0]
    kind, stored = flags & 0xFF, _STORED.get(parts[3][0])
    if kind not in _CLASSES or flags & _COMPLEX or stored is None:
        return {}
    sizes = [int(size) for size in np.frombuffer(parts[1][1], dtype=f"{order}i4")]
    if min(sizes, default=-1) < 0:
        raise ValueError("sizes below 0")
    numbers = np.frombuffer(parts[3][1], dtype=f"{order}{stored}")
    if math.prod(sizes) != len(numbers):
        raise ValueError(f"{len(numbers)} numbers for an array of {' x '.join(map(str, sizes))}")
    name = parts[2][1].decode("ascii")
    return {name: numbers.astype(_CLASSES[kind]).reshape(sizes, order="F")}
