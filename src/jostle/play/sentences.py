"""The bench of texts, whose tokens are embedded words or pieces of words."""

from collections.abc import Sequence

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.data import TextDataset
from jostle.estimates.request import Request
from jostle.integrations import TextNetwork, TextReader, reader_of
from jostle.perturbations import GaussianNoise
from jostle.play.bench import MOST_TEXT, Bench, Example, Models
from jostle.report.texts import root_mean_square
from jostle.tokens import Embeddings


class SentenceBench(Bench):
    """Texts whose tokens are embedded words, or pieces of words.

    Arguments:
        models: by name, with the same tokens: classifiers, or language models, whose classes are the next tokens.
        texts: to begin with.
        tokenizer: for models that come without their own.
    """

    kind, unit = "sentence", "std of the noise, in units of a typical embedded token"

    def __init__(self, models: Models, texts: Sequence[str], tokenizer: str | None = None) -> None:
        self.reader = _shared_reader(models, tokenizer)
        self._says_tokens = {
            name for name, one in models.items() if isinstance(one, TextNetwork) and one.task == "next-token"
        }
        self._sizes: dict[int, float] = {}
        super().__init__(models, [self.read(text.encode()) for text in texts])
        self.models = {name: one.network if isinstance(one, TextNetwork) else one for name, one in models.items()}

    @property
    def tokens(self) -> Embeddings:
        return Embeddings(special=False)

    def read(self, content: bytes) -> Example:
        text = content.decode("utf-8", errors="replace").strip()
        if not text:
            raise UsageError("write a few words first")
        if len(text) > MOST_TEXT:
            raise UsageError(f"the text has {len(text):,} characters; at most {MOST_TEXT:,} are read")
        dataset = TextDataset("text", ((text,),), torch.zeros(1, dtype=torch.int64), classes=2)
        pieces = [
            {"text": piece.text, "tokens": list(piece.tokens), "added": piece.is_special, "unread": piece.is_unread}
            for piece in self.reader.pieces((text,))
        ]
        return Example(text[:60], self.reader.encode(dataset), {"pieces": pieces, "text": text})

    def noise(self, example: Example, strength: float) -> GaussianNoise:
        key = id(example)
        if key not in self._sizes:
            request = Request.build(tokens=self.tokens, perturbation=GaussianNoise(0.0))
            self._sizes[key] = next(iter(root_mean_square(self.models, example.given, request).values()))
        return GaussianNoise(strength * self._sizes[key])

    def class_name(self, model: str, number: int) -> str:
        if model in self._says_tokens:
            return self.reader.tokenizer.shown(number)
        return self._classes[model][number] if number < len(self._classes[model]) else f"class {number}"

    def show(self, batch: Tensor) -> None:  # noqa: ARG002 - noise in an embedding cannot be seen
        return None


def _shared_reader(models: Models, tokenizer: str | None) -> TextReader:
    """How all models read texts; raises if one of them has no classes, or if they cut texts into other tokens."""
    readers = {name: reader_of(model, name=name, tokenizer=tokenizer) for name, model in models.items()}
    first, *others = readers
    for name, model in models.items():
        if isinstance(model, TextNetwork) and model.task not in ("classes", "next-token"):
            raise UsageError(f"{name} predicts no class and no next token, so no prediction of it can flip")
    for name in others:
        if readers[name].tokenizer.fingerprint() != readers[first].tokenizer.fingerprint():
            raise UsageError(
                f"{first} and {name} cut texts into different tokens, so the same token cannot be jostled in both: "
                "play with one at a time"
            )
    return readers[first]
