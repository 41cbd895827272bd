"""From texts to token ids of one length, as a tensor for our own networks or as a mapping for Hugging Face's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.data.dataset import Dataset
from jostle.data.text_dataset import TextDataset
from jostle.data.text_tokenizer import SIDES, TextTokenizer


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
        max_length: most tokens of an example, special ones included. The end of a longer text is cut; of a longer pair
            the end of the longer text, until both are equally long, then of both. The note says how many were cut.
    """
    if tokenizer.pad != 0:
        raise UsageError(
            f"{tokenizer!r} pads with {tokenizer.pad}, but in a tensor of ids 0 is padding; use "
            "jostle.data.encode_mapping, which has a mask, or a tokenizer of jostle.data.train_tokenizer"
        )
    rows = list(encode_rows(dataset, tokenizer, max_length))
    for number, row in enumerate(rows):
        if 0 in row.ids:
            raise UsageError(
                f"dataset {dataset.name!r}: texts[{number}] holds {tokenizer.token_of(0)!r}, which {tokenizer!r} reads "
                "as padding; take it out of the text"
            )
    ids = _pad([row.ids for row in rows], 0, "right")
    cut = sum(row.is_cut for row in rows)
    cut_note = f"{cut:,} of {len(rows):,} examples cut to {max_length} tokens" if cut else ""
    note = "; ".join(filter(None, (dataset.note, cut_note)))
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
        tokenizer: any that has a padding token.
        side: ``right`` or ``left`` for padding; the tokenizer's own if left out.
        token_types: give ``token_type_ids`` too, which BERT uses to tell the texts of a pair apart.
    """
    if tokenizer.pad is None:
        raise UsageError(
            f"{tokenizer!r} has no padding token; name one, for example load_tokenizer(path, pad='<|endoftext|>')"
        )
    side = tokenizer.side if side is None else side
    checks.choice("side", side, SIDES)
    rows = list(encode_rows(dataset, tokenizer, max_length))
    made = {
        "input_ids": _pad([row.ids for row in rows], tokenizer.pad, side),
        "attention_mask": _pad([[1] * len(row.ids) for row in rows], 0, side),
        "special_tokens_mask": _pad([row.special for row in rows], 1, side),
    }
    return made | ({"token_type_ids": _pad([row.kinds for row in rows], 0, side)} if token_types else {})


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


def encode_rows(dataset: TextDataset, tokenizer: TextTokenizer, max_length: int) -> Iterator[EncodedText]:
    """Each example as token ids, cut to ``max_length``, not padded."""
    layout = tokenizer.layout(dataset.width)
    hint = f" for {dataset.name!r}: special tokens and one token of each text"
    room = checks.whole("max_length", max_length, least=len(layout), hint=hint) - len(layout) + dataset.width
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
    """Number of tokens kept of one or two texts: the longer is cut until both are equally long, then both.

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


def _pad(rows: Sequence[Sequence[int]], value: int, side: str) -> Tensor:
    """Rows of one length, # (rows, longest) of int64."""
    longest = max(map(len, rows))
    table = np.full((len(rows), longest), value, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, slice(len(row)) if side == "right" else slice(longest - len(row), None)] = row
    return torch.from_numpy(table)
