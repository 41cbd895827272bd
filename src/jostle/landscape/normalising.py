"""What a layer norm does: over which axes it averages, whether it takes the mean away, and its eps.

The norms of torch are known; others are asked, by calling their ``forward``, which runs none of their own hooks.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Answer = Callable[[Tensor], Tensor]

_EPS_NAMES = ("eps", "variance_epsilon", "epsilon")
_CONSTANT = 0.5  # added to a ramp from -1 to 1: an RMSNorm changes by 0.067 of its range or more, whatever its gains
_CHANGED = 0.03  # of the range of the answers; the rounding of bfloat16 is a tenth of it
_SMALL = 1e-4  # of the ramp: its variance 3e-9 is below the usual eps, and float16 still has it


@dataclass(frozen=True)
class Normalisation:
    """What a norm divides by: the square root of eps and the variance, or of eps and the mean square.

    Arguments:
        is_centring: whether it is the variance, as of a LayerNorm, and not the mean square, as of an RMSNorm.
        eps: the norm's own.
    """

    is_centring: bool
    eps: float


def received_by(positional: tuple[Any, ...], named: Mapping[str, Any]) -> Tensor:
    """What a norm that is called with these arguments normalises: the first of them."""
    received: Tensor = positional[0] if positional else next(iter(named.values()))
    return received.detach()


def normalisation_of(norm: nn.Module, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Normalisation:
    """Whether a norm centres and what its eps is.

    Norms with the ``forward`` of ``nn.LayerNorm`` or ``nn.RMSNorm`` are known. Others centre if a constant that is
    added to all numbers does not change their answer. If they do not say their eps, it is computed from answers too.

    >>> normalisation_of(nn.LayerNorm(4), (torch.ones(2, 4),), {})
    Normalisation(is_centring=True, eps=1e-05)

    Arguments:
        norm: a module.
        positional, named: what it is called with; other arguments than the first are given to it again as they are.
    """
    received = received_by(positional, named)
    known = (getattr(norm, name, None) for name in _EPS_NAMES)
    eps = next((float(each) for each in known if each is not None), None)
    # What torch's RMSNorm takes for None: of the type it computes in, which for half precision is float32.
    usual = torch.finfo(torch.promote_types(received.dtype, torch.float32)).eps
    if _has_forward_of_torch(norm):
        return Normalisation(isinstance(norm, nn.LayerNorm), usual if eps is None else eps)
    answer, ramp = _answering(norm, positional, named), _ramp(norm, received)
    is_centring = _is_centring(norm, answer, ramp)
    return Normalisation(is_centring, _inferred_eps(answer, ramp, usual) if eps is None else eps)


def axes_of(norm: nn.Module, received: Tensor) -> list[int]:
    """The axes a norm averages over: the last ones, or the channels of maps (batch, channels, height, width)."""
    shape = tuple(getattr(norm, "normalized_shape", (received.shape[-1],)))
    is_of_maps = received.dim() == 4 and len(shape) == 1 and received.shape[1] == shape[0]
    if is_of_maps and not _has_forward_of_torch(norm):
        return [1]  # LayerNorm for feature maps, as in ConvNeXt: a subclass that moves the channels to the end.
    return list(range(-len(shape), 0))


def _has_forward_of_torch(norm: nn.Module) -> bool:
    return type(norm).forward in (nn.LayerNorm.forward, nn.RMSNorm.forward)


def _ramp(norm: nn.Module, received: Tensor) -> Tensor:
    """From -1 to 1 over the normalised axes, the same at all positions.

    Norms are asked about it instead of what they receive, which may be constant, or so far from 0 that rounding hides
    the answer; what they receive gives the shape, the type and the place.
    """
    axes = axes_of(norm, received)
    sizes = [received.shape[axis] for axis in axes]
    ramp = torch.linspace(-1, 1, math.prod(sizes), dtype=torch.float64, device=received.device)
    return ramp.reshape(sizes if axes[-1] == -1 else [*sizes, 1, 1])


def _answering(norm: nn.Module, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Answer:
    """The norm as a function of what it normalises, which is repeated to the shape that it receives; in float64."""
    received = received_by(positional, named)

    def own(value: Any) -> Any:
        return value.clone() if isinstance(value, Tensor) else value  # A norm may write to what it is given.

    def answer(given: Tensor) -> Tensor:
        asked = torch.empty_like(received).copy_(given)
        others = {name: own(value) for name, value in named.items()}
        if positional:
            found = norm.forward(asked, *map(own, positional[1:]), **others)
        else:
            found = norm.forward(**{**others, next(iter(named)): asked})
        outputs: Tensor = found[0] if isinstance(found, tuple | list) else found
        return outputs.detach().double()

    return answer


def _is_centring(norm: nn.Module, answer: Answer, ramp: Tensor) -> bool:
    upwards = answer(ramp)
    change = float((answer(ramp + _CONSTANT) - upwards).norm())
    span = float((upwards - answer(-ramp)).norm())  # A bias is in neither.
    if change == span == 0:
        return "RMS" not in type(norm).__name__  # Gains of 0, say: it does not answer.
    return change <= _CHANGED * span


def _inferred_eps(answer: Answer, ramp: Tensor, usual: float) -> float:
    """eps, from the answers y / sqrt(v + eps) to a ramp y of variance v and to s y, smaller by far.

        r = |answer to y|^2 / |answer to s y|^2 = (s^2 v + eps) / (s^2 (v + eps)),
        eps = s^2 v (r - 1) / (1 - s^2 r)

    Arguments:
        answer: of the norm.
        ramp: y.
        usual: what is returned for a norm whose answers do not tell.
    """
    large, small = (float((answer(size * ramp) - answer(-size * ramp)).square().sum()) for size in (1.0, _SMALL))
    rest = small - _SMALL**2 * large  # (1 - s^2 r) |answer to s y|^2
    if not rest > 0:
        return usual
    return max(_SMALL**2 * float(ramp.square().mean()) * (large - small) / rest, 0.0)
