"""The Hessian of the loss: its largest eigenvalue and its trace, by products with vectors through curvlinops."""

import importlib
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from jostle.base.errors import FailureError, UsageError
from jostle.base.randomness import Stream
from jostle.landscape.averages import Floats, MeanOverDraws, real_mean
from jostle.landscape.losses import Loss, as_labels, as_loss, check_labels, per_input
from jostle.landscape.network import Lent, coverage, read_inputs, whole
from jostle.landscape.weights import chosen_parameters, gaussians, kept, uniforms
from jostle.tokens import Batch, Inputs, TokenFunction
from jostle.tokens.sources import ONLY

_AT_ONCE = 8  # vectors multiplied together
_TOLERANCE = 1e-5  # of the eigenvalue, relative
_NOT_FINITE = "the second derivatives of the loss are NaN or infinite; give inputs of a smaller scale, or float64"


@dataclass(frozen=True, eq=False)
class Curvature:
    """How the loss bends at the weights.

    Arguments:
        largest: the largest eigenvalue of the Hessian.
        trace: its trace, the sum of the eigenvalues; its interval is over probes, and has no width where it is exact.
        num_inputs, num_parameters: what the loss was averaged over, and the size of the Hessian.
        seconds: wall-clock time.
    """

    largest: float
    trace: MeanOverDraws
    num_inputs: int
    num_parameters: int
    seconds: float

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

    The eigenvalue is found by Lanczos iterations (ARPACK), the trace is Hutchinson's estimate E[v^T H v] over probes v
    of random signs, with Student's t over the probes. With no more parameters than probes, both are exact. Attention
    runs on torch's math kernel, the only one that can be differentiated twice.

    Needs the package curvlinops-for-pytorch: ``pip install 'jostle[sharpness]'``.

    >>> import torch
    >>> x = torch.tensor([[1.0], [3.0]])  # loss w^2 mean(x^2) has the second derivative 2 mean(x^2) = 10
    >>> line = torch.nn.Linear(1, 1, bias=False)
    >>> round(curvature(line, x.to(line.weight), torch.zeros(2), "mse").largest, 4)
    10.0

    Arguments:
        model: a module; measured in eval mode, and left bit for bit as it was.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``.
        labels: (N, ...); those of the dataset unless given.
        loss: ``mse``, ``cross-entropy``, or a function of outputs and labels that gives a mean or a number each.
        probes: for the trace, at least 2; probe i is a function of ``seed`` and i.
        level: coverage of the trace's interval.
        seed: of the probes and of the vector with which the iterations start.
        batch_size: how many inputs the model answers at once; a product with a vector visits all inputs.
    """
    started = time.perf_counter()
    probes, seed, level = whole("probes", probes, least=2), whole("seed", seed), coverage(level)
    parameters = chosen_parameters(model)
    count = sum(tensor.numel() for tensor in parameters.values())
    held = read_inputs(inputs)
    targets = as_labels(labels, inputs, len(held))
    if targets is None:
        raise UsageError("curvature is that of a loss: give labels, or a dataset that has them")
    with kept(model), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        # Forward differentiation in torch itself, and a package that curvlinops imports, still use it.
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=DeprecationWarning)
        data = _data(model, held, targets, as_loss(loss), whole("batch_size", batch_size, least=1))
        hessian = _Hessian(model, as_loss(loss), list(parameters), data, len(held))
        largest, trace = _exact(hessian, count) if count <= probes else _sampled(hessian, count, probes, seed)
    summary = real_mean(trace, level, is_exact=count <= probes)
    return Curvature(largest, summary, len(held), count, time.perf_counter() - started)


def _data(model: nn.Module, held: Inputs, targets: Tensor, loss: Loss, size: int) -> list[tuple[Batch, Tensor]]:
    """All batches with their labels, where the model is; model and loss are tried on the first."""
    function, data = TokenFunction(Lent(model), held), []
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
    matrix = hessian.times(np.eye(count))
    if not np.isfinite(matrix).all():
        raise FailureError(_NOT_FINITE)
    return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1]), np.array([np.trace(matrix)])


def _sampled(hessian: "_Hessian", count: int, probes: int, seed: int) -> tuple[float, Floats]:
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
    for first in range(0, probes, _AT_ONCE):
        draws = range(first, min(first + _AT_ONCE, probes))
        signs = np.where(uniforms(stream, draws, count) < 0.5, -1.0, 1.0).T  # (parameters, probes)
        trace.append((signs * hessian.times(signs)).sum(axis=0))
    return float(largest), np.concatenate(trace)


class _Hessian:
    """The Hessian of the mean loss as something that multiplies vectors.

    Arguments:
        model: in eval mode.
        loss: outputs and labels of a batch to a mean, or to a number each.
        names: of the parameters, in the order of the Hessian's rows.
        data: batches and their labels.
        count: of inputs.
    """

    def __init__(self, model: nn.Module, loss: Loss, names: list[str], data: list[tuple[Batch, Tensor]], count: int):
        held = dict(model.named_parameters())
        self._hessian = _curvlinops().HessianLinearOperator(
            _Answering(model),
            _Mean(loss),
            [held[name] for name in names],
            data,
            check_deterministic=False,  # eval mode and a list of batches are; checking costs passes
            num_data=count,
            batch_size_fn=lambda batch: len(next(iter(batch.values()))),
        )
        self.operator = self._hessian.to_scipy()

    def times(self, vectors: Floats) -> Floats:
        """H times each column of (parameters, vectors), in float64."""
        columns = torch.from_numpy(vectors).to(dtype=self._hessian.dtype, device=self._hessian.device)
        return (self._hessian @ columns).detach().double().cpu().numpy()  # type: ignore[no-any-return]


class _Answering(nn.Module):
    """The model as a function of one batch to a tensor of outputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = Lent(model)

    def forward(self, batch: Batch) -> Tensor:
        """Outputs (batch, ...)."""
        answer = self.model(batch[ONLY]) if set(batch) == {ONLY} else self.model(**batch)
        if isinstance(answer, Mapping):
            answer = answer["logits"]
        answer = getattr(answer, "logits", answer)
        outputs: Tensor = answer[0] if isinstance(answer, tuple | list) else answer
        return outputs


class _Mean(nn.Module):
    """A loss as the mean over the batch, which curvlinops weighs by the size of the batch."""

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
