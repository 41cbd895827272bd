"""Batches in which one random token of every input is moved, on the device the batch is on, open to gradients.

Squares of an image at any place, as in the released code of paper 1's regularisation.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.lowering.arguments import truth
from jostle.lowering.text_moves import Inside, TextJostling
from jostle.perturbations import PERTURBATIONS, GaussianNoise, Perturbation, Sphere
from jostle.tokens import VIEWS, Batch, Inputs, TextView, TokenView, Whole
from jostle.tokens.sources import ONLY
from jostle.tokens.view import must_fit

_MASK_KEYS = ("attention_mask", "mask")  # where Inputs looks for a mask, too
_SMALLEST_UNIFORM = 2.0**-54  # torch's numbers include 0, of which no normal number can be made
_FEWEST_BITS = 16  # of numbers that noise can be added to
_MANY = 2**62  # a random number below this, modulo T, is uniform to within T / 2**62


class Jostling:
    """What happens to a batch: which tokens it has, and what the chosen one becomes.

    Random numbers come from torch, not from the streams of a measurement: training has no input numbers to address
    them by, and a loop is expected to follow ``torch.manual_seed``.

    Arguments:
        tokens: what a token is, an object or a spec.
        perturbation: what becomes of it, an object or a spec.
    """

    def __init__(self, tokens: TokenView | str, perturbation: Perturbation | str) -> None:
        self.view = specs.build(VIEWS, tokens, "tokens", TokenView)
        self.perturbation = specs.build(PERTURBATIONS, perturbation, "perturbation", Perturbation)
        self._text: TextJostling | None = None
        if isinstance(self.view, TextView):
            self._text = TextJostling(self.view, self.perturbation, _choose, self._moved)
        self._keys: dict[object, str] = {}  # the entry that holds the tokens, for each shape of batch seen

    @property
    def moves_nothing(self) -> bool:
        """Whether every token stays what it is: noise of std 0, a step of length 0."""
        return isinstance(self.perturbation, GaussianNoise | Sphere) and self.perturbation.is_deterministic

    def applied(
        self,
        model: Any,
        batch: Batch,
        mask: Any = None,
        generator: torch.Generator | None = None,
        chosen: Tensor | None = None,
    ) -> tuple[Batch, Inside]:
        """The batch to ask ``model`` about, and what to be within while it answers: embeddings are moved there.

        With ``chosen``, (batch,), that is done to embeddings of some texts only.
        """
        if self._text is None:
            return self(batch, mask, generator), contextlib.nullcontext()
        _check_generator(generator)
        return self._text(model, batch, as_mask(mask), generator, chosen)

    def key(self, batch: Batch) -> str:
        """The entry of ``batch`` that holds the tokens; raises if they cannot be cut or moved this way."""
        signature = tuple((name, tensor.shape[1:], tensor.dtype) for name, tensor in batch.items())
        if signature not in self._keys:
            first = {name: tensor[:1].detach() for name, tensor in batch.items()}
            whole = Whole(key=self.view.key, mask_key=self.view.mask_key)  # as one token: masks are read elsewhere
            key = Inputs(first[ONLY] if set(first) == {ONLY} else first, whole).key
            self._check(first[key])
            self._keys[signature] = key
        return self._keys[signature]

    def _check(self, first: Tensor) -> None:
        """Raise unless tokens of inputs like ``first``, (1, ...), can be moved."""
        if self.view.num_tokens(tuple(first.shape[1:])) == 0 or first.numel() == 0:
            raise UsageError(f"inputs of shape {tuple(first.shape[1:])} hold no numbers: there is no token to jostle")
        zero = torch.zeros(1, dtype=torch.int64, device=first.device)
        self.perturbation.check(self.view.pick(first.contiguous(), zero, zero))

    def __call__(self, batch: Batch, mask: Any = None, generator: torch.Generator | None = None) -> Batch:
        """``batch`` with one token of every input moved, in new memory; every other number is as it was.

        Arguments:
            batch: named tensors; see ``as_batch``.
            mask: (batch, tokens), true for tokens that may be moved; by default the batch's own, or all tokens.
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
        position = _choose(len(before), num_tokens, _checked(mask, len(before), num_tokens), before.device, generator)
        tokens = self._moved(self.view.pick(before, rows, position), generator)  # (batch, dim)
        after = self.view.put(before.clone(memory_format=torch.contiguous_format), position, tokens)
        if num_tokens == 1 and own is not None and own.shape == before.shape[: own.dim()]:
            real = own.bool().view(*own.shape, *[1] * (before.dim() - own.dim()))
            after = torch.where(real, after, before)  # the whole input as one token, without its padding
        # Convolutions answer otherwise, in the last digits, and slower if the channels change their place in memory.
        return {**batch, key: after if before.is_contiguous() else torch.empty_like(before).copy_(after)}

    def _own_mask(self, batch: Batch) -> Tensor | None:
        names = (self.view.mask_key,) if self.view.mask_key else _MASK_KEYS
        if self.view.mask_key and self.view.mask_key not in batch:
            entries = ", ".join(map(repr, batch))
            raise UsageError(f"mask_key={self.view.mask_key!r} is not an entry of the inputs: {entries}")
        return next((batch[name] for name in names if name in batch), None)

    def _moved(self, tokens: Tensor, generator: torch.Generator | None) -> Tensor:
        device = tokens.device
        if isinstance(self.perturbation, GaussianNoise):
            noise = torch.randn(tokens.shape, generator=generator, device=device, dtype=tokens.dtype)
            return tokens + self.perturbation.std * noise
        needed = len(tokens), self.perturbation.num_uniforms(tokens.shape[1])
        uniforms = torch.rand(needed, generator=generator, device=device, dtype=torch.float64)
        numbers = uniforms.clamp_(min=_SMALLEST_UNIFORM).cpu().numpy()
        return self.perturbation.apply(tokens.cpu(), numbers).to(device)


def as_batch(inputs: Tensor | Mapping[str, Tensor]) -> Batch:
    """A batch as named tensors that share their length, at least 1; anything else is refused."""
    batch = named(inputs)
    lengths = {len(tensor) if tensor.dim() else 0 for tensor in batch.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise UsageError(f"inputs must be tensors of one length, at least 1, got lengths {sorted(lengths)}")
    return batch


def named(inputs: Any) -> Batch:
    """Inputs as named tensors, a plain tensor under the key ``ONLY``; of any length."""
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
    """A mask as truth values, from a tensor, an array or nested lists; None stays."""
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


def _choose(
    count: int, num_tokens: int, mask: Tensor | None, device: torch.device, generator: torch.Generator | None
) -> Tensor:
    """A position for each of ``count`` inputs, every one that is not masked with the same probability, (count,)."""
    numbers = torch.randint(_MANY, (count,), generator=generator, device=device)
    if mask is None:
        return numbers % num_tokens
    mask = mask.to(device)
    nth = numbers % mask.sum(dim=1)  # which of the unmasked tokens
    return (mask.cumsum(dim=1) <= nth[:, None]).sum(dim=1)


def _checked(mask: Tensor | None, count: int, num_tokens: int) -> Tensor | None:
    """``mask`` as truth values, if it has one for each token and leaves every input at least one token."""
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


@dataclass(frozen=True)
class UnalignedSquares(TokenView):
    """All squares of ``size`` x ``size`` pixels of an image, all channels together; unlike patches they overlap.

    Positions are the places of the top left corner, row by row. The penalty of paper 1 (2403.06925, Section 7.1) as
    released draws its squares like this, and not from the patches a vision transformer sees.

    >>> UnalignedSquares(4).num_tokens((3, 32, 32)), UnalignedSquares(4, released=True).num_tokens((3, 32, 32))
    (841, 784)

    Arguments:
        size: the side of a square in pixels, at most height and width.
        released: leave out the last place of every row and column, 28 of 29 for images of 32 x 32: the released code
            draws it from ``randint(0, 28)``, whose end is exclusive, so the last row and column of pixels never move.
    """

    size: int
    released: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise UsageError(f"size={self.size!r} of UnalignedSquares must be a whole number of pixels, at least 1")
        truth("released", self.released, "UnalignedSquares")

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) in (2, 3), self, shape, "expected (channels, height, width) or (height, width)")
        height, width = shape[-2:]
        least = self.size + int(self.released)
        fits = height >= least and width >= least
        must_fit(fits, self, shape, f"height {height} and width {width} must be at least {least}")
        return height - least + 1, width - least + 1

    def grid(self, batch: Tensor) -> Tensor:
        rows, columns = self.positions(tuple(batch.shape[1:]))
        squares = batch.unfold(-2, self.size, 1).unfold(-2, self.size, 1)[..., :rows, :columns, :, :]
        return squares if batch.dim() == 3 else squares.permute(0, 2, 3, 1, 4, 5)  # (batch, rows, columns, ...)

    @property
    def spec(self) -> str:
        return f"unaligned-squares:{self.size}" + (",released=true" if self.released else "")
