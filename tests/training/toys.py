"""A small dataset and small models for the tests of training."""

import torch
from torch import nn

from jostle.data import Dataset


def random_points(examples: int = 60, classes: int = 3, name: str = "toy") -> Dataset:
    """Random points with random labels, in single precision: nothing to learn but the examples themselves."""
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(examples, 5, generator=generator, dtype=torch.float32)  # (examples, 5)
    labels = torch.randint(classes, (examples,), generator=generator)
    return Dataset(name, inputs, labels, classes)


def separable(examples: int = 60) -> Dataset:
    """Two classes, told apart by the sign of the first coordinate."""
    inputs = torch.randn(examples, 5, generator=torch.Generator().manual_seed(8), dtype=torch.float32)
    return Dataset("separable", inputs, (inputs[:, 0] > 0).to(torch.int64), classes=2)


def network(classes: int = 3, seed: int = 0, dropout: float = 0.2) -> nn.Module:
    """BatchNorm and dropout included: both carry state that a careless loop loses."""
    single = {"dtype": torch.float32}  # Whatever the default: a subprocess must draw the same weights.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, norm, last = nn.Linear(5, 16, **single), nn.BatchNorm1d(16, **single), nn.Linear(16, classes, **single)
    return nn.Sequential(first, norm, nn.ReLU(), nn.Dropout(dropout), last)


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    """Whether all weights and buffers are equal bit for bit."""
    own, other = first.state_dict(), second.state_dict()
    return own.keys() == other.keys() and all(torch.equal(own[name], other[name]) for name in own)
