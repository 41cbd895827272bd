"""Kernels of finite networks: the tangent kernel from gradients, the conjugate kernel from features.

``empirical_ntk`` and ``empirical_ck`` take any module from (batch, n) to (batch,) or (batch, 1). Over the whole cube
they give Gram matrices (2^n, 2^n) in table order, for ``gram.fourier_projection`` and ``gram.premise``.

``FiniteMlp`` and ``FiniteAttention`` are small networks whose wide limits are the kernels of this package. All their
parameters are standard normal and all scales stand in the forward pass (the parameterisation of Jacot et al. 2018), so
that their empirical kernels tend to ``kernel_spectrum`` and ``attention_gram`` as the networks widen. For one hidden
layer or one attention layer the means over seeds agree at every width; for deeper networks up to order 1 / width.
Softmax attention has no known limit here: its empirical kernels are all there is.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.model import call, eval_mode, logits_of
from jostle.base.randomness import torch_seed
from jostle.boolean import cube
from jostle.boolean.kernels.attention import READOUTS, default_scale
from jostle.boolean.kernels.recursions import Layers, make_layers
from jostle.boolean.kernels.series import Floats

LARGEST = 10  # bits: 1024 gradients of the network

_AT_ONCE = 1 << 25  # numbers of one block of gradients: 268 MB in float64
_PHI = {"relu": torch.relu, "erf": torch.erf}
_KINDS = "linear", "softmax"


def empirical_ntk(
    model: nn.Module,
    n: int | None = None,
    *,
    inputs: Tensor | NDArray[Any] | None = None,
) -> Floats:
    """The tangent kernel: sum over parameters p of df(x)/dp df(y)/dp for all pairs of inputs. Jacot et al. 2018.

    >>> _ = (layer := nn.Linear(2, 1, bias=False)).weight.data.fill_(1.0)
    >>> empirical_ntk(layer, 2)[0].tolist()  # a linear model: <x, y>
    [2.0, 0.0, 0.0, -2.0]

    The model runs in eval mode; afterwards every part is in its former mode. Gradients are taken for one parameter
    tensor at a time and in blocks of inputs, two blocks of 268 MB (float64) at once.

    Arguments:
        model: (batch, n) to (batch,) or (batch, 1). Every parameter that requires a gradient counts.
        n: bits, for the whole cube; at most 10.
        inputs: (count, n), instead of the whole cube.

    Returns:
        (2^n, 2^n) or (count, count).
    """
    if not isinstance(model, nn.Module):
        raise UsageError(
            f"model is a {type(model).__name__}; expected a torch.nn.Module, whose parameters are the kernel's"
        )
    trained = {name: parameter.detach() for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not trained:
        raise UsageError("model has no parameter that requires a gradient; its tangent kernel is empty")
    points = _points(n, inputs, like=next(iter(trained.values())))
    with eval_mode(model):
        _check_single_output(model, points[:2])
        kernel = sum((_tangent(model, name, trained, points) for name in trained), start=points.new_zeros(()))
    return kernel.double().cpu().numpy()


def empirical_ck(
    features: Callable[[Tensor], Tensor],
    n: int | None = None,
    *,
    inputs: Tensor | NDArray[Any] | None = None,
) -> Floats:
    """The conjugate kernel: <features(x), features(y)> for all pairs of inputs.

    It is the covariance of a readout with standard normal weights.

    >>> empirical_ck(lambda x: x, 2)[0].tolist()
    [2.0, 0.0, 0.0, -2.0]

    A module, or the module that a bound method such as ``network.features`` belongs to, runs in eval mode, on inputs in
    the dtype and on the device of its parameters; afterwards every part is in its former mode.

    Arguments:
        features: (batch, n) to (batch, ...); everything after the batch is flattened.
        n, inputs: as in ``empirical_ntk``.
    """
    owner = features if isinstance(features, nn.Module) else getattr(features, "__self__", None)
    parameters = owner.parameters() if isinstance(owner, nn.Module) else ()
    floats = (parameter for parameter in parameters if parameter.is_floating_point())
    points = _points(n, inputs, like=next(floats, torch.zeros(())))
    with eval_mode(owner), torch.no_grad():
        found = _answer(features, points, "features")
    if found.ndim < 2:
        raise UsageError(
            f"features answered {len(points)} inputs with shape {tuple(found.shape)}; expected (batch, features)"
        )
    rows = found.flatten(1)
    return (rows @ rows.T).double().cpu().numpy()


def _points(n: int | None, inputs: Tensor | NDArray[Any] | None, like: Tensor) -> Tensor:
    """The inputs, or the whole cube, in the dtype and on the device of ``like``."""
    if (n is None) == (inputs is None):
        raise UsageError("give either n, for the whole cube, or inputs, and not both")
    if n is not None:
        inputs = cube.points(checks.whole("n", n, least=1, most=LARGEST, hint="; give inputs for larger n"))
    points = torch.as_tensor(inputs).to(like)
    if points.ndim < 2:
        raise UsageError(f"inputs has shape {tuple(points.shape)}; expected (count, n)")
    return points


def _answer(function: Callable[[Tensor], Any], points: Tensor, name: str) -> Tensor:
    return logits_of(call(function, points, name=name, hint="; it must take (batch, n), check n"), name=name)


def _check_single_output(model: nn.Module, points: Tensor) -> None:
    with torch.no_grad():
        shape = tuple(_answer(model, points, "model").shape)
    count = len(points)
    if shape not in ((count,), (count, 1)):
        raise UsageError(
            f"model answered {count} inputs with shape {shape}; expected ({count},) or ({count}, 1), a single output"
        )


def _tangent(model: nn.Module, name: str, trained: dict[str, Tensor], points: Tensor) -> Tensor:
    """The sum over the entries of one parameter tensor: its share of the tangent kernel."""

    def output(parameter: Tensor, point: Tensor) -> Tensor:
        answer = functional_call(model, {**trained, name: parameter}, (point[None],))
        return logits_of(answer).reshape(())

    gradients = vmap(grad(output), in_dims=(None, 0))
    value = trained[name]
    size = max(1, _AT_ONCE // value.numel())
    blocks = [points[start : start + size] for start in range(0, len(points), size)]
    if len(blocks) == 1:
        only: Tensor = gradients(value, points).flatten(1)
        return only @ only.T
    kernel = points.new_empty(len(points), len(points))
    for i, left in enumerate(blocks):
        own = gradients(value, left).flatten(1)
        for j, right in enumerate(blocks[i:], start=i):
            block = own @ (own if i == j else gradients(value, right).flatten(1)).T
            rows, columns = slice(i * size, i * size + len(left)), slice(j * size, j * size + len(right))
            kernel[rows, columns], kernel[columns, rows] = block, block.T
    return kernel


class FiniteMlp(nn.Module):
    """h <- phi(sqrt(w / fan-in) W h + sqrt(b) bias), depth times, then a linear readout: ``recursions.mlp``.

    Arguments:
        n: bits.
        width: of every hidden layer.
        depth, activation, weight_variance, bias_variance: as in ``kernel_spectrum``.
        seed: of the parameters.
    """

    def __init__(
        self,
        n: int,
        *,
        width: int,
        depth: int = 1,
        activation: str = "relu",
        weight_variance: float | None = None,
        bias_variance: float = 0.0,
        seed: int,
    ) -> None:
        super().__init__()
        n, width = checks.whole("n", n, least=1), checks.whole("width", width, least=1)
        self.layers = make_layers(depth, activation, weight_variance, bias_variance)
        depth = self.layers.depth
        self.phi = _PHI[activation]
        generator = torch.Generator().manual_seed(torch_seed(seed))
        self.weights = nn.ParameterList(_normal(generator, n if i == 0 else width, width) for i in range(depth))
        self.biases = nn.ParameterList(_normal(generator, width) for _ in range(depth))
        self.readout = _normal(generator, width + 1)

    def features(self, x: Tensor) -> Tensor:
        """The features of a readout with standard normal weights, (batch, n) to (batch, width + 1)."""
        hidden = x
        for weight, bias in zip(self.weights, self.biases, strict=True):
            hidden = self.phi(_affine(hidden, weight, bias, self.layers))
        scaled = hidden * math.sqrt(self.layers.weight_variance / hidden.shape[-1])
        return torch.cat([scaled, torch.full_like(scaled[:, :1], math.sqrt(self.layers.bias_variance))], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n) to (batch,)."""
        return self.features(x) @ self.readout


class FiniteAttention(nn.Module):
    """Attention over T tokens of d bits, with an optional dense layer after each, then a linear readout.

    The logit of positions a and i in one head is (Q x_a)'(K x_i), of variance near 1. Linear attention multiplies it by
    scale^(-1/2); softmax attention takes the softmax over i. Outputs of heads are added. No residuals, no norms.

    Arguments:
        tokens, dim: T and d; inputs have T d bits.
        width: of the values and of the dense layers.
        heads, head_dim: of queries and keys; the mean over seeds of a single layer does not depend on them.
        kind: ``linear`` or ``softmax``.
        depth, readout, activation, weight_variance, bias_variance: as in ``attention_gram``.
        seed: of the parameters.
    """

    def __init__(
        self,
        tokens: int,
        dim: int,
        *,
        width: int,
        heads: int,
        head_dim: int = 4,
        kind: str = "linear",
        depth: int = 1,
        readout: str = "flatten",
        activation: str | None = None,
        weight_variance: float | None = None,
        bias_variance: float = 0.0,
        seed: int,
    ) -> None:
        super().__init__()
        checks.choice("attention", kind, _KINDS)
        checks.choice("readout", readout, READOUTS)
        for name, size in {"width": width, "heads": heads, "head_dim": head_dim}.items():
            checks.whole(name, size, least=1)
        self.tokens, self.dim, self.kind, self.pools = tokens, dim, kind, readout == "mean"
        self.scale = default_scale(tokens, dim)
        self.layers = make_layers(depth, activation, weight_variance, bias_variance)
        depth = self.layers.depth
        self.phi = _PHI[activation] if activation is not None else None
        generator = torch.Generator().manual_seed(torch_seed(seed))
        sizes = [dim] + [width] * (depth - 1)
        self.queries = nn.ParameterList(_normal(generator, heads, size, head_dim) for size in sizes)
        self.keys = nn.ParameterList(_normal(generator, heads, size, head_dim) for size in sizes)
        self.values = nn.ParameterList(_normal(generator, heads, size, width) for size in sizes)
        dense = depth if activation is not None else 0
        self.weights = nn.ParameterList(_normal(generator, width, width) for _ in range(dense))
        self.biases = nn.ParameterList(_normal(generator, width) for _ in range(dense))
        self.readout = _normal(generator, width if self.pools else tokens * width)

    def features(self, x: Tensor) -> Tensor:
        """The features of a standard normal readout, (batch, n) to (batch, tokens * width) or (batch, width)."""
        hidden = x.reshape(len(x), self.tokens, self.dim)  # (batch, T, d)
        for layer in range(self.layers.depth):
            hidden = self._attend(hidden, self.queries[layer], self.keys[layer], self.values[layer])
            if self.phi is not None:
                hidden = self.phi(_affine(hidden, self.weights[layer], self.biases[layer], self.layers))
        found = hidden.mean(1) if self.pools else hidden.flatten(1)
        return found / math.sqrt(found.shape[-1])

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n) to (batch,)."""
        return self.features(x) @ self.readout

    def _attend(self, hidden: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One attention layer, (batch, T, size) -> (batch, T, width)."""
        size, head_dim = query.shape[-2:]
        heads = hidden[:, None] / math.sqrt(size)  # (batch, 1, T, size)
        logits = (heads @ query) @ (heads @ key).transpose(-1, -2) / math.sqrt(head_dim)  # (batch, heads, T, T)
        attention = logits / math.sqrt(self.scale) if self.kind == "linear" else logits.softmax(-1)
        return (attention @ (heads @ value)).sum(1) / math.sqrt(len(query))  # (batch, T, width)


def _affine(hidden: Tensor, weight: Tensor, bias: Tensor, layers: Layers) -> Tensor:
    """sqrt(w / fan-in) W h + sqrt(b) bias."""
    scaled = hidden @ weight * math.sqrt(layers.weight_variance / hidden.shape[-1])
    return scaled + math.sqrt(layers.bias_variance) * bias


def _normal(generator: torch.Generator, *shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape, generator=generator))
