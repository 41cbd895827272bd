"""``zoo:NAME[:key=value,...]``: a network of ``jostle.models`` with random weights."""

from torch import nn

from jostle import models
from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.integrations import register


@register("zoo")
def from_zoo(rest: str, seed: int) -> nn.Module:
    """The network called NAME, of the sizes in its paper unless the options change them; ``seed`` draws its weights."""
    name, _, options = rest.partition(":")
    positional, named = specs.arguments(options)
    if positional:
        raise UsageError(f"model zoo:{rest}: write options as key=value, for example zoo:{name}:depth=2")
    if "seed" in named:
        raise UsageError(f"model zoo:{rest}: seed is no option of a network; give it as --seed, or as seed= in Python")
    return models.create(name, seed=seed, **named).eval()
