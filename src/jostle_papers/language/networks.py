"""The networks of studies of text: paper 1's three, and beyond them five more, all with as many layers."""

from typing import Any

from jostle_papers.trained import network

ENCODERS = ("encoder", "encoder-relu", "encoder-linear")
RECURRENT = ("lstm", "gru")
NAMES = (*ENCODERS, "decoder", *RECURRENT, "ssm", "bag")

_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "encoder": ("text-encoder", {"attention": "softmax"}),
    "encoder-relu": ("text-encoder", {"attention": "relu"}),
    "encoder-linear": ("text-encoder", {"attention": "linear"}),
    "decoder": ("text-decoder", {}),
    "lstm": ("text-lstm", {}),
    "gru": ("text-gru", {}),
    "ssm": ("text-ssm", {}),
    "bag": ("text-bag", {}),
}


def text_networks(
    *names: str, lr: float, vocabulary: int, max_length: int, dim: int, depth: int, dropout: float, **transformer: Any
) -> dict[str, dict[str, Any]]:
    """Networks by name, all of the same width and depth, trained by AdamW.

    Arguments:
        names: of ``NAMES``; all of them if none is given.
        lr: the learning rate of all.
        vocabulary, max_length, dim, depth, dropout: of all.
        transformer: further sizes of the transformers, ``heads`` and ``mlp_dim``.
    """
    common: dict[str, Any] = {
        "vocabulary": vocabulary,
        "max_length": max_length,
        "dim": dim,
        "depth": depth,
        "dropout": dropout,
    }
    made = {}
    for name in names or NAMES:
        model, own = _KINDS[name]
        further = transformer if model in ("text-encoder", "text-decoder") else {}
        made[name] = network(model, lr, optimizer="adamw", classes=2, **common, **own, **further)
    return made
