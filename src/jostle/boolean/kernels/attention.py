"""The kernels of infinitely wide linear attention over several tokens, as Gram matrices over the whole cube.

An input of n = T d bits is read as T tokens of d bits, in order. One layer, with many heads:

    out_a = sum over i of (x_a' Q K' x_i) (V x_i)
    K'_ab = K_ab S,    S = (1/scale) sum over i, j of K_ij^2,    K_ij = <x_i, y_j> / d

because E[(x_a' G x_i)(y_b' G y_j)] = <x_a, y_b><x_i, y_j> for G = Q K' of independent normal numbers, and the values
add one more factor <x_i, y_j>. The tangent kernel N gets K' from each of the three matrices and, from the layers below,
one term for each of the three factors:

    N'_ab = 3 K'_ab + N_ab S + 2 K_ab (1/scale) sum over i, j of K_ij N_ij.

(Routes through two different factors do not meet: their contribution is of order 1 / width.) The derivation is our own;
for one layer K' is the kernel printed in Theorem B.1 of paper 1 (2403.06925). It sees all the products <x_i, y_j>, not
only <x, y>; ``gram.premise`` tells whether the premise of Prop. 3.1 holds. ``recursions`` has the case T = 1.
"""

import numpy as np

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean import cube
from jostle.boolean.kernels.recursions import Layers, make_layers
from jostle.boolean.kernels.series import Floats

LARGEST = 12  # bits: a matrix of 4096 x 4096 numbers, 134 MB

KINDS = "ck", "ntk"
READOUTS = "flatten", "mean"

_AT_ONCE = 1 << 20  # token products worked on at once


def attention_gram(
    tokens: int,
    dim: int,
    *,
    kind: str = "ck",
    depth: int = 1,
    readout: str = "flatten",
    activation: str | None = None,
    weight_variance: float | None = None,
    bias_variance: float = 0.0,
    scale: float | None = None,
) -> Floats:
    """The kernel of linear attention at every pair of inputs: (2^n, 2^n) in table order, n = tokens * dim.

    >>> attention_gram(tokens=1, dim=2).tolist()[0]  # one token: the cube of <x, y> / n
    [1.0, 0.0, 0.0, -1.0]

    Arguments:
        tokens: T.
        dim: d, bits of one token.
        kind: ``ck`` or ``ntk``.
        depth: attention layers.
        readout: ``flatten``, one weight vector for each position: the mean of K_aa over a; or ``mean``, one vector for
            the mean of all positions: the mean of K_ab over a and b. The readout is trained: it adds its CK to the NTK.
        activation: ``relu`` or ``erf`` for a dense layer with this activation after each attention; None for none.
        weight_variance, bias_variance: of these dense layers, as in ``kernel_spectrum``.
        scale: divides the sum over i and j in every layer. None is T + T (T - 1) / d, the sum's mean over the inputs
            at x = y in the first layer, which keeps the kernel near 1; 1 gives the formula as printed.
    """
    layers = make_layers(depth, activation, weight_variance, bias_variance)
    tokens, dim = checks.whole("tokens", tokens, least=1), checks.whole("dim", dim, least=1)
    if tokens * dim > LARGEST:
        raise UsageError(f"tokens={tokens} times dim={dim} must be at most {LARGEST} bits")
    divisor = default_scale(tokens, dim) if scale is None else checks.number("scale", scale, above=0)
    checks.choice("kernel kind", kind, KINDS)
    checks.choice("readout", readout, READOUTS)
    with np.errstate(all="ignore"):  # values out of the range of floats raise below
        gram = _gram(
            cube.points(tokens * dim).reshape(-1, tokens, dim).astype(np.float64), kind, readout, layers, divisor
        )
    if not np.all(np.isfinite(gram)) or not np.any(gram):
        raise layers.range_error()
    return gram


def default_scale(tokens: int, dim: int) -> float:
    """The mean over the cube of the sum over i, j of (<x_i, x_j> / d)^2: T on the diagonal and 1/d for each pair.

    >>> default_scale(tokens=4, dim=2)
    10.0
    """
    tokens, dim = checks.whole("tokens", tokens, least=1), checks.whole("dim", dim, least=1)
    return tokens + tokens * (tokens - 1) / dim


def _gram(inputs: Floats, kind: str, readout: str, layers: Layers, scale: float) -> Floats:
    """The Gram matrix of ``inputs``, (points, T, d); ``kind`` and ``readout`` as in ``attention_gram``."""
    tokens, dim = inputs.shape[1:]
    variances = _variances(inputs, layers, scale)
    gram = np.empty((len(inputs), len(inputs)))
    step = max(1, _AT_ONCE // (len(inputs) * tokens**2))
    for start in range(0, len(inputs), step):
        rows = slice(start, start + step)
        covariance = np.einsum("xid,yjd->xyij", inputs[rows], inputs) / dim  # (rows, points, T, T)
        tangent = np.zeros_like(covariance)
        for layer in range(layers.depth):
            covariance, tangent = _attend(covariance, tangent, scale)
            if layers.activation is not None:
                left = variances[layer][rows, None, :, None]
                covariance, tangent = _dense(covariance, tangent, left, variances[layer][None, :, None, :], layers)
        gram[rows] = _read(covariance if kind == "ck" else covariance + tangent, readout)
    return gram


def _attend(covariance: Floats, tangent: Floats, scale: float) -> tuple[Floats, Floats]:
    """One attention layer, on arrays (..., T, T)."""
    squares = np.einsum("...ij,...ij->...", covariance, covariance)[..., None, None] / scale
    mixed = np.einsum("...ij,...ij->...", covariance, tangent)[..., None, None] / scale
    attended = covariance * squares
    return attended, 3 * attended + tangent * squares + 2 * covariance * mixed


def _dense(covariance: Floats, tangent: Floats, left: Floats, right: Floats, layers: Layers) -> tuple[Floats, Floats]:
    """One dense layer with an activation at each position; ``left``, ``right``: variances before the activation."""
    assert layers.activation is not None
    before = layers.weight_variance * covariance + layers.bias_variance
    value, slope = layers.activation.of_numbers(before, left, right)
    return value, (before + layers.weight_variance * tangent) * slope


def _variances(inputs: Floats, layers: Layers, scale: float) -> list[Floats]:
    """The variance of each token before each activation, (points, T) for each layer: the same recursion at x = y."""
    covariance = np.einsum("xid,xjd->xij", inputs, inputs) / inputs.shape[-1]
    found: list[Floats] = []
    for _ in range(layers.depth if layers.activation is not None else 0):
        covariance, nothing = _attend(covariance, np.zeros_like(covariance), scale)
        own = np.einsum("xii->xi", covariance) * layers.weight_variance + layers.bias_variance
        covariance, _ = _dense(covariance, nothing, own[:, :, None], own[:, None, :], layers)
        found.append(own)
    return found


def _read(kernel: Floats, readout: str) -> Floats:
    """The readout of kernels between positions, (..., T, T) -> (...)."""
    if readout == "flatten":
        return np.asarray(np.einsum("xyii->xy", kernel) / kernel.shape[-1])
    return np.asarray(kernel.mean((-2, -1)))
