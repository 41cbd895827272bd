"""The kernels of infinitely wide networks, layer by layer, as functions of the correlation c = <x, y> / n.

On the cube all inputs have one length, so kernels that see x and y only through <x, y> are functions Psi(c). Each
function below returns (CK, NTK): the covariance of the output at initialisation, and the tangent kernel, the covariance
of its gradients. It takes c as an array of numbers or as a power series and does the same with both.
"""

from dataclasses import dataclass

import numpy as np

from jostle.boolean.kernels.activations import Activation, Value, moments
from jostle.boolean.kernels.series import Floats


@dataclass(frozen=True)
class Layers:
    """What a network is made of.

    Arguments:
        depth: hidden layers of an MLP; attention layers of an attention network.
        activation: None only for attention networks: then no MLP layer follows the attention.
        weight_variance, bias_variance: of every dense layer with an activation, and of the last layer of an MLP.
    """

    depth: int
    activation: Activation | None
    weight_variance: float
    bias_variance: float


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

    One token attends to itself alone, with the logit x' Q K' x: three linear maps of x, hence the cube. Own derivation;
    ``attention.attention_gram`` is the general case.
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
