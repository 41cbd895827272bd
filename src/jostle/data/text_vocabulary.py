"""Training a tokenizer: which pieces of words become tokens. The same texts give the same file, byte for byte."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jostle.data.text_dataset import TextDataset
from jostle.data.text_tokenizer import TextTokenizer, check_texts
from jostle.errors import UsageError
from jostle.registry import unknown_name

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNKNOWN, START, SEPARATOR = SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # ids 0, 1, 2, 3
KINDS = ("bpe", "wordpiece")
_BYTES = 256
_LEAST = {"bpe": _BYTES + len(SPECIAL), "wordpiece": 100}
_MOST_CHARACTERS = 1000
_INSIDE = "##"  # before a piece that does not begin a word
_LEAST_OFTEN = 2  # a piece that occurs once says nothing about the next text


def train_tokenizer(
    texts: TextDataset | Iterable[str | tuple[str, ...]], vocabulary: int = 8000, kind: str = "bpe"
) -> TextTokenizer:
    """A tokenizer for texts like these.

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
        texts: what to learn from: a dataset (use its training split), or texts or tuples of texts.
        vocabulary: at most so many tokens, special ones included; few texts give fewer. At least 260 for ``bpe``, 100
            for ``wordpiece``.
        kind: ``bpe`` or ``wordpiece``.
    """
    if kind not in KINDS:
        raise unknown_name("kind of tokenizer", str(kind), KINDS)
    if not isinstance(vocabulary, int) or isinstance(vocabulary, bool) or vocabulary < _LEAST[kind]:
        raise UsageError(
            f"vocabulary={vocabulary!r} must be a whole number of at least {_LEAST[kind]} for kind={kind!r}"
        )
    flat = _flat(texts)
    backend = _byte_pairs(flat, vocabulary) if kind == "bpe" else _word_pieces(flat, vocabulary)
    _finish(backend)
    return TextTokenizer(backend.to_str(pretty=True), f"{kind} of {len(flat):,} texts")


def _flat(texts: TextDataset | Iterable[str | tuple[str, ...]]) -> list[str]:
    if isinstance(texts, str):
        raise UsageError("texts must be a dataset or a list of texts, got one text; write [text]")
    examples = texts.texts if isinstance(texts, TextDataset) else texts
    flat = [text for example in examples for text in ((example,) if isinstance(example, str) else example)]
    check_texts(flat)
    if not any(text.strip() for text in flat):
        raise UsageError(f"texts holds {len(flat)} texts and no word in them; give texts to learn from")
    return flat


def _byte_pairs(texts: list[str], vocabulary: int) -> "Tokenizer":
    tokenizers = _package()
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


def _word_pieces(texts: list[str], vocabulary: int) -> "Tokenizer":
    tokenizers = _package()
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    backend = tokenizers(models.WordPiece(unk_token=UNKNOWN))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    characters, inside = _characters(backend, texts, most=min(_MOST_CHARACTERS, vocabulary // 4))
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


def _characters(backend: "Tokenizer", texts: list[str], most: int) -> tuple[list[str], list[str]]:
    """The most frequent characters, sorted, and those of them that occur inside words."""
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    for text in texts:
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text)):
            counts.update(word)
            inside.update(word[1:])
    kept = sorted(sorted(counts, key=lambda character: (-counts[character], character))[:most])
    return kept, [character for character in kept if character in inside]


def _finish(backend: "Tokenizer") -> None:
    """Special tokens, how an example is put together, and padding."""
    from tokenizers import AddedToken, processors

    backend.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    ids = [(token, SPECIAL.index(token)) for token in (START, SEPARATOR)]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {SEPARATOR}", pair=f"{START} $A {SEPARATOR} {SEPARATOR} $B {SEPARATOR}", special_tokens=ids
    )
    backend.enable_padding(direction="right", pad_id=SPECIAL.index(PAD), pad_token=PAD)


def _package() -> "type[Tokenizer]":
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UsageError("train_tokenizer needs the package tokenizers: pip install tokenizers") from None
    return Tokenizer
