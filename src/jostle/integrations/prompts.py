"""Texts as people have them, for models of texts: strings, lists of strings or of token ids.

``read_prompts`` turns them into what the models take, ``network_of`` finds the network in a ``transformers.pipeline``
or in a ``TextNetwork``, and ``Prompts`` keeps the pieces of each text beside its token ids, so that results can be
shown on the text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.data.table import column_of_texts
from jostle.data.text_dataset import TextDataset
from jostle.data.text_encoding import encode_rows
from jostle.data.text_tokenizer import TextTokenizer, load_tokenizer
from jostle.integrations.lexicon import Lexicon
from jostle.integrations.text_network import TextNetwork, reader_of
from jostle.integrations.text_pieces import Piece, cut_into_pieces

_DECODER_IDS = "decoder_input_ids"
_LONGEST = 10**9


@dataclass(frozen=True, eq=False)
class Prompts:
    """Texts as token ids, padded on the right, with the pieces that their tokens stand for.

    ``jostle.measure`` and ``jostle.influence`` take them as inputs.

    >>> prompts = Prompts.of_ids([[5, 6, 7], [8]])
    >>> prompts.inputs["input_ids"].tolist(), prompts.inputs["attention_mask"].tolist()
    ([[5, 6, 7], [8, 0, 0]], [[1, 1, 1], [1, 0, 0]])

    Arguments:
        inputs: ``input_ids`` and ``attention_mask`` (texts, tokens), and ``special_tokens_mask`` where it is known.
        pieces: for each text, its pieces in order.
        vocabulary: the ids of words that a token may be replaced by; None if no tokenizer says it.
        decode: from a token id to the token as it stands in a text; None if no tokenizer says it.
        lexicon: of texts for a function of strings, whose tokens are words; None for token ids.
    """

    inputs: dict[str, Tensor]
    pieces: list[list[Piece]] = field(repr=False)
    vocabulary: Tensor | None = field(default=None, repr=False)
    decode: Callable[[int], str] | None = field(default=None, repr=False)
    lexicon: Lexicon | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.pieces)

    def shown(self, number: int) -> str:
        """The token with this id as it stands in a text."""
        return str(number) if self.decode is None else self.decode(number)

    @classmethod
    def of(cls, texts: str | Iterable[str], tokenizer: Any, *, special: bool = True) -> "Prompts":
        """Texts cut into tokens.

        Arguments:
            texts: one text, or several.
            tokenizer: of transformers or of ``jostle.data``, or the path of a tokenizer file or of a folder with one.
            special: whether the tokenizer adds its special tokens, such as the start of a text.
        """
        listed = _listed(texts)
        if isinstance(tokenizer, str | Path):
            tokenizer = load_tokenizer(tokenizer)
        if isinstance(tokenizer, TextTokenizer):
            return _by_own(listed, tokenizer, special)
        if not callable(tokenizer):
            raise UsageError(
                f"tokenizer of type {type(tokenizer).__name__} cannot be used: give one of transformers, one of "
                "jostle.data, or the path of a tokenizer.json"
            )
        return _by_transformers(listed, tokenizer, special)

    @classmethod
    def of_words(cls, texts: str | Iterable[str]) -> "Prompts":
        """Texts cut into words, for a function of strings.

        >>> Prompts.of_words(["A dull film.", "Fun!"]).inputs["attention_mask"].sum(dim=1).tolist()
        [3, 1]
        """
        lexicon = Lexicon(_listed(texts))
        pieces = [[Piece(lexicon.pieces[one], (at,)) for at, one in enumerate(row)] for row in lexicon.rows]
        words = torch.tensor(lexicon.words)
        return cls(_padded(lexicon.rows), pieces, words, lambda number: lexicon.pieces[number].strip(), lexicon)

    @classmethod
    def of_ids(cls, rows: Sequence[Sequence[int]]) -> "Prompts":
        """Texts that are token ids already, of any lengths."""
        if not isinstance(rows, Iterable):
            raise checks.wrong("prompts", rows, "lists of token ids, for example [[5, 6, 7], [8]]")
        checked = [_checked_ids(number, row) for number, row in enumerate(rows)]
        return cls(_padded(checked), [[Piece(f"{one} ", (at,)) for at, one in enumerate(row)] for row in checked])


def network_of(model: Any) -> Any:
    """The network in a ``TextNetwork`` or in a ``transformers.pipeline``; any other model as it is."""
    if isinstance(model, TextNetwork):
        return model.network
    held = getattr(model, "model", None)
    is_pipeline = not isinstance(model, nn.Module) and isinstance(held, nn.Module) and hasattr(model, "tokenizer")
    return held if is_pipeline else model


def read_prompts(inputs: Any, models: Iterable[Any]) -> Any:
    """Texts and lists of ids as ``Prompts``, cut by the tokenizer of the first model that has one; others stay.

    Without any tokenizer, models that are no modules are functions of strings, and texts are cut into words. An
    encoder-decoder also gets the first token of its decoder, where inputs have none.

    Arguments:
        inputs: a text, a list, array or column of texts, a list of token ids, a ``TextDataset`` of single texts, a
            table or dataset with one column of texts, or anything else.
        models: those that will be asked.
    """
    models = list(models)
    if type(inputs) not in (str, list, dict, Tensor, Prompts):
        inputs = column_of_texts(inputs)
    if isinstance(inputs, TextDataset):
        if inputs.width != 1:
            raise UsageError(f"{inputs.name} holds pairs of texts: encode them, see jostle.data.encode_mapping")
        inputs = [texts[0] for texts in inputs.texts]
    if _is_texts(inputs):
        cutter = _tokenizer(models)
        inputs = Prompts.of_words(inputs) if cutter is None else Prompts.of(inputs, cutter)
    elif _is_ids(inputs):
        inputs = Prompts.of_ids([inputs] if isinstance(inputs[0], int | np.integer) else inputs)
    start = next((one for one in (_decoder_start(network_of(model)) for model in models) if one is not None), None)
    return inputs if start is None else _with_decoder(inputs, start)


def _is_texts(inputs: Any) -> bool:
    return isinstance(inputs, str) or (
        isinstance(inputs, list | tuple) and bool(inputs) and all(isinstance(one, str) for one in inputs)
    )


def _is_ids(inputs: Any) -> bool:
    if not isinstance(inputs, list | tuple) or not inputs:
        return False
    rows = [inputs] if isinstance(inputs[0], int | np.integer) else inputs
    return all(isinstance(row, list | tuple) and all(isinstance(one, int | np.integer) for one in row) for row in rows)


def _listed(texts: str | Iterable[str]) -> list[str]:
    listed = [texts] if isinstance(texts, str) else list(texts)
    wrong = next((one for one in listed if not isinstance(one, str)), None)
    if wrong is not None or not listed:
        found = "nothing" if wrong is None else type(wrong).__name__
        raise UsageError(f"prompts must be texts, got {found}: give a string or a list of strings")
    return listed


def _checked_ids(number: int, row: Sequence[int]) -> list[int]:
    if (
        not isinstance(row, Sequence | np.ndarray | Tensor)
        or not len(row)
        or any(isinstance(one, bool) or int(one) != one or one < 0 for one in row)
    ):
        raise UsageError(f"prompt {number} must be token ids, whole numbers of at least 0, at least one of them")
    return [int(one) for one in row]


def tokenizer_of(model: Any) -> Any:
    """The tokenizer of a pipeline, or of the folder of a ``TextNetwork``; None if there is none."""
    if isinstance(getattr(model, "folder", None), Path):
        return reader_of(model).tokenizer
    return getattr(model, "tokenizer", None) if network_of(model) is not model else None


def _tokenizer(models: list[Any]) -> Any:
    """The tokenizer of the first model that has one; None if all models are functions of strings."""
    found = [tokenizer_of(model) for model in models]
    known = next((one for one in found if one is not None), None)
    if known is not None:
        return known
    if models and not any(isinstance(model, nn.Module) for model in models):
        return None
    raise UsageError(
        "prompts are texts, and the model has no tokenizer: give a transformers.pipeline, a model of "
        'jostle.integrations.load("hf:DIR"), or prompts as jostle.Prompts.of(texts, tokenizer)'
    )


def _by_own(texts: list[str], tokenizer: TextTokenizer, special: bool) -> Prompts:
    dataset = TextDataset("prompts", tuple((text,) for text in texts), torch.zeros(len(texts), dtype=torch.int64), 1)
    rows = list(encode_rows(dataset, tokenizer, _LONGEST))
    pieces = [cut_into_pieces([text], tokenizer, _LONGEST) for text in texts]
    words, decode = torch.tensor(tokenizer.words()), tokenizer.shown
    if special:
        return Prompts(_padded([row.ids for row in rows], [row.special for row in rows]), pieces, words, decode)
    kept = [[place for place, is_special in enumerate(row.special) if not is_special] for row in rows]
    shown = [_without_special(part) for part in pieces]
    ids = [[row.ids[place] for place in places] for row, places in zip(rows, kept, strict=True)]
    return Prompts(_padded(ids, [[0] * len(part) for part in ids]), shown, words, decode)


def _without_special(pieces: list[Piece]) -> list[Piece]:
    """The pieces of words, their tokens numbered anew."""
    found, count = [], 0
    for piece in pieces:
        if not piece.is_special:
            found.append(Piece(piece.text, tuple(range(count, count + len(piece.tokens))), is_unread=piece.is_unread))
            count += len(piece.tokens)
    return found


def _by_transformers(texts: list[str], tokenizer: Any, special: bool) -> Prompts:
    """As the tokenizer's own call cuts them: names of special tokens in a text are special tokens."""
    is_fast = bool(getattr(tokenizer, "is_fast", False))
    made = tokenizer(texts, add_special_tokens=special, return_special_tokens_mask=True, return_offsets_mapping=is_fast)
    rows, marks = ([list(row) for row in made[key]] for key in ("input_ids", "special_tokens_mask"))
    empty = next((number for number, row in enumerate(rows) if not row), None)
    if empty is not None:
        raise UsageError(f"prompt {empty} has no tokens: leave out empty texts")
    pieces = []
    for number, text in enumerate(texts):
        spans = made["offset_mapping"][number] if is_fast else [None] * len(rows[number])
        pieces.append(_pieces_of(text, rows[number], marks[number], spans, tokenizer))
    added = set(getattr(tokenizer, "all_special_ids", ()))
    words = torch.tensor([number for number in sorted(tokenizer.get_vocab().values()) if number not in added])
    return Prompts(_padded(rows, marks), pieces, words, lambda number: str(tokenizer.decode([number])))


def _pieces_of(text: str, ids: list[int], special: list[int], spans: Sequence[Any], tokenizer: Any) -> list[Piece]:
    found: list[Piece] = []
    end = 0
    for number, (one, is_special, span) in enumerate(zip(ids, special, spans, strict=True)):
        if span is None or is_special:
            found.append(Piece(str(tokenizer.convert_ids_to_tokens(one)), (number,), is_special=bool(is_special)))
            continue
        stop = span[1]
        if stop > end:
            found.append(Piece(text[end:stop], (number,)))  # with the space before it, if the tokenizer left it out
        elif found:
            found[-1] = Piece(found[-1].text, (*found[-1].tokens, number))
        end = max(end, stop)
    return found


def _padded(rows: Sequence[Sequence[int]], special: Sequence[Sequence[int]] | None = None) -> dict[str, Tensor]:
    """Token ids and masks, padded on the right with 0, which the mask hides."""
    width = max(map(len, rows))

    def table(parts: Sequence[Sequence[int]], fill: int) -> Tensor:
        return torch.tensor([[*part, *[fill] * (width - len(part))] for part in parts])

    made = {"input_ids": table(rows, 0), "attention_mask": table([[1] * len(row) for row in rows], 0)}
    return made if special is None else made | {"special_tokens_mask": table(special, 1)}


def _decoder_start(network: Any) -> int | None:
    """The first token of the decoder of an encoder-decoder that generates; None for other networks."""
    inner = getattr(network, "network", network)
    config = getattr(network, "config", None)
    generates = type(inner).__name__.endswith("ForConditionalGeneration")
    if not generates or not getattr(config, "is_encoder_decoder", False):
        return None
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    start = next((one for one in (getattr(config, name, None) for name in names) if isinstance(one, int)), None)
    if start is None:
        raise UsageError("the model does not say with which token its decoder starts: give decoder_input_ids")
    return start


def _with_decoder(inputs: Any, start: int) -> Any:
    held = inputs.inputs if isinstance(inputs, Prompts) else inputs
    if isinstance(held, Tensor):
        held = {"input_ids": held}
    if not isinstance(held, Mapping) or _DECODER_IDS in held:
        return inputs
    count = len(next(iter(held.values())))
    made = {**held, _DECODER_IDS: torch.full((count, 1), start)}
    return replace(inputs, inputs=made) if isinstance(inputs, Prompts) else made
