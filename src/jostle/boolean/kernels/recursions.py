"""The kernels of infinitely wide networks, layer by layer, as functions of the correlation c = <x, y> / n.

All points of the cube have the same length, so a kernel that sees x and y only through <x, y> is a function Psi(c).
``mlp`` and ``one_token_attention`` return (CK, NTK): the conjugate kernel, which is the covariance of the output at
initialisation, and the tangent kernel, which is the covariance of its gradients. Both take c as an array of numbers or
as a power series.

A hidden layer acts on a covariance by Gaussian moments of its activation phi (``Relu``, ``Erf``). For (u, v) Gaussian
with mean 0, variances p and q and covariance k,

    value = E[phi(u) phi(v)],    slope = E[phi'(u) phi'(v)].

Each activation has them twice: for numbers, and for the power series of k in c (then p = q). Sources: Cho and Saul
2009 (arc-cosine kernels) for relu; Williams 1997 for erf.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean.kernels.series import (
    SMALL,
    Angles,
    Floats,
    PowerSeries,
    excess_of_arc_cosine,
    excess_of_arcsine,
    excess_of_inverse_root,
    integral_along,
    inverse_root,
    masses_of_small,
)

_Pair = tuple[Floats, Floats]
Value = TypeVar("Value", Floats, PowerSeries)

_ROUNDING = 1e-9  # a correlation up to this far above 1 is a rounding error; beyond it the moments do not exist


@dataclass(frozen=True)
class Relu:
    """phi(u) = max(u, 0): value = sqrt(p q) kappa_1(r) / 2, slope = kappa_0(r) / 2 with r = k / sqrt(p q),

    kappa_0(r) = 1 - arccos(r) / pi,   kappa_1(r) = (sqrt(1 - r^2) + r (pi - arccos(r))) / pi.

    >>> value, slope = Relu().of_numbers(np.array([1.0, 0.0]), 1.0, 1.0)
    >>> value.round(4).tolist(), slope.tolist()
    ([0.5, 0.1592], [0.5, 0.25])
    """

    weight_variance: float = 2.0  # keeps the variance from layer to layer (He et al. 2015)

    def of_numbers(self, covariance: Floats, left: NDArray[Any] | float, right: NDArray[Any] | float) -> _Pair:
        scale = np.sqrt(left * right)
        correlation = _inside(covariance / scale)
        step = (np.pi - np.arccos(correlation)) / np.pi
        ramp = np.sqrt((1 - correlation) * (1 + correlation)) / np.pi + correlation * step
        return scale * ramp / 2, step / 2

    def of_series(self, covariance: PowerSeries, variance: float) -> tuple[PowerSeries, PowerSeries]:
        correlation = covariance * (1 / variance)
        path, masses = correlation.coefficients, correlation.masses
        at = Angles.of(masses, complement=0.0)
        step = np.pi - at.start  # pi kappa_0 at c = 0
        ramp = np.sin(at.start) + step * path[0]  # pi kappa_1
        root = inverse_root(path, masses.moving)
        slopes = integral_along(root, path, step)  # kappa_0' = root / pi
        values = integral_along(slopes, path, ramp)  # kappa_1' = kappa_0
        slope = PowerSeries(slopes, masses.through(step, root[0], excess_of_arcsine(at)))
        value = PowerSeries(values, masses.through(ramp, step, excess_of_arc_cosine(at)))
        return value * (variance / (2 * np.pi)), slope * (1 / (2 * np.pi))


@dataclass(frozen=True)
class Erf:
    """phi(u) = erf(u): value = (2/pi) arcsin(r), slope = (4/pi) / (scale sqrt(1 - r^2)),

    scale = sqrt((1 + 2 p)(1 + 2 q)) and r = 2 k / scale.

    >>> value, slope = Erf().of_numbers(np.array([0.5]), 0.5, 0.5)
    >>> value.round(4).tolist(), slope.round(4).tolist()
    ([0.3333], [0.7351])
    """

    weight_variance: float = 1.0

    def of_numbers(self, covariance: Floats, left: NDArray[Any] | float, right: NDArray[Any] | float) -> _Pair:
        scale = np.sqrt((1 + 2 * left) * (1 + 2 * right))
        ratio = _inside(2 * covariance / scale)
        return 2 / np.pi * np.arcsin(ratio), 4 / np.pi / (scale * np.sqrt((1 - ratio) * (1 + ratio)))

    def of_series(self, covariance: PowerSeries, variance: float) -> tuple[PowerSeries, PowerSeries]:
        scale = 1 + 2 * variance
        ratio = covariance * (2 / scale)
        path, masses = ratio.coefficients, ratio.masses
        root = inverse_root(path, 1 / scale + masses.moving)
        values = integral_along(root, path, float(np.arcsin(path[0])))
        if masses.total < SMALL:
            value_masses, slope_masses = masses_of_small(masses)
        else:
            at = Angles.of(masses, complement=1 / scale)
            value_masses = masses.through(values[0], root[0], excess_of_arcsine(at))
            slope_masses = masses.through(root[0], path[0] * root[0] ** 3, excess_of_inverse_root(at))
        return PowerSeries(values, value_masses) * (2 / np.pi), PowerSeries(root, slope_masses) * (4 / np.pi / scale)


Activation = Relu | Erf
ACTIVATIONS: dict[str, Activation] = {"relu": Relu(), "erf": Erf()}


def moments(activation: Activation, covariance: Value, variance: float) -> tuple[Value, Value]:
    """(value, slope) for equal variances, of numbers or of a series."""
    if isinstance(covariance, PowerSeries):
        return activation.of_series(covariance, variance)
    return activation.of_numbers(covariance, variance, variance)


def _inside(correlation: Floats) -> Floats:
    """Correlations without rounding errors above 1; NaN where no Gaussian pair has this correlation."""
    return np.where(correlation <= 1 + _ROUNDING, np.clip(correlation, -1, 1), np.nan)


@dataclass(frozen=True)
class Layers:
    """The depth, activation and variances of a network; ``make_layers`` checks them and fills in defaults.

    Arguments:
        depth: hidden layers of an MLP; attention layers of an attention network.
        activation: None only for attention networks, and means that no MLP layer follows the attention.
        weight_variance, bias_variance: of every dense layer with an activation, and of the last layer of an MLP.
    """

    depth: int
    activation: Activation | None
    weight_variance: float
    bias_variance: float

    def range_error(self) -> UsageError:
        """The error for layers whose kernel has values too small or too large for floats."""
        return UsageError(
            f"the kernel under- or overflows at depth {self.depth} with weight_variance {self.weight_variance:g}; "
            "expected values from 1e-308 to 1e308, take fewer layers or a weight_variance that keeps the kernel's size"
        )


def make_layers(depth: int, activation: str | None, weight_variance: float | None, bias_variance: float) -> Layers:
    """The layers of a network; raises on wrong values.

    >>> make_layers(2, "erf", None, 0.1)
    Layers(depth=2, activation=Erf(weight_variance=1.0), weight_variance=1.0, bias_variance=0.1)

    Arguments:
        depth, bias_variance: as for ``Layers``.
        activation: one of ``ACTIVATIONS``, or None.
        weight_variance: by default the activation's own.
    """
    depth = checks.whole("depth", depth, least=1, most=checks.MOST_LAYERS)
    if weight_variance is not None:
        weight_variance = checks.number("weight_variance", weight_variance, above=0)
    bias_variance = checks.number("bias_variance", bias_variance, least=0)
    if activation is None:
        if weight_variance is not None or bias_variance:
            raise UsageError("weight_variance and bias_variance belong to MLP layers; name an activation to have them")
        return Layers(depth, None, 1.0, 0.0)
    kind = ACTIVATIONS[checks.choice("activation", activation, ACTIVATIONS)]
    return Layers(depth, kind, kind.weight_variance if weight_variance is None else weight_variance, bias_variance)


def mlp(c: Value, layers: Layers) -> tuple[Value, Value]:
    """A fully connected network, all layers with weight variance w / fan-in and bias variance b.

        K <- w c + b, N <- K;   for each hidden layer: (V, D) = moments(K), K <- w V + b, N <- K + w N D

    Sources: Yang and Salman 2019 (1907.10599), section 2; Jacot et al. 2018 for N.
    """
    assert layers.activation is not None
    w, b = layers.weight_variance, layers.bias_variance
    covariance, variance = c * w + b, w + b
    tangent = covariance
    for _ in range(layers.depth):
        value, slope = moments(layers.activation, covariance, variance)
        variance = w * float(layers.activation.of_numbers(_number(variance), variance, variance)[0]) + b
        covariance = value * w + b
        tangent = covariance + tangent * slope * w
    return covariance, tangent


def one_token_attention(c: Value, layers: Layers) -> tuple[Value, Value]:
    """Linear attention over a single token x in R^n, then a linear readout; every matrix is trained.

        K <- c, N <- 0 (the token itself);
        attention:  K <- K^3, N <- 3 K^3 + 3 K^2 N     (queries, keys and values; K, N on the right are the old ones)
        MLP layer:  K <- w K + b, N <- K + w N;   (V, D) = moments(K), K <- V, N <- N D     (with an activation only)
        readout:    CK = K, NTK = K + N

    The one token attends to itself alone, with the logit x' Q K' x: three linear maps of x, hence the cube. Own
    derivation; ``attention.attention_gram`` has the general case.
    """
    w, b = layers.weight_variance, layers.bias_variance
    covariance, variance = c, 1.0
    tangent = c * 0.0
    for _ in range(layers.depth):
        square = covariance * covariance
        tangent = (covariance + tangent) * square * 3.0
        covariance, variance = covariance * square, variance * variance * variance  # ** raises where * gives inf
        if layers.activation is not None:
            covariance, variance = covariance * w + b, variance * w + b
            tangent = covariance + tangent * w
            covariance, slope = moments(layers.activation, covariance, variance)
            variance = float(layers.activation.of_numbers(_number(variance), variance, variance)[0])
            tangent = tangent * slope
    return covariance, covariance + tangent


def _number(value: float) -> Floats:
    return np.asarray(value)
