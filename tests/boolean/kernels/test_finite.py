"""Finite networks against their wide limits, over seeds.

With one layer the mean over seeds is the limit at every width, so 4 standard errors are the whole tolerance. With two
MLP layers the first layer's kernel fluctuates by order 1 / width and enters nonlinearly: measured bias at most
2.9 / width of mu_k (width 16 and 64, 1000 and 400 seeds), allowed 4 / width. Two attention layers cube a kernel with
relative variance near 3.5 / heads (the fourth moment of a logit, 3 (1 + 2 / head_dim) = 4.5, minus 1) + 2 / width, so
its mean is off by 3 times that, 16.5 / width for as many heads; measured 18 to 21, allowed 25 / width.
"""

import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import FailureError, UsageError
from jostle.boolean import cube
from jostle.boolean.kernels import (
    FiniteAttention,
    FiniteMlp,
    attention_gram,
    empirical_ck,
    empirical_ntk,
    finite,
    fourier_projection,
    gram_eigenvalues,
    kernel_spectrum,
    premise,
)

KINDS = ["ck", "ntk"]


def over_seeds(network, kind, n, seeds):
    """Mean eigenvalue of each degree, one row for each seed: (seeds, n + 1)."""
    networks = map(network, range(seeds))
    grams = (empirical_ntk(one, n) if kind == "ntk" else empirical_ck(one.features, n) for one in networks)
    return np.array([fourier_projection(gram).mean for gram in grams])


def assert_agrees(rows, exact, allowance=0.0):
    error = 4 * rows.std(0, ddof=1) / np.sqrt(len(rows)) + allowance * exact + 1e-12
    assert np.all(np.abs(rows.mean(0) - exact) < error), (rows.mean(0) / exact, error / exact)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("activation", "bias"), [("relu", 0.0), ("relu", 0.3), ("erf", 0.2)])
def test_one_hidden_layer_has_its_limit_as_mean(kind, activation, bias):
    rows = over_seeds(
        lambda seed: FiniteMlp(5, width=512, activation=activation, bias_variance=bias, seed=seed), kind, 5, 16
    )
    exact = kernel_spectrum(f"mlp-{kind}", 5, activation=activation, bias_variance=bias)
    assert_agrees(rows, np.asarray(exact))


@pytest.mark.parametrize("kind", KINDS)
def test_two_hidden_layers_come_close_with_width(kind):
    rows = over_seeds(lambda seed: FiniteMlp(5, width=256, depth=2, bias_variance=0.1, seed=seed), kind, 5, 16)
    assert_agrees(rows, np.asarray(kernel_spectrum(f"mlp-{kind}", 5, depth=2, bias_variance=0.1)), allowance=4 / 256)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"readout": "mean"}, {"activation": "relu", "bias_variance": 0.1}, {"activation": "erf"}], ids=str
)
def test_one_attention_layer_has_its_limit_as_mean(kind, options):
    """A dense layer after the attention sees a kernel that fluctuates: order 1 / width again."""
    rows = over_seeds(lambda seed: FiniteAttention(2, 2, width=64, heads=32, seed=seed, **options), kind, 4, 24)
    exact = fourier_projection(attention_gram(2, 2, kind=kind, **options)).mean
    assert_agrees(rows, exact, allowance=4 / 32 if "activation" in options else 0.0)


@pytest.mark.slow
def test_two_attention_layers_come_close_with_width():
    rows = over_seeds(lambda seed: FiniteAttention(2, 2, width=64, heads=64, depth=2, seed=seed), "ck", 4, 200)
    assert_agrees(rows, fourier_projection(attention_gram(2, 2, depth=2)).mean, allowance=25 / 64)


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "dim"), [(1, 4), (2, 2)])
def test_the_tangent_kernel_of_two_attention_layers_is_thirteen_times_the_other(tokens, dim):
    """Per degree; the fluctuations that both kernels share cancel in the quotient."""
    tangent, covariance = (
        over_seeds(lambda seed: FiniteAttention(tokens, dim, width=32, heads=32, depth=2, seed=seed), kind, 4, 100)
        for kind in ("ntk", "ck")
    )
    exact = [fourier_projection(attention_gram(tokens, dim, kind=kind, depth=2)).mean for kind in ("ntk", "ck")]
    np.testing.assert_allclose(exact[0], 13 * exact[1], atol=1e-12)
    held = exact[1] > 1e-12
    ratio = tangent.mean(0)[held] / covariance.mean(0)[held]
    residuals = tangent[:, held] - ratio * covariance[:, held]
    error = residuals.std(0, ddof=1) / np.sqrt(100) / covariance.mean(0)[held]
    assert np.all(np.abs(ratio - 13) < 4 * error)
    assert np.all(error < 0.7)  # so that 9 (two matrices) and 10 (one route less) would be seen


def test_softmax_attention_answers_only_empirically():
    network = FiniteAttention(2, 2, width=16, heads=8, kind="softmax", seed=0)
    gram = empirical_ntk(network, 4)
    assert gram_eigenvalues(gram).min() > -1e-10
    assert not premise(gram).holds
    assert fourier_projection(gram).off_diagonal_share > 0.001


@pytest.fixture
def network():
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(3, 1))


def test_the_tangent_kernel_is_the_sum_over_gradients(network):
    network.eval()
    gradients = []
    for point in torch.as_tensor(cube.points(4)).double():
        network.zero_grad()
        network(point[None]).sum().backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in network.parameters()]))
    stacked = torch.stack(gradients)
    network.train()
    network[1].eval()
    np.testing.assert_allclose(empirical_ntk(network, 4), stacked @ stacked.T, rtol=1e-12)
    assert [part.training for part in network] == [True, False, True, True]


def test_blocks_frozen_parameters_and_chosen_inputs(network, monkeypatch):
    whole = empirical_ntk(network, 4)
    monkeypatch.setattr(finite, "_AT_ONCE", 30)
    np.testing.assert_allclose(empirical_ntk(network, 4), whole, rtol=1e-12)
    np.testing.assert_allclose(empirical_ntk(network, inputs=cube.points(4)[3:7]), whole[3:7, 3:7], rtol=1e-12)
    network[0].requires_grad_(False)
    assert np.trace(empirical_ntk(network, 4)) < np.trace(whole)


def test_the_features_carry_the_covariance_of_the_output():
    """Readout weights drawn anew: the output's covariance is the kernel of the features."""
    network = FiniteMlp(3, width=16, bias_variance=0.5, seed=1)
    points = torch.as_tensor(cube.points(3)).double()
    draws = torch.randn(20_000, 17, generator=torch.Generator().manual_seed(3))
    outputs = draws @ network.features(points).detach().T
    products = (outputs[:, :, None] * outputs[:, None, :]).numpy()
    error = products.std(0) / np.sqrt(len(draws))
    assert np.all(np.abs(products.mean(0) - empirical_ck(network.features, 3)) < 4 * error)


@pytest.mark.parametrize("take", [lambda network: network, lambda network: network.forward], ids=["module", "method"])
def test_features_of_a_module_are_taken_in_eval_mode_and_in_its_own_dtype(network, take):
    network = network.float()  # the default is float64 in these tests
    network[1].eval()
    gram = empirical_ck(take(network), 4)
    assert [part.training for part in network] == [True, False, True, True]
    outputs = network.eval()(torch.as_tensor(cube.points(4)).float()).detach().double()
    np.testing.assert_allclose(gram, outputs @ outputs.T, rtol=1e-6)


def test_the_mode_comes_back_after_an_error(network):
    for call in (empirical_ck, empirical_ntk):
        with pytest.raises(FailureError):
            call(network, 3)
        assert all(part.training for part in network.modules())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: empirical_ntk(nn.Linear(11, 1), 11), "n=11 must be a whole number from 1 to 10; give inputs"),
        (lambda: empirical_ntk(nn.Linear(4, 1), 4.0), "n=4.0 must be a whole number"),
        (lambda: empirical_ck(lambda x: x, True), "n=True must be a whole number"),
        (lambda: empirical_ntk(lambda x: x, 3), "model is a function; expected a torch.nn.Module"),
        (lambda: empirical_ck(lambda x: "x", 3), "features must answer with a tensor of outputs, not str"),
        (lambda: FiniteAttention(2, 2, width=4, heads=0, seed=0), "heads=0 must be a whole number, at least 1"),
        (lambda: FiniteAttention(2, 2, width=0, heads=2, seed=0), "width=0"),
        (lambda: FiniteAttention(2, 0, width=4, heads=2, seed=0), "dim=0"),
        (lambda: FiniteAttention(2, 2, width=4, heads=2, head_dim=0, seed=0), "head_dim=0"),
        (lambda: FiniteMlp(2, width=0, seed=0), "width=0"),
        (lambda: FiniteMlp(0, width=2, seed=0), "n=0"),
        (lambda: empirical_ntk(nn.Linear(3, 1), 0), "n=0"),
        (lambda: empirical_ntk(nn.Linear(3, 2), 3), "model answered 2 inputs with shape \\(2, 2\\)"),
        (lambda: empirical_ntk(nn.Linear(3, 1)), "either n, for the whole cube, or inputs"),
        (lambda: empirical_ntk(nn.Linear(3, 1), 3, inputs=torch.ones(2, 3)), "either n"),
        (lambda: empirical_ntk(nn.Linear(3, 1), inputs=torch.ones(3)), "inputs has shape \\(3,\\)"),
        (lambda: empirical_ntk(nn.Flatten(), 1), "no parameter that requires a gradient"),
        (lambda: empirical_ck(lambda x: x[:, 0], 3), "features answered 8 inputs with shape \\(8,\\)"),
        (
            lambda: FiniteAttention(2, 2, width=4, heads=2, kind="soft", seed=0),
            "unknown attention 'soft'; did you mean",
        ),
        (lambda: FiniteMlp(2, width=4, depth=0, seed=0), "depth=0"),
    ],
)
def test_wrong_use_is_answered_in_one_line(call, message):
    with pytest.raises(UsageError, match=message):
        call()


@pytest.mark.parametrize(("call", "name", "count"), [(empirical_ntk, "model", 2), (empirical_ck, "features", 8)])
def test_a_model_that_raises_is_named_with_its_batch(call, name, count):
    message = f"{name} raised RuntimeError on a batch of input \\({count}, 3\\): .*check n"
    with pytest.raises(FailureError, match=message):
        call(nn.Linear(4, 1), 3)


def test_any_whole_number_is_a_seed():
    FiniteMlp(3, width=4, seed=10**30)
    FiniteAttention(2, 2, width=4, heads=2, seed=-(2**70))


def test_logits_are_read_from_a_mapping_too():
    class Wrapped(nn.Linear):
        def forward(self, x):
            return {"logits": super().forward(x)}

    wrapped, plain = Wrapped(3, 1), nn.Linear(3, 1)
    plain.load_state_dict(wrapped.state_dict())
    np.testing.assert_array_equal(empirical_ntk(wrapped, 3), empirical_ntk(plain, 3))
