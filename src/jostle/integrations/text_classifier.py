"""A pretrained network of texts: token ids in, logits out, and where its tokenizer is."""

import re
from pathlib import Path
from typing import Any

from torch import nn


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
