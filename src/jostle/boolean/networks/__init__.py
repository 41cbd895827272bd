"""Networks on bits, by name: one file for each architecture, written from its paper, and ``create`` to build one.

A network here takes (batch, n) of -1 and 1, for one n, to (batch,) logits. It consists of plain tensor operations, so
that ``torch.func.vmap`` evaluates many networks at once. ``jostle.boolean.ensembles`` draws ensembles of them and
measures their sensitivity; the studies of papers train them. To add a network, imitate ``mlp.py``: a class whose sizes
are keyword-only and have defaults, the first of them ``n``, with the decorator ``register``, and its module in
``homes`` below. A parameter that random initialisation must not change is listed in the class attribute ``keeps`` of
the module that owns it.

Networks on bits live in five places. A network has one home, where its layers are defined; the home follows from what
the network is for:

* here: the plain form of an architecture on n bits. This is the place for a new one, unless one of the next lines fits.
* ``jostle.models.bit_encoder``, ``bit_scratchpad``: the networks that paper 2 (2402.09963) publishes, with its
  initial weights. They take strings of different lengths, and users load them by name like the rest of the zoo.
* ``jostle.boolean.kernels.finite``: two networks with all scales in the forward pass, whose only purpose is their
  tangent and conjugate kernels.
* a paper's package, for a quick twin: the same function of the same weights as a network above, written for fast
  training, as in ``jostle_papers.p2403_06925.parity``. It subclasses its plain form, and a test compares the two.
* a paper's package, for variants of one study: networks made of the ones above, for example with a layer norm removed,
  as in ``jostle_papers.p2402_09963.hardness``.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from jostle.base.randomness import torch_seed
from jostle.base.registry import Registry, making, unknown_name

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
    """The network called ``name`` on n bits, with the default random weights of its class.

    Arguments:
        name: one of ``names()``.
        n: how many bits.
        seed: name, sizes and seed determine the weights; torch's own random state does not change.
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
    with making("network", name, {"n": n, **sizes}), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(torch_seed(seed))
        return network_class(n=n, **sizes)
