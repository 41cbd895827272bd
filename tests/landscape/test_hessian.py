"""Eigenvalue and trace against the whole Hessian by torch.func."""

import math
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, hessian
from torch.nn.attention import SDPBackend, sdpa_kernel

from jostle.base.errors import FailureError, UsageError
from jostle.data import Dataset
from jostle.landscape import curvature
from tests.landscape.toys import images, linear, zoo

CLASSES = torch.tensor([0, 1, 2, 0, 1, 2])


def whole_hessian(model, x, labels, loss):
    """(parameters, parameters), by two derivatives of a function of one flat vector."""
    model.eval()
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    sizes = [tensor.numel() for tensor in parameters.values()]

    def flat_loss(flat):
        parts = zip(parameters.items(), torch.split(flat, sizes), strict=True)
        weights = {name: part.reshape(tensor.shape) for (name, tensor), part in parts}
        return loss(functional_call(model, weights, (x,)), labels)

    with sdpa_kernel(SDPBackend.MATH):
        return hessian(flat_loss)(torch.cat([tensor.flatten() for tensor in parameters.values()]))


class Attending(nn.Module):
    """One fused attention head, whose usual kernel on the CPU cannot be differentiated twice."""

    def __init__(self):
        super().__init__()
        self.to_qkv, self.norm, self.head = nn.Linear(8, 12), nn.BatchNorm1d(4), nn.Linear(4, 3)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)  # (batch, 1, 8, 4) each
        return self.head(self.norm(nn.functional.scaled_dot_product_attention(q, k, v).mean(dim=(1, 2))))


@pytest.mark.parametrize(("probes", "batch_size"), [(40, 4), (200, 128)])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_eigenvalue_and_trace_are_those_of_the_whole_hessian(probes, batch_size):
    model = Attending()  # 131 parameters
    model.norm.running_mean.fill_(0.3)
    found = curvature(model, images(), CLASSES, probes=probes, batch_size=batch_size)
    matrix = whole_hessian(model, images(), CLASSES, nn.functional.cross_entropy)
    assert found.num_parameters == len(matrix) == 131
    eigenvalues = torch.linalg.eigvalsh(matrix)
    assert eigenvalues[0] < 0 < eigenvalues[-1]
    assert found.largest == pytest.approx(float(eigenvalues[-1]), rel=1e-4)
    if probes == 200:
        assert found.trace.value == pytest.approx(float(matrix.trace()), rel=1e-9)
        assert found.trace.low == found.trace.high == found.trace.value
    else:
        error = found.trace.per_draw.std(ddof=1) / math.sqrt(probes)
        assert 0 < abs(found.trace.value - float(matrix.trace())) <= 4 * error
        assert found.trace.interval.method == "Student's t over 40 draws, asymptotic"
        again = curvature(model, images(), CLASSES, probes=probes, batch_size=batch_size)
        assert (found.trace.per_draw == again.trace.per_draw).all()


def test_a_linear_model_has_its_closed_form():
    """Half of the Hessian of mean (w x - y)^2 is the matrix of second moments."""
    x = torch.randn(5, 3)
    moments = 2 * x.T @ x / 5
    for labels, loss in ((torch.zeros(5, 1), nn.MSELoss()), (torch.zeros(5), "mse")):
        found = curvature(linear([[1.0, 2.0, 3.0]]), x, labels, loss, batch_size=2)
        assert found.largest == pytest.approx(float(torch.linalg.eigvalsh(moments)[-1]), rel=1e-9)
        assert found.trace.value == pytest.approx(float(moments.trace()), rel=1e-9)


def test_mappings_datasets_and_answers_of_all_kinds():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = linear([[1.0, 2.0], [0.0, 1.0]])

        def forward(self, pixels):
            return {"logits": self.layer(pixels)}

    x, labels = torch.randn(4, 2), torch.tensor([0, 1, 1, 0])
    expected = curvature(Named().layer, x, labels).largest
    assert curvature(Named(), {"pixels": x}, labels).largest == pytest.approx(expected)
    found = curvature(Named().layer, Dataset("points", x, labels, classes=2))
    assert found.largest == pytest.approx(expected)
    assert "Hessian of 4 parameters on 4 inputs" in str(found)


def test_without_the_package_it_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "curvlinops", None)
    with pytest.raises(UsageError, match=r"curvature needs curvlinops-for-pytorch.*pip install 'jostle\[sharpness\]'"):
        curvature(zoo("mlp"), images(), CLASSES)


def test_wrong_use_is_one_clear_line():
    with pytest.raises(UsageError, match="give labels, or a dataset that has them"):
        curvature(zoo("mlp"), images())
    with pytest.raises(UsageError, match="probes=1 must be a whole number, at least 2"):
        curvature(zoo("mlp"), images(), CLASSES, probes=1)
    with pytest.raises(FailureError, match="model raised RuntimeError"):
        curvature(nn.Linear(4, 1), torch.ones(2, 3), torch.zeros(2))
    with pytest.raises(UsageError, match="labels have shape"):
        curvature(zoo("mlp"), images(), np.zeros(3))


@pytest.mark.parametrize("probes", [2, 100], ids=["sampled", "exact"])
def test_losses_and_derivatives_that_are_not_finite_are_one_clear_line(probes):
    x = torch.full((2, 4), 1e30, dtype=torch.float32)
    model = nn.Linear(4, 1, dtype=torch.float32)
    with pytest.raises(FailureError, match=r"the loss is NaN or infinite on inputs 0 to 1; mend the model"):
        curvature(model, x, torch.zeros(2), "mse", probes=probes)
    flat = nn.Linear(4, 1, bias=False, dtype=torch.float32)
    nn.init.zeros_(flat.weight)  # a loss of 0, whose second derivatives are 2e60
    with pytest.raises(FailureError, match=r"the second derivatives of the loss are NaN or infinite"):
        curvature(flat, x, torch.zeros(2), "mse", probes=probes)
