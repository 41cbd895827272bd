"""Models that read a text in order, so that a change of one token leaves all that came before it as it was.

``prefix`` reads a batch once and keeps what the network remembers before each token; ``continue_from`` reads on from
any of them with other tokens. Jostling token t then means reading the tokens from t on instead of the whole text: about
half of them, over all t.
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.models.text_model import TextModel

Past = tuple[Tensor, ...]  # What a network remembers, in tensors whose first axis is the batch.


@dataclass(frozen=True)
class Prefix:
    """What a causal model remembers of a batch of texts before each of their tokens; made by ``prefix``.

    Arguments:
        pasts: one entry for each position, before the token there was read; the first is None.
        lengths: real tokens of each text, (batch,).
    """

    pasts: tuple[Past | None, ...]
    lengths: Tensor


class CausalTextModel(TextModel):
    """A text model that reads from the first token to the last; a family fills in ``read``.

    >>> from jostle import models
    >>> model = models.create("text-lstm", vocabulary=9, dim=4, depth=1, seed=0).eval()
    >>> embedded = model.embeddings(torch.tensor([[5, 6, 7], [8, 3, 0]]))
    >>> before = model.prefix(embedded, torch.tensor([[1, 1, 1], [1, 1, 0]]))
    >>> changed = embedded[:, 1:] + torch.tensor([[1.0], [0.0]])  # the token at position 1, and no other
    >>> same = model.encode(torch.cat([embedded[:, :1], changed], dim=1), torch.tensor([[1, 1, 1], [1, 1, 0]]) > 0)
    >>> torch.allclose(model.continue_from(before, 1, changed), model.classifier(same))
    True
    """

    memory_grows = False  # Whether what is remembered of a text is as long as the text.

    @abstractmethod
    def read(self, embedded: Tensor, lengths: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """Read tokens after those that ``past`` remembers.

        Arguments:
            embedded: (batch, length, dim), real tokens first and padding after them.
            lengths: real tokens in each row, (batch,), each at least 1.
            past: what is remembered of the tokens before, or None at the beginning.

        Returns:
            What the classifier sees after the last real token, (batch, dim), and what is remembered now; the latter is
            of use only for rows without padding.
        """

    def encode(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """What the classifier sees after the last real token, (batch, dim)."""
        features, _ = self.read(*aligned(embedded, mask), None)
        return features

    def remember(self, embedded: Tensor, lengths: Tensor) -> tuple[Past | None, ...]:  # noqa: ARG002
        """What is remembered before each token, (batch, length, dim) -> length entries; token by token.

        What is remembered of a text beyond its length, (batch,), is of no use.
        """
        pasts: list[Past | None] = [None]
        one = torch.ones(len(embedded), dtype=torch.int64, device=embedded.device)
        for position in range(embedded.shape[1] - 1):
            pasts.append(self.read(embedded[:, position : position + 1], one, pasts[-1])[1])
        return tuple(pasts)

    def prefix(self, embedded: Tensor, attention_mask: Tensor | None = None) -> Prefix:
        """Read a batch once, for ``continue_from``; in eval mode, as dropout would differ between the two.

        Arguments:
            embedded: the output of ``embeddings``, (batch, length, dim).
            attention_mask: (batch, length), 1 for a real token; without it all are. Position t of a text is its real
                token number t, counted from 0, wherever the padding is.
        """
        if attention_mask is None:
            attention_mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        tokens, lengths = aligned(embedded, attention_mask != 0)
        return Prefix(self.remember(tokens, lengths), lengths)

    def continue_from(
        self, prefix: Prefix, position: int | Tensor, suffix: Tensor, rows: Tensor | None = None
    ) -> Tensor:
        """Logits of texts whose tokens before ``position`` are those of the prefix, (count, classes).

        Arguments:
            prefix: from ``prefix``.
            position: how many tokens are kept, the same of all texts or (count,); every text continued must be longer.
            suffix: the embedded tokens from ``position`` on, (count, length - position, dim), real tokens first; the
                texts keep their lengths, what lies beyond is ignored.
            rows: which text of the prefix each row of the suffix continues, (count,), repetitions allowed; without it
                each text once, in order.
        """
        lengths = prefix.lengths if rows is None else prefix.lengths[rows]
        if len(lengths) != len(suffix):
            raise UsageError(f"suffix must have a row for each of the {len(lengths)} texts, got {len(suffix)}")
        positions = torch.as_tensor(position, device=lengths.device).expand_as(lengths)  # (count,)
        lowest, highest = (int(each) for each in positions.aminmax())
        if lowest < 0 or highest >= len(prefix.pasts):
            wrong = lowest if lowest < 0 else highest
            raise UsageError(f"position must be from 0 to {len(prefix.pasts) - 1}, before a token, got {wrong}")
        left = lengths - positions  # (count,)
        shortest, longest = (int(each) for each in left.aminmax())
        if shortest < 1 or longest > suffix.shape[1]:
            raise UsageError(
                f"suffix must hold the tokens from position {lowest} on of texts of {lowest + shortest} to "
                f"{lowest + longest} tokens, at least one of each text, got {suffix.shape[1]} columns"
            )
        rows = torch.arange(len(lengths), device=lengths.device) if rows is None else rows
        features, _ = self.read(suffix[:, :longest], left, self.recall(prefix, positions, rows))
        logits: Tensor = self.classifier(features)
        return logits

    def recall(self, prefix: Prefix, positions: Tensor, rows: Tensor) -> Past | None:
        """What is remembered before token ``positions[i]`` of text ``rows[i]``, where that is of one size for all.

        Before the first token a network remembers zeros, which is what None stands for.
        """
        if not positions.any():
            return None
        pasts = [(each, prefix.pasts[each]) for each in sorted(set(positions.tolist()))]
        like = pasts[-1][1]
        assert like is not None
        found = tuple(part.new_zeros(len(rows), *part.shape[1:]) for part in like)
        for position, past in pasts:
            chosen = (positions == position).nonzero().flatten()
            for whole, part in zip(found, past or (), strict=False):
                whole[chosen] = part[rows[chosen]]
        return found


def aligned(embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Real tokens first in every row, in their order, and how many they are; (batch, longest, dim) and (batch,).

    >>> mask = torch.tensor([[False, True, True], [True, False, False]])
    >>> tokens, lengths = aligned(torch.arange(6).reshape(2, 3, 1), mask)
    >>> tokens[..., 0].tolist(), lengths.tolist()
    ([[1, 2], [3, 4]], [2, 1])
    """
    lengths = mask.sum(dim=1)
    longest = int(lengths.max())
    if not (mask[:, 1:] & ~mask[:, :-1]).any():  # No real token after padding.
        return embedded[:, :longest], lengths
    order = mask.byte().argsort(dim=1, descending=True, stable=True)[:, :longest]  # (batch, longest)
    return embedded.take_along_dim(order[..., None], dim=1), lengths
