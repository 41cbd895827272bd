"""The parts that all models of texts share: token ids in, embeddings, logits out, padding without influence."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from jostle.base.errors import UsageError

PAD = 0  # the id that fills up short texts
STD = 0.02  # of the initial weights of transformers of texts, as in BERT, RoBERTa and GPT-2


class TokenEmbedding(nn.Module):
    """Ids to vectors: dropout(norm(words[id] + positions[n])), where n counts the real tokens before this one.

    Positions are optional. Because real tokens are counted, padding may be anywhere: a token that the mask
    hides has no more influence than a deleted one. The output has the columns of the ids, padding included, so that a
    hook finds column t of the ids in column t of the output.

    Arguments:
        vocabulary: number of ids; id 0 is padding.
        dim: width of a vector.
        max_length: most real tokens of a text.
        dropout: share of the output set to 0 in training.
        has_positions: whether learned positions are added; without them the layers above must see the order.
        norm: of each vector; LayerNorm if none is given, ``nn.Identity()`` for no norm.

    >>> embeddings = TokenEmbedding(vocabulary=9, dim=4, max_length=3, dropout=0.0, has_positions=True)
    >>> left, right = embeddings(torch.tensor([[0, 5, 6]]))[0, 1:], embeddings(torch.tensor([[5, 6, 0]]))[0, :2]
    >>> torch.equal(left, right)
    True
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        dim: int,
        max_length: int,
        dropout: float,
        has_positions: bool = False,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.vocabulary, self.max_length = vocabulary, max_length
        self.words = nn.Embedding(vocabulary, dim, padding_idx=PAD)
        self.positions = nn.Embedding(max_length, dim) if has_positions else None
        self.norm = nn.LayerNorm(dim) if norm is None else norm
        self.drop = nn.Dropout(dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, before: Tensor | None = None) -> Tensor:
        """Checked ids to vectors, (batch, length) -> (batch, length, dim).

        Arguments:
            input_ids: (batch, length), whole numbers below ``vocabulary``.
            attention_mask: (batch, length), 1 for a real token and 0 for padding; without it ``input_ids != 0``.
            before: (batch,) the number of tokens of each text before these; by default 0.
        """
        check_ids(input_ids, self.vocabulary)
        check_mask(input_ids, attention_mask)
        mask = real_tokens(input_ids, attention_mask)
        check_lengths(mask, self.max_length)
        vectors = self.words(input_ids)  # (batch, length, dim)
        if self.positions is not None:
            numbers = (mask.cumsum(dim=1) - 1).clamp(min=0)  # padding gets some position
            vectors = vectors + self.positions(numbers if before is None else numbers + before[:, None])
        embedded: Tensor = self.drop(self.norm(vectors))
        return embedded

    def extra_repr(self) -> str:
        """The size that no layer below shows."""
        return f"max_length={self.max_length}"


def real_tokens(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Which tokens are not padding, as booleans, (batch, length)."""
    return input_ids != PAD if attention_mask is None else attention_mask != 0


def check_ids(input_ids: object, vocabulary: int) -> None:
    """Raise unless ``input_ids`` is a batch of ids from 0 to below ``vocabulary``."""
    if not isinstance(input_ids, Tensor):
        raise UsageError(f"input_ids must be a tensor of ids (batch, length), got {type(input_ids).__name__}")
    if input_ids.dtype not in (torch.int64, torch.int32):
        raise UsageError(f"input_ids must be whole numbers of type int64, got {input_ids.dtype}; pass ids, not vectors")
    if input_ids.dim() != 2 or not input_ids.numel():
        raise UsageError(f"input_ids must have the shape (batch, length), neither of them 0, got {_shape(input_ids)}")
    lowest, highest = (int(each) for each in input_ids.aminmax())
    if lowest < 0 or highest >= vocabulary:
        wrong = lowest if lowest < 0 else highest
        raise UsageError(
            f"input_ids holds {wrong}, but the model was built for vocabulary={vocabulary}: ids from 0 to "
            f"{vocabulary - 1}; pass the size of your tokenizer's vocabulary"
        )


def check_mask(input_ids: Tensor, attention_mask: object) -> None:
    """Raise unless ``attention_mask`` is None or has the shape of the ids and holds 0 and 1 only."""
    if attention_mask is None:
        return
    if not isinstance(attention_mask, Tensor):
        raise UsageError(f"attention_mask must be a tensor (batch, length), got {type(attention_mask).__name__}")
    if attention_mask.shape != input_ids.shape:
        raise UsageError(
            f"attention_mask must have the shape of input_ids, {_shape(input_ids)}, got {_shape(attention_mask)}"
        )
    if not ((attention_mask == 0) | (attention_mask == 1)).all():
        raise UsageError("attention_mask must hold 1 for real tokens and 0 for padding, got other numbers")


def check_lengths(mask: Tensor, max_length: int) -> None:
    """Raise unless every row of the mask has from 1 to ``max_length`` real tokens."""
    lengths = mask.sum(dim=1)  # (batch,)
    shortest, longest = (int(each) for each in lengths.aminmax())
    if shortest == 0:
        raise UsageError(
            f"row {int(lengths.argmin())} of input_ids is all padding (id {PAD}, or 0 in attention_mask); "
            "every text needs a real token, leave empty ones out"
        )
    if longest > max_length:
        raise UsageError(
            f"row {int(lengths.argmax())} of input_ids has {longest} tokens, but the model was built for "
            f"max_length={max_length}; cut the text or build the model with a larger max_length"
        )


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)


class TextModel(nn.Module, ABC):
    """classifier(encode(embeddings(ids))); a model of texts fills in ``embeddings``, ``encode`` and ``classifier``.

    After ``embeddings`` nothing looks at the ids: the logits are a function of its output, which a forward hook may
    replace, and of the mask.
    """

    pad = PAD  # the id of padding
    embeddings: TokenEmbedding
    classifier: nn.Linear

    @abstractmethod
    def encode(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """The features that the classifier sees, (batch, dim).

        Arguments:
            embedded: (batch, length, dim).
            mask: which tokens are real, (batch, length), booleans with at least one true in each row.
        """

    def features(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The input of the last layer, (batch, dim)."""
        embedded = self.embeddings(input_ids, attention_mask)  # (batch, length, dim)
        # Trimmed only here: a hook on the embeddings can rely on the columns of the ids, and embedding is cheap.
        return self.encode(*trim(embedded, real_tokens(input_ids, attention_mask)))

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


def trim(embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both without the first and last columns that are padding in every row, (batch, length, ...) and (batch, length).

    >>> mask = torch.tensor([[0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]).bool()
    >>> trim(torch.arange(10).reshape(2, 5), mask)[0].tolist()
    [[1, 2, 3], [6, 7, 8]]
    """
    used = mask.any(dim=0).nonzero()  # (columns with a real token, 1)
    columns = slice(int(used[0]), int(used[-1]) + 1)
    return embedded[:, columns], mask[:, columns]


def pick(tokens: Tensor, columns: Tensor) -> Tensor:
    """One token of each row, (batch, length, dim) and (batch,) -> (batch, dim)."""
    return tokens[torch.arange(len(tokens), device=tokens.device), columns]


def draw_weights(model: nn.Module) -> None:
    """Draw matrices and vectors of words and positions from N(0, 0.02^2); biases and the vector of padding become 0."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight.data[PAD] = 0
