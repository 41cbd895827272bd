"""Tables: a function of n bits as its 2^n values in table order (``jostle.boolean.cube``), checked, in files.

A table is int8 if all its values are -1 or 1 and float64 otherwise. ``as_table`` checks values that a caller has,
``read_table`` and ``write_table`` are for files; ``evaluator`` makes the table of a function. In a file the way values
are written decides what they mean:

1. ``.npy``: a one-dimensional array; pickles are refused.
2. ``.txt`` or ``.csv``: values separated by spaces, commas or line ends. ``#`` starts a comment that runs to the end
   of the line. A line may end in a comma.
3. Bits become signs, 0 to -1 and 1 to +1. Bits are: a file with one word of 0s and 1s only (``0110``); values that
   are all ``0`` or ``1``, without a decimal point; an array of bools; an array of integers that are all 0 or 1.
4. All other values are numbers and stay as they are; 0.0 and 1.0 (or an array of floats) are such numbers.
5. Several words of 0s and 1s such as ``0110 1001`` could be bits or numbers and are refused.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.files import read_text, replacing, write_text
from jostle.boolean.cube import LARGEST, dimension

Output = Literal["auto", "values", "sign"]

OUTPUTS = ("auto", "values", "sign")
SUFFIXES = (".npy", ".txt", ".csv")

_CHUNK = 1 << 20
_LARGEST_VALUE = 1e140
_SHOWN = 20  # characters of a wrong value in a message


def as_table(values: Any, output: Output, tie: int | None, name: str = "the table") -> NDArray[Any]:
    """``values`` (a list, an array or a tensor) as a table; ``output`` and ``tie`` as for ``Evaluator``."""
    if hasattr(values, "detach"):  # a tensor, without importing torch to ask
        try:
            values = values.detach().cpu()
            values = (values.double() if values.is_floating_point() else values).numpy()
        except (NotImplementedError, TypeError, RuntimeError):  # no numbers are there, or only some
            raise UsageError(f"{name} is a {values.layout} tensor on {values.device}; expected a dense one") from None
    try:
        table = np.asarray(values)
    except ValueError as error:
        raise UsageError(f"{name} cannot be read as numbers: {error}") from None
    if table.dtype.kind not in "biuf":
        raise UsageError(f"{name} holds values of type {table.dtype}; expected real numbers or truth values")
    if table.ndim != 1:
        raise UsageError(f"{name} has shape {table.shape}; expected one value for each input, (2^n,)")
    if dimension(table) > LARGEST:
        raise UsageError(f"{name} is for {dimension(table)} bits; tables of up to {LARGEST} bits are analysed")
    check_options(output, tie)
    if table.dtype == np.bool_:
        return np.where(table, np.int8(1), np.int8(-1))
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        raise UsageError(f"{name} is not finite at {int((~np.isfinite(table)).sum())} of {len(table)} inputs")
    return signs_of(table, tie, name) if output == "sign" else check_values(table, output, name)


def signs_of(numbers: NDArray[Any], tie: int | None, name: str) -> NDArray[np.int8]:
    """The sign of each number; ``tie`` is the sign of 0, and without it 0 is an error."""
    zeros = int((numbers == 0).sum())
    if zeros and tie is None:
        raise UsageError(f"{name} is exactly 0 at {zeros} of {len(numbers)} inputs; give tie=-1 or tie=1 for its sign")
    return np.where(numbers == 0, tie or 0, np.sign(numbers)).astype(np.int8)


def check_options(output: str, tie: int | None) -> None:
    """Raise unless ``output`` is one of ``OUTPUTS`` and ``tie`` is a sign or None."""
    checks.choice("output", output, OUTPUTS)
    if tie not in (None, -1, 1):
        raise checks.wrong("tie", tie, "-1 or 1: the sign of an output of exactly 0")


def check_values(table: NDArray[Any], output: Output, name: str) -> NDArray[Any]:
    """Finite values as a table; raises on truth values 0 and 1, and on values whose squares overflow."""
    if _all_in(table, (-1, 1)):
        return table.astype(np.int8)
    if output == "auto" and _all_in(table, (0, 1)) and table.any():
        raise bits_error(name)
    if max(abs(float(table.min())), abs(float(table.max()))) > _LARGEST_VALUE:
        raise UsageError(f"{name} has values beyond ±{_LARGEST_VALUE:g}, whose squares overflow; scale them down")
    return table.astype(np.float64)


def bits_error(name: str) -> UsageError:
    """The error for truth values where numbers are expected."""
    return UsageError(
        f"{name} has the values 0 and 1: write 2 * f - 1 for a function into ±1, whose sensitivity counts flips, "
        "or give output='values' to analyse them as real numbers"
    )


def _all_in(table: NDArray[Any], allowed: tuple[int, int]) -> bool:
    """Whether every value is one of two, compared a piece at a time."""
    pieces = (table[start : start + _CHUNK] for start in range(0, len(table), _CHUNK))
    return all(bool(((piece == allowed[0]) | (piece == allowed[1])).all()) for piece in pieces)


def read_table(path: str | Path) -> NDArray[Any]:
    """The table in a file, by the rules of this module: (2^n,), int8 for signs and float64 for other numbers.

    Arguments:
        path: of a file that ends in .npy, .txt or .csv.
    """
    path = Path(path)
    values = _read_array(path) if _suffix(path) == ".npy" else _read_words(path)
    n = dimension(values, f"truth table {path}")
    if n > LARGEST:
        raise UsageError(f"truth table {path} has 2^{n} values; expected at most 2^{LARGEST}")
    return _signs_or_floats(values)


def write_table(path: str | Path, table: NDArray[Any]) -> None:
    """Write a table to a file; ``read_table`` gives the same values back, to the last bit.

    Signs become one word of 0s and 1s in a .txt file, and -1 and 1, one to a line, in a .csv file.

    Arguments:
        path: of a file that ends in .npy, .txt or .csv; an existing file is replaced.
        table: (2^n,), finite numbers, or bools (False for -1).
    """
    path = Path(path)
    suffix = _suffix(path)
    array = np.asarray(table)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise UsageError(f"table has shape {array.shape} and type {array.dtype}; expected 2^n numbers in one row")
    dimension(array)
    if not np.isfinite(array).all():
        raise UsageError(f"table[{int(np.argmin(np.isfinite(array)))}] is not finite; expected finite numbers")
    values = _signs_or_floats(2 * array.astype(np.int8) - 1 if array.dtype.kind == "b" else array)
    if suffix == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, values, allow_pickle=False)
    elif suffix == ".txt" and values.dtype == np.int8:
        write_text(path, "".join("1" if value == 1 else "0" for value in values) + "\n")
    else:
        write_text(path, "".join(f"{value!r}\n" for value in values.tolist()))


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"truth table {path} ends in {suffix or 'nothing'!r}; expected one of {', '.join(SUFFIXES)}")
    return suffix


def _signs_or_floats(values: NDArray[Any]) -> NDArray[Any]:
    is_signs = bool(np.isin(values, (-1, 1)).all())
    return values.astype(np.int8 if is_signs else np.float64)


def _read_array(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"truth table file {path} does not exist") from None
    except OSError as error:
        raise UsageError(f"truth table file {path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # numpy has many errors for a header that is damaged
        reason = str(error).splitlines()[0] if str(error) else "the file is cut off"
        raise UsageError(f"truth table {path} is not a plain array of numbers as np.save writes it: {reason}") from None
    if array.ndim != 1:
        raise UsageError(f"truth table {path} has shape {array.shape}; expected one dimension of 2^n values")
    if array.dtype.kind not in "biuf":
        raise UsageError(f"truth table {path} holds values of type {array.dtype}; expected bools or real numbers")
    is_finite = np.isfinite(array)
    if not is_finite.all():
        position = int(np.argmin(is_finite))
        raise UsageError(f"truth table {path} has {array[position]} at position {position}; expected finite numbers")
    if array.dtype.kind == "b" or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()):
        return 2 * array.astype(np.int8) - 1
    return array


def _read_words(path: Path) -> NDArray[Any]:
    words = list(_words(read_text(path, "truth table").removeprefix("\ufeff"), path))
    if not words:
        raise UsageError(f"truth table {path} is empty; expected 2^n values")
    if all(set(word) <= {"0", "1"} for _, word in words):
        if len(words) == 1:
            return _from_bits(words[0][1])
        if all(len(word) == 1 for _, word in words):
            return _from_bits("".join(word for _, word in words))
        line, word = next((line, word) for line, word in words if len(word) > 1)
        raise UsageError(
            f"truth table {path}, line {line}: {_shown(word)} could be bits or a number; write all bits as one word, "
            "or numbers with a decimal point"
        )
    return np.array([_number(word, line, path) for line, word in words])


def _words(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """(line number, value) of every value in the text."""
    for line, content in enumerate(text.splitlines(), start=1):
        parts = content.partition("#")[0].split(",")
        for position, part in enumerate(parts):
            found = part.split()
            if not found and position < len(parts) - 1:
                raise UsageError(f"truth table {path}, line {line}: nothing before comma {position + 1}")
            yield from ((line, word) for word in found)


def _from_bits(bits: str) -> NDArray[np.int8]:
    return np.array([1 if bit == "1" else -1 for bit in bits], dtype=np.int8)


def _number(word: str, line: int, path: Path) -> float:
    try:
        if "_" in word:  # Python reads 1_000 as a number, but in a table it is probably a mistake
            raise ValueError
        value = float(word)
    except ValueError:
        raise UsageError(
            f"truth table {path}, line {line}: {_shown(word)} is not a number; a heading needs a # before it"
        ) from None
    if not np.isfinite(value):
        raise UsageError(f"truth table {path}, line {line}: {_shown(word)} is not finite; expected finite numbers")
    return value


def _shown(word: str) -> str:
    return repr(word if len(word) <= _SHOWN else f"{word[:_SHOWN]}...")
