"""Networks on bits, by name: one file per architecture, each written from its paper, and ``create`` to build one.

Here: modules that take (batch, n) of -1 and 1 to (batch,) logits, in plain tensor operations, so that
``torch.func.vmap`` evaluates many of them at once. Not here: their tables and sensitivities
(``jostle.boolean.random_networks``). To add a network, imitate ``mlp.py``: a class whose sizes are keyword-only and
have defaults, the first of them ``n``, with ``register`` on it, and its module in the list below. A parameter that
random initialisation must leave alone is named in the class attribute ``keeps`` of the module that owns it.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from jostle.base.registry import Registry, unknown_name

__all__ = ["NETWORKS", "create", "names", "register"]

NETWORKS = Registry[Callable[..., nn.Module]](
    "network",
    homes={
        "lstm": "jostle.boolean.networks.lstm",
        "mixer": "jostle.boolean.networks.mixer",
        "mlp": "jostle.boolean.networks.mlp",
        "state-space": "jostle.boolean.networks.state_space",
        "transformer": "jostle.boolean.networks.transformer",
    },
)
names = NETWORKS.names
register = NETWORKS.register


def create(name: str, n: int = 10, seed: int = 0, **sizes: Any) -> nn.Module:
    """The network called ``name`` on n bits, with the random weights its class documents.

    Arguments:
        name: one of ``names()``.
        n: how many bits.
        seed: the weights are a function of name, sizes and this number; torch's own random state is left alone.
        sizes: keyword arguments of that network, e.g. ``depth``, ``dim``.

    >>> network = create("transformer", n=5, depth=1, dim=16)
    >>> tuple(network(torch.ones(7, 5)).shape)
    (7,)
    >>> create("transformer", depht=1)
    Traceback (most recent call last):
    jostle.base.errors.UsageError: unknown transformer argument 'depht'; did you mean depth?
    """
    network_class = NETWORKS.get(name)
    known = inspect.signature(network_class).parameters
    for size in sizes:
        if size not in known:
            raise unknown_name(f"{name} argument", size, known)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return network_class(n=n, **sizes)
