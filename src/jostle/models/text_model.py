"""What all models of texts share: ids in, logits out, padding without influence."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from jostle.models.text_embeddings import PAD, Embeddings, real_tokens


class TextModel(nn.Module, ABC):
    """classifier(encode(embeddings(ids))); a model of texts fills in ``embeddings``, ``encode`` and ``classifier``.

    Past ``embeddings`` nothing looks at the ids: whatever replaces its output, a forward hook for example, decides the
    logits together with the mask.
    """

    pad = PAD  # The id of padding.
    embeddings: Embeddings
    classifier: nn.Linear

    @abstractmethod
    def encode(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """What the classifier sees, (batch, dim).

        Arguments:
            embedded: (batch, length, dim).
            mask: which tokens are real, (batch, length), booleans with at least one true in each row.
        """

    def features(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The input of the last layer, (batch, dim)."""
        embedded = self.embeddings(input_ids, attention_mask)  # (batch, length, dim)
        # Trimmed only here: a hook on the embeddings can rely on the columns of the ids, and embedding is cheap.
        return self.encode(*trimmed(embedded, real_tokens(input_ids, attention_mask)))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Ids to logits, (batch, length) -> (batch, classes).

        Arguments:
            input_ids: (batch, length), int64; ``pad`` (0) is padding, on the left or on the right.
            attention_mask: (batch, length), 1 for a real token and 0 for padding; without it ``input_ids != pad``.
        """
        logits: Tensor = self.classifier(self.features(input_ids, attention_mask))
        return logits

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of word vectors, under the name that transformers gives it."""
        return self.embeddings.words


def trimmed(embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both without the first and last columns that are padding in every row, (batch, length, ...) and (batch, length).

    >>> mask = torch.tensor([[0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]).bool()
    >>> trimmed(torch.arange(10).reshape(2, 5), mask)[0].tolist()
    [[1, 2, 3], [6, 7, 8]]
    """
    used = mask.any(dim=0).nonzero()  # (columns with a real token, 1)
    columns = slice(int(used[0]), int(used[-1]) + 1)
    return embedded[:, columns], mask[:, columns]


def pick(tokens: Tensor, columns: Tensor) -> Tensor:
    """One token of each row, (batch, length, dim) and (batch,) -> (batch, dim)."""
    return tokens[torch.arange(len(tokens), device=tokens.device), columns]
