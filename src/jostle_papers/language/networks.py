"""The networks of studies of text: paper 1's three, and five more beyond them, all with the same number of layers."""

from dataclasses import dataclass

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
