"""The weights of a model: which parameters are moved, by what, their norm, and a guard that leaves the model unchanged.

The model's own tensors are never written to. Moved weights are new tensors, lent to the model for one call.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.base.model import eval_mode
from jostle.base.randomness import Stream

POSITIONS = ("*position*", "*pos_emb*")
"""Patterns that match the usual names of positional encodings. Paper 2's code neither moves nor counts these.

Other parts with such names, for example ``position_wise_feed_forward``, match too: a result lists the parameters that
were skipped, and ``skip`` takes other patterns.
"""

MOST_DRAWS = 1_000_000  # which are listed before the first of them
_NUMBERS_OF_AN_ADDRESS = 4096  # numbers under one address of the stream
_ROUNDING = 0.01  # share of a step's length that the weights' type may round away


def chosen_parameters(model: Any, skip: Sequence[str] = ()) -> dict[str, Tensor]:
    """The floating-point parameters by name, without those whose names match a pattern of ``skip``.

    A tensor with several names (tied weights) is one parameter, under its first name.

    >>> list(chosen_parameters(nn.Linear(2, 1), skip=["b*"]))
    ['weight']
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"model is a {type(model).__name__}; expected a torch.nn.Module, whose parameters are moved")
    skip = _patterns(skip)
    held = {name: tensor.detach() for name, tensor in model.named_parameters() if tensor.is_floating_point()}
    if not held:
        raise UsageError("model has no floating-point parameters; there is nothing to move")
    moved = {name: tensor for name, tensor in held.items() if not any(fnmatchcase(name, each) for each in skip)}
    if not moved:
        raise UsageError(f"skip={list(skip)!r} matches every parameter of the model; leave some to be moved")
    return moved


def _patterns(skip: Any) -> list[str]:
    try:
        patterns = [skip] if isinstance(skip, str) else list(skip)
    except TypeError:
        patterns = [None]
    if isinstance(skip, str) or not all(isinstance(pattern, str) for pattern in patterns):
        example = [skip] if isinstance(skip, str) else ["*position*"]
        raise UsageError(f"skip={skip!r} must be a list of patterns of parameter names, for example {example!r}")
    return patterns


class WeightNoise:
    """Random steps of the parameters. Each step is a function of the seed and the number of the draw only.

    ``gaussian``: xi ~ N(0, size^2 I). ``sphere``: size * g / |g| with g ~ N(0, I). All parameters together are one
    vector, in the order of ``named_parameters``. A size is refused if the parameters' type rounds the length of draw 0
    by more than 1 %.

    Arguments:
        parameters: the parameters to move, by name.
        kind: ``gaussian`` or ``sphere``.
        size: the standard deviation of each coordinate, or the radius.
        seed: any whole number.
    """

    def __init__(self, parameters: Mapping[str, Tensor], kind: str, size: float, seed: int) -> None:
        self.parameters = {name: tensor.detach() for name, tensor in parameters.items()}
        self.kind, self.size = kind, size
        self.count = sum(tensor.numel() for tensor in self.parameters.values())
        self._stream = Stream(seed, f"weights/{kind}")

    def steps(self, draws: Sequence[int]) -> NDArray[np.float64]:
        """The steps of these draws, (draws, count)."""
        if self.size == 0:
            return np.zeros((len(draws), self.count))
        normals = gaussians(self._stream, draws, self.count)
        if self.kind == "gaussian":
            return self.size * normals
        lengths: NDArray[np.float64] = np.linalg.norm(normals, axis=1, keepdims=True)
        return self.size * normals / lengths

    def moved(self, draw: int) -> dict[str, Tensor]:
        """The parameters plus the step of one draw: new tensors in the memory layout of the old ones."""
        # In place on a clone: a sum of two tensors in different layouts may get a third layout, and with it another
        # kernel that rounds differently.
        steps = self.steps([draw])
        moved = {name: self.parameters[name].clone().add_(part[0]) for name, part in self._parts(steps)}
        if draw == 0:
            self._check_length(moved, steps[0])
        return moved

    def stacked(self, draws: Sequence[int]) -> dict[str, Tensor]:
        """The parameters plus the steps of several draws, each stacked as (draws, *shape)."""
        steps = self.steps(draws)
        stacked = {name: self.parameters[name] + part for name, part in self._parts(steps)}
        if draws[0] == 0:
            self._check_length({name: moved[0] for name, moved in stacked.items()}, steps[0])
        return stacked

    def _parts(self, steps: NDArray[np.float64]) -> Iterator[tuple[str, Tensor]]:
        """The steps (draws, count) cut into parameters, (draws, *shape), each with its type and on its device."""
        numbers, start = torch.from_numpy(steps), 0
        for name, tensor in self.parameters.items():
            part = numbers[:, start : start + tensor.numel()].reshape(len(steps), *tensor.shape)
            yield name, part.to(dtype=tensor.dtype, device=tensor.device)
            start += tensor.numel()

    def _check_length(self, moved: Mapping[str, Tensor], step: NDArray[np.float64]) -> None:
        """Raise if the type of the weights rounds the step to another length: steps below its spacing get longer."""
        differences = (moved[name].double() - tensor.double() for name, tensor in self.parameters.items())
        found = math.sqrt(sum(float(difference.square().sum()) for difference in differences))
        wanted = float(np.linalg.norm(step))
        if math.isfinite(found) and abs(found - wanted) > _ROUNDING * wanted:
            kinds = " and ".join(sorted({str(tensor.dtype) for tensor in self.parameters.values()}))
            argument = "rho" if self.kind == "sphere" else "std"
            raise UsageError(
                f"{argument}={self.size:g} is too small for weights in {kinds}, which round a step of length "
                f"{wanted:.3g} to {found:.3g}; give model and inputs in a finer type, such as float64, or a larger "
                f"{argument}"
            )


def gaussians(stream: Stream, draws: Sequence[int], count: int) -> NDArray[np.float64]:
    """Standard normal numbers (draws, count); each is a function of its draw and its place.

    >>> stream = Stream(0, "doctest")
    >>> bool((gaussians(stream, [2, 3], 9000)[1, :10] == gaussians(stream, [3], 10)[0]).all())
    True
    """
    return special.ndtri(uniforms(stream, draws, count))


def uniforms(stream: Stream, draws: Sequence[int], count: int) -> NDArray[np.float64]:
    """Uniform numbers (draws, count); each is a function of its draw and its place."""
    rows, size = -(-count // _NUMBERS_OF_AN_ADDRESS), min(count, _NUMBERS_OF_AN_ADDRESS)
    places, numbers = np.tile(np.arange(rows), len(draws)), np.repeat(np.asarray(draws), rows)
    found = stream.uniforms(np.zeros(len(places)), places, numbers, size=size)
    return found.reshape(len(draws), -1)[:, :count]


@contextlib.contextmanager
def preserve(model: nn.Module, *, training: bool = False) -> Iterator[None]:
    """Inside, all parts of the model are in one mode, without gradients; afterwards the model is as it was.

    Modes, parameters and buffers are put back. ``torch.func.functional_call`` lends weights and takes them back itself,
    unless Ctrl-C arrives while it swaps tensors; so the original tensors are put back here in any case.

    Arguments:
        model: any module.
        training: train mode for all parts; eval mode unless given.
    """
    tables: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (table, dict(table)) for module in model.modules() for table in (module._parameters, module._buffers)
    ]
    with eval_mode(model):
        try:
            for module in model.modules():
                module.training = training
            with torch.no_grad():
                yield
        finally:
            for table, entries in tables:
                table.update(entries)


def parameter_norm(model: Any, *, skip: tuple[str, ...] | list[str] = ()) -> float:
    """The Euclidean norm of all parameters together, sqrt(sum of squares), in float64.

    The code of paper 2 (2402.09963) leaves out positional encodings, because there are more of them for longer inputs:
    ``skip=jostle.landscape.POSITIONS``.

    >>> from torch import nn
    >>> _ = (line := nn.Linear(2, 1)).weight.data.fill_(2.0), line.bias.data.fill_(1.0)
    >>> parameter_norm(line), parameter_norm(nn.LayerNorm(4), skip=["bias"])
    (3.0, 2.0)

    Arguments:
        model: a module. Its floating-point parameters count, tied ones once; buffers do not.
        skip: patterns of the names of parameters to leave out.
    """
    squares = [float(tensor.double().square().sum()) for tensor in chosen_parameters(model, skip).values()]
    return math.sqrt(math.fsum(squares))
