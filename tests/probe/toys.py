"""A small network with everything that a careless probe would change, and a loop that draws from every generator."""

import contextlib
import random

import numpy as np
import torch
from torch import nn

from jostle.data import Dataset

SINGLE = {"dtype": torch.float32}
CHOICES = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=2", "plan": "until:half_width=0.1"}


def points(examples: int = 80, seed: int = 3) -> Dataset:
    """Two classes, by the sign of the sum of five coordinates."""
    inputs = torch.randn(examples, 5, generator=torch.Generator().manual_seed(seed), **SINGLE)
    return Dataset("points", inputs, (inputs.sum(dim=1) > 0).long(), classes=2)


def network(seed: int = 0) -> nn.Sequential:
    """BatchNorm and dropout: one keeps statistics, the other draws random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = nn.Linear(5, 16, **SINGLE), nn.BatchNorm1d(16, **SINGLE), nn.Linear(16, 2, **SINGLE)
    return nn.Sequential(layers[0], layers[1], nn.ReLU(), nn.Dropout(0.3), layers[2])


def train(model, probe=None, *, steps=30, start=0, optimizer=None, seed=1, call="before", is_mixed=False):
    """Adam on batches in an order of torch's global generator, with noise of numpy and steps of Python's.

    Arguments:
        call: where in a step the probe is called: before it, or between the forward and the backward pass.
        is_mixed: whether a step runs under autocast to bfloat16, with the probe inside.
    """
    data = points()
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(seed), np.random.seed(seed), random.seed(seed)  # noqa: NPY002
    model.train()
    for step in range(start, start + steps):
        with torch.autocast("cpu", torch.bfloat16) if is_mixed else contextlib.nullcontext():
            if probe is not None and call == "before":
                probe(model, step)
            rows = torch.randperm(len(data))[:20]
            noise = torch.from_numpy(np.random.randn(20, 5)).float()  # noqa: NPY002
            logits = model(data.inputs[rows] + 0.1 * noise)
            if probe is not None and call == "between":
                probe(model, step)
            loss = nn.functional.cross_entropy(logits.float(), data.labels[rows]) * (1 + random.random())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def everything(model, optimizer):
    """All that training goes on from: weights, buffers, gradients, modes, the optimizer, the generators."""
    moments = [value for state in optimizer.state_dict()["state"].values() for value in state.values()]
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return {
        "tensors": [*model.state_dict().values(), *gradients, *moments, torch.get_rng_state()],
        "others": (
            len(gradients),
            [module.training for module in model.modules()],
            [parameter.requires_grad for parameter in model.parameters()],
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            np.random.get_state()[2:],  # noqa: NPY002
            random.getstate(),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.is_autocast_cache_enabled(),
        ),
    }


def same(first, second) -> bool:
    pairs = zip(first["tensors"], second["tensors"], strict=True)
    return first["others"] == second["others"] and all(torch.equal(one, other) for one, other in pairs)


def meddle(model, inputs):
    """A measure that changes all it can reach."""
    torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    model.train()
    with torch.enable_grad():
        model(inputs).sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
            parameter.requires_grad_(False)
        model[1].running_mean = model[1].running_mean * 3
    inputs.zero_()
    return 1.0
