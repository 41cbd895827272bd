"""A function of n bits as a table of its 2^n values, each evaluated once."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.boolean.cube import LARGEST, dimension, points
from jostle.errors import FailureError, UsageError
from jostle.tokens import Coordinates, Inputs, TokenFunction

Output = Literal["auto", "values", "sign"]

OUTPUTS = ("auto", "values", "sign")
_CHUNK = 1 << 20
_LARGEST_VALUE = 1e140


class Evaluator:
    """A callable on bits that answers batches of ±1 with one number each.

    Modules get tensors of their own type and run in eval mode without gradients; other callables get float64 arrays.

    Arguments:
        f: from (batch, n) to (batch,), (batch, 1), or (batch, 2), the logits of the classes -1 and +1.
        n: the number of bits.
        output: ``values`` as they are, ``sign`` for predictions, ``auto``: values, and truth values as -1 and +1.
        tie: what the sign of exactly 0 is; by default an error.
        tensors: give a callable that is no module tensors instead of arrays.
    """

    def __init__(self, f: Callable[..., Any], n: int, output: Output, tie: int | None, tensors: bool) -> None:
        check_reading(output, tie)
        self.output, self.tie = output, tie
        parameters = list(f.parameters()) if isinstance(f, nn.Module) else []
        floating = (parameter.dtype for parameter in parameters if parameter.is_floating_point())
        self.dtype = next(floating, torch.get_default_dtype() if isinstance(f, nn.Module) else torch.float64)
        takes_tensors = tensors or isinstance(f, nn.Module)
        asked = f if takes_tensors else lambda batch: _numbers(f(batch.numpy()))
        self._hint = "" if takes_tensors else " (f is given numpy arrays; tensors=True gives it torch tensors)"
        self.saw_only_signs = self.saw_only_bits = True  # in all answers so far
        self._inputs = Inputs(torch.ones(1, n, dtype=self.dtype), Coordinates())
        self.function = TokenFunction(asked, self._inputs, "f")

    def __call__(self, batch: Tensor) -> Tensor:
        """(batch,) numbers: signs as int8 where ``output`` or their type says so, else float64."""
        try:
            answer = self.function({self._inputs.key: batch.to(self.dtype, copy=True)})  # f may write into it
        except FailureError as error:
            raise FailureError(f"{error}{self._hint}") from error.__cause__
        if answer.dtype == torch.bool:
            answer = 2 * answer.to(torch.int8) - 1
        if answer.is_complex():
            raise UsageError("f gives complex numbers; expected real ones")
        if answer.dim() == 2 and answer.shape[1] == 2 and self.output == "sign":
            answer = answer[:, 1] - answer[:, 0]
        if answer.numel() != len(batch):
            raise UsageError(
                f"f answered {len(batch)} inputs with shape {tuple(answer.shape)}; expected one number an input"
                + ("" if self.output == "sign" else ", or two logits with output='sign'")
            )
        numbers = answer.reshape(len(batch)).double()
        if not bool(numbers.isfinite().all()):
            raise UsageError(f"f is not finite at {int((~numbers.isfinite()).sum())} of {len(batch)} inputs")
        if self.output == "sign":
            return torch.from_numpy(signs(numbers.numpy(), self.tie, "f"))
        self.saw_only_signs &= bool((numbers.abs() == 1).all())
        self.saw_only_bits &= bool(((numbers == 0) | (numbers == 1)).all())
        return numbers

    def check_bits(self) -> None:
        """Raise if f was meant as truth values 0 and 1, as far as was seen."""
        if self.output == "auto" and self.saw_only_bits and not self.saw_only_signs:
            raise _bits_error("f")


def table_of(evaluator: Evaluator, n: int, batch_size: int) -> NDArray[Any]:
    """f at all 2^n points, in table order: int8 if all values are ±1, else float64. Each point is evaluated once."""
    table: NDArray[Any] = np.empty(2**n, dtype=np.int8)
    with evaluator.function.evaluating():
        for start in range(0, 2**n, batch_size):
            stop = min(start + batch_size, 2**n)
            found = evaluator(torch.from_numpy(points(n, start, stop))).numpy()
            if table.dtype == np.int8 and not np.all(np.abs(found) == 1):
                table = table.astype(np.float64)
            table[start:stop] = found
    return _checked_values(table, evaluator.output, "f")


def given_table(values: Any, output: Output, tie: int | None) -> NDArray[Any]:
    """A table given as numbers, checked: int8 if all values are ±1, else float64."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    try:
        table = np.asarray(values)
    except ValueError as error:
        raise UsageError(f"the table cannot be read as numbers: {error}") from None
    if table.dtype.kind not in "biuf":
        raise UsageError(f"the table holds values of type {table.dtype}; expected real numbers or truth values")
    if table.ndim != 1:
        raise UsageError(f"the table has shape {table.shape}; expected one value for each input, (2^n,)")
    if dimension(table) > LARGEST:
        raise UsageError(f"the table is for {dimension(table)} bits; tables of up to {LARGEST} bits are analysed")
    check_reading(output, tie)
    if table.dtype == np.bool_:
        return np.where(table, np.int8(1), np.int8(-1))
    if not np.isfinite(table).all():
        raise UsageError(f"the table is not finite at {int((~np.isfinite(table)).sum())} of {len(table)} inputs")
    return signs(table, tie, "the table") if output == "sign" else _checked_values(table, output, "the table")


def signs(numbers: NDArray[Any], tie: int | None, name: str) -> NDArray[np.int8]:
    """-1 or 1 for each number; ``tie`` for 0, which is an error without it."""
    zeros = int((numbers == 0).sum())
    if zeros and tie is None:
        raise UsageError(f"{name} is exactly 0 at {zeros} of {len(numbers)} inputs; give tie=-1 or tie=1 for its sign")
    return np.where(numbers == 0, tie or 0, np.sign(numbers)).astype(np.int8)


def check_reading(output: str, tie: int | None) -> None:
    """Raise unless ``output`` and ``tie`` say how numbers are read."""
    if output not in OUTPUTS:
        raise UsageError(f"output={output!r} must be one of {', '.join(OUTPUTS)}")
    if tie not in (None, -1, 1):
        raise UsageError(f"tie={tie!r} must be -1 or 1: what the sign of an output of exactly 0 is")


def _checked_values(table: NDArray[Any], output: Output, name: str) -> NDArray[Any]:
    if _all_in(table, (-1, 1)):
        return table.astype(np.int8)
    if output == "auto" and _all_in(table, (0, 1)) and table.any():
        raise _bits_error(name)
    if max(abs(float(table.min())), abs(float(table.max()))) > _LARGEST_VALUE:
        raise UsageError(f"{name} has values beyond ±{_LARGEST_VALUE:g}, whose squares overflow; scale them down")
    return table.astype(np.float64)


def _bits_error(name: str) -> UsageError:
    return UsageError(
        f"{name} has the values 0 and 1: write 2 * f - 1 for a function into ±1, whose sensitivity counts flips, "
        "or give output='values' to analyse them as real numbers"
    )


def _numbers(answer: Any) -> NDArray[Any]:
    """What a callable answered, as an array of numbers."""
    array = np.asarray(answer)
    if array.dtype.kind not in "biufc":
        raise UsageError(f"f answered with {type(answer).__name__}; expected one number for each input")
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _all_in(table: NDArray[Any], allowed: tuple[int, int]) -> bool:
    """Whether all values are among two, looked at a piece at a time."""
    pieces = (table[start : start + _CHUNK] for start in range(0, len(table), _CHUNK))
    return all(bool(((piece == allowed[0]) | (piece == allowed[1])).all()) for piece in pieces)
