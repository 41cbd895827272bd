"""A pretrained network of texts: token ids in, answers out; and how texts become its token ids."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.base.files import parse_json
from jostle.data.text_dataset import TextDataset
from jostle.data.text_encoding import encode_mapping, encode_rows
from jostle.data.text_tokenizer import TextTokenizer, load_tokenizer, tokenizer_file
from jostle.integrations.text_pieces import Piece, cut_into_pieces
from jostle.models.text_model import TextModel

Task = Literal["classes", "features", "next-token", "labels", "answers"]

_POSITION_TABLES = ("position_embeddings", "wpe", "embed_positions")
_USUAL_LENGTH = 512  # for a model that sets no limit
_NO_LIMIT = 10**6  # tokenizers without a limit of their own write 10^30


class TextNetwork(nn.Module):
    """A network of transformers as ``jostle.measure`` takes it, in eval mode, with its folder and classes.

    Classifiers, encoders without a classifier, language models, encoder-decoders and token classifiers.

    Arguments:
        network: called with ``input_ids`` and ``attention_mask`` (batch, tokens), and other inputs that it takes.
        folder: of its tokenizer; None if there is none.
        source: the spec it was made from, for messages.
        task: what it answers with: ``classes``, one class a text; ``features`` of a text; ``next-token``, the next
            token after each token, or after each token of its decoder; ``labels``, a class for each token;
            or ``answers``, the most likely of several answers after a text.
        names: of the ``answers``.
    """

    def __init__(
        self,
        network: nn.Module,
        folder: Path | None = None,
        source: str = "model",
        *,
        task: Task = "classes",
        names: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.network, self.folder, self.source, self.task, self._names = network, folder, source, task, tuple(names)
        self.eval()

    @property
    def has_head(self) -> bool:
        """Whether it predicts something; else it answers with features of a text."""
        return self.task != "features"

    @property
    def config(self) -> Any:
        """The network's own configuration."""
        return getattr(self.network, "config", None)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes of texts in the order of the logits; empty if texts have no class."""
        if self.task == "answers":
            return self._names
        names = getattr(self.config, "id2label", None) or {}
        return tuple(str(names[number]) for number in sorted(names)) if self.task == "classes" else ()

    @property
    def has_names(self) -> bool:
        """Whether somebody named the classes: LABEL_0 is not a name."""
        return bool(self.classes) and not all(re.fullmatch(r"LABEL_\d+", name) for name in self.classes)

    def get_input_embeddings(self) -> nn.Module:
        """The table of word vectors."""
        words: nn.Module = self.network.get_input_embeddings()  # type: ignore[operator]
        return words

    def forward(self, *given: Any, **named: Any) -> Any:
        """The answer of the network."""
        return self.network(*given, **named)

    def extra_repr(self) -> str:
        """The settings that the layers below do not show."""
        return f"source={self.source!r}, classes={self.classes}"


@dataclass(frozen=True)
class TextReader:
    """Turns texts into the inputs of a model.

    Arguments:
        tokenizer: cuts texts into tokens.
        max_length: most tokens of an example, special ones included.
        token_types: whether the model takes, as BERT does, the number of the text of a pair that a token belongs to.
    """

    tokenizer: TextTokenizer
    max_length: int
    token_types: bool = False

    def encode(self, dataset: TextDataset) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask``, ``special_tokens_mask``, for some models of pairs ``token_type_ids``."""
        types = self.token_types and dataset.width > 1
        return encode_mapping(dataset, self.tokenizer, self.max_length, token_types=types)

    def count_cut(self, dataset: TextDataset, encoded: Mapping[str, Tensor]) -> int:
        """Number of examples with more than ``max_length`` tokens, whose ends are not read."""
        full = (encoded["attention_mask"].sum(dim=1) == self.max_length).nonzero()[:, 0].numpy()
        rows = encode_rows(dataset.take(full), self.tokenizer, self.max_length) if len(full) else ()
        return sum(row.is_cut for row in rows)

    def pieces(self, texts: tuple[str, ...]) -> list[Piece]:
        """One example as it is shown, piece by piece."""
        return cut_into_pieces(texts, self.tokenizer, self.max_length)


def reader_of(
    model: Any, *, name: str = "model", tokenizer: str | Path | None = None, max_length: int | None = None
) -> TextReader:
    """How a model reads texts: with the tokenizer in its own folder, or with one that is given.

    The most tokens of a text are the number of positions of the model, or fewer if the configuration of the tokenizer
    says so, or 512 if neither sets a limit.

    Arguments:
        model: a ``TextNetwork``, a text network of ``jostle.models``, or another network of texts.
        name: of the model in messages.
        tokenizer: a tokenizer.json or a folder with one; by default that of the ``TextNetwork``'s folder.
        max_length: a smaller limit.
    """
    place = Path(tokenizer) if tokenizer is not None else getattr(model, "folder", None)
    if place is None:
        raise UsageError(
            f"{name} does not say how it reads texts: give the tokenizer it was trained with, --tokenizer FILE "
            "(a tokenizer.json, or a folder that holds one)"
        )
    if place.is_dir() and not tokenizer_file(place).is_file():
        raise UsageError(
            f"{name}: the folder {place} has no tokenizer.json, so its texts cannot be cut into tokens; save the "
            "tokenizer there, AutoTokenizer.from_pretrained(...).save_pretrained(DIR), or give --tokenizer FILE"
        )
    network = model.network if isinstance(model, TextNetwork) else model
    config = getattr(network, "config", None)
    reads_tokens = isinstance(model, TextNetwork) and model.task in ("next-token", "labels", "answers")
    words = _load_tokenizer(place, config, isinstance(network, TextModel), reads_tokens)
    limit = min(_count_positions(network, config), _read_limit(place))
    longest = limit if limit < _NO_LIMIT else _USUAL_LENGTH
    if max_length is not None and not 1 <= max_length <= longest:
        raise UsageError(f"--max-length {max_length} must be from 1 to {longest}, the most that {name} reads")
    return TextReader(words, max_length or longest, _takes_types(network, config))


def _load_tokenizer(place: Path, config: Any, is_ours: bool, reads_tokens: bool) -> TextTokenizer:
    """The tokenizer; if it has no padding token, the model's padding token or its end of text is used."""
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
    if reads_tokens:  # it has a mask, and answers at padding are not read: any token will do
        return load_tokenizer(place, pad=words.token_of(0))
    raise UsageError(f"{words!r} has no padding token and the model names none; add pad_token to tokenizer_config.json")


def _count_positions(network: Any, config: Any) -> int:
    """The number of positions of a network."""
    if isinstance(network, TextModel):
        return network.embeddings.max_length
    found = []
    for path, module in network.named_modules() if isinstance(network, nn.Module) else ():
        if isinstance(module, nn.Embedding) and path.rpartition(".")[2] in _POSITION_TABLES:
            before = int(getattr(module, "offset", 0)) if module.padding_idx is None else module.padding_idx + 1
            found.append(module.num_embeddings - before)
    written = [getattr(config, key, None) for key in ("max_position_embeddings", "n_positions")]
    found = found or [number for number in written if isinstance(number, int) and number > 0]
    return min(found, default=_NO_LIMIT)


def _read_limit(place: Path) -> int:
    """The most tokens that ``tokenizer_config.json`` allows."""
    file = (place if place.is_dir() else place.parent) / "tokenizer_config.json"
    try:
        number = parse_json(file.read_text(encoding="utf-8")).get("model_max_length")
    except (OSError, ValueError, AttributeError):
        number = None  # the tokenizer itself reports a broken file
    return int(number) if isinstance(number, int | float) and 0 < number < _NO_LIMIT else _NO_LIMIT


def _takes_types(network: Any, config: Any) -> bool:
    has_types = (getattr(config, "type_vocab_size", 0) or 0) > 1
    return has_types and "token_type_ids" in inspect.signature(network.forward).parameters
