"""Moving weights: what is added to the parameters in each draw, and the promise to leave the model as it was.

The model's own tensors are never written to. Moved weights are new tensors, lent to the model for one call.

The size of the weights.
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
from jostle.base.randomness import Stream

POSITIONS = ("*position*", "*pos_emb*")
"""Patterns of the usual names of positional encodings, which paper 2's code neither moves nor counts.

Other parts that are named after positions, such as ``position_wise_feed_forward``, match too: a result says what was
skipped, and ``skip`` takes other patterns.
"""


def chosen_parameters(model: Any, skip: Sequence[str] = ()) -> dict[str, Tensor]:
    """The floating-point parameters by name, without those whose names match a pattern of ``skip``.

    A tensor that occurs under several names (tied weights) is one parameter, under its first name.

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


_AT_ONCE = 4096  # numbers under one address of the stream
_ROUNDED = 0.01  # of the length of a step


class WeightNoise:
    """What is added to the parameters, as a function of the seed and the number of the draw.

    ``gaussian``: xi ~ N(0, size^2 I). ``sphere``: size * g / |g| with g ~ N(0, I), over all parameters together.
    The parameters are taken as one vector, in the order of ``named_parameters``; neither inputs nor batches matter.
    Draw 0 is refused if the parameters' type rounds its length by more than 1 %.

    Arguments:
        parameters: those that are moved, by name.
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
        """What each of these draws adds, (draws, count)."""
        if self.size == 0:
            return np.zeros((len(draws), self.count))
        normals = gaussians(self._stream, draws, self.count)
        if self.kind == "gaussian":
            return self.size * normals
        lengths: NDArray[np.float64] = np.linalg.norm(normals, axis=1, keepdims=True)
        return self.size * normals / lengths

    def moved(self, draw: int) -> dict[str, Tensor]:
        """All chosen parameters plus the steps of one draw: new tensors in the layout of the old ones."""
        # Added to a clone: a sum of tensors in different layouts could choose another layout, and with it another
        # kernel that rounds differently.
        steps = self.steps([draw])
        moved = {name: self.parameters[name].clone().add_(part[0]) for name, part in self._parts(steps)}
        if draw == 0:
            self._check_length(moved, steps[0])
        return moved

    def stacked(self, draws: Sequence[int]) -> dict[str, Tensor]:
        """The moved parameters of several draws, each stacked as (draws, *shape)."""
        steps = self.steps(draws)
        stacked = {name: self.parameters[name] + part for name, part in self._parts(steps)}
        if draws[0] == 0:
            self._check_length({name: moved[0] for name, moved in stacked.items()}, steps[0])
        return stacked

    def _parts(self, steps: NDArray[np.float64]) -> Iterator[tuple[str, Tensor]]:
        """The steps (draws, count) by parameter, (draws, *shape), in its type and place."""
        numbers, start = torch.from_numpy(steps), 0
        for name, tensor in self.parameters.items():
            part = numbers[:, start : start + tensor.numel()].reshape(len(steps), *tensor.shape)
            yield name, part.to(dtype=tensor.dtype, device=tensor.device)
            start += tensor.numel()

    def _check_length(self, moved: Mapping[str, Tensor], step: NDArray[np.float64]) -> None:
        """Raise if the type of the weights rounds a step to another length: steps below its spacing get longer."""
        differences = (moved[name].double() - tensor.double() for name, tensor in self.parameters.items())
        found = math.sqrt(sum(float(difference.square().sum()) for difference in differences))
        wanted = float(np.linalg.norm(step))
        if math.isfinite(found) and abs(found - wanted) > _ROUNDED * wanted:
            kinds = " and ".join(sorted({str(tensor.dtype) for tensor in self.parameters.values()}))
            argument = "rho" if self.kind == "sphere" else "std"
            raise UsageError(
                f"{argument}={self.size:g} is too small for weights in {kinds}, which round a step of length "
                f"{wanted:.3g} to {found:.3g}; give model and inputs in a finer type, such as float64, or a larger "
                f"{argument}"
            )


def gaussians(stream: Stream, draws: Sequence[int], count: int) -> NDArray[np.float64]:
    """Standard normal numbers (draws, count), addressed by draw and place.

    >>> stream = Stream(0, "doctest")
    >>> bool((gaussians(stream, [2, 3], 9000)[1, :10] == gaussians(stream, [3], 10)[0]).all())
    True
    """
    return special.ndtri(uniforms(stream, draws, count))


def uniforms(stream: Stream, draws: Sequence[int], count: int) -> NDArray[np.float64]:
    """Uniform numbers (draws, count), addressed by draw and place."""
    rows, size = -(-count // _AT_ONCE), min(count, _AT_ONCE)
    places, numbers = np.tile(np.arange(rows), len(draws)), np.repeat(np.asarray(draws), rows)
    found = stream.uniforms(np.zeros(len(places)), places, numbers, size=size)
    return found.reshape(len(draws), -1)[:, :count]


@contextlib.contextmanager
def kept(model: nn.Module, *, training: bool = False) -> Iterator[None]:
    """Inside: every part of the model in one mode, and no gradients. After: modes, parameters and buffers as before.

    Weights are lent by ``torch.func.functional_call``, which takes them back itself, unless Ctrl-C comes while it
    lends; so the original tensors are put back here in any case.
    """
    modes = [(module, module.training) for module in model.modules()]
    held: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (table, dict(table)) for module, _ in modes for table in (module._parameters, module._buffers)
    ]
    try:
        for module, _ in modes:
            module.training = training
        with torch.no_grad():
            yield
    finally:
        for table, entries in held:
            table.update(entries)
        for module, mode in modes:
            module.training = mode


def parameter_norm(model: Any, *, skip: tuple[str, ...] | list[str] = ()) -> float:
    """The Euclidean norm of all parameters together, sqrt(sum of squares), in float64.

    Paper 2's code (2402.09963) leaves out positional encodings, whose number grows with the length of the input:
    ``skip=jostle.landscape.POSITIONS``.

    >>> from torch import nn
    >>> _ = (line := nn.Linear(2, 1)).weight.data.fill_(2.0), line.bias.data.fill_(1.0)
    >>> parameter_norm(line), parameter_norm(nn.LayerNorm(4), skip=["bias"])
    (3.0, 2.0)

    Arguments:
        model: a module; floating-point parameters count, tied ones once, buffers do not.
        skip: patterns of names of parameters that are left out.
    """
    squares = [float(tensor.double().square().sum()) for tensor in chosen_parameters(model, skip).values()]
    return math.sqrt(math.fsum(squares))
