"""A function of bits that is called: its arguments, its answers, and its table. The one part here that needs torch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.base.model import call, check_outputs, device_of, eval_mode, logits_of
from jostle.boolean.cube import points
from jostle.boolean.tables import Output, bits_error, check_options, check_values, signs_of


class Evaluator:
    """A function f of n bits that gives one number for each point of a batch.

    Modules get tensors in the dtype and on the device of their parameters; other callables get float64 arrays.

    Arguments:
        f: from (batch, n) to (batch,), (batch, 1), or (batch, 2), the logits of the classes -1 and +1.
        output: ``values`` of f as they are, ``sign`` for predictions, ``auto``: values, and truth values as -1 and +1.
        tie: the sign of an output of exactly 0; by default such an output is an error.
        tensors: give a callable that is not a module tensors instead of arrays.
    """

    def __init__(self, f: Callable[..., Any], output: Output, tie: int | None, tensors: bool) -> None:
        check_options(output, tie)
        self.f, self.output, self.tie = f, output, tie
        is_module = isinstance(f, nn.Module)
        held = [parameter.dtype for parameter in f.parameters()] if isinstance(f, nn.Module) else []
        floating = (dtype for dtype in held if dtype.is_floating_point)
        self.dtype = next(floating, torch.get_default_dtype() if is_module else torch.float64)
        self.device = device_of(f)
        takes_tensors = tensors or is_module
        self._answer = f if takes_tensors else lambda batch: _numbers(f(batch.numpy()))
        self._hint = "" if takes_tensors else " (f is given numpy arrays; tensors=True gives it torch tensors)"
        self.passes = 0  # points evaluated so far
        self.saw_only_signs = self.saw_only_bits = True  # in all outputs so far

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Inside, f is in eval mode and no gradients are recorded."""
        with eval_mode(self.f), torch.inference_mode():
            yield

    def __call__(self, batch: Tensor) -> Tensor:
        """f at a batch of points, (batch, n) -> (batch,): signs as int8 for ``output="sign"``, else float64."""
        given = batch.to(self.device, self.dtype, copy=True)  # a copy, because f may write into it
        answer = logits_of(call(self._answer, given, name="f", hint=self._hint), name="f").detach().cpu()
        check_outputs(answer, len(batch), name="f")
        self.passes += len(batch)
        if answer.dtype == torch.bool:
            answer = 2 * answer.to(torch.int8) - 1
        if answer.is_complex():
            raise UsageError("f gives complex numbers; expected real ones")
        if answer.dim() == 2 and answer.shape[1] == 2 and self.output == "sign":
            answer = answer[:, 1] - answer[:, 0]
        if answer.numel() != len(batch):
            raise UsageError(
                f"f answered {len(batch)} inputs with shape {tuple(answer.shape)}; expected one number per input"
                + ("" if self.output == "sign" else ", or two logits with output='sign'")
            )
        numbers = answer.reshape(len(batch)).double()
        if not bool(numbers.isfinite().all()):
            raise UsageError(f"f is not finite at {int((~numbers.isfinite()).sum())} of {len(batch)} inputs")
        if self.output == "sign":
            return torch.from_numpy(signs_of(numbers.numpy(), self.tie, "f"))
        self.saw_only_signs &= bool((numbers.abs() == 1).all())
        self.saw_only_bits &= bool(((numbers == 0) | (numbers == 1)).all())
        return numbers

    def values_at(self, points: NDArray[np.float64], batch_size: int) -> NDArray[np.float64]:
        """f at any number of points: (count, n) -> (count,)."""
        with self.evaluating():
            parts = [self(torch.from_numpy(points[i : i + batch_size])) for i in range(0, len(points), batch_size)]
        return torch.cat(parts).double().numpy()

    def check_bits(self) -> None:
        """Raise if all values so far were 0 or 1: f is probably meant as truth values."""
        if self.output == "auto" and self.saw_only_bits and not self.saw_only_signs:
            raise bits_error("f")


def tabulate(evaluator: Evaluator, n: int, batch_size: int) -> NDArray[Any]:
    """The table of f: each of the 2^n points is evaluated once."""
    table: NDArray[Any] = np.empty(2**n, dtype=np.int8)
    with evaluator.evaluating():
        for start in range(0, 2**n, batch_size):
            stop = min(start + batch_size, 2**n)
            found = evaluator(torch.from_numpy(points(n, start, stop))).numpy()
            if table.dtype == np.int8 and not np.all(np.abs(found) == 1):
                table = table.astype(np.float64)
            table[start:stop] = found
    return check_values(table, evaluator.output, "f")


def _numbers(answer: Any) -> NDArray[Any]:
    """The answer of a callable as an array of numbers."""
    array = np.asarray(answer)
    if array.dtype.kind not in "biufc":
        raise UsageError(f"f answered with {type(answer).__name__}; expected one number for each input")
    return array.astype(np.float64) if array.dtype.kind == "f" else array
