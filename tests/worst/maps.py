"""Functions for tests: some whose worst case is known, and the maps of paper 3 in a few lines each."""

import torch
from torch import nn


def words(count, num_tokens, dim, cosine=0.0, seed=0):
    """Inputs (count, num_tokens, dim) whose words have norm sqrt(dim) and, about, this mean cosine."""
    generator = torch.Generator().manual_seed(seed)
    own = torch.randn(count, num_tokens, dim, generator=generator, dtype=torch.float64)
    shared = torch.randn(count, 1, dim, generator=generator, dtype=torch.float64)
    mixed = (1 - cosine) ** 0.5 * own + cosine**0.5 * shared
    return mixed / mixed.norm(dim=2, keepdim=True) * dim**0.5


class Halfspace(nn.Module):
    """One logit, w . x + b: the worst change of the margin at a token is r ||x_tau|| ||w_tau||."""

    def __init__(self, *shape, bias=0.3, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(1000 + seed)
        self.weight = nn.Parameter(torch.randn(*shape, generator=generator, dtype=torch.float64))
        self.bias = bias
        self.eval()

    def forward(self, x):
        return (x * self.weight).flatten(1).sum(dim=1) + self.bias


class RandomFeatures(nn.Module):
    """ReLU(V flat(X)), V of N(0, 1 / D): word sensitivity of about 1 / sqrt(n)."""

    def __init__(self, num_tokens, dim, features=None, seed=0):
        super().__init__()
        size = num_tokens * dim
        generator = torch.Generator().manual_seed(1000 + seed)
        drawn = torch.randn(features or size, size, generator=generator, dtype=torch.float64)
        self.matrix = nn.Parameter(drawn / size**0.5)
        self.eval()

    def forward(self, x):
        return (x.flatten(1) @ self.matrix.T).relu()


class Attention(nn.Module):
    """softmax(X W X^T / sqrt(d)) X, or with ReLU over its row sums, W of N(0, 1 / d)."""

    def __init__(self, dim, kind="softmax", seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(1000 + seed)
        self.matrix = nn.Parameter(torch.randn(dim, dim, generator=generator, dtype=torch.float64) / dim**0.5)
        self.kind = kind
        self.eval()

    def scores(self, x):
        return x @ self.matrix @ x.transpose(1, 2) / x.shape[2] ** 0.5

    def forward(self, x):
        scores = self.scores(x)
        if self.kind == "softmax":
            return (scores.softmax(dim=2) @ x).flatten(1)
        weights = scores.relu()
        total = weights.sum(dim=2, keepdim=True)
        return ((weights / torch.where(total > 0, total, 1.0)) @ x).flatten(1)

    def constructed(self, inputs):
        """Paper 3's direction, W^T X^T 1: it raises the score of a word for all queries at once."""

        def directions(chosen, positions):
            sums = inputs[torch.from_numpy(chosen)].sum(dim=1) @ self.matrix.detach()  # (spots, dim)
            return sums[:, None]

        return directions


def small_network(seed=0, size=12, dim=6, classes=4, tokens=4):
    """A network of two layers with several classes, on (batch, tokens, dim)."""
    torch.manual_seed(seed)
    layers = nn.Flatten(), nn.Linear(tokens * dim, size), nn.Tanh(), nn.Linear(size, classes)
    return nn.Sequential(*layers).eval()
