"""The inputs of a measurement, reachable by index whatever they came as."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.tokens.padding import Padding, share_by_position
from jostle.tokens.sources import ONLY, Batch, Items, as_dataset, as_tensors, rows_finite
from jostle.tokens.text import check_ids, real_tokens, special_missing
from jostle.tokens.text_views import SPECIAL_KEY, Embeddings, TextView
from jostle.tokens.view import TokenView

_TOKEN_KEYS = ("inputs_embeds", "pixel_values", "input_ids", "inputs", "x")
_MASK_KEYS = ("attention_mask", "mask")


class Inputs:
    """N inputs, their tokens and their masks.

    Arguments:
        source: a tensor (N, ...), an array, a mapping of tensors that share N, a ``Dataset`` or a ``DataLoader`` (of
            tensors, mappings, or pairs whose first part is the input).
        view: what a token is.
        mask: (N, tokens), true for tokens that may be jostled; by default the mapping's own mask, or all tokens. Of
            text, padding is never jostled, whatever the mask.
        pad: the id that is padding, of text without a mask of its own.
    """

    def __init__(self, source: Any, view: TokenView, mask: Any = None, pad: int | None = None) -> None:
        self.view = view
        self.items: Items | None = None  # of inputs that are read one by one, when they are needed
        tensors = as_tensors(source)
        if tensors is None:
            dataset, tensors = as_dataset(source)
            self.items = None if dataset is None else Items(dataset)
        self._tensors = tensors
        self.count = len(self.items) if self.items is not None else _common_length(self._tensors or {})
        if self.count == 0:
            raise UsageError("inputs are empty: there is nothing to measure")
        sample = self.batch(np.zeros(1, dtype=np.int64))
        self.key = _token_key(sample, view)
        self.shape = tuple(sample[self.key].shape[1:])
        self.positions = view.positions(self.shape)
        self.num_tokens = view.num_tokens(self.shape)
        self.dim = self.sample_token().shape[1]
        self.padding: Padding | None = None  # of text
        self.moving: NDArray[np.bool_] | None = None  # of texts moved as a whole, (N, columns): the tokens that move
        self.special_share: NDArray[np.float64] | None = None  # of text, by position of a profile
        self.pad, self.has_mask = pad, False
        self.mask = self._read_text(view, mask) if isinstance(view, TextView) else self._read_mask(mask)
        self.token_counts = None if self.mask is None else self.mask.sum(axis=1)

    def __len__(self) -> int:
        return self.count

    def sample_token(self) -> Tensor:
        """The first token of the first input, (1, dim): what a perturbation is checked against."""
        first = self.batch(np.zeros(1, dtype=np.int64))[self.key]
        zero = torch.zeros(1, dtype=torch.int64)
        return self.view.pick(first, zero, zero)

    def batch(self, indices: NDArray[np.int64], window: tuple[int, int] | None = None) -> Batch:
        """The inputs of these indices: fresh, contiguous tensors that the caller may change.

        Arguments:
            indices: which inputs.
            window: for text, the columns (from, to) that are wanted; all of them by default.
        """
        if self.items is not None:
            whole = self.items.batch(indices)
            if window is None:
                return whole
            return {key: tensor.contiguous() for key, tensor in self._cut(whole, window).items()}
        chosen = torch.from_numpy(np.ascontiguousarray(indices))
        tensors = self._tensors or {}
        kept = tensors if window is None else self._cut(tensors, window)
        return {key: tensor.index_select(0, chosen) for key, tensor in kept.items()}

    def _cut(self, tensors: Mapping[str, Tensor], window: tuple[int, int]) -> Batch:
        """Every tensor with an entry for each token, cut to these columns; the others as they are."""
        width = self.shape[0]
        is_cut = {key: tensor.dim() >= 2 and tensor.shape[1] == width for key, tensor in tensors.items()}
        return {key: tensor[:, slice(*window)] if is_cut[key] else tensor for key, tensor in tensors.items()}

    def tokens(self, indices: NDArray[np.int64], positions: NDArray[np.int64]) -> Tensor:
        """Token ``positions[i]`` of input ``indices[i]``, as (len(indices), dim)."""
        if self._tensors is not None:
            return self.view.pick(self._tensors[self.key], torch.from_numpy(indices), torch.from_numpy(positions))
        distinct, back = np.unique(indices, return_inverse=True)
        held = self.batch(distinct)[self.key]
        return self.view.pick(held, torch.from_numpy(back), torch.from_numpy(positions))

    def arguments(self, batch: Batch) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        """Positional and keyword arguments with which the model is called on this batch."""
        if set(batch) == {ONLY}:
            return (batch[ONLY],), {}
        return (), {key: tensor for key, tensor in batch.items() if key != SPECIAL_KEY}

    def addresses(self, indices: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """By which numbers the noise of these tokens is drawn: of text the same however far it is padded."""
        return positions if self.padding is None else self.padding.numbers(indices, positions)

    def profile_positions(self, indices: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions under which a profile counts these tokens."""
        if self.padding is None or self.moving is not None or not isinstance(self.view, TextView):
            return positions
        return self.padding.numbers(indices, positions, self.view.alignment)

    def entry(self, name: str) -> Tensor | None:
        """One entry of all inputs, (N, ...), or None where there is no such entry."""
        if self._tensors is not None:
            return self._tensors.get(name)
        if name not in self.batch(np.zeros(1, dtype=np.int64)):
            return None
        return torch.cat([self.batch(np.asarray([index]))[name] for index in range(self.count)])

    def check_finite(self) -> None:
        """Raise if any input holds NaN or infinity, with their number and the first; ``Items`` check their own."""
        if self._tensors is None:
            return
        finite = torch.stack([rows_finite(tensor) for tensor in self._tensors.values()]).all(dim=0)
        bad = np.flatnonzero(~finite.numpy())
        if len(bad):
            raise UsageError(
                f"{len(bad)} of {self.count} inputs hold NaN or infinity (first: input {bad[0]}); clean them first"
            )

    def nth_token(self, inputs: NDArray[np.int64], nth: NDArray[np.int64]) -> NDArray[np.int64]:
        """The position of the ``nth`` token of each input that is not masked."""
        if self.mask is None:
            return nth
        order = np.argsort(~self.mask[inputs], axis=1, kind="stable")  # unmasked positions first, in their order
        return np.take_along_axis(order, nth[:, None], axis=1)[:, 0]

    def ids(self) -> Tensor:
        """The token ids of all texts, (N, tokens)."""
        ids = self.entry(self.key)
        assert ids is not None
        return ids

    def real(self, batch: Batch) -> Tensor:
        """(batch, columns): true for what is not padding in a batch of text."""
        name = self._mask_name(batch)
        if name is not None:
            return batch[name].bool()
        ids = batch[self.key]
        return torch.ones_like(ids, dtype=torch.bool) if self.pad is None else ids != self.pad

    def _mask_name(self, batch: Batch) -> str | None:
        """The entry of a batch that is its mask, if there is one."""
        names = (self.view.mask_key,) if self.view.mask_key else _MASK_KEYS
        return next((name for name in names if name in batch), None)

    def _own_mask(self) -> Any:
        """The mask among the inputs themselves, if there is one."""
        sample = self.batch(np.zeros(1, dtype=np.int64))
        name = self._mask_name(sample)
        if name is None:
            if self.view.mask_key:
                raise UsageError(f"mask_key={self.view.mask_key!r} is not an entry of the inputs: {_keys(sample)}")
            return None
        return self.entry(name)

    def _read_mask(self, given: Any) -> NDArray[np.bool_] | None:
        mask = given
        if mask is None and self.num_tokens == 1:
            return None  # the whole input as one token: a mask over its parts says nothing
        if mask is None:
            mask = self._own_mask()
        return None if mask is None else self._usable(self._truths(mask))

    def _truths(self, mask: Any, name: str = "the mask") -> NDArray[np.bool_]:
        """A mask as truth values (N, tokens)."""
        truths = np.asarray(mask.cpu() if isinstance(mask, Tensor) else mask).astype(bool)
        tokens = self.shape[0] if isinstance(self.view, TextView) else self.num_tokens
        if truths.shape != (self.count, tokens):
            raise UsageError(f"{name} has shape {truths.shape}, expected ({self.count}, {tokens}): one entry per token")
        return truths

    def _usable(self, mask: NDArray[np.bool_], why: str = "all masked") -> NDArray[np.bool_] | None:
        """A mask that leaves every input a token, or None if it masks nothing."""
        empty = np.flatnonzero(~mask.any(axis=1))
        if len(empty):
            raise UsageError(
                f"{len(empty)} of {self.count} inputs are {why} (first: input {empty[0]}): no token to jostle"
            )
        return None if mask.all() else mask

    def _read_text(self, view: TextView, given: Any) -> NDArray[np.bool_] | None:
        """The tokens of text that may be jostled; notes where the padding is, and which id."""
        ids, own = check_ids(self.entry(self.key), view), self._own_mask()
        attention = None if own is None else self._truths(own, "the attention mask")
        self.padding, real = real_tokens(ids, attention, self.pad)
        self.has_mask = attention is not None or self.pad is not None
        unused = np.unique(ids.numpy()[~real])
        self.pad = int(unused[0]) if len(unused) == 1 else self.pad
        mask, why = real if given is None else real & self._truths(given), "all masked"
        special = self._read_special(view, ids, real)
        if view.special is not True:
            if special is None:
                raise special_missing(view)
            is_only = view.special == "only"
            why = f"without a token that is {'' if is_only else 'not '}special {'and not' if is_only else 'or'} masked"
            mask = mask & (special if is_only else ~special)
        usable = self._usable(mask, why)
        if isinstance(view, Embeddings) and view.whole:
            self.moving = mask
            return None
        if special is not None:
            self.special_share = share_by_position(special, real, self.padding, view.alignment)
        return usable

    def _read_special(self, view: TextView, ids: Tensor, real: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """(N, columns) true for special tokens, None if nobody says which they are."""
        if view.special_ids is not None:
            return real & np.isin(ids.numpy(), view.special_ids)
        marked = self.entry(SPECIAL_KEY)
        return None if marked is None else real & self._truths(marked, SPECIAL_KEY)


def _common_length(tensors: Mapping[str, Tensor]) -> int:
    lengths = {key: len(tensor) if tensor.dim() else 0 for key, tensor in tensors.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError(f"the tensors of inputs differ in length: {lengths}")
    return next(iter(lengths.values()))


def _token_key(sample: Batch, view: TokenView) -> str:
    if set(sample) == {ONLY}:
        return ONLY
    if view.key is not None:
        if view.key not in sample:
            raise UsageError(f"key={view.key!r} is not an entry of the inputs: {_keys(sample)}")
        return view.key
    candidates = [key for key in sample if key not in (*_MASK_KEYS, view.mask_key, SPECIAL_KEY)]
    if len(candidates) == 1:
        return candidates[0]
    for key in ("input_ids",) if isinstance(view, TextView) else _TOKEN_KEYS:
        if key in candidates:
            return key
    raise UsageError(
        f"which entry of the inputs holds the tokens? Give key= to the token view, one of {_keys(candidates)}"
    )


def _keys(mapping: Any) -> str:
    return ", ".join(repr(key) for key in mapping) or "nothing"
