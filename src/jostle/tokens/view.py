"""What a token is: a way to see one input as T tokens, without copying it."""

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.registry import Registry

VIEWS: Registry[type["TokenView"]] = Registry(
    "token view",
    homes={
        "coordinates": "jostle.tokens.views",
        "embeddings": "jostle.tokens.text_views",
        "patches": "jostle.tokens.views",
        "rows": "jostle.tokens.views",
        "whole": "jostle.tokens.views",
        "words": "jostle.tokens.text_views",
    },
)


@dataclass(frozen=True, kw_only=True)
class TokenView(ABC):
    """How a batch of inputs is cut into tokens.

    A view is described by one method, ``grid``: the batch seen as (batch, *positions, *token), sharing memory with the
    batch. Positions are numbered row by row, 0 .. num_tokens - 1. Splitting and joining are therefore bit-exact
    inverses, and every token but the chosen one stays as it was.

    Arguments:
        key: for inputs that are mappings of tensors, the entry that holds the tokens; by default the only entry that
            is not a mask, or the first of ``inputs_embeds``, ``pixel_values``, ``input_ids``, ``inputs``, ``x``.
        mask_key: for mappings, the entry with 1 for real tokens and 0 for padding; by default ``attention_mask`` or
            ``mask`` where there is one.
    """

    key: str | None = None
    mask_key: str | None = None

    @abstractmethod
    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the position grid for one input of this shape, e.g. (7, 7); raises if it does not fit."""

    @abstractmethod
    def grid(self, batch: Tensor) -> Tensor:
        """``batch`` as (batch, *positions, *token), sharing its memory."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The spec without keys, e.g. ``patches:4``."""

    def describe(self) -> str:
        """A spec that makes this view again, e.g. ``patches:4`` or ``rows:key=x``."""
        keys = {"key": self.key, "mask_key": self.mask_key}
        options = [f"{name}={value}" for name, value in keys.items() if value is not None]
        if not options:
            return self.spec
        return f"{self.spec}{',' if ':' in self.spec else ':'}{','.join(options)}"

    def num_tokens(self, shape: tuple[int, ...]) -> int:
        """T for one input of this shape."""
        return prod(self.positions(shape))

    def pick(self, inputs: Tensor, chosen: Tensor, position: Tensor) -> Tensor:
        """Token ``position[i]`` of input ``chosen[i]``, as (len(chosen), dim): a copy."""
        within = places(self, tuple(inputs.shape[1:])).to(inputs.device)[position]  # (chosen, dim)
        return torch.take(inputs, within + chosen[:, None] * inputs[0].numel())

    def put(self, batch: Tensor, position: Tensor, tokens: Tensor) -> Tensor:
        """Write ``tokens`` (batch, dim) over token ``position[i]`` of input i, in place; returns ``batch``."""
        within = places(self, tuple(batch.shape[1:])).to(batch.device)[position]
        batch.view(len(batch), -1).scatter_(1, within, tokens)
        return batch


@functools.lru_cache(maxsize=64)
def places(view: TokenView, shape: tuple[int, ...]) -> Tensor:
    """(tokens, dim): where in a flattened input of this shape the numbers of each token are."""
    with torch.inference_mode(False):  # kept, and used where gradients may be needed
        numbered = torch.arange(prod(shape)).view(1, *shape)
        return view.grid(numbered).reshape(view.num_tokens(shape), -1)


def must_fit(condition: bool, view: TokenView, shape: tuple[int, ...], expected: str) -> None:
    """Raise the one error a view knows: it cannot cut inputs of this shape."""
    if not condition:
        raise UsageError(f"tokens={view.describe()} cannot cut inputs of shape {tuple(shape)}: {expected}")
