"""Tokenizers, from a text to token ids: loaded from a JSON file or a Hugging Face folder, or trained on texts.

The file has the format ``tokenizer.json`` of the package ``tokenizers``, which does the work and is imported when a
tokenizer is made. ``text_encoding.py`` applies a tokenizer to whole datasets.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.files import parse_json, read_text, write_text
from jostle.data import sentencepiece
from jostle.data.text_dataset import TextDataset

if TYPE_CHECKING:
    from tokenizers import Tokenizer


SIDES = ("right", "left")
PAD, UNKNOWN, START, SEPARATOR = SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # ids 0, 1, 2, 3
KINDS = ("bpe", "wordpiece")
_USUAL_PADS = ("<pad>", "[PAD]")
_PROBE = "a"
_AT_ONCE = 1024  # texts handed over together: the package returns much more than ids for each
_BYTES = 256
_LEAST = {"bpe": _BYTES + len(SPECIAL), "wordpiece": 100}
_MOST_CHARACTERS = 1000
_INSIDE = "##"  # before a piece that does not begin a word
_LEAST_OFTEN = 2  # a piece that occurs once says nothing about the next text


@dataclass(frozen=True)
class Slot:
    """A part of an encoded example: one special token, or all tokens of one of its texts.

    Arguments:
        special: the id of the special token; None for a text.
        which: which text, 0 or 1.
        kind: the token type of these tokens, as BERT numbers the two texts of a pair.
    """

    special: int | None
    which: int
    kind: int


class TextTokenizer:
    """A tokenizer as its JSON describes it.

    Names of special tokens in a text are read as ordinary text, so that no text can contain a separator. Only a
    tokenizer of whole words may still have such a name among its words.

    Arguments:
        text: the JSON; its entry ``padding`` names the padding token.
        name: of the tokenizer in error messages.
    """

    def __init__(self, text: str, name: str = "tokenizer") -> None:
        self.json, self.name = text, name
        self._backend = _parse(text, name)
        padding = self._backend.padding
        self.pad: int | None = padding["pad_id"] if padding else None
        self.side: str = padding["direction"] if padding else "right"
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = True
        try:
            self._layouts = {width: _read_layout(self._backend, width, name) for width in (1, 2)}
        except UsageError:
            raise
        except Exception as error:  # as for a file: a vocabulary without the token for unknown words, ...
            raise UsageError(f"tokenizer {name} cannot be used: {' '.join(str(error).split())}") from None

    @property
    def vocabulary(self) -> int:
        """Number of rows that an embedding needs: one more than the largest id."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def id_of(self, token: str) -> int | None:
        """The id of a token; None if there is no such token."""
        return self._backend.token_to_id(token)

    def token_of(self, number: int) -> str | None:
        """The token with an id; None if there is none."""
        return self._backend.id_to_token(number)

    def words(self) -> list[int]:
        """All ids that stand for a token and are not special ones."""
        added = {entry["id"] for entry in json.loads(self.json).get("added_tokens", []) if entry.get("special")}
        ids = [number for number in range(self.vocabulary) if number not in added]
        return [number for number in ids if self.token_of(number) is not None]

    def shown(self, number: int) -> str:
        """The token with an id as it stands in a text; a space before it is kept."""
        before, both = (self._backend.decode(ids, skip_special_tokens=False) for ids in ([number], [number, number]))
        return str(both[: len(both) - len(before)] and both[len(before) :])

    def layout(self, width: int) -> tuple[Slot, ...]:
        """The parts of an example of ``width`` texts, in order, e.g. ``<s> a </s></s> b </s>``."""
        return self._layouts[width]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, without special tokens and without a limit."""
        found: list[list[int]] = []
        for start in range(0, len(texts), _AT_ONCE):
            part = list(texts[start : start + _AT_ONCE])
            check_texts(part, start)
            try:
                encoded = self._backend.encode_batch_fast(part, add_special_tokens=False)
            except Exception as error:  # of a vocabulary that lacks what its own rules need
                raise UsageError(f"tokenizer {self.name} cannot be used: {' '.join(str(error).split())}") from None
            found += [one.ids for one in encoded]
        return found

    def save(self, path: str | Path) -> None:
        """Write the JSON file; ``load_tokenizer`` reads it back, and so do other tools that take a tokenizer.json."""
        write_text(path, self.json)

    def fingerprint(self) -> str:
        """A hash of the whole file, for records: another tokenizer, another fingerprint."""
        return hashlib.sha256(self.json.encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"TextTokenizer({self.name!r}, vocabulary={self.vocabulary}, pad={self.pad}, side={self.side!r})"


def load_tokenizer(path: str | Path, *, pad: str | None = None, side: str | None = None) -> TextTokenizer:
    """The tokenizer in a file, or in the file ``tokenizer.json`` or ``tokenizer.model`` of a Hugging Face folder.

    Files of SentencePiece (``.model``) and of llama2.c (``.bin``) are read too, see ``sentencepiece``.

    The padding token and its side are taken from the arguments, else from ``tokenizer_config.json`` and
    ``special_tokens_map.json`` next to the file, else from the file, else they are ``<pad>`` or ``[PAD]`` on the right.

    Arguments:
        path: the file or the folder.
        pad: the padding token, for tokenizers without one, e.g. ``<|endoftext|>`` of GPT-2.
        side: ``right`` or ``left``: where padding goes.
    """
    path = Path(path).expanduser()
    file = tokenizer_file(path)
    if side is not None:
        checks.choice("side", side, SIDES)
    if not file.is_file() and path.is_dir():
        raise UsageError(f"tokenizer folder {path} holds no tokenizer.json; convert the tokenizer to its fast form")
    is_pieces = file.suffix in sentencepiece.SUFFIXES and file.is_file()
    text = sentencepiece.tokenizer_json(file) if is_pieces else read_text(file, "tokenizer")
    backend = _parse(text, str(file))
    saved = _read_settings(file)
    written = backend.padding or {}
    known = [name for name in _USUAL_PADS if backend.token_to_id(name) is not None]
    token = pad or saved.get("pad_token") or written.get("pad_token") or next(iter(known), None)
    where = side or saved.get("padding_side") or written.get("direction") or "right"
    checks.choice(f"padding_side of tokenizer {file}", where, SIDES)
    if token is not None:
        number = backend.token_to_id(token)
        if number is None:
            raise UsageError(f"tokenizer {file} has no token {token!r} to pad with; name one it has: pad=...")
        backend.enable_padding(direction=where, pad_id=number, pad_token=token)
    return TextTokenizer(backend.to_str(pretty=True), str(file))


def tokenizer_file(path: Path) -> Path:
    """The file of a tokenizer: the path itself, or the file that a folder holds, ``tokenizer.json`` if neither."""
    if not path.is_dir():
        return path
    files = [path / name for name in ("tokenizer.json", "tokenizer.model")]
    return next((file for file in files if file.is_file()), files[0])


def train_tokenizer(
    texts: TextDataset | Iterable[str | tuple[str, ...]], vocabulary: int = 8000, kind: str = "bpe"
) -> TextTokenizer:
    """A tokenizer trained on texts. The same texts give the same tokenizer, byte for byte.

    ``bpe`` merges the most frequent pair of neighbouring pieces again and again, starting from bytes (Sennrich, Haddow
    and Birch 2016, arXiv 1508.07909; bytes as in Radford et al. 2019): every text has tokens, none is unknown, and
    upper case, spaces and emoji are kept. ``wordpiece`` does the same starting from characters, after lower-casing and
    taking accents off, and reads a word greedily from the left (Schuster and Nakajima 2012; as in BERT): a character
    that is not among the 1,000 most frequent makes its word unknown.

    The special tokens are padding 0, unknown 1, start 2 and separator 3; an example is ``<s> a </s>`` or, for a pair,
    ``<s> a </s></s> b </s>``, as in RoBERTa and paper 1 (2403.06925, section 6).

    >>> tokenizer = train_tokenizer(["low lower lowest", "slow slower slowest"] * 5, vocabulary=280)
    >>> tokenizer.vocabulary, [tokenizer.token_of(number) for number in tokenizer.ids(["low"])[0]]
    (273, ['Ġlow'])

    Arguments:
        texts: a dataset (use its training split), or texts or tuples of texts.
        vocabulary: most tokens, special ones included; few texts give fewer. At least 260 for ``bpe``, 100 for
            ``wordpiece``.
        kind: ``bpe`` or ``wordpiece``.
    """
    checks.choice("kind of tokenizer", kind, KINDS)
    checks.whole("vocabulary", vocabulary, least=_LEAST[kind], hint=f" for kind={kind!r}")
    flat = _flatten(texts)
    backend = _train_byte_pairs(flat, vocabulary) if kind == "bpe" else _train_word_pieces(flat, vocabulary)
    _finish(backend)
    return TextTokenizer(backend.to_str(pretty=True), f"{kind} of {len(flat):,} texts")


def check_texts(texts: Sequence[str], start: int = 0) -> None:
    """Raise unless all are texts that can be written as UTF-8; ``start`` is the number of the first."""
    for number, text in enumerate(texts, start):
        if not isinstance(text, str):
            raise UsageError(f"texts[{number}] is {type(text).__name__}; expected a text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"texts[{number}] holds half a character (\\u{ord(text[error.start]):04x}) at {error.start}; decode "
                "the file it came from as UTF-8"
            ) from None


def _parse(text: str, name: str) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UsageError("tokenizers need the package tokenizers: pip install tokenizers") from None
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # the package raises nothing more special for a foreign or damaged file
        reason = " ".join(str(error).split())
        raise UsageError(f"tokenizer {name} cannot be read as a tokenizer.json ({reason})") from None


def _read_settings(file: Path) -> dict[str, Any]:
    """Padding token and side from the files next to a Hugging Face tokenizer."""
    found: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if not (file.parent / name).is_file():
            continue
        try:
            written = parse_json(read_text(file.parent / name, "tokenizer"))
        except json.JSONDecodeError as error:
            raise UsageError(f"tokenizer file {file.parent / name} is not JSON ({error})") from None
        for key in ("pad_token", "padding_side"):
            value = written.get(key) if isinstance(written, dict) else None
            value = value.get("content") if isinstance(value, dict) else value  # a token may be written with its rules
            if isinstance(value, str):
                found[key] = value
    return found


def _read_layout(backend: "Tokenizer", width: int, name: str) -> tuple[Slot, ...]:
    """The order of texts and special tokens, read off an encoded probe."""
    size = len(backend.encode(_PROBE, add_special_tokens=False).ids)
    probe = backend.encode(_PROBE, _PROBE if width == 2 else None)
    slots, seen = [], 0
    for token, is_special, kind in zip(probe.ids, probe.special_tokens_mask, probe.type_ids, strict=True):
        if is_special:
            slots.append(Slot(token, 0, kind))
            continue
        if size and seen % size == 0:
            slots.append(Slot(None, seen // size, kind))
        seen += 1
    if size == 0 or seen != width * size:
        raise UsageError(
            f"tokenizer {name} makes {seen} tokens of {width} x {_PROBE!r}; expected the same number for each"
        )
    return tuple(slots)


def _flatten(texts: TextDataset | Iterable[str | tuple[str, ...]]) -> list[str]:
    if isinstance(texts, str):
        raise UsageError("texts must be a dataset or a list of texts, got one text; write [text]")
    examples = texts.texts if isinstance(texts, TextDataset) else texts
    flat = [text for example in examples for text in ((example,) if isinstance(example, str) else example)]
    check_texts(flat)
    if not any(text.strip() for text in flat):
        raise UsageError(f"texts holds {len(flat)} texts and no word in them; give texts to learn from")
    return flat


def _train_byte_pairs(texts: list[str], vocabulary: int) -> "Tokenizer":
    tokenizers = _import_tokenizers()
    from tokenizers import decoders, models, pre_tokenizers, trainers

    backend = tokenizers(models.BPE())
    # A space goes before the first word, so that a word is the same token there as elsewhere.
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=_LEAST_OFTEN,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return backend


def _train_word_pieces(texts: list[str], vocabulary: int) -> "Tokenizer":
    tokenizers = _import_tokenizers()
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    backend = tokenizers(models.WordPiece(unk_token=UNKNOWN))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    characters, inside = _frequent_characters(backend, texts, most=min(_MOST_CHARACTERS, vocabulary // 4))
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        min_frequency=_LEAST_OFTEN,
        # Pieces inside words are named as special tokens, because the package numbers them in the random order of a
        # hash table otherwise, and ties between merges are settled by number: each training gave another vocabulary.
        special_tokens=[*SPECIAL, *(_INSIDE + character for character in inside)],
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        continuing_subword_prefix=_INSIDE,
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    learned = json.loads(backend.to_str())["model"]["vocab"]
    made = tokenizers(models.WordPiece(learned, unk_token=UNKNOWN))  # without those special tokens
    made.normalizer, made.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    made.decoder = decoders.WordPiece(prefix=_INSIDE)
    return made


def _frequent_characters(backend: "Tokenizer", texts: list[str], most: int) -> tuple[list[str], list[str]]:
    """The most frequent characters, sorted, and those that occur inside words."""
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    for text in texts:
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text)):
            counts.update(word)
            inside.update(word[1:])
    kept = sorted(sorted(counts, key=lambda character: (-counts[character], character))[:most])
    return kept, [character for character in kept if character in inside]


def _finish(backend: "Tokenizer") -> None:
    """Add special tokens, the order of an example's parts, and padding."""
    from tokenizers import AddedToken, processors

    backend.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    ids = [(token, SPECIAL.index(token)) for token in (START, SEPARATOR)]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {SEPARATOR}", pair=f"{START} $A {SEPARATOR} {SEPARATOR} $B {SEPARATOR}", special_tokens=ids
    )
    backend.enable_padding(direction="right", pad_id=SPECIAL.index(PAD), pad_token=PAD)


def _import_tokenizers() -> "type[Tokenizer]":
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UsageError("train_tokenizer needs the package tokenizers: pip install tokenizers") from None
    return Tokenizer
