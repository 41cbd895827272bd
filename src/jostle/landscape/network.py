"""What the landscape checks about its arguments: numbers, levels, and models whose weights can be moved.

A module as a function of its inputs and of its weights, for one set of weights or for several at once.
"""

import operator
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.registry import unknown_name
from jostle.landscape.weights import WeightNoise, chosen_parameters
from jostle.tokens import Inputs, TokenFunction, Whole
from jostle.tokens.sources import as_tensors

_LARGEST_LEVEL = 0.999  # Gaffke's bound is taken over 10,000 resamples


def whole(name: str, value: Any, least: int | None = None, hint: str = "") -> int:
    """``value`` as a whole number, not smaller than ``least``; True and 2.0 are none.

    >>> whole("draws", 1, least=2)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: draws=1 must be a whole number, at least 2
    """
    wanted = "a whole number" if least is None else f"a whole number, at least {least}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        raise UsageError(f"{name}={value!r} must be {wanted}{hint}")
    return number


def not_negative(name: str, value: Any) -> float:
    """``value`` as a finite number, 0 or larger."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0:
        raise UsageError(f"{name}={value!r} must be a finite number, 0 or larger")
    return float(value)


def coverage(level: Any) -> float:
    """``level`` if it is a coverage."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level <= _LARGEST_LEVEL:
        raise UsageError(f"level={level!r} must lie between 0 and {_LARGEST_LEVEL}, for example 0.95")
    return float(level)


def choice(name: str, value: Any, known: Collection[str]) -> str:
    """``value`` if it is one of the known names; others answer with near matches."""
    if value not in known:
        raise unknown_name(name, str(value), known)
    return str(value)


_SMALL = 2**20  # parameters times inputs of a batch
_MOST, _FEWEST = 32, 4  # draws at once


class Network:
    """A module, its inputs, and which of its parameters are moved.

    Arguments:
        model: a module; it is never written to.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``.
        skip: patterns of names of parameters that stay where they are.
        batch_size: how many inputs are answered at once.
    """

    def __init__(self, model: Any, inputs: Any, skip: Sequence[str] = (), batch_size: int = 128) -> None:
        self.parameters = chosen_parameters(model, skip)
        self.model: nn.Module = model
        self.batch_size = whole("batch_size", batch_size, least=1)
        self.inputs = read_inputs(inputs)
        self._lent = Lent(self.model)
        self._function = TokenFunction(self._lent, self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self._function.device

    def batches(self) -> Iterator[slice]:
        """The rows of each batch, in order."""
        for start in range(0, len(self), self.batch_size):
            yield slice(start, min(start + self.batch_size, len(self)))

    def answer(self, rows: slice) -> Tensor:
        """Outputs (batch, ...) of these inputs with the weights as they are."""
        return self._outputs(rows, self.parameters, are_stacked=False)

    def answers(self, noise: WeightNoise, draws: Sequence[int]) -> Iterator[tuple[slice, Tensor]]:
        """The rows of each batch and its outputs (batch, draws, ...) with the weights of these draws."""
        if len(draws) == 1:
            moved = noise.moved(draws[0])
            for rows in self.batches():
                yield rows, self._checked(self._outputs(rows, moved, are_stacked=False), draws)[:, None]
            return
        stacked = noise.stacked(draws)
        for rows in self.batches():
            try:
                outputs = self._outputs(rows, stacked, are_stacked=True)
            except FailureError as error:
                raise FailureError(f"{error}; draws_at_once=1 evaluates one draw after the other") from error
            yield rows, self._checked(outputs, draws)

    def groups(self, noise: WeightNoise, draws: int, at_once: int | None) -> list[list[int]]:
        """The numbers of the draws, in groups that are evaluated together.

        By default one by one, except where a call costs more than its arithmetic: at most 2^20 parameters times inputs
        of a batch, and at least 4 draws. There 32 draws at once were 2.4 to 6 times as fast as a loop; with more
        arithmetic, from 1.4 times as fast (an MLP) to half as fast (a CNN): benchmarks/test_landscape.py.
        """
        is_small = noise.count * min(self.batch_size, len(self)) <= _SMALL
        if at_once is None:
            at_once = _MOST if is_small and draws >= _FEWEST and noise.size > 0 and self._can_be_mapped(noise) else 1
        # Without noise the loop gives exactly the outputs as they are; stacked products may round differently.
        parts = -(-draws // (at_once if noise.size > 0 else 1))
        return [part.tolist() for part in np.array_split(np.arange(draws), parts)]

    def _can_be_mapped(self, noise: WeightNoise) -> bool:
        """Whether torch can evaluate this model for several weights at once: not all of its layers allow it."""
        try:
            self._outputs(slice(0, 1), noise.stacked([0, 1]), are_stacked=True)
        except JostleError:
            return False
        return True

    def _outputs(self, rows: slice, weights: dict[str, Tensor], *, are_stacked: bool) -> Tensor:
        self._lent.weights, self._lent.are_stacked = weights, are_stacked
        outputs = self._function(self.inputs.batch(np.arange(rows.start, rows.stop)))
        if not outputs.is_floating_point():
            raise UsageError(f"the model answers with {outputs.dtype}; expected real outputs, such as logits")
        return outputs

    def _checked(self, outputs: Tensor, draws: Sequence[int]) -> Tensor:
        if not outputs.isfinite().all():
            raise FailureError(
                f"with the weights of draws {draws[0]} to {draws[-1]} the model answers with NaN or infinity; move the "
                "weights less, with a smaller std or rho"
            )
        return outputs


def read_inputs(source: Any) -> Inputs:
    """Inputs as whole things; empty ones, and ones with NaN or infinity, are refused."""
    if isinstance(source, str | bytes):
        raise UsageError(f"inputs={source!r} is a text: give a tensor or a dataset, such as jostle.data.load('mnist')")
    given = source.values() if isinstance(source, Mapping) else [source]
    if any(isinstance(each, Tensor) and each.layout != torch.strided for each in given):
        raise UsageError("inputs are sparse; give dense tensors: inputs.to_dense()")
    tensors = as_tensors(source) or {}
    # Which entry of a mapping holds the tokens does not matter here, if it has an axis besides the inputs'.
    key = max(tensors, key=lambda name: tensors[name].dim(), default=None)
    if key is not None and tensors[key].numel() and tensors[key].dim() < 2:
        shape = tuple(tensors[key].shape)
        raise UsageError(f"inputs of shape {shape} have no axis of their own; give (inputs, 1) for single numbers")
    inputs = Inputs(source, Whole(key=key or None))
    inputs.check_finite()
    return inputs


class Lent(nn.Module):
    """The model with other weights, lent for one call; stacked weights give outputs (batch, draws, ...)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.weights: dict[str, Tensor] = {}
        self.are_stacked = False

    def forward(self, *positional: Tensor, **named: Tensor) -> Any:
        """What the model answers; buffers are copies, so that what a model counts in them is forgotten."""
        buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}

        def call(weights: dict[str, Tensor]) -> Any:
            return functional_call(self.model, {**buffers, **weights}, positional, named)

        if not self.are_stacked:
            return call(self.weights)
        with warnings.catch_warnings():
            # Fused attention has no batching rule and is evaluated draw by draw, which is no slower than the loop.
            warnings.filterwarnings("ignore", message="There is a performance drop", category=UserWarning)
            return vmap(call, out_dims=1)(self.weights)
