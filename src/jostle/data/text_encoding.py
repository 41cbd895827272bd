"""From texts to what networks take: token ids of one length, for our own networks or for Hugging Face's.

Batches of texts of similar length, so that little of what is computed is padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.base.registry import unknown_name
from jostle.data.dataset import Dataset
from jostle.data.text_dataset import TextDataset
from jostle.data.text_tokenizer import SIDES, TextTokenizer


@dataclass(frozen=True)
class EncodedText:
    """One example as token ids.

    Arguments:
        ids: all its tokens.
        special: for each, 1 if it is a start or separator, else 0.
        kinds: for each, its token type.
        is_cut: whether tokens were left out.
    """

    ids: list[int]
    special: list[int]
    kinds: list[int]
    is_cut: bool


def encode(dataset: TextDataset, tokenizer: TextTokenizer, max_length: int = 128) -> Dataset:
    """Texts as token ids for the text networks of ``jostle.models``: padded on the right with 0 to the longest.

    >>> import torch
    >>> from jostle.data import TextDataset, train_tokenizer
    >>> questions = TextDataset("questions", (("is it late", "no"), ("it is", "it is")), torch.tensor([0, 1]), 2)
    >>> encoded = encode(questions, train_tokenizer(questions, vocabulary=300))
    >>> encoded.inputs[1].tolist(), tuple(encoded.inputs.shape)
    ([2, 262, 261, 3, 3, 262, 261, 3, 0, 0, 0, 0, 0, 0], (2, 14))

    Arguments:
        dataset: one text an example, ``<s> a </s>``, or two, ``<s> a </s></s> b </s>``.
        tokenizer: one whose padding is 0, as of ``train_tokenizer``.
        max_length: examples have at most so many tokens, special ones included; of a longer one the end is cut, of a
            longer pair the end of the longer text until both are equally long, then of both. The note says how many.
    """
    if tokenizer.pad != 0:
        raise UsageError(
            f"{tokenizer!r} pads with {tokenizer.pad}, but in a tensor of ids 0 is padding; use "
            "jostle.data.encode_mapping, which has a mask, or a tokenizer of jostle.data.train_tokenizer"
        )
    rows = list(encoded_rows(dataset, tokenizer, max_length))
    for number, row in enumerate(rows):
        if 0 in row.ids:
            raise UsageError(
                f"dataset {dataset.name!r}: texts[{number}] holds {tokenizer.token_of(0)!r}, which {tokenizer!r} reads "
                "as padding; take it out of the text"
            )
    ids = _padded([row.ids for row in rows], 0, "right")
    cut = sum(row.is_cut for row in rows)
    said = f"{cut:,} of {len(rows):,} examples cut to {max_length} tokens" if cut else ""
    note = "; ".join(filter(None, (dataset.note, said)))
    return Dataset(dataset.name, ids, dataset.labels, dataset.classes, dataset.split, note)


def encode_mapping(
    dataset: TextDataset,
    tokenizer: TextTokenizer,
    max_length: int = 128,
    *,
    side: str | None = None,
    token_types: bool = False,
) -> dict[str, Tensor]:
    """Texts as Hugging Face models take them, each # (examples, longest) of int64.

    ``input_ids``; ``attention_mask``, 1 where there is a token and 0 where there is padding; ``special_tokens_mask``, 1
    for padding and for what the tokenizer adds (start, separators). The last is not for the model. Labels stay in
    ``dataset.labels``, in the same order.

    Arguments:
        dataset, max_length: as in ``encode``.
        tokenizer: any that knows what pads.
        side: ``right`` or ``left`` for padding; the tokenizer's own if left out.
        token_types: give ``token_type_ids`` too, which BERT uses to tell the texts of a pair apart.
    """
    if tokenizer.pad is None:
        raise UsageError(
            f"{tokenizer!r} has no padding token; name one, for example load_tokenizer(path, pad='<|endoftext|>')"
        )
    side = tokenizer.side if side is None else side
    if side not in SIDES:
        raise unknown_name("side", str(side), SIDES)
    rows = list(encoded_rows(dataset, tokenizer, max_length))
    made = {
        "input_ids": _padded([row.ids for row in rows], tokenizer.pad, side),
        "attention_mask": _padded([[1] * len(row.ids) for row in rows], 0, side),
        "special_tokens_mask": _padded([row.special for row in rows], 1, side),
    }
    return made | ({"token_type_ids": _padded([row.kinds for row in rows], 0, side)} if token_types else {})


def encoded_rows(dataset: TextDataset, tokenizer: TextTokenizer, max_length: int) -> Iterator[EncodedText]:
    """Each example as token ids, cut to ``max_length``, not padded."""
    layout = tokenizer.layout(dataset.width)
    room = max_length - sum(slot.special is not None for slot in layout) if _is_whole(max_length) else 0
    if room < dataset.width:
        raise UsageError(
            f"max_length={max_length!r} must be a whole number of at least {len(layout)} for {dataset.name!r}: "
            "special tokens and one token of each text"
        )
    columns = [tokenizer.ids([texts[which] for texts in dataset.texts]) for which in range(dataset.width)]
    for number, tokens in enumerate(zip(*columns, strict=True)):
        lengths = [len(part) for part in tokens]
        kept = longest_first(lengths, room)
        ids, special, kinds = list[int](), list[int](), list[int]()
        for slot in layout:
            part = tokens[slot.which][: kept[slot.which]] if slot.special is None else [slot.special]
            ids += part
            special += [int(slot.special is not None)] * len(part)
            kinds += [slot.kind] * len(part)
        if not ids:
            raise UsageError(
                f"dataset {dataset.name!r}: texts[{number}] has no tokens with {tokenizer!r}, which adds none of its "
                "own; leave empty texts out"
            )
        yield EncodedText(ids, special, kinds, sum(kept) < sum(lengths))


def longest_first(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens of one or two texts are kept: the longer is cut until both are equal, then both.

    >>> longest_first([9, 3], 10), longest_first([9, 7], 11), longest_first([5, 5], 7)
    ([7, 3], [6, 5], [3, 4])
    """
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    shorter = int(lengths[1] < lengths[0])
    kept = [0, 0]
    kept[shorter] = min(lengths[shorter], room // 2)
    kept[1 - shorter] = room - kept[shorter]
    return kept


def _padded(rows: Sequence[Sequence[int]], value: int, side: str) -> Tensor:
    """Rows of one length, # (rows, longest) of int64."""
    longest = max(map(len, rows))
    table = np.full((len(rows), longest), value, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, slice(len(row)) if side == "right" else slice(longest - len(row), None)] = row
    return torch.from_numpy(table)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class LengthOrder:
    """An epoch's batches, in the order in which they are to be used.

    Arguments:
        batches: the numbers of the examples of each, # (batch,) of int64; one may be smaller than the others.
        padding: the share of padding among all tokens if each batch is padded to its own longest.
        padding_of_all: the same if all examples are padded to the longest of all, for comparison.
    """

    batches: tuple[NDArray[np.int64], ...]
    padding: float
    padding_of_all: float


def length_order(
    lengths: Sequence[int] | NDArray[np.integer] | Tensor, batch_size: int, seed: int, *, pool: int = 100
) -> LengthOrder:
    """Batches of examples of similar length, in random order: every example once.

    Examples are shuffled and dealt into pools of ``pool`` batches; each pool is sorted by length (equal lengths stay
    shuffled) and cut into batches; then all batches are shuffled. Another seed gives other batches, so give each epoch
    its own. A larger pool leaves less padding, and batches that differ less from epoch to epoch.

    Share of padding = 1 - sum of lengths / sum over batches of (size * longest).

    >>> order = length_order([9, 2, 8, 3, 2, 9], batch_size=2, seed=0)
    >>> sorted(sorted(batch.tolist()) for batch in order.batches), round(order.padding, 3)
    ([[0, 5], [1, 4], [2, 3]], 0.132)

    Arguments:
        lengths: how many tokens each example has, # (examples,), e.g. ``(ids != 0).sum(1)``.
        batch_size: how many examples a batch has; the last cut may have fewer.
        seed: of both shuffles: the same seed gives the same batches on any machine.
        pool: how many batches are sorted together.
    """
    for name, value, least in (("batch_size", batch_size, 1), ("pool", pool, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise UsageError(f"{name}={value!r} must be a whole number of at least {least}")
    sizes = _checked(lengths)
    shuffled = Stream(seed, "length order of examples").permutation(len(sizes))
    cuts: list[NDArray[np.int64]] = []
    for start in range(0, len(sizes), pool * batch_size):
        dealt = shuffled[start : start + pool * batch_size]
        ordered = dealt[np.argsort(sizes[dealt], kind="stable")]
        cuts += [ordered[at : at + batch_size] for at in range(0, len(ordered), batch_size)]
    turns = Stream(seed, "length order of batches").permutation(len(cuts))
    computed = sum(len(batch) * int(sizes[batch].max()) for batch in cuts)
    return LengthOrder(
        batches=tuple(cuts[turn] for turn in turns),
        padding=1 - int(sizes.sum()) / computed,
        padding_of_all=1 - int(sizes.sum()) / (len(sizes) * int(sizes.max())),
    )


def _checked(lengths: Sequence[int] | NDArray[np.integer] | Tensor) -> NDArray[np.int64]:
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or len(sizes) == 0 or not np.issubdtype(sizes.dtype, np.integer) or sizes.min() < 1:
        shown = f"shape {sizes.shape} of {sizes.dtype}" + (f", least {sizes.min()}" if sizes.size else "")
        raise UsageError(f"lengths has {shown}; give one whole number of at least 1 for each example")
    return sizes.astype(np.int64)
