"""Batches with one random token of each input moved, on the device of the batch, with gradients."""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.lowering.text_moves import Inside, TextMover
from jostle.perturbations import PERTURBATIONS, Correlated, GaussianNoise, Perturbation
from jostle.tokens import VIEWS, Batch, Columns, Inputs, TextView, TokenView, Whole
from jostle.tokens.sources import ONLY

_MASK_KEYS = ("attention_mask", "mask")  # where Inputs looks for a mask, too
_SMALLEST_UNIFORM = 2.0**-54  # torch's uniform numbers include 0, which has no normal quantile
_FEWEST_BITS = 16  # of a type that noise can be added in
_MANY = 2**62  # a random number below this, modulo T, is uniform to within T / 2**62


class TokenMover:
    """Moves one random token of each input of a batch.

    Random numbers come from torch and not from the streams of a measurement: inputs in training have no numbers to
    address a stream by, and people expect a training loop to follow ``torch.manual_seed``.

    Arguments:
        tokens: what a token is, an object or a spec.
        perturbation: what a token becomes, an object or a spec.
    """

    def __init__(self, tokens: TokenView | str, perturbation: Perturbation | str) -> None:
        self.view = specs.build(VIEWS, tokens, "tokens", TokenView)
        self.perturbation = specs.build(PERTURBATIONS, perturbation, "perturbation", Perturbation)
        self._text_mover: TextMover | None = None
        if isinstance(self.view, Columns) and self.view.scaled and self.perturbation.has_size:
            raise UsageError(
                "tokens=columns: a batch of training does not tell the size of each column; standardise the inputs and "
                "use columns:scaled=false"
            )
        if isinstance(self.view, TextView):
            self._text_mover = TextMover(self.view, self.perturbation, choose_positions, self._move_tokens)
        self._keys: dict[object, str] = {}  # for each kind of batch, the entry that holds the tokens

    @property
    def moves_nothing(self) -> bool:
        """Whether no token ever changes: noise of std 0, or a step of length 0."""
        return self.perturbation.moves_nothing

    def move_for(
        self,
        model: Any,
        batch: Batch,
        mask: Any = None,
        generator: torch.Generator | None = None,
        chosen: Tensor | None = None,
    ) -> tuple[Batch, Inside]:
        """The batch for ``model``, and a context in which ``model`` must answer it: embeddings are moved there.

        Arguments:
            model: the model that will answer.
            batch, mask, generator: as for ``move``.
            chosen: (batch,), true for texts whose embeddings are moved; by default all.
        """
        if self._text_mover is None:
            return self.move(batch, mask, generator), contextlib.nullcontext()
        _check_generator(generator)
        return self._text_mover.move_for(model, batch, as_mask(mask), generator, chosen)

    def key(self, batch: Batch) -> str:
        """The entry of ``batch`` that holds the tokens; raises if these cannot be cut or moved."""
        signature = tuple((name, tensor.shape[1:], tensor.dtype) for name, tensor in batch.items())
        if signature not in self._keys:
            first = {name: tensor[:1].detach() for name, tensor in batch.items()}
            whole = Whole(key=self.view.key, mask_key=self.view.mask_key)  # masks are read in ``move``
            key = Inputs(first[ONLY] if set(first) == {ONLY} else first, whole).key
            self._check_tokens(first[key])
            self._keys[signature] = key
        return self._keys[signature]

    def _check_tokens(self, first: Tensor) -> None:
        """Raise unless tokens of inputs like ``first``, (1, ...), can be moved."""
        if self.view.num_tokens(tuple(first.shape[1:])) == 0 or first.numel() == 0:
            raise UsageError(f"inputs of shape {tuple(first.shape[1:])} hold no numbers: there is no token to jostle")
        zero = torch.zeros(1, dtype=torch.int64, device=first.device)
        self.perturbation.check(self.view.pick(first.contiguous(), zero, zero))

    def move(self, batch: Batch, mask: Any = None, generator: torch.Generator | None = None) -> Batch:
        """``batch`` with one token of each input moved, in new memory. All other numbers are unchanged.

        Arguments:
            batch: named tensors of ``read_batch``.
            mask: (batch, tokens), true for tokens that may be moved; by default the batch's own mask, or all tokens.
            generator: torch's, on the device of the batch; by default its global one.
        """
        key, mask = self.key(batch), as_mask(mask)
        _check_generator(generator)
        before = batch[key]
        num_tokens = self.view.num_tokens(tuple(before.shape[1:]))
        own = self._own_mask(batch) if mask is None else None
        if num_tokens > 1 and own is not None:
            mask = own
        rows = torch.arange(len(before), device=before.device)
        allowed = _check_mask(mask, len(before), num_tokens)
        position = choose_positions(len(before), num_tokens, allowed, before.device, generator)
        tokens = self._move_tokens(self.view.pick(before, rows, position), generator)  # (batch, dim)
        after = self.view.put(before.clone(memory_format=torch.contiguous_format), position, tokens)
        if num_tokens == 1 and own is not None and own.shape == before.shape[: own.dim()]:
            real = own.bool().view(*own.shape, *[1] * (before.dim() - own.dim()))
            after = torch.where(real, after, before)  # the whole input is one token, and its padding stays
        # Another memory layout of the channels changes the last digits of convolutions and slows them down.
        return {**batch, key: after if before.is_contiguous() else torch.empty_like(before).copy_(after)}

    def _own_mask(self, batch: Batch) -> Tensor | None:
        """The mask among the entries of the batch; None if there is none."""
        names = (self.view.mask_key,) if self.view.mask_key else _MASK_KEYS
        if self.view.mask_key and self.view.mask_key not in batch:
            entries = ", ".join(map(repr, batch))
            raise UsageError(f"mask_key={self.view.mask_key!r} is not an entry of the inputs: {entries}")
        return next((batch[name] for name in names if name in batch), None)

    def _move_tokens(self, tokens: Tensor, generator: torch.Generator | None) -> Tensor:
        """New tokens (batch, dim) from old ones."""
        device = tokens.device
        if isinstance(self.perturbation, GaussianNoise):
            noise = torch.randn(tokens.shape, generator=generator, device=device, dtype=tokens.dtype)
            return tokens + self.perturbation.std * noise
        if isinstance(self.perturbation, Correlated) and self.perturbation.table is None:
            noise = torch.randn(tokens.shape, generator=generator, device=device, dtype=tokens.dtype)
            return self.perturbation.mix(tokens, noise)
        needed = len(tokens), self.perturbation.num_uniforms(tokens.shape[1])
        uniforms = torch.rand(needed, generator=generator, device=device, dtype=torch.float64)
        numbers = uniforms.clamp_(min=_SMALLEST_UNIFORM).cpu().numpy()
        return self.perturbation.apply(tokens.cpu(), numbers).to(device)


def read_batch(inputs: Tensor | Mapping[str, Tensor]) -> Batch:
    """Inputs as named tensors of one length, at least 1; raises for anything else."""
    batch = named_tensors(inputs)
    lengths = {len(tensor) if tensor.dim() else 0 for tensor in batch.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise UsageError(f"inputs must be tensors of one length, at least 1, got lengths {sorted(lengths)}")
    return batch


def named_tensors(inputs: Any) -> Batch:
    """Inputs as named tensors of any length; a plain tensor gets the name ``ONLY``."""
    batch = {ONLY: inputs} if isinstance(inputs, Tensor) else inputs
    if not isinstance(batch, Mapping):
        raise UsageError(f"inputs of type {type(inputs).__name__} are no batch: give a tensor or a mapping of tensors")
    wrong = [repr(key) for key, value in batch.items() if not isinstance(key, str) or not isinstance(value, Tensor)]
    if wrong:
        raise UsageError(
            f"inputs of type {type(inputs).__name__} are no batch: its entries must be tensors under names, and "
            f"{', '.join(wrong)} is not"
        )
    for tensor in batch.values():
        if tensor.layout != torch.strided or tensor.is_meta:
            raise UsageError("inputs must be dense tensors with values, not sparse or meta tensors")
        if tensor.is_floating_point() and torch.finfo(tensor.dtype).bits < _FEWEST_BITS:
            raise UsageError(f"inputs are {tensor.dtype}, with which torch does not calculate: give float16 or wider")
    return dict(batch)


def as_mask(mask: Any) -> Tensor | None:
    """A mask as a tensor of booleans, from a tensor, an array or nested lists; None for None."""
    if mask is None:
        return None
    try:
        return (mask if isinstance(mask, Tensor) else torch.as_tensor(np.asarray(mask))).detach().bool()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(
            f"mask of type {type(mask).__name__} must be a tensor or an array, true for tokens that may be jostled"
        ) from None


def _check_generator(generator: Any) -> None:
    if generator is not None and not isinstance(generator, torch.Generator):
        raise UsageError(f"generator={generator!r} must be a torch.Generator, or None after torch.manual_seed")


def choose_positions(
    count: int, num_tokens: int, mask: Tensor | None, device: torch.device, generator: torch.Generator | None
) -> Tensor:
    """A random position for each of ``count`` inputs, (count,), uniform over the positions that the mask allows."""
    numbers = torch.randint(_MANY, (count,), generator=generator, device=device)
    if mask is None:
        return numbers % num_tokens
    mask = mask.to(device)
    nth = numbers % mask.sum(dim=1)  # which of the unmasked tokens
    return (mask.cumsum(dim=1) <= nth[:, None]).sum(dim=1)


def _check_mask(mask: Tensor | None, count: int, num_tokens: int) -> Tensor | None:
    """``mask`` as booleans; raises unless it has one for each token and allows at least one token of each input."""
    if mask is None:
        return None
    mask = mask.bool()
    if mask.shape != (count, num_tokens):
        raise UsageError(
            f"the mask has shape {tuple(mask.shape)}, expected ({count}, {num_tokens}): one for each token"
        )
    empty = (~mask.any(dim=1)).nonzero()
    if len(empty):
        raise UsageError(
            f"{len(empty)} of {count} inputs are all masked (first: input {int(empty[0])}): no token to jostle"
        )
    return mask
