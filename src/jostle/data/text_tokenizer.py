"""From a text to token ids: a tokenizer that is one JSON file, of our own training or of a Hugging Face folder.

The file has the format ``tokenizer.json`` of the package ``tokenizers``, which does the work and is imported when a
tokenizer is made. Here: loading, saving, and how an example is put together of texts and special tokens. Not here:
training (``text_vocabulary.py``) and whole datasets (``text_encoding.py``).
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import UsageError
from jostle.files import read_text, write_text
from jostle.registry import unknown_name

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SIDES = ("right", "left")
_USUAL_PADS = ("<pad>", "[PAD]")
_PROBE = "a"
_AT_ONCE = 1024  # texts handed over together: the package returns much more than ids for each


@dataclass(frozen=True)
class Slot:
    """A part of an encoded example: one special token, or all tokens of one of its texts.

    Arguments:
        special: the id of the special token; nothing for a text.
        which: which text, 0 or 1.
        kind: the token type of all that stands here, as BERT numbers the two texts of a pair.
    """

    special: int | None
    which: int
    kind: int


class TextTokenizer:
    """A tokenizer as its JSON describes it.

    Names of special tokens that occur in a text are read as text, like any other word: what people write becomes no
    separator. Only a tokenizer of whole words may still have such a name among its words.

    Arguments:
        text: the JSON, with what pads in its entry ``padding``.
        name: what error messages call it.
    """

    def __init__(self, text: str, name: str = "tokenizer") -> None:
        self.json, self.name = text, name
        self._backend = _parsed(text, name)
        padding = self._backend.padding
        self.pad: int | None = padding["pad_id"] if padding else None
        self.side: str = padding["direction"] if padding else "right"
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = True
        self._layouts = {width: _layout(self._backend, width, name) for width in (1, 2)}

    @property
    def vocabulary(self) -> int:
        """How many rows an embedding needs: one more than the largest id."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def id_of(self, token: str) -> int | None:
        """The id of a token; nothing if there is no such token."""
        return self._backend.token_to_id(token)

    def token_of(self, number: int) -> str | None:
        """The token with an id; nothing if there is none."""
        return self._backend.id_to_token(number)

    def layout(self, width: int) -> tuple[Slot, ...]:
        """How an example of ``width`` texts is put together, e.g. ``<s> a </s></s> b </s>``."""
        return self._layouts[width]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text, without special tokens and without a limit."""
        found: list[list[int]] = []
        for start in range(0, len(texts), _AT_ONCE):
            part = list(texts[start : start + _AT_ONCE])
            check_texts(part, start)
            found += [one.ids for one in self._backend.encode_batch_fast(part, add_special_tokens=False)]
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
    """The tokenizer in a JSON file, or in the file ``tokenizer.json`` of a Hugging Face folder.

    What pads, and on which side, is taken from the arguments, else from ``tokenizer_config.json`` and
    ``special_tokens_map.json`` beside the file, else from the file, else it is ``<pad>`` or ``[PAD]`` on the right.

    Arguments:
        path: the file or the folder.
        pad: the token that pads, for tokenizers without one, e.g. ``<|endoftext|>`` of GPT-2.
        side: ``right`` or ``left``: where padding goes.
    """
    path = Path(path).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    if side is not None and side not in SIDES:
        raise unknown_name("side", str(side), SIDES)
    if not file.is_file() and path.is_dir():
        raise UsageError(f"tokenizer folder {path} holds no tokenizer.json; convert the tokenizer to its fast form")
    backend = _parsed(read_text(file, "tokenizer"), str(file))
    beside = _settings(file)
    written = backend.padding or {}
    known = [name for name in _USUAL_PADS if backend.token_to_id(name) is not None]
    token = pad or beside.get("pad_token") or written.get("pad_token") or next(iter(known), None)
    where = side or beside.get("padding_side") or written.get("direction") or "right"
    if where not in SIDES:
        raise unknown_name(f"padding_side of tokenizer {file}", where, SIDES)
    if token is not None:
        number = backend.token_to_id(token)
        if number is None:
            raise UsageError(f"tokenizer {file} has no token {token!r} to pad with; name one it has: pad=...")
        backend.enable_padding(direction=where, pad_id=number, pad_token=token)
    return TextTokenizer(backend.to_str(pretty=True), str(file))


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


def _parsed(text: str, name: str) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UsageError("tokenizers need the package tokenizers: pip install tokenizers") from None
    try:
        return Tokenizer.from_str(text)
    except Exception as error:  # the package raises nothing more special for a foreign or damaged file
        reason = " ".join(str(error).split())
        raise UsageError(f"tokenizer {name} cannot be read as a tokenizer.json ({reason})") from None


def _settings(file: Path) -> dict[str, Any]:
    """What the files beside a Hugging Face tokenizer say about padding."""
    found: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if not (file.parent / name).is_file():
            continue
        try:
            written = json.loads(read_text(file.parent / name, "tokenizer"))
        except json.JSONDecodeError as error:
            raise UsageError(f"tokenizer file {file.parent / name} is not JSON ({error})") from None
        for key in ("pad_token", "padding_side"):
            value = written.get(key) if isinstance(written, dict) else None
            value = value.get("content") if isinstance(value, dict) else value  # a token may be written with its rules
            if isinstance(value, str):
                found[key] = value
    return found


def _layout(backend: "Tokenizer", width: int, name: str) -> tuple[Slot, ...]:
    """Read off an encoded probe where texts and special tokens stand."""
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
            f"tokenizer {name} makes {seen} tokens of {width} x {_PROBE!r}; expected {width} or more alike"
        )
    return tuple(slots)
