"""A network as a function of its inputs and its weights, for one set of weights or for several at once."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from jostle.base import checks
from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.model import check_outputs
from jostle.landscape.weights import WeightNoise, chosen_parameters
from jostle.tokens import Inputs, TokenFunction, Whole
from jostle.tokens.sources import as_tensors

_SMALL = 2**20  # parameters times inputs of a batch
_MOST, _FEWEST = 32, 4  # draws at once


class Network:
    """A module, its inputs, and which of its parameters are moved.

    Arguments:
        model: a module, which is never written to.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``.
        skip: patterns of the names of parameters that are not moved.
        batch_size: how many inputs the model answers at once.
    """

    def __init__(self, model: Any, inputs: Any, skip: Sequence[str] = (), batch_size: int = 128) -> None:
        self.parameters = chosen_parameters(model, skip)
        self.model: nn.Module = model
        self.batch_size = checks.whole("batch_size", batch_size, least=1)
        self.inputs = read_inputs(inputs)
        self._stateless = Stateless(self.model)
        self._function = TokenFunction(self._stateless, self.inputs)

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

    def clean_outputs(self, rows: slice) -> Tensor:
        """The outputs (batch, ...) for these inputs, with the model's own weights."""
        return self._outputs(rows, self.parameters, are_stacked=False)

    def moved_outputs(self, noise: WeightNoise, draws: Sequence[int]) -> Iterator[tuple[slice, Tensor]]:
        """For each batch its rows and its outputs (batch, draws, ...), with the moved weights of these draws."""
        if len(draws) == 1:
            moved = noise.moved(draws[0])
            for rows in self.batches():
                yield rows, _finite(self._outputs(rows, moved, are_stacked=False), draws)[:, None]
            return
        stacked = noise.stacked(draws)
        for rows in self.batches():
            try:
                outputs = self._outputs(rows, stacked, are_stacked=True)
            except FailureError as error:
                raise FailureError(f"{error}; draws_at_once=1 evaluates one draw after the other") from error
            yield rows, _finite(outputs, draws)

    def groups(self, noise: WeightNoise, draws: int, at_once: int | None) -> list[list[int]]:
        """The numbers of the draws, in groups that are evaluated together.

        By default the draws are evaluated one by one, unless a call costs more than its arithmetic: at most 2^20
        parameters times inputs of a batch, and at least 4 draws. In that case 32 draws at once were 2.4 to 6 times as
        fast as a loop. With more arithmetic they were from 1.4 times as fast (an MLP) to half as fast (a CNN):
        benchmarks/test_landscape.py.

        Arguments:
            noise: how the weights are moved.
            draws: how many draws there are.
            at_once: the size of a group; chosen by the rule above if None.
        """
        is_small = noise.count * min(self.batch_size, len(self)) <= _SMALL
        if at_once is None:
            at_once = _MOST if is_small and draws >= _FEWEST and noise.size > 0 and self._can_be_mapped(noise) else 1
        # Without noise the loop gives exactly the clean outputs; stacked products may round differently.
        parts = -(-draws // (at_once if noise.size > 0 else 1))
        return [part.tolist() for part in np.array_split(np.arange(draws), parts)]

    def _can_be_mapped(self, noise: WeightNoise) -> bool:
        """Whether torch can evaluate this model for several weights at once; not all layers of torch allow it."""
        try:
            self._outputs(slice(0, 1), noise.stacked([0, 1]), are_stacked=True)
        except JostleError:
            return False
        return True

    def _outputs(self, rows: slice, weights: dict[str, Tensor], *, are_stacked: bool) -> Tensor:
        self._stateless.weights, self._stateless.are_stacked = weights, are_stacked
        outputs = self._function(self.inputs.batch(np.arange(rows.start, rows.stop)))
        check_outputs(outputs, rows.stop - rows.start, real=True)
        return outputs


def _finite(outputs: Tensor, draws: Sequence[int]) -> Tensor:
    """``outputs``, if all of them are finite."""
    if not outputs.isfinite().all():
        raise FailureError(
            f"with the weights of draws {draws[0]} to {draws[-1]} the model answers with NaN or infinity; move the "
            "weights less, with a smaller std or rho"
        )
    return outputs


def read_inputs(source: Any) -> Inputs:
    """The inputs, each as one token; empty inputs, and inputs with NaN or infinity, are refused."""
    if isinstance(source, str | bytes):
        raise UsageError(f"inputs={source!r} is a text: give a tensor or a dataset, such as jostle.data.load('mnist')")
    given = source.values() if isinstance(source, Mapping) else [source]
    if any(isinstance(each, Tensor) and each.layout != torch.strided for each in given):
        raise UsageError("inputs are sparse; give dense tensors: inputs.to_dense()")
    tensors = as_tensors(source) or {}
    # Any entry of a mapping can be the one with the tokens here, if it has an axis besides that of the inputs.
    key = max(tensors, key=lambda name: tensors[name].dim(), default=None)
    if key is not None and tensors[key].numel() and tensors[key].dim() < 2:
        shape = tuple(tensors[key].shape)
        raise UsageError(f"inputs of shape {shape} have no axis of their own; give (inputs, 1) for single numbers")
    inputs = Inputs(source, Whole(key=key or None))
    inputs.check_finite()
    return inputs


class Stateless(nn.Module):
    """The model as a function without a state of its own: ``weights`` replace its parameters for one call.

    Buffers are copied for each call, so what a model counts in them is forgotten. Parameters without an entry in
    ``weights`` are the model's own.

    Attributes:
        weights: parameters by name.
        are_stacked: whether the weights are those of several draws, (draws, *shape). Outputs are then (batch, draws,
            ...).
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.weights: dict[str, Tensor] = {}
        self.are_stacked = False

    def forward(self, *positional: Tensor, **named: Tensor) -> Any:
        """The model's answer with ``weights``."""
        buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}

        def answer(weights: dict[str, Tensor]) -> Any:
            return functional_call(self.model, {**buffers, **weights}, positional, named)

        if not self.are_stacked:
            return answer(self.weights)
        with warnings.catch_warnings():
            # Fused attention has no batching rule and is evaluated draw by draw, which is no slower than the loop.
            warnings.filterwarnings("ignore", message="There is a performance drop", category=UserWarning)
            return vmap(answer, out_dims=1)(self.weights)
