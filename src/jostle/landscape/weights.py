"""Moving weights: what is added to the parameters in each draw, and the promise to leave the model as it was.

The model's own tensors are never written to. Moved weights are new tensors, lent to the model for one call.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor, nn

from jostle.randomness import Stream

_AT_ONCE = 4096  # numbers under one address of the stream


class WeightNoise:
    """What is added to the parameters, as a function of the seed and the number of the draw.

    ``gaussian``: xi ~ N(0, size^2 I). ``sphere``: size * g / |g| with g ~ N(0, I), over all parameters together.
    The parameters are taken as one vector, in the order of ``named_parameters``; neither inputs nor batches matter.

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
        return {name: self.parameters[name].clone().add_(part[0]) for name, part in self._parts([draw])}

    def stacked(self, draws: Sequence[int]) -> dict[str, Tensor]:
        """The moved parameters of several draws, each stacked as (draws, *shape)."""
        return {name: self.parameters[name] + part for name, part in self._parts(draws)}

    def _parts(self, draws: Sequence[int]) -> Iterator[tuple[str, Tensor]]:
        """The steps by parameter, (draws, *shape), in its type and place."""
        steps, start = torch.from_numpy(self.steps(draws)), 0
        for name, tensor in self.parameters.items():
            part = steps[:, start : start + tensor.numel()].reshape(len(draws), *tensor.shape)
            yield name, part.to(dtype=tensor.dtype, device=tensor.device)
            start += tensor.numel()


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
