"""The networks of studies of text: paper 1's three, and five more beyond them, all with the same number of layers.

``EmbeddedTwice`` makes of an encoder what paper 1's released code measures.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from jostle.models.text_model import TokenEmbedding, real_tokens
from jostle_papers.trained.settings import Network, Networks, Sizes

ENCODERS = ("encoder", "encoder-relu", "encoder-linear")
RECURRENT = ("lstm", "gru")
NAMES = (*ENCODERS, "decoder", *RECURRENT, "ssm", "bag")

_KINDS: dict[str, tuple[str, Sizes]] = {
    "encoder": ("text-encoder", {"attention": "softmax"}),
    "encoder-relu": ("text-encoder", {"attention": "relu"}),
    "encoder-linear": ("text-encoder", {"attention": "linear"}),
    "decoder": ("text-decoder", {}),
    "lstm": ("text-lstm", {}),
    "gru": ("text-gru", {}),
    "ssm": ("text-ssm", {}),
    "bag": ("text-bag", {}),
}


@dataclass(frozen=True, kw_only=True)
class TextSizes:
    """Sizes of text networks.

    Arguments:
        dim, depth, dropout: of all networks.
        heads, mlp_dim: of the transformers among them.
    """

    dim: int
    depth: int
    dropout: float
    heads: int
    mlp_dim: int


def text_networks(*names: str, lr: float, vocabulary: int, max_length: int, sizes: TextSizes) -> Networks:
    """Networks by name, all of the same width and depth, trained by AdamW.

    Arguments:
        names: of ``NAMES``; all of them if none is given.
        lr: the learning rate.
        vocabulary, max_length: of the token ids.
        sizes: the other sizes.
    """
    common: Sizes = {
        "classes": 2,
        "vocabulary": vocabulary,
        "max_length": max_length,
        "dim": sizes.dim,
        "depth": sizes.depth,
        "dropout": sizes.dropout,
    }
    transformer: Sizes = {"heads": sizes.heads, "mlp_dim": sizes.mlp_dim}
    made = {}
    for name in names or NAMES:
        model, own = _KINDS[name]
        further = transformer if model in ("text-encoder", "text-decoder") else {}
        made[name] = Network(model=model, sizes={**common, **own, **further}, lr=lr, optimizer="adamw")
    return made


class EmbeddedTwice(nn.Module):
    """An embedding block whose output goes through it once more: positions are added and LayerNorm applied again.

    A model of the library transformers does this if it is given the output of its own embedding block as
    ``inputs_embeds``, as in paper 1's released code. The second LayerNorm removes the size of noise in the output of
    ``first``.
    """

    def __init__(self, first: TokenEmbedding) -> None:
        super().__init__()
        self.first = first

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """(batch, length) -> (batch, length, dim)."""
        vectors: Tensor = self.first(input_ids, attention_mask)
        if self.first.positions is not None:
            places = real_tokens(input_ids, attention_mask).cumsum(dim=1) - 1
            vectors = vectors + self.first.positions(places.clamp(min=0))
        again: Tensor = self.first.norm(vectors)
        return again
