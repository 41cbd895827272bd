"""The layer of Eq. 3 against the formula as printed, with one-hot matrices."""

import pytest
import torch

from jostle import Coordinates, Grid, UniformToken, measure
from jostle.base.errors import UsageError
from jostle.training import fit
from jostle_papers.p2403_06925.synthetic import SelfAttention, SparseFrequent

TOKENS = torch.tensor([[0, 3, 3, 1], [2, 2, 2, 2], [4, 0, 1, 3]])


def as_printed(network, tokens):
    """<U, softmax(X W_Q W_K^T X^T) X W_V>, one sequence after another."""
    found = []
    for row in tokens:
        x = torch.eye(network.vocabulary)[row]
        attention = torch.softmax(x @ network.query @ network.key.T @ x.T, dim=-1)
        found.append((network.output * (attention @ x @ network.value)).sum())
    return torch.stack(found)[:, None]


@pytest.mark.parametrize("dim", [None, 2])
def test_logits_and_gradients_are_those_of_the_formula(dim):
    network = SelfAttention(vocabulary=5, num_tokens=4, dim=dim, scale=0.8, seed=3)
    ours, theirs = network(TOKENS), as_printed(network, TOKENS)
    torch.testing.assert_close(ours, theirs)
    weights = list(network.parameters())
    for mine, printed in zip(
        *(torch.autograd.grad(out.square().sum(), weights) for out in (ours, theirs)), strict=True
    ):
        torch.testing.assert_close(mine, printed)


def test_attention_is_a_distribution_over_the_tokens_that_are_there():
    network = SelfAttention(vocabulary=5, num_tokens=4, scale=1.0)
    shares = network.attention(TOKENS)
    torch.testing.assert_close(shares.sum(dim=-1), torch.ones(3, 4))
    absent = torch.stack([torch.bincount(row, minlength=5) == 0 for row in TOKENS])
    assert shares[absent[:, None].expand(-1, 4, -1)].max() == 0
    assert torch.equal(shares[1, :, 2], torch.ones(4))


def test_initial_weights_are_normal_scaled_and_from_the_seed_alone():
    before = torch.random.get_rng_state()
    small, large = (SelfAttention(vocabulary=59, scale=scale, seed=1) for scale in (0.01, 0.1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(small.parameters(), large.parameters(), strict=True):
        torch.testing.assert_close(10 * a, b)
        assert abs(b.std() / 0.1 - 1) < 4 / (2 * b.numel()) ** 0.5
    assert not torch.equal(small.query, small.key)
    assert not torch.equal(SelfAttention(vocabulary=59, scale=0.01, seed=2).query, small.query)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.zeros(2, 3, dtype=torch.int64), r"whole numbers, \(batch, 4\), got \(2, 3\) of int64"),
        (torch.zeros(2, 4, dtype=torch.float64), "got .* of float64"),
        (torch.full((2, 4), 5), "go from 5 to 5; with vocabulary=5 they must lie in 0 to 4"),
    ],
)
def test_wrong_tokens_are_refused(tokens, message):
    with pytest.raises(UsageError, match=message):
        SelfAttention(vocabulary=5, num_tokens=4)(tokens)


def test_wrong_sizes_are_refused():
    with pytest.raises(UsageError, match=r"dim=.* must be a whole number"):
        SelfAttention(vocabulary=5, dim=0)
    with pytest.raises(UsageError, match=r"scale=.* must be a finite number above 0"):
        SelfAttention(vocabulary=5, scale=0)


def test_it_can_be_trained_and_measured_like_any_model():
    task = SparseFrequent(sparse=2, frequent=3, difference=1, kinds=2, vocabulary=8, num_tokens=8)
    data = task.sample(200, seed=0)
    network = SelfAttention(vocabulary=8, num_tokens=8, scale=0.3)
    history = fit(network, data, optimizer="sgd", lr=1.0, batch_size=20, max_epochs=5, evaluate_every=5)
    assert history.losses[-1] < history.losses[0] / 2
    found = measure(network, data.inputs[:20], tokens=Coordinates(), perturbation=UniformToken(8), plan=Grid(1))
    assert 0 <= found.value < 0.5
