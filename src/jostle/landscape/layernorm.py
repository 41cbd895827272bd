"""Paper 2's layer-norm blow-up: how much the normalisations of a network can magnify a small change.

First the blow-up itself, then what it needs to know about a norm: the axes it averages over, whether it subtracts the
mean, and its eps. Norms of torch are known. Other norms are tested by calling their ``forward``, which runs none of
their hooks.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval
from jostle.intervals.fixed import student
from jostle.landscape.averages import Floats
from jostle.landscape.network import Stateless, read_inputs
from jostle.landscape.weights import preserve
from jostle.tokens import Batch, Inputs, TokenFunction

PROTOCOLS = ("paper", "released")
_MASKS = ("attention_mask", "mask")
_EPS_NAMES = ("eps", "variance_epsilon", "epsilon")
_CONSTANT = 0.5  # added to a ramp from -1 to 1: an RMSNorm changes by 0.067 of its range or more, whatever its gains
_CHANGED = 0.03  # of the range of the answers; the rounding of bfloat16 is a tenth of it
_SMALL = 1e-4  # of the ramp: its variance 3e-9 is below the usual eps, and float16 still has it


@dataclass(frozen=True, eq=False)
class Blowup(Estimate):
    """The blow-up of a network on some inputs.

    Arguments:
        value: the mean over the inputs of the product over the norms. It is exact for these inputs.
        interval: Student's t over the inputs, for the population they came from.
        per_input: (N,), the product for each input.
        per_norm: (N, norms), its factors.
        norms: the names of the norms, in the order of their calls; a norm that is called twice has two entries.
        protocol: ``paper`` or ``released``.
    """

    per_input: Floats = field(repr=False)
    per_norm: Floats = field(repr=False)
    norms: list[str]
    protocol: str

    @property
    def mean_square(self) -> float:
        """The mean over the inputs of the squared blow-up, which paper 2's Corollary 5 bounds."""
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

    y_i is the input of norm k at position i (paper 2, 2402.09963, and its follow-up 2606.08768), the variance is over
    the normalised axes, and eps is the norm's own. For a norm that does not subtract the mean, such as RMSNorm, the
    mean square replaces the variance. Norms count in the order of their calls. Masked positions (``attention_mask``)
    do not count.

    >>> import torch
    >>> norm = torch.nn.LayerNorm(2, eps=0.0)  # y = (0, 1) has variance 1/4: 1 + 1 / sqrt(1/4) = 3
    >>> layernorm_blowup(norm, torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=norm.weight.dtype)).value
    3.0

    Differs: the released code (``protocol="released"``) has the factor 1 / (unbiased standard deviation of y_i),
    without eps and without 1 +. In the two norms of the last layer it takes only the last position that is not masked.

    Arguments:
        model: a module with parts of the type ``nn.LayerNorm`` or ``nn.RMSNorm``, or with "LayerNorm" or "RMSNorm" in
            the name of their class. It is measured in eval mode and left as it was. Norms whose ``forward`` is not
            torch's are called a few more times: to see whether they subtract the mean, and to compute their eps if they
            have no ``eps``, ``variance_epsilon`` or ``epsilon``. Every norm must receive the batch first.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; the batch comes first.
        protocol: ``paper`` or ``released``.
        last_layer_norms: for ``released``, how many of the last norms are read at the last position only.
        level: coverage of the interval.
        batch_size: how many inputs the model answers at once.
    """
    protocol, level = checks.choice("protocol", protocol, PROTOCOLS), checks.level(level)
    last = checks.whole("last_layer_norms", last_layer_norms, least=0)
    last = last if protocol == "released" else 0
    size = checks.whole("batch_size", batch_size, least=1)
    recorder, held = _NormRecorder(_norms(model), protocol), read_inputs(inputs)
    with preserve(model):
        names, per_norm = _norm_factors(recorder, TokenFunction(Stateless(model), held), held, size, last)
    per_input = per_norm.prod(axis=1)
    value = float(per_input.mean())
    return Blowup(value, _interval(per_input, level, protocol), per_input, per_norm, names, protocol)


def is_norm(module: nn.Module) -> bool:
    """Whether ``layernorm_blowup`` counts a module as a layer norm: by its type, or by the name of its class."""
    kind = type(module).__name__
    return isinstance(module, nn.LayerNorm | nn.RMSNorm) or "LayerNorm" in kind or "RMSNorm" in kind


def _norms(model: Any) -> dict[nn.Module, str]:
    """The layer norms of a model with their names."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"model is a {type(model).__name__}; expected a torch.nn.Module with layer norms")
    found = {module: name or "itself" for name, module in model.named_modules() if is_norm(module)}
    if not found:
        raise UsageError("model has no LayerNorm or RMSNorm among its parts; there is nothing to blow up")
    return found


def _norm_factors(
    recorder: "_NormRecorder", function: TokenFunction, held: Inputs, size: int, last: int
) -> tuple[list[str], Floats]:
    """The names of the norms in the order of their calls, and their factors, (N, norms)."""
    called, factors = [], []
    for start in range(0, len(held), size):
        calls = recorder.calls(function, held.batch(np.arange(start, min(start + size, len(held)))))
        if start == 0 and any(call.may_be_sequence_first for call in calls):
            # With one input less, a norm that receives the sequence first is found by its shape, and refused.
            recorder.calls(function, held.batch(np.arange(min(size, len(held)) - 1)))
        called.append([call.name for call in calls])
        factors.append(_largest_scales(calls, last))
    if not any(called):
        count = len(recorder.norms)
        raise UsageError(f"the model calls none of its {count} norms on these inputs; there is nothing to blow up")
    if any(each != called[0] for each in called):
        raise UsageError(
            f"the model calls {len(called[0])} norms on one batch and others on another; expected the same"
        )
    return called[0], torch.cat(factors).numpy()


class _NormCall(NamedTuple):
    """One call of a norm.

    Arguments:
        name: of the norm.
        scales: (batch, positions), the factor of each position; 0 where it is masked.
        last: (batch, 1), the factor of the last position that is not masked.
        may_be_sequence_first: whether there are as many positions as inputs, so that the shape does not show which
            axis is the batch.
    """

    name: str
    scales: Tensor
    last: Tensor
    may_be_sequence_first: bool


class _NormRecorder:
    """Records the calls of a model's norms.

    Arguments:
        norms: with their names.
        protocol: ``paper`` or ``released``.
    """

    def __init__(self, norms: dict[nn.Module, str], protocol: str) -> None:
        self.norms, self.protocol = norms, protocol
        self._kinds: dict[nn.Module, Normalisation] = {}

    def calls(self, function: TokenFunction, batch: Batch) -> list[_NormCall]:
        """The calls of norms while the function answers a batch, in order. The hooks are removed afterwards."""
        calls: list[_NormCall] = []
        size = len(next(iter(batch.values())))
        mask = next((batch[key].bool() for key in _MASKS if key in batch and batch[key].dim() == 2), None)

        def record(norm: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
            received = normalised_tensor(positional, named)
            if len(received) != size:
                raise UsageError(
                    f"the norm {self.norms[norm]} receives {tuple(received.shape)} for {size} inputs; expected the "
                    "batch first"
                )
            if self.protocol == "paper" and norm not in self._kinds:
                before = len(calls)
                self._kinds[norm] = normalisation_of(norm, positional, named)
                del calls[before:]  # Norms inside this one recorded the test calls.
            scales = _scales(norm, received.double(), self._kinds.get(norm))  # (batch, *positions)
            calls.append(_norm_call(self.norms[norm], scales, mask))

        hooks = [norm.register_forward_pre_hook(record, with_kwargs=True) for norm in self.norms]
        try:
            function(batch)
        finally:
            for hook in hooks:
                hook.remove()
        return calls


def _norm_call(name: str, scales: Tensor, mask: Tensor | None) -> _NormCall:
    """The call of a norm with scales (batch, *positions), without those of masked positions."""
    size, shape = len(scales), scales.shape
    scales = scales.reshape(size, -1).cpu()
    last = scales[:, -1:]
    if mask is not None and shape == mask.shape:
        scales = scales.masked_fill(~mask.cpu(), 0.0)
        last = scales.gather(1, (mask.cpu() * torch.arange(shape[1])).argmax(dim=1, keepdim=True))
    return _NormCall(name, scales, last, may_be_sequence_first=len(shape) > 1 and 1 < size == shape[1])


def _largest_scales(calls: list[_NormCall], last: int) -> Tensor:
    """The largest scale of each norm over positions, (batch, norms); of the ``last`` norms at the last position."""
    first_of_last = len(calls) - last
    scales = [call.scales if place < first_of_last else call.last for place, call in enumerate(calls)]
    return torch.stack([scale.amax(dim=1) for scale in scales], dim=1) if scales else torch.empty(0, 0)


def _interval(per_input: Floats, level: float, protocol: str) -> Interval:
    least = 1.0 if protocol == "paper" else 0.0
    if not np.isfinite(per_input).all() or np.ptp(per_input) == 0:
        return Interval(least, math.inf, level, "population", "open: equal blow-ups, a single one or an infinite one")
    low, high = student(per_input.mean(), per_input.var(ddof=1), len(per_input), level)
    method = f"Student's t over {len(per_input)} inputs, asymptotic"
    return Interval(max(float(low), least), float(high), level, "population", method)


@dataclass(frozen=True)
class Normalisation:
    """The divisor of a norm: the square root of eps plus the variance, or of eps plus the mean square.

    Arguments:
        is_centring: whether the norm subtracts the mean, so that it is the variance (LayerNorm) and not the mean square
            (RMSNorm).
        eps: the norm's own.
    """

    is_centring: bool
    eps: float


def _scales(norm: nn.Module, received: Tensor, kind: Normalisation | None) -> Tensor:
    """The factor of each position, (batch, *positions); without a kind, the factor of the released code."""
    axes = axes_of(norm, received)
    if kind is None:
        if math.prod(received.shape[axis] for axis in axes) == 1:
            raise UsageError("a norm of a single number has no unbiased standard deviation; give protocol='paper'")
        return 1 / received.std(dim=axes)
    spread = received.var(dim=axes, correction=0) if kind.is_centring else received.square().mean(dim=axes)
    return 1 + 1 / (spread + kind.eps).sqrt()


def normalised_tensor(positional: tuple[Any, ...], named: Mapping[str, Any]) -> Tensor:
    """The tensor that a norm normalises when it is called with these arguments: the first of them."""
    received: Tensor = positional[0] if positional else next(iter(named.values()))
    return received.detach()


def normalisation_of(norm: nn.Module, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Normalisation:
    """Whether a norm subtracts the mean, and its eps.

    Norms with the ``forward`` of ``nn.LayerNorm`` or ``nn.RMSNorm`` are known. Any other norm subtracts the mean if its
    answer stays the same when a constant is added to all numbers. An eps that it does not have as an attribute is
    computed from its answers.

    >>> normalisation_of(nn.LayerNorm(4), (torch.ones(2, 4),), {})
    Normalisation(is_centring=True, eps=1e-05)

    Arguments:
        norm: a module.
        positional, named: the arguments of a call. The test calls change only the first of them.
    """
    received = normalised_tensor(positional, named)
    known = (getattr(norm, name, None) for name in _EPS_NAMES)
    eps = next((float(each) for each in known if each is not None), None)
    # The eps that torch's RMSNorm uses for None: that of the type it computes in, float32 for half precision.
    usual = torch.finfo(torch.promote_types(received.dtype, torch.float32)).eps
    if _has_forward_of_torch(norm):
        return Normalisation(isinstance(norm, nn.LayerNorm), usual if eps is None else eps)
    answer, ramp = _as_function(norm, positional, named), _ramp(norm, received)
    is_centring = _is_centring(norm, answer, ramp)
    return Normalisation(is_centring, _inferred_eps(answer, ramp, usual) if eps is None else eps)


def axes_of(norm: nn.Module, received: Tensor) -> list[int]:
    """The axes that a norm averages over: the last ones, or the channels of maps (batch, channels, height, width)."""
    shape = tuple(getattr(norm, "normalized_shape", (received.shape[-1],)))
    is_of_maps = received.dim() == 4 and len(shape) == 1 and received.shape[1] == shape[0]
    if is_of_maps and not _has_forward_of_torch(norm):
        return [1]  # LayerNorm for feature maps, as in ConvNeXt: a subclass that moves the channels to the end.
    return list(range(-len(shape), 0))


def _has_forward_of_torch(norm: nn.Module) -> bool:
    return type(norm).forward in (nn.LayerNorm.forward, nn.RMSNorm.forward)


def _ramp(norm: nn.Module, received: Tensor) -> Tensor:
    """Numbers from -1 to 1 over the normalised axes, the same at all positions.

    Norms are tested with a ramp and not with their own input, which may be constant, or so far from 0 that rounding
    hides the answer. The own input gives the shape, the type and the device.
    """
    axes = axes_of(norm, received)
    sizes = [received.shape[axis] for axis in axes]
    ramp = torch.linspace(-1, 1, math.prod(sizes), dtype=torch.float64, device=received.device)
    return ramp.reshape(sizes if axes[-1] == -1 else [*sizes, 1, 1])


def _as_function(norm: nn.Module, positional: tuple[Any, ...], named: Mapping[str, Any]) -> Callable[[Tensor], Tensor]:
    """The norm as a function of the tensor it normalises, in float64.

    The function repeats its argument to the shape of the norm's own input.
    """
    received = normalised_tensor(positional, named)

    def copy(value: Any) -> Any:
        return value.clone() if isinstance(value, Tensor) else value  # A norm may write to its arguments.

    def answer(given: Tensor) -> Tensor:
        asked = torch.empty_like(received).copy_(given)
        others = {name: copy(value) for name, value in named.items()}
        if positional:
            found = norm.forward(asked, *map(copy, positional[1:]), **others)
        else:
            found = norm.forward(**{**others, next(iter(named)): asked})
        outputs: Tensor = found[0] if isinstance(found, tuple | list) else found
        return outputs.detach().double()

    return answer


def _is_centring(norm: nn.Module, answer: Callable[[Tensor], Tensor], ramp: Tensor) -> bool:
    upwards = answer(ramp)
    change = float((answer(ramp + _CONSTANT) - upwards).norm())
    span = float((upwards - answer(-ramp)).norm())  # A bias cancels in both.
    if change == span == 0:
        return "RMS" not in type(norm).__name__  # All answers are equal, for example because the gains are 0.
    return change <= _CHANGED * span


def _inferred_eps(answer: Callable[[Tensor], Tensor], ramp: Tensor, usual: float) -> float:
    """The eps of a norm, from its answers y / sqrt(v + eps) to a ramp y of variance v and to the much smaller s y.

        r = |answer to y|^2 / |answer to s y|^2 = (s^2 v + eps) / (s^2 (v + eps)),
        eps = s^2 v (r - 1) / (1 - s^2 r)

    Arguments:
        answer: the norm as a function.
        ramp: y.
        usual: the result for a norm whose answers do not show its eps.
    """
    large, small = (float((answer(size * ramp) - answer(-size * ramp)).square().sum()) for size in (1.0, _SMALL))
    rest = small - _SMALL**2 * large  # (1 - s^2 r) |answer to s y|^2
    if not rest > 0:
        return usual
    return max(_SMALL**2 * float(ramp.square().mean()) * (large - small) / rest, 0.0)
