"""The inputs of a measurement: from tensors, mappings, datasets or loaders, and reachable by index.

``Inputs`` holds N inputs, their tokens and their masks. Tensors are held whole; the items of a dataset are read one by
one when they are needed, by ``Items``. What a token is stands in ``views``, how inputs are read in ``sources``.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.data.table import DataTable, is_frame
from jostle.data.table_file import TableFile
from jostle.tokens.padding import DECODER, Padding, beginning_at, share_by_position
from jostle.tokens.readout import DECODER_IDS, DECODER_MASK
from jostle.tokens.sources import EMPTY, MASK_KEY, ONLY, RAGGED, Batch, as_dataset, as_tensors, collate_items, read_rows
from jostle.tokens.text import check_ids, real_tokens, special_missing
from jostle.tokens.text_views import SPECIAL_KEY, TextView
from jostle.tokens.units import Units
from jostle.tokens.views import Columns, TokenView

Integers = NDArray[np.int64]

CACHE_BYTES = 2**29  # of items that are kept: about 900 images of 3 x 224 x 224 in float32
_TOKEN_KEYS = ("inputs_embeds", "pixel_values", "input_ids", "inputs", "x")
_MASK_KEYS = (MASK_KEY, "mask")
_ROWS_AT_ONCE = 1024


class Inputs:
    """N inputs, their tokens and their masks.

    Attributes:
        count, shape: N, and the shape of one input.
        key: the entry of a batch that holds the tokens.
        positions, num_tokens, dim: the shape of the position grid, T, and the size of a token.
        mask: (N, T) true for tokens that may be jostled; None if all may.
        token_counts: (N,) how many tokens of each input may be jostled; None without a mask.
        padding: for texts, where each begins and ends; None for other inputs.
        moving: for texts that are moved as a whole, (N, columns) true for the tokens that move; otherwise None.
        special_share: for texts whose special tokens are known, their share by position of a profile.
        pad, has_mask: for texts, the id of padding if it is known, and whether a mask or that id tells the padding.
        is_aligned: whether all texts begin in the first column.
        pieces: for texts that were cut here, the pieces of each that its tokens stand for; otherwise None.
        file: the file whose rows are read when they are needed, if inputs are a ``TableFile``; otherwise None.
        table: the columns behind the inputs, if they came as a frame or a ``DataTable``; otherwise None.
        lexicon: the words behind token numbers, if texts are for a function of strings; otherwise None.
        units: for ``Columns``, centre and size of the values of each; otherwise None.
        notes: what people should know about the inputs.

    Arguments:
        source: a tensor (N, ...), an array, a mapping of tensors that share N, a frame, a ``Dataset`` or a
            ``DataLoader`` (of tensors, mappings, or pairs whose first part is the input).
        view: what a token is.
        mask: (N, tokens), true for tokens that may be jostled; by default the mapping's own mask, or all tokens. The
            padding of texts is never jostled, whatever the mask.
        pad: for texts without a mask of their own, the id that is padding.
        aligned: for texts, whether padding on the left is moved to the right. A model that reads in order then gives
            the same answers for either side, whatever its positions are, and needs no name for padding.
    """

    def __init__(
        self, source: Any, view: TokenView, mask: Any = None, pad: int | None = None, *, aligned: bool = False
    ) -> None:
        self.view = view
        self.notes: list[str] = []
        self.table = DataTable.of(source) if is_frame(source) else source if isinstance(source, DataTable) else None
        self.file = source if isinstance(source, TableFile) else None
        self.lexicon = getattr(source, "lexicon", None)
        self.items: Items | None = None
        self.pieces: Any = None
        tensors = as_tensors(source if self.table is None else self.table)
        if tensors is None:
            dataset, tensors = as_dataset(source)
            if dataset is not None and isinstance(view, TextView):
                tensors = read_rows(dataset)  # all are needed to see where each ends
            elif dataset is not None:
                self.items = Items(dataset)
        if isinstance(view, Columns) and tensors is not None:  # whole numbers of a table are numbers, not ids
            tensors = {key: each if each.is_floating_point() else each.double() for key, each in tensors.items()}
        self._tensors = tensors
        self.count = len(self.items) if self.items is not None else _common_length(self._tensors or {})
        if self.count == 0:
            raise UsageError(EMPTY)
        sample = self.batch(np.zeros(1, dtype=np.int64))
        self.key = _token_key(sample, view)
        self.shape = tuple(sample[self.key].shape[1:])
        self.positions = view.positions(self.shape)
        self.num_tokens = view.num_tokens(self.shape)
        self.dim = self.sample_token().shape[1]
        self.padding: Padding | None = None
        self.moving: NDArray[np.bool_] | None = None
        self.special_share: NDArray[np.float64] | None = None
        self.pad, self.has_mask = pad, False
        self.is_aligned = aligned and isinstance(view, TextView)
        if self.is_aligned:
            mask = self._align(mask)
        self.mask = self._read_text(view, mask) if isinstance(view, TextView) else self._read_mask(mask)
        self.units = self._read_units() if isinstance(view, Columns) and view.scaled else None
        self.token_counts = None if self.mask is None else self.mask.sum(axis=1)

    def __len__(self) -> int:
        return self.count

    def batch(self, indices: Integers, window: tuple[int, int] | None = None) -> Batch:
        """The inputs of these indices: fresh, contiguous tensors that the caller may change.

        Arguments:
            indices: which inputs.
            window: for texts, the columns (from, to) that are wanted; all of them by default.
        """
        if self.items is not None:
            whole = self.items.batch(indices)
            if window is None:
                return whole
            return {key: tensor.contiguous() for key, tensor in self._cut(whole, window).items()}
        chosen = torch.from_numpy(np.ascontiguousarray(indices))
        tensors = self._tensors or {}
        cut = tensors if window is None else self._cut(tensors, window)
        return {key: tensor.index_select(0, chosen) for key, tensor in cut.items()}

    def _cut(self, tensors: Mapping[str, Tensor], window: tuple[int, int]) -> Batch:
        """Every tensor with an entry for each token, cut to these columns; the others as they are."""
        width = self.shape[0]
        is_cut = {
            key: tensor.dim() >= 2 and tensor.shape[1] == width and not key.startswith(DECODER)
            for key, tensor in tensors.items()
        }
        return {key: tensor[:, slice(*window)] if is_cut[key] else tensor for key, tensor in tensors.items()}

    def tokens(self, indices: Integers, positions: Integers) -> Tensor:
        """Token ``positions[i]`` of input ``indices[i]``, as (len(indices), dim)."""
        if self._tensors is not None:
            return self.view.pick(self._tensors[self.key], torch.from_numpy(indices), torch.from_numpy(positions))
        distinct, back = np.unique(indices, return_inverse=True)
        held = self.batch(distinct)[self.key]
        return self.view.pick(held, torch.from_numpy(back), torch.from_numpy(positions))

    def sample_token(self) -> Tensor:
        """The first token of the first input, (1, dim): what a perturbation is checked against."""
        first = self.batch(np.zeros(1, dtype=np.int64))[self.key]
        zero = torch.zeros(1, dtype=torch.int64)
        if isinstance(self.view, TextView) and self.view.whole and first.dim() == 2:
            return first[:, :1]  # each token of a whole text moves as it would alone
        return self.view.pick(first, zero, zero)

    def nth_token(self, inputs: Integers, nth: Integers) -> Integers:
        """The position of the ``nth`` token of each input that is not masked."""
        if self.mask is None:
            return nth
        order = np.argsort(~self.mask[inputs], axis=1, kind="stable")  # unmasked positions first, in their order
        return np.take_along_axis(order, nth[:, None], axis=1)[:, 0]

    def arguments(self, batch: Batch) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        """Positional and keyword arguments with which the model is called on this batch."""
        if set(batch) == {ONLY}:
            return (batch[ONLY],), {}
        return (), {key: tensor for key, tensor in batch.items() if key != SPECIAL_KEY}

    def addresses(self, indices: Integers, positions: Integers) -> Integers:
        """The numbers by which the noise of these tokens is drawn: for a text the same however far it is padded."""
        return positions if self.padding is None else self.padding.numbers(indices, positions)

    def profile_positions(self, indices: Integers, positions: Integers) -> Integers:
        """The positions under which a profile counts these tokens."""
        if self.padding is None or self.moving is not None or not isinstance(self.view, TextView):
            return positions
        return self.padding.numbers(indices, positions, self.view.alignment)

    @property
    def token_names(self) -> tuple[str, ...]:
        """The names of the tokens: of the columns of a table; empty where they have none."""
        names = self.file.names if self.file is not None else () if self.table is None else self.table.names
        return names if len(names) == self.num_tokens else ()

    def _read_units(self) -> Units:
        """Mean and standard deviation of each column."""
        parts = (
            self.batch(np.arange(start, min(start + _ROWS_AT_ONCE, self.count)))[self.key]
            for start in range(0, self.count, _ROWS_AT_ONCE)
        )
        units = Units.of(parts)
        still = np.flatnonzero((units.std == 0).numpy())
        if len(still):
            names = self.token_names or tuple(map(str, range(self.num_tokens)))
            told = ", ".join(names[number] for number in still[:3]) + (", ..." if len(still) > 3 else "")
            self.notes.append(
                f"{len(still)} of {len(units.std)} columns hold one value only ({told}): noise in units of it is 0"
            )
        return units

    def entry(self, name: str) -> Tensor | None:
        """One entry of all inputs, (N, ...), or None where there is no such entry."""
        if self._tensors is not None:
            return self._tensors.get(name)
        if name not in self.batch(np.zeros(1, dtype=np.int64)):
            return None
        return torch.cat([self.batch(np.asarray([index]))[name] for index in range(self.count)])

    def ids(self) -> Tensor:
        """The token ids of all texts, (N, tokens)."""
        ids = self.entry(self.key)
        assert ids is not None
        return ids

    def real(self, batch: Batch) -> Tensor:
        """(batch, columns): true for what is not padding in a batch of texts."""
        name = self._mask_name(batch)
        if name is not None:
            return batch[name].bool()
        ids = batch[self.key]
        return torch.ones_like(ids, dtype=torch.bool) if self.pad is None else ids != self.pad

    def answered(self, batch: Batch) -> Tensor:
        """(batch, columns): true for the tokens at which a model answers: those of its decoder, if it has one."""
        if DECODER_IDS not in batch:
            return self.real(batch)
        mask = batch.get(DECODER_MASK)
        return torch.ones_like(batch[DECODER_IDS], dtype=torch.bool) if mask is None else mask.bool()

    @property
    def names(self) -> list[str]:
        """The entries of a batch."""
        return list(self._tensors if self._tensors is not None else self.batch(np.zeros(1, dtype=np.int64)))

    @property
    def has_decoder(self) -> bool:
        """Whether the model answers at the tokens of its decoder."""
        return self._tensors is not None and DECODER_IDS in self._tensors

    @property
    def answers(self) -> int:
        """The most tokens at which a model answers."""
        if self._tensors is not None and DECODER_IDS in self._tensors:
            return self._tensors[DECODER_IDS].shape[1]
        return self.num_tokens if self.padding is None else int(self.padding.lengths.max())

    def _align(self, given: Any) -> Any:
        """Move the padding of all texts to the right; returns the mask ``given``, moved as well."""
        if self._tensors is None:
            names = self.batch(np.zeros(1, dtype=np.int64))
            self._tensors = {name: entry for name in names if (entry := self.entry(name)) is not None}
            self.items = None
        own = self._own_mask()
        ids = self._tensors[self.key]
        if own is None and self.pad is None:
            return given
        padding, _ = real_tokens(ids, None if own is None else self._truths(own, "the attention mask"), self.pad)
        if not padding.first.any():
            return given
        begin, width = torch.from_numpy(padding.first), self.shape[0]
        fill = int(ids[int(padding.first.argmax()), 0])  # what stands in front of the text that begins last
        moved = beginning_at(self._tensors, self.key, begin, width)
        beyond = torch.arange(width) >= torch.from_numpy(width - padding.first)[:, None]
        moved[self.key] = moved[self.key].masked_fill(beyond, fill)
        self._tensors = moved
        if given is None:
            return None
        return beginning_at({"": torch.from_numpy(self._truths(given)).long()}, "", begin, width)[""]

    def check_finite(self) -> None:
        """Raise if any input holds NaN or infinity, with their number and the first; ``Items`` check their own."""
        if self._tensors is None:
            return
        finite = torch.stack([_rows_finite(tensor) for tensor in self._tensors.values()]).all(dim=0)
        bad = np.flatnonzero(~finite.numpy())
        if len(bad):
            raise UsageError(
                f"{len(bad)} of {self.count} inputs hold NaN or infinity (first: input {bad[0]}); clean them first"
            )

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
            return None  # the whole input is one token: a mask over its parts does not apply
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
        """``mask`` if it leaves every input a token; None if it masks nothing."""
        empty = np.flatnonzero(~mask.any(axis=1))
        if len(empty):
            raise UsageError(
                f"{len(empty)} of {self.count} inputs are {why} (first: input {empty[0]}): no token to jostle"
            )
        return None if mask.all() else mask

    def _read_text(self, view: TextView, given: Any) -> NDArray[np.bool_] | None:
        """The mask of texts; sets ``padding``, ``pad``, ``has_mask``, ``moving`` and ``special_share``."""
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
        if view.whole:
            self.moving = mask
            return None
        if special is not None:
            self.special_share = share_by_position(special, real, self.padding, view.alignment)
        return usable

    def _read_special(self, view: TextView, ids: Tensor, real: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """(N, columns) true for special tokens; None if neither the view nor the inputs mark them."""
        if view.special_ids is not None:
            return real & np.isin(ids.numpy(), view.special_ids)
        marked = self.entry(SPECIAL_KEY)
        return None if marked is None else real & self._truths(marked, SPECIAL_KEY)


class Items:
    """The inputs of a dataset by index. An item is read when it is needed, and once while there is room to keep it.

    Decoding a photograph takes longer than many models take to answer, and an input is in many trials. The items that
    were used last are kept, up to ``CACHE_BYTES``.

    Attributes:
        bytes_kept: the size of the items that are kept now.

    Arguments:
        dataset: map-style, of tensors, mappings of tensors, or pairs whose first part is the input.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._kept: OrderedDict[int, Batch] = OrderedDict()  # (1, ...) each; the item that was used last is at the end
        self.bytes_kept = 0

    def __len__(self) -> int:
        return len(self._dataset)

    def room(self) -> int:
        """About how many items can be kept at a time, judged by the first."""
        return max(1, CACHE_BYTES // max(1, _size(self._item(0))))

    def batch(self, indices: Integers) -> Batch:
        """The inputs of these indices, in new memory; an index may occur several times."""
        distinct, back = np.unique(indices, return_inverse=True)
        items = [self._item(index) for index in distinct.tolist()]
        try:
            joined = {key: torch.cat([item[key] for item in items]) for key in items[0]}
        except RuntimeError:
            raise UsageError(RAGGED) from None
        except KeyError as error:
            raise UsageError(f"inputs as mappings must have the same entries; some have no {error}") from None
        rows = torch.from_numpy(back)
        return {key: tensor.index_select(0, rows) for key, tensor in joined.items()}

    def _item(self, index: int) -> Batch:
        """One item, (1, ...), from memory or from the dataset; NaN and infinity are refused."""
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        with torch.inference_mode(False):  # it may be used where gradients are needed
            item = collate_items([self._dataset[index]])
        if not all(bool(_rows_finite(tensor).all()) for tensor in item.values()):
            raise UsageError(f"input {index} holds NaN or infinity; clean the inputs first")
        self._kept[index] = item
        self.bytes_kept += _size(item)
        while self.bytes_kept > CACHE_BYTES:
            self.bytes_kept -= _size(self._kept.popitem(last=False)[1])
        return item


def _rows_finite(tensor: Tensor) -> Tensor:
    """(len(tensor),): true for rows without NaN and infinity; whole numbers have neither."""
    if not tensor.is_floating_point():
        return torch.ones(len(tensor), dtype=torch.bool)
    parts = torch.split(tensor, _ROWS_AT_ONCE)  # a few rows at a time: what is finite takes memory too
    return torch.cat([part.isfinite().reshape(len(part), -1).all(dim=1) for part in parts])


def _size(item: Batch) -> int:
    return sum(tensor.nbytes for tensor in item.values())


def _common_length(tensors: Batch) -> int:
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
