"""The Hessian of the loss: its largest eigenvalue and its trace, from products with vectors (curvlinops)."""

import importlib
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.base.model import logits_of
from jostle.base.randomness import Stream
from jostle.base.table import Row, Tabular
from jostle.landscape.averages import Floats, MeanOverDraws, real_mean
from jostle.landscape.losses import Loss, as_labels, as_loss, check_labels, per_input
from jostle.landscape.network import Stateless, read_inputs
from jostle.landscape.weights import chosen_parameters, gaussians, preserve, uniforms
from jostle.tokens import Batch, Inputs, TokenFunction
from jostle.tokens.sources import ONLY

_VECTORS = 8  # multiplied together
_TOLERANCE = 1e-5  # relative, of the eigenvalue
_NOT_FINITE = "the second derivatives of the loss are NaN or infinite; give inputs of a smaller scale, or float64"


@dataclass(frozen=True, eq=False)
class Curvature(Tabular):
    """How the loss bends at the weights.

    Arguments:
        largest: the largest eigenvalue of the Hessian.
        trace: its trace, the sum of the eigenvalues. The interval is over probes; it has width 0 if the trace is exact.
        num_inputs, num_parameters: how many inputs the loss was averaged over, and the size of the Hessian.
        seconds: wall-clock time.
    """

    largest: float
    trace: MeanOverDraws
    num_inputs: int
    num_parameters: int
    seconds: float

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """The largest eigenvalue, which has no interval, and the trace."""
        trace = self.trace.row(quantity="trace")
        return [{**trace, "quantity": "largest eigenvalue", "value": self.largest, "low": None, "high": None}, trace]

    def __str__(self) -> str:
        return (
            f"largest eigenvalue {self.largest:.4g}\n"
            f"trace {self.trace}   {self.trace.interval.level:.0%}, {self.trace.interval.method}\n"
            f"  Hessian of {self.num_parameters:,} parameters on {self.num_inputs:,} inputs"
        )


def curvature(
    model: Any,
    inputs: Any,
    labels: Any = None,
    loss: Any = "cross-entropy",
    *,
    probes: int = 100,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 128,
) -> Curvature:
    """The largest eigenvalue and the trace of the Hessian of the mean loss, with respect to all parameters.

    The eigenvalue is found by Lanczos iterations (ARPACK). The trace is Hutchinson's estimate E[v^T H v] over probes v
    of random signs, with Student's t over the probes. If there are no more parameters than probes, both are exact.
    Attention runs on torch's math kernel, the only one that can be differentiated twice.

    Needs the package curvlinops-for-pytorch: ``pip install 'jostle[sharpness]'``.

    >>> import torch
    >>> x = torch.tensor([[1.0], [3.0]])  # loss w^2 mean(x^2) has the second derivative 2 mean(x^2) = 10
    >>> line = torch.nn.Linear(1, 1, bias=False)
    >>> round(curvature(line, x.to(line.weight), torch.zeros(2), "mse").largest, 4)
    10.0

    Arguments:
        model: a module. It is measured in eval mode and left bit for bit as it was.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``.
        labels: (N, ...); by default the labels of the dataset.
        loss: ``mse``, ``cross-entropy``, or a function of outputs and labels that returns a mean or one number for each
            input.
        probes: how many probes for the trace, at least 2; probe i is a function of ``seed`` and i.
        level: coverage of the trace's interval.
        seed: of the probes and of the first vector of the iterations.
        batch_size: how many inputs the model answers at once; a product with a vector visits all inputs.
    """
    started = time.perf_counter()
    probes, seed, level = checks.whole("probes", probes, least=2), checks.whole("seed", seed), checks.level(level)
    size = checks.whole("batch_size", batch_size, least=1)
    parameters = chosen_parameters(model)
    count = sum(tensor.numel() for tensor in parameters.values())
    held = read_inputs(inputs)
    targets = as_labels(labels, inputs, len(held))
    if targets is None:
        raise UsageError("curvature is that of a loss: give labels, or a dataset that has them")
    with preserve(model), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        # torch's own forward differentiation, and a package that curvlinops imports, still use torch.jit.script.
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=DeprecationWarning)
        data = _batches(model, held, targets, as_loss(loss), size)
        hessian = _Hessian(model, as_loss(loss), list(parameters), data, len(held))
        largest, trace = _exact(hessian, count) if count <= probes else _sampled(hessian, count, probes, seed)
    summary = real_mean(trace, level, is_exact=count <= probes)
    return Curvature(largest, summary, len(held), count, time.perf_counter() - started)


def _batches(model: nn.Module, held: Inputs, targets: Tensor, loss: Loss, size: int) -> list[tuple[Batch, Tensor]]:
    """All batches with their labels, on the model's device. Model and loss are tried on the first batch."""
    function, data = TokenFunction(Stateless(model), held), []
    for start in range(0, len(held), size):
        rows = slice(start, min(start + size, len(held)))
        batch = {key: part.to(function.device) for key, part in held.batch(np.arange(rows.start, rows.stop)).items()}
        data.append((batch, targets[rows].to(function.device)))
    outputs = function(data[0][0])
    check_labels(loss, outputs, targets)
    if not per_input(loss, outputs, data[0][1].cpu()).isfinite().all():
        raise FailureError(
            f"the loss is NaN or infinite on inputs 0 to {len(outputs) - 1}; mend the model or scale them"
        )
    return data


def _exact(hessian: "_Hessian", count: int) -> tuple[float, Floats]:
    """The largest eigenvalue and the trace (1,), from the whole matrix."""
    matrix = hessian.times(np.eye(count))
    if not np.isfinite(matrix).all():
        raise FailureError(_NOT_FINITE)
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1]), np.array([np.trace(matrix)])


def _sampled(hessian: "_Hessian", count: int, probes: int, seed: int) -> tuple[float, Floats]:
    """The largest eigenvalue by iteration, and v^T H v for each probe v, (probes,)."""
    start = gaussians(Stream(seed, "curvature/start"), [0], count)[0]
    try:
        [largest] = eigsh(hessian.operator, k=1, which="LA", v0=start, tol=_TOLERANCE, return_eigenvectors=False)
    except ArpackNoConvergence:
        raise FailureError(
            "the largest eigenvalue did not converge; give the model and its inputs in float64"
        ) from None
    except ArpackError:
        raise FailureError(_NOT_FINITE) from None
    stream, trace = Stream(seed, "curvature/probes"), []
    for first in range(0, probes, _VECTORS):
        draws = range(first, min(first + _VECTORS, probes))
        signs = np.where(uniforms(stream, draws, count) < 0.5, -1.0, 1.0).T  # (parameters, probes)
        trace.append((signs * hessian.times(signs)).sum(axis=0))
    return float(largest), np.concatenate(trace)


class _Hessian:
    """The Hessian of the mean loss as an operator on vectors.

    Arguments:
        model: in eval mode.
        loss: a function of ``as_loss``.
        names: of the parameters, in the order of the Hessian's rows.
        data: batches and their labels.
        count: how many inputs.
    """

    def __init__(self, model: nn.Module, loss: Loss, names: list[str], data: list[tuple[Batch, Tensor]], count: int):
        held = dict(model.named_parameters())
        self._hessian = _curvlinops().HessianLinearOperator(
            _Outputs(model),
            _MeanLoss(loss),
            [held[name] for name in names],
            data,
            check_deterministic=False,  # eval mode and a list of batches are deterministic; the check costs passes
            num_data=count,
            batch_size_fn=lambda batch: len(next(iter(batch.values()))),
        )
        self.operator = self._hessian.to_scipy()

    def times(self, vectors: Floats) -> Floats:
        """H times each column of ``vectors`` (parameters, vectors), in float64."""
        columns = torch.from_numpy(vectors).to(dtype=self._hessian.dtype, device=self._hessian.device)
        return (self._hessian @ columns).detach().double().cpu().numpy()  # type: ignore[no-any-return]


class _Outputs(nn.Module):
    """The model as a function from a batch to a tensor of outputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = Stateless(model)

    def forward(self, batch: Batch) -> Tensor:
        """Outputs (batch, ...)."""
        return logits_of(self.model(batch[ONLY]) if set(batch) == {ONLY} else self.model(**batch))


class _MeanLoss(nn.Module):
    """A loss as the mean over the batch; curvlinops weights it by the size of the batch."""

    reduction = "mean"

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """One number."""
        return self.loss(outputs, labels).mean()


def _curvlinops() -> Any:
    try:
        return importlib.import_module("curvlinops")
    except ImportError:
        raise UsageError(
            "curvature needs curvlinops-for-pytorch, which is not installed: pip install 'jostle[sharpness]'"
        ) from None
