"""A text cut into the pieces that its tokens stand for, so that it can be shown as people wrote it.

How a model is given texts: which tokenizer cuts them, how many tokens it can take, and what else it wants.

A pretrained network of texts: token ids in, logits out, and where its tokenizer is.
"""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.data.text_dataset import TextDataset
from jostle.data.text_encoding import encode_mapping, encode_rows, longest_first
from jostle.data.text_tokenizer import TextTokenizer, load_tokenizer
from jostle.models.text_model import TextModel

Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """A part of an example as it is shown.

    Arguments:
        text: as it was written; of a special token its name.
        tokens: numbers of the tokens it stands for, from 0 in its example; several where tokens share a character, none
            for what lies between tokens.
        is_special: whether the tokenizer added it.
        is_unread: whether it comes after the last token that the model is given.
    """

    text: str
    tokens: tuple[int, ...] = ()
    is_special: bool = False
    is_unread: bool = False


def pieces(texts: Sequence[str], tokenizer: TextTokenizer, max_length: int) -> list[Piece]:
    """One example, cut as ``jostle.data.encode_mapping`` cuts it; all pieces of a text together are the text.

    >>> from jostle.data import train_tokenizer
    >>> tokenizer = train_tokenizer(["low lower lowest", "slow slower slowest"] * 5, vocabulary=280)
    >>> [(piece.text, piece.tokens) for piece in pieces(["low slow"], tokenizer, 9)]
    [('<s>', (0,)), ('low', (1,)), (' slow', (2,)), ('</s>', (3,))]

    Arguments:
        texts: one text, or the two of a pair.
        tokenizer: whose tokens.
        max_length: most tokens of an example, special ones included.
    """
    layout = tokenizer.layout(len(texts))
    spans = spans_of(texts, tokenizer)
    room = max_length - sum(slot.special is not None for slot in layout)
    kept = longest_first([len(part) for part in spans], room)
    found: list[Piece] = []
    count = 0
    for slot in layout:
        if slot.special is not None:
            found.append(Piece(tokenizer.token_of(slot.special) or f"<{slot.special}>", (count,), is_special=True))
            count += 1
            continue
        found += _cut(texts[slot.which], spans[slot.which], kept[slot.which], count)
        count += kept[slot.which]
    return found


def spans_of(texts: Sequence[str], tokenizer: TextTokenizer) -> list[list[Span]]:
    """For each text, the characters (from, to) that each of its tokens stands for, special tokens left out."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UsageError("texts need the package tokenizers: pip install tokenizers") from None
    backend = Tokenizer.from_str(tokenizer.json)
    backend.no_padding()
    backend.no_truncation()
    backend.encode_special_tokens = True  # names of special tokens are text, as in TextTokenizer
    return [one.offsets for one in backend.encode_batch(list(texts), add_special_tokens=False)]


def _cut(text: str, spans: Sequence[Span], kept: int, first: int) -> list[Piece]:
    """The pieces of one text, whose first token has the number ``first`` and of whose tokens ``kept`` are read."""
    found: list[Piece] = []
    end = 0
    for number, (start, stop) in enumerate(spans[:kept], first):
        if start > end:
            found.append(Piece(text[end:start]))
            end = start
        if stop > end or not found:
            found.append(Piece(text[end:stop], (number,)))
        else:  # a token without a character of its own, as of an emoji in several bytes
            found[-1] = Piece(found[-1].text, (*found[-1].tokens, number))
        end = max(end, stop)
    if end < len(text):
        found.append(Piece(text[end:], is_unread=kept < len(spans)))
    return found


_POSITION_TABLES = ("position_embeddings", "wpe", "embed_positions")
_USUAL_LENGTH = 512  # for a model that sets no limit
_NO_LIMIT = 10**6  # tokenizers without a limit of their own write 10^30


@dataclass(frozen=True)
class TextReader:
    """From texts to what a model takes.

    Arguments:
        tokenizer: cuts texts into tokens.
        max_length: most tokens of an example, special ones included.
        token_types: whether the model is told which text of a pair a token is of, as BERT is.
    """

    tokenizer: TextTokenizer
    max_length: int
    token_types: bool = False

    def encode(self, dataset: TextDataset) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask``, ``special_tokens_mask``, of pairs perhaps ``token_type_ids``."""
        types = self.token_types and dataset.width > 1
        return encode_mapping(dataset, self.tokenizer, self.max_length, token_types=types)

    def count_cut(self, dataset: TextDataset, encoded: Mapping[str, Tensor]) -> int:
        """How many examples have more than ``max_length`` tokens, so that their ends are not read."""
        full = (encoded["attention_mask"].sum(dim=1) == self.max_length).nonzero()[:, 0].numpy()
        rows = encode_rows(dataset.take(full), self.tokenizer, self.max_length) if len(full) else ()
        return sum(row.is_cut for row in rows)

    def pieces(self, texts: tuple[str, ...]) -> list[Piece]:
        """One example as it is shown, piece by piece."""
        return pieces(texts, self.tokenizer, self.max_length)


def reader_of(
    model: Any, *, name: str = "model", tokenizer: str | Path | None = None, max_length: int | None = None
) -> TextReader:
    """How a model reads texts: by the tokenizer in its own folder, or by one that is given.

    The most tokens of a text are those for which the model has positions, or fewer if its tokenizer's configuration
    says so, or 512 if neither says anything.

    Arguments:
        model: a ``TextClassifier``, a text network of ``jostle.models``, or another network of texts.
        name: how messages call it.
        tokenizer: a tokenizer.json or a folder with one; by default that of the ``TextClassifier``'s folder.
        max_length: use no more tokens than these.
    """
    place = Path(tokenizer) if tokenizer is not None else getattr(model, "folder", None)
    if place is None:
        raise UsageError(
            f"{name} does not say how it reads texts: give the tokenizer it was trained with, --tokenizer FILE "
            "(a tokenizer.json, or a folder that holds one)"
        )
    if place.is_dir() and not (place / "tokenizer.json").is_file():
        raise UsageError(
            f"{name}: the folder {place} has no tokenizer.json, so its texts cannot be cut into tokens; save the "
            "tokenizer there, AutoTokenizer.from_pretrained(...).save_pretrained(DIR), or give --tokenizer FILE"
        )
    network = model.network if isinstance(model, TextClassifier) else model
    config = getattr(network, "config", None)
    words = _with_padding(place, config, isinstance(network, TextModel))
    limit = min(_places(network, config), _configured(place))
    longest = limit if limit < _NO_LIMIT else _USUAL_LENGTH
    if max_length is not None and not 1 <= max_length <= longest:
        raise UsageError(f"--max-length {max_length} must be from 1 to {longest}, the most that {name} reads")
    return TextReader(words, max_length or longest, _takes_types(network, config))


def _with_padding(place: Path, config: Any, is_ours: bool) -> TextTokenizer:
    """The tokenizer; one without padding pads with what the model calls so, or with its end of text."""
    words = load_tokenizer(place)
    if is_ours and words.pad != 0:
        raise UsageError(
            f"{words!r} pads with {words.pad}, the networks of jostle.models with 0: is it their tokenizer?"
        )
    if words.pad is not None:
        return words
    for number in (getattr(config, "pad_token_id", None), getattr(config, "eos_token_id", None)):
        token = words.token_of(number) if isinstance(number, int) else None
        if token is not None:
            if getattr(config, "pad_token_id", None) is None:
                config.pad_token_id = number  # a classifier of GPT-2's kind finds the end of a text by it
            return load_tokenizer(place, pad=token)
    raise UsageError(f"{words!r} has no padding token and the model names none; add pad_token to tokenizer_config.json")


def _places(network: Any, config: Any) -> int:
    """The most tokens for which a network has positions."""
    if isinstance(network, TextModel):
        return network.embeddings.max_length
    found = []
    for path, module in network.named_modules() if isinstance(network, nn.Module) else ():
        if isinstance(module, nn.Embedding) and path.rpartition(".")[2] in _POSITION_TABLES:
            before = int(getattr(module, "offset", 0)) if module.padding_idx is None else module.padding_idx + 1
            found.append(module.num_embeddings - before)
    said = [getattr(config, key, None) for key in ("max_position_embeddings", "n_positions")]
    found = found or [number for number in said if isinstance(number, int) and number > 0]
    return min(found, default=_NO_LIMIT)


def _configured(place: Path) -> int:
    """The most tokens that ``tokenizer_config.json`` allows."""
    file = (place if place.is_dir() else place.parent) / "tokenizer_config.json"
    try:
        number = json.loads(file.read_text(encoding="utf-8")).get("model_max_length")
    except (OSError, ValueError, AttributeError):
        number = None  # a file that is broken is an error of the tokenizer's own
    return int(number) if isinstance(number, int | float) and 0 < number < _NO_LIMIT else _NO_LIMIT


def _takes_types(network: Any, config: Any) -> bool:
    has_types = (getattr(config, "type_vocab_size", 0) or 0) > 1
    return has_types and "token_type_ids" in inspect.signature(network.forward).parameters


class TextClassifier(nn.Module):
    """A network of transformers as ``jostle.measure`` takes it, in eval mode, with what belongs to it.

    Arguments:
        network: called with ``input_ids`` and ``attention_mask`` (batch, tokens), and what else it takes.
        folder: where its tokenizer is; None if nowhere.
        source: the spec it was made from, for messages.
        has_head: whether it classifies; else it answers with features of a text.
    """

    def __init__(
        self, network: nn.Module, folder: Path | None = None, source: str = "model", *, has_head: bool = True
    ) -> None:
        super().__init__()
        self.network, self.folder, self.source, self.has_head = network, folder, source, has_head
        self.eval()

    @property
    def config(self) -> Any:
        """The network's own configuration."""
        return getattr(self.network, "config", None)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes in the order of the logits; empty without a head."""
        names = getattr(self.config, "id2label", None) or {}
        return tuple(str(names[number]) for number in sorted(names)) if self.has_head else ()

    @property
    def has_names(self) -> bool:
        """Whether somebody named the classes: LABEL_0 is no name."""
        return bool(self.classes) and not all(re.fullmatch(r"LABEL_\d+", name) for name in self.classes)

    def get_input_embeddings(self) -> nn.Module:
        """The table of word vectors."""
        words: nn.Module = self.network.get_input_embeddings()  # type: ignore[operator]
        return words

    def forward(self, *given: Any, **named: Any) -> Any:
        """What the network answers."""
        return self.network(*given, **named)

    def extra_repr(self) -> str:
        """What the layers below do not show."""
        return f"source={self.source!r}, classes={self.classes}"
