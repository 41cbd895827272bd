"""Texts as bags of words: Iyyer et al. 2015, "Deep unordered composition rivals syntactic methods" (ACL P15-1162)."""

from torch import Tensor, nn

from jostle.base import checks
from jostle.models import register_text
from jostle.models.text_model import TextModel, TokenEmbedding


@register_text("text-bag")
class TextBag(TextModel):
    """Words -> LayerNorm -> mean over the real tokens -> ``depth`` hidden layers (Linear -> ReLU) -> logits.

    The order of the words has no influence. Not part of paper 1. Weights start from torch's defaults.

    Differs from Iyyer et al.: LayerNorm on the words, as in ``text-lstm``, so that noise of a given std means the same,
    and dropout of entries instead of words.

    Arguments:
        vocabulary: number of ids; id 0 is padding.
        classes: logits; 1 for a binary task with a single logit.
        dim: width of a word and of the hidden layers.
        depth: number of hidden layers.
        max_length: most real tokens of a text; the weights do not depend on it.
        dropout: share of the embeddings and of the hidden layers set to 0 in training.
    """

    def __init__(
        self,
        *,
        vocabulary: int = 8000,
        classes: int = 2,
        dim: int = 256,
        depth: int = 4,
        max_length: int = 512,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        checks.sizes(vocabulary=vocabulary, classes=classes, dim=dim, depth=depth, max_length=max_length)
        checks.number("dropout", dropout, least=0, below=1)
        self.embeddings = TokenEmbedding(vocabulary=vocabulary, dim=dim, max_length=max_length, dropout=dropout)
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Linear(dim, classes)

    def encode(self, embedded: Tensor, mask: Tensor) -> Tensor:
        """The last hidden layer, (batch, dim)."""
        total = embedded.masked_fill(~mask[..., None], 0.0).sum(dim=1)  # (batch, dim)
        hidden: Tensor = self.layers(total / mask.sum(dim=1, keepdim=True))
        return hidden
