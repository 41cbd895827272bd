"""Spectra of the kernels that are known by name: the way in to this package."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jostle.boolean.kernels import recursions
from jostle.boolean.kernels.activations import activation_named
from jostle.boolean.kernels.recursions import Layers
from jostle.boolean.kernels.series import line
from jostle.boolean.kernels.spectrum import STEPS, Spectrum, check_bits, spectrum_of
from jostle.errors import UsageError
from jostle.registry import unknown_name

# name -> (the recursion, which of its two kernels)
KERNELS: dict[str, tuple[Callable[..., Any], int]] = {
    "mlp-ck": (recursions.mlp, 0),
    "mlp-ntk": (recursions.mlp, 1),
    "linear-attention-ck": (recursions.one_token_attention, 0),
    "linear-attention-ntk": (recursions.one_token_attention, 1),
}

_FURTHEST = 1e3  # a series is never stretched by more than this
_NO_FURTHER = 1e-6  # nor by less: that close to 1 the bisection sees rounding errors


def kernel_spectrum(
    name: str,
    n: int,
    depth: int = 1,
    *,
    activation: str | None = None,
    weight_variance: float | None = None,
    bias_variance: float = 0.0,
) -> Spectrum:
    """mu_0..mu_n of the kernel of an infinitely wide network on {-1, 1}^n. Paper 1 (2403.06925), Prop. 3.1.

    >>> spectrum = kernel_spectrum("mlp-ntk", n=64, depth=2)
    >>> [round(spectrum.share(k), 4) for k in range(4)], spectrum.is_weakly_biased
    ([0.2318, 0.3223, 0.2056, 0.061], True)

    Arguments:
        name: ``mlp-ck``, ``mlp-ntk`` (``recursions.mlp``), ``linear-attention-ck``, ``linear-attention-ntk``
            (``recursions.one_token_attention``: one token of dimension n, where the kernel of linear attention is a
            function of <x, y> at every depth; with more tokens it is not, see ``attention_gram``).
        n: bits, 1 to 1000.
        depth: hidden layers of the MLP, or attention layers.
        activation: ``relu`` or ``erf``. None is relu in an MLP, and no MLP layer in an attention network.
        weight_variance: of the dense layers, times the fan-in. None is 2 for relu and 1 for erf.
        bias_variance: of the dense layers. With 0, erf networks are odd functions: mu_k = 0 for even k.
    """
    check_bits(n)
    if name not in KERNELS:
        raise unknown_name("kernel", name, KERNELS)
    recursion, which = KERNELS[name]
    layers = checked_layers(
        depth, activation or ("relu" if recursion is recursions.mlp else None), weight_variance, bias_variance
    )

    def kernel(c: float) -> float:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return float(recursion(np.asarray(c), layers)[which])

    radius = _radius(kernel) if layers.activation else 1.0
    series = recursion(line(0.0, radius, terms=STEPS * n + 2), layers)[which]
    return spectrum_of(series.coefficients, n, name=name, ends=(kernel(1.0), kernel(-1.0)), radius=radius)


def checked_layers(depth: int, activation: str | None, weight_variance: float | None, bias_variance: float) -> Layers:
    """The layers of a network, with defaults filled in and wrong values refused."""
    if depth < 1:
        raise UsageError(f"depth is {depth}; expected at least 1 layer")
    if weight_variance is not None and not (np.isfinite(weight_variance) and weight_variance > 0):
        raise UsageError(f"weight_variance is {weight_variance}; expected a number above 0")
    if not (np.isfinite(bias_variance) and bias_variance >= 0):
        raise UsageError(f"bias_variance is {bias_variance}; expected 0 or more")
    if activation is None:
        if weight_variance is not None or bias_variance:
            raise UsageError("weight_variance and bias_variance belong to MLP layers; name an activation to have them")
        return Layers(depth, None, 1.0, 0.0)
    kind = activation_named(activation)
    return Layers(depth, kind, kind.weight_variance if weight_variance is None else weight_variance, bias_variance)


def _radius(kernel: Callable[[float], float]) -> float:
    """Up to where the series of a kernel converges: 1 for relu, further out for erf (by bisection)."""
    inside, outside = 1.0, _FURTHEST
    for _ in range(60):
        middle = (inside * outside) ** 0.5
        inside, outside = (middle, outside) if np.isfinite(kernel(middle)) else (inside, middle)
    return inside if inside > 1 + _NO_FURTHER else 1.0
