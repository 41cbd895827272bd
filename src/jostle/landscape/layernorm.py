"""Paper 2's layer-norm blow-up: by how much the normalisations of a network can magnify a small change."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.errors import UsageError
from jostle.intervals import Interval, MeanWithInterval
from jostle.intervals.fixed import student
from jostle.landscape.arguments import choice, coverage, whole
from jostle.landscape.averages import Floats
from jostle.landscape.network import read_inputs
from jostle.landscape.weights import kept
from jostle.tokens import Batch, TokenFunction

PROTOCOLS = ("paper", "released")
_MASKS = ("attention_mask", "mask")


@dataclass(frozen=True, eq=False)
class Blowup(MeanWithInterval):
    """The blow-up of a network on some inputs.

    Arguments:
        value: the mean over the inputs of the product over the norms.
        interval: Student's t over the inputs, for the population they came from; ``value`` itself is exact for them.
        per_input: (N,), the product for each input.
        per_norm: (N, norms), its factors.
        norms: the names of the norms, in the order they are called; one that is called twice is there twice.
        protocol: ``paper`` or ``released``.
    """

    per_input: Floats = field(repr=False)
    per_norm: Floats = field(repr=False)
    norms: list[str]
    protocol: str

    @property
    def mean_square(self) -> float:
        """The mean over the inputs of the squared blow-up, which is what paper 2's Corollary 5 bounds."""
        return float(np.square(self.per_input).mean())

    def __str__(self) -> str:
        return (
            f"blow-up {self.value:.4g}   [{self.low:.4g}, {self.high:.4g}]   {self.interval.level:.0%}, "
            f"{self.interval.method}\n  {len(self.per_input):,} inputs, {len(self.norms)} norms; "
            f"protocol={self.protocol}"
        )


def layernorm_blowup(
    model: Any,
    inputs: Any,
    *,
    protocol: str = "paper",
    last_layer_norms: int = 2,
    level: float = 0.95,
    batch_size: int = 128,
) -> Blowup:
    """The product over the layer norms of a network of how much each can magnify a change.

        tau_k(x) = max over positions i of  1 + 1 / sqrt(variance of y_i + eps),    Blowup(x) = product over k of tau_k

    where y_i is what norm k receives at position i (paper 2, 2402.09963, and its follow-up 2606.08768), the variance is
    over the normalised axes, and eps is the norm's own. For an RMSNorm the mean square takes the place of the
    variance. Norms count in the order in which they are called; those of masked positions (``attention_mask``) do not.

    >>> import torch
    >>> norm = torch.nn.LayerNorm(2, eps=0.0)  # y = (0, 1) has variance 1/4: 1 + 1 / sqrt(1/4) = 3
    >>> layernorm_blowup(norm, torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=norm.weight.dtype)).value
    3.0

    Differs: the released code (``protocol="released"``) has the factor 1 / (unbiased standard deviation of y_i),
    without eps and without 1 +, and takes the last position only in the two norms of the last layer.

    Arguments:
        model: a module with parts of the type ``nn.LayerNorm`` or ``nn.RMSNorm``, or with "LayerNorm" or "RMSNorm" in
            the name of their class; measured in eval mode and left as it was.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; the batch comes first.
        protocol: ``paper`` or ``released``.
        last_layer_norms: for ``released``, how many of the last norms are read at the last position only.
        level: coverage of the interval.
        batch_size: how many inputs the model answers at once.
    """
    protocol, level = choice("protocol", protocol, PROTOCOLS), coverage(level)
    last = whole("last_layer_norms", last_layer_norms, least=0)
    last = last if protocol == "released" else 0
    size = whole("batch_size", batch_size, least=1)
    names = _norms(model)
    held = read_inputs(inputs)
    function, called, factors = TokenFunction(model, held), [], []
    with kept(model):
        for start in range(0, len(held), size):
            batch = held.batch(np.arange(start, min(start + size, len(held))))
            with _recorded(names, batch, protocol) as seen:
                function(batch)
            called.append([name for name, _ in seen])
            factors.append(_factors([scales for _, scales in seen], last))
    if not any(called):
        raise UsageError(f"the model calls none of its {len(names)} norms on these inputs; there is nothing to blow up")
    if any(each != called[0] for each in called):
        raise UsageError(
            f"the model calls {len(called[0])} norms on one batch and others on another; expected the same"
        )
    per_norm = torch.cat(factors).numpy()  # (N, norms)
    per_input = per_norm.prod(axis=1)
    value = float(per_input.mean())
    return Blowup(value, _interval(per_input, level, protocol), per_input, per_norm, called[0], protocol)


def _norms(model: Any) -> dict[nn.Module, str]:
    if not isinstance(model, nn.Module):
        raise UsageError(f"model is a {type(model).__name__}; expected a torch.nn.Module with layer norms")
    found = {module: name or "itself" for name, module in model.named_modules() if is_norm(module)}
    if not found:
        raise UsageError("model has no LayerNorm or RMSNorm among its parts; there is nothing to blow up")
    return found


def is_norm(module: nn.Module) -> bool:
    """Whether ``layernorm_blowup`` takes a module for a layer norm: by its type, or by the name of its class."""
    kind = type(module).__name__
    return isinstance(module, nn.LayerNorm | nn.RMSNorm) or "LayerNorm" in kind or "RMSNorm" in kind


@contextlib.contextmanager
def _recorded(norms: dict[nn.Module, str], batch: Batch, protocol: str) -> Iterator[list[tuple[str, Tensor]]]:
    """The name of every norm called inside, with its scales (batch, positions); the hooks are gone afterwards."""
    seen: list[tuple[str, Tensor]] = []
    size = len(next(iter(batch.values())))
    mask = next((batch[key].bool() for key in _MASKS if key in batch and batch[key].dim() == 2), None)

    def record(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        received = positional[0] if positional else next(iter(named.values()))
        if len(received) != size:
            shape = tuple(received.shape)
            raise UsageError(f"the norm {norms[module]} receives {shape} for {size} inputs; expected the batch first")
        scales = _scales(module, received.detach().double(), protocol)  # (batch, *positions)
        if mask is not None and scales.shape == mask.shape:
            scales = scales.masked_fill(~mask.to(scales.device), 0.0)
        seen.append((norms[module], scales.reshape(size, -1).cpu()))

    hooks = [norm.register_forward_pre_hook(record, with_kwargs=True) for norm in norms]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _scales(norm: nn.Module, received: Tensor, protocol: str) -> Tensor:
    """The factor of each position, (batch, *positions)."""
    axes, eps = _axes(norm, received), _eps(norm, received)
    if protocol == "released":
        if math.prod(received.shape[axis] for axis in axes) == 1:
            raise UsageError("a norm of a single number has no unbiased standard deviation; give protocol='paper'")
        return 1 / received.std(dim=axes)
    if isinstance(norm, nn.RMSNorm) or "RMS" in type(norm).__name__ or not hasattr(norm, "bias"):
        spread = received.square().mean(dim=axes)  # A norm without a place for a bias does not centre either: T5's.
    else:
        spread = received.var(dim=axes, correction=0)
    return 1 + 1 / (spread + eps).sqrt()


def _axes(norm: nn.Module, received: Tensor) -> list[int]:
    """The axes a norm averages over: the last ones, or the channels of maps (batch, channels, height, width)."""
    shape = tuple(getattr(norm, "normalized_shape", (received.shape[-1],)))
    is_own_kind = type(norm).forward not in (nn.LayerNorm.forward, nn.RMSNorm.forward)
    if is_own_kind and received.dim() == 4 and len(shape) == 1 and received.shape[1] == shape[0]:
        return [1]  # LayerNorm for feature maps, as in ConvNeXt: a subclass that moves the channels to the end.
    return list(range(-len(shape), 0))


def _eps(norm: nn.Module, received: Tensor) -> float:
    known = (getattr(norm, name, None) for name in ("eps", "variance_epsilon", "epsilon"))
    weight = getattr(norm, "weight", None)
    smallest = torch.finfo((received if weight is None else weight).dtype).eps  # what torch's RMSNorm takes for None
    return next((float(eps) for eps in known if eps is not None), smallest)


def _factors(scales: list[Tensor], last: int) -> Tensor:
    """The largest scale of each norm, (batch, norms); of the last norms only at the last position."""
    first_of_last = len(scales) - last
    kept_scales = [scale if place < first_of_last else scale[:, -1:] for place, scale in enumerate(scales)]
    return torch.stack([scale.amax(dim=1) for scale in kept_scales], dim=1) if scales else torch.empty(0, 0)


def _interval(per_input: Floats, level: float, protocol: str) -> Interval:
    least = 1.0 if protocol == "paper" else 0.0
    if not np.isfinite(per_input).all() or np.ptp(per_input) == 0:
        return Interval(least, math.inf, level, "population", "open: equal blow-ups, a single one or an infinite one")
    low, high = student(per_input.mean(), per_input.var(ddof=1), len(per_input), level)
    method = f"Student's t over {len(per_input)} inputs"
    return Interval(max(float(low), least), float(high), level, "population", method)
