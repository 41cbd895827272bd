"""Models that read a text in order, so that a change of one token changes nothing before it.

``prefix`` reads a batch once and keeps the state of the network before each token; ``continue_from`` reads on from any
of these states with other tokens. To jostle token t, only the tokens from t on are read instead of the whole text:
about half of them, over all t.
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.models.text_model import TextModel

Past = tuple[Tensor, ...]  # the state of a network after some tokens, in tensors whose first axis is the batch


@dataclass(frozen=True)
class Prefix:
    """The states of a causal model before each token of a batch of texts; made by ``prefix``.

    Arguments:
        pasts: for each position the state before the token there was read; the first is None.
        lengths: real tokens of each text, (batch,).
    """

    pasts: tuple[Past | None, ...]
    lengths: Tensor


class CausalTextModel(TextModel):
    """A text model that reads from the first token to the last; a subclass fills in ``read``.

    >>> from jostle import models
    >>> model = models.create("text-lstm", vocabulary=9, dim=4, depth=1, seed=0).eval()
    >>> embedded = model.embeddings(torch.tensor([[5, 6, 7], [8, 3, 0]]))
    >>> before = model.prefix(embedded, torch.tensor([[1, 1, 1], [1, 1, 0]]))
    >>> changed = embedded[:, 1:] + torch.tensor([[1.0], [0.0]])  # the token at position 1, and no other
    >>> same = model.encode(torch.cat([embedded[:, :1], changed], dim=1), torch.tensor([[1, 1, 1], [1, 1, 0]]) > 0)
    >>> torch.allclose(model.continue_from(before, 1, changed), model.classifier(same))
    True
    """

    memory_grows = False  # whether the state after a text grows with its length

    @abstractmethod
    def read(self, embedded: Tensor, lengths: Tensor, past: Past | None) -> tuple[Tensor, Past]:
        """Read tokens, beginning in the state ``past``.

        Arguments:
            embedded: (batch, length, dim), real tokens first and padding after them.
            lengths: real tokens in each row, (batch,), each at least 1.
            past: the state after the tokens before these, or None at the beginning.

        Returns:
            The features after the last real token, (batch, dim), and the state now, which is valid only for rows
            without padding.
        """

    def encode(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """The features after the last real token, (batch, dim)."""
        features, _ = self.read(*align(embedded, mask), None)
        return features

    def remember(self, embedded: Tensor, lengths: Tensor) -> tuple[Past | None, ...]:  # noqa: ARG002
        """The state before each token, (batch, length, dim) -> length entries; token by token.

        States of a text beyond its length, (batch,), are not valid.
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
        tokens, lengths = align(embedded, attention_mask != 0)
        return Prefix(self.remember(tokens, lengths), lengths)

    def continue_from(
        self, prefix: Prefix, position: int | Tensor, suffix: Tensor, rows: Tensor | None = None
    ) -> Tensor:
        """Logits of texts whose tokens before ``position`` are those of the prefix, (count, classes).

        Arguments:
            prefix: from ``prefix``.
            position: the number of tokens kept, one for all texts or (count,); each text continued must be longer.
            suffix: the embedded tokens from ``position`` on, (count, length - position, dim), real tokens first; the
                texts keep their lengths, and columns beyond them are ignored.
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
        """The state before token ``positions[i]`` of text ``rows[i]``, for networks whose state has one size.

        None stands for the state before the first token, which is 0.
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


def align(embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Real tokens first in every row, in their order, and their number; (batch, longest, dim) and (batch,).

    >>> mask = torch.tensor([[False, True, True], [True, False, False]])
    >>> tokens, lengths = align(torch.arange(6).reshape(2, 3, 1), mask)
    >>> tokens[..., 0].tolist(), lengths.tolist()
    ([[1, 2], [3, 4]], [2, 1])
    """
    lengths = mask.sum(dim=1)
    longest = int(lengths.max())
    if not (mask[:, 1:] & ~mask[:, :-1]).any():  # no real token after padding
        return embedded[:, :longest], lengths
    order = mask.byte().argsort(dim=1, descending=True, stable=True)[:, :longest]  # (batch, longest)
    return embedded.take_along_dim(order[..., None], dim=1), lengths
