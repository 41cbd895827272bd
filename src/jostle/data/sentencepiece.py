"""Tokenizers of SentencePiece and of llama2.c, turned into the JSON that the package ``tokenizers`` reads.

Many language models come with ``tokenizer.model`` only, small ones with a ``.bin`` file. Both list pieces with scores:
the two neighbouring pieces whose joined piece has the highest score are joined first (byte-pair encoding; Kudo and
Richardson 2018, arXiv 1808.06226). Characters without a piece become bytes.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.base.errors import UsageError

SUFFIXES = (".model", ".bin")
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
_UNKNOWN, _START, _END = "<unk>", "<s>", "</s>"
_NORMAL, _CONTROL, _UNKNOWN_KIND = 1, 3, 2
_BYTE_PAIRS = 2  # the number of this kind of model in a file of SentencePiece
_PIECES, _TRAINER = 1, 2  # fields of the file
_MODEL_TYPE = 3  # field of its part on training; without it the model is of another kind, unigram


@dataclass(frozen=True)
class ScoredPiece:
    """A piece of a vocabulary: its text, its score, and its kind as SentencePiece numbers them."""

    text: str
    score: float
    kind: int = _NORMAL


def tokenizer_json(path: Path) -> str:
    """The tokenizer in a file of SentencePiece (byte pairs) or of llama2.c, as JSON of the package ``tokenizers``."""
    try:
        pieces = read_llama2c(path) if path.suffix == ".bin" else read_sentencepiece(path)
    except UsageError:
        raise
    except (struct.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        raise UsageError(f"tokenizer {path} cannot be read as a file of SentencePiece or llama2.c") from None
    names = [piece.text for piece in pieces]
    if len(names) < 4 or any(name not in names for name in (_UNKNOWN, _START, _END)):
        raise UsageError(f"tokenizer {path} has no pieces {_UNKNOWN}, {_START} and {_END}; expected those of Llama")
    return _as_json(pieces)


def read_llama2c(path: Path) -> list[ScoredPiece]:
    """The pieces of a ``tokenizer.bin``: the length of the longest, then score, length and bytes of each."""
    content, at, found = path.read_bytes(), 4, list[ScoredPiece]()
    names = {0: _UNKNOWN, 1: _START, 2: _END}
    while at < len(content):
        score, size = struct.unpack_from("<fi", content, at)
        at += 8
        raw = content[at : at + size]
        if size < 0 or len(raw) < size:
            raise ValueError("cut off")
        number, at = len(found), at + size
        text = names.get(number) or raw.decode("utf-8").replace(" ", _SPACE)
        found.append(ScoredPiece(text, score, _CONTROL if number in names else _NORMAL))
    return found


def read_sentencepiece(path: Path) -> list[ScoredPiece]:
    """The pieces of a ``tokenizer.model``, a protocol buffer; one that is not byte pairs is refused."""
    found, kind = list[ScoredPiece](), 1
    for field, value in _fields(path.read_bytes()):
        if field == _PIECES:
            parts = dict(_fields(value))
            found.append(ScoredPiece(parts[1].decode("utf-8"), float(parts.get(2, 0.0)), int(parts.get(3, _NORMAL))))
        elif field == _TRAINER:
            kind = int(dict(_fields(value)).get(_MODEL_TYPE, 1))
    if found and kind != _BYTE_PAIRS:
        raise UsageError(
            f"tokenizer {path} is not of byte pairs; save it as tokenizer.json: "
            "AutoTokenizer.from_pretrained(...).save_pretrained(DIR)"
        )
    return found


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The numbered fields of a protocol buffer: whole numbers, 32-bit reals, and bytes."""
    at = 0
    while at < len(content):
        key, at = _whole(content, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _whole(content, at)
            yield field, value
        elif wire == 5:
            yield field, struct.unpack_from("<f", content, at)[0]
            at += 4
        elif wire == 1:
            at += 8
        elif wire == 2:
            size, at = _whole(content, at)
            if at + size > len(content):
                raise ValueError("cut off")
            yield field, content[at : at + size]
            at += size
        else:
            raise ValueError("unknown kind of field")


def _whole(content: bytes, at: int) -> tuple[int, int]:
    """A whole number in seven bits a byte, lowest first, and the place after it."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _as_json(pieces: list[ScoredPiece]) -> str:
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors
    except ModuleNotFoundError:
        raise UsageError("texts need the package tokenizers: pip install tokenizers") from None
    vocabulary = {piece.text: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(
        models.BPE(vocabulary, _merges(pieces, vocabulary), unk_token=_UNKNOWN, fuse_unk=True, byte_fallback=True)
    )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), normalizers.Replace(" ", _SPACE)])
    backend.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = [piece.text for piece in pieces if piece.kind in (_CONTROL, _UNKNOWN_KIND)]
    backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    backend.post_processor = processors.TemplateProcessing(
        single=f"{_START} $A", pair=f"{_START} $A {_START} $B", special_tokens=[(_START, vocabulary[_START])]
    )
    return str(backend.to_str(pretty=True))


def _merges(pieces: list[ScoredPiece], vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Which neighbours are joined, those first whose joined piece has the highest score."""
    merges = []
    joined = [piece for piece in pieces if piece.kind == _NORMAL and len(piece.text) > 1]
    for piece in sorted(joined, key=lambda piece: -piece.score):
        splits = [(piece.text[:cut], piece.text[cut:]) for cut in range(1, len(piece.text))]
        known = [pair for pair in splits if all(part in vocabulary for part in pair)]
        merges += sorted(known, key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
    return merges
