"""Networks of two papers, one without attention, and their training: sizes, wiring, first weights and AdamW."""

from dataclasses import dataclass

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry

INITIALS = ("scaled", "torch")


@dataclass(frozen=True, kw_only=True)
class GrokkingDesign:
    """A transformer of one layer without LayerNorm, and its training on the full batch.

        x = embedding + position;  m = attention(x) at "=";  y = outer relu(inner m);  logits = unembedding y

    With ``residual`` the stream is added: m + x and y + m instead of m and y. As in the code of both papers, the logits
    are over all tokens, "=" included.

    Arguments:
        dim: of embeddings, keys and values of all heads together.
        heads: of attention; dim / heads numbers each.
        hidden: neurons between ``inner`` and ``outer``, whose biases both papers have.
        residual: whether the stream goes past attention and neurons.
        biases: whether attention and unembedding have biases too.
        attends: if false, queries and keys start at 0. Their gradients are exactly 0 there, so they stay at 0: a, b and
            "=" always get a third of the attention each, and the network is an MLP of the mean of their embeddings.
        initial: first weights. ``scaled``: N(0, 1 / dim), for the unembedding N(0, 1 / tokens), biases 0. ``torch``:
            those of torch's layers, in the order embedding, attention, inner, outer, unembedding; positions 0.
        lr, weight_decay, betas, eps: of AdamW, on all weights.
        train_fraction: share of the pairs to train on.
    """

    dim: int = 128
    heads: int = 4
    hidden: int = 512
    residual: bool = True
    biases: bool = False
    attends: bool = True
    initial: str = "scaled"
    lr: float = 1e-3
    weight_decay: float = 1.0
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    train_fraction: float = 0.3

    def __post_init__(self) -> None:
        checks.sizes(dim=self.dim, heads=self.heads, hidden=self.hidden)
        checks.choice("initial", self.initial, INITIALS)
        checks.number("lr", self.lr, above=0)
        checks.number("eps", self.eps, above=0)
        if self.dim % self.heads:
            raise UsageError(f"dim={self.dim} must be a multiple of heads={self.heads}")
        if not 0 <= self.weight_decay * self.lr < 1:
            raise UsageError(f"weight_decay={self.weight_decay} times lr={self.lr} must be from 0 to below 1")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise checks.wrong("betas", self.betas, "two numbers from 0 to below 1")


DESIGNS: Registry[GrokkingDesign] = Registry("design")

# Nanda et al. (2301.05217), Section 3 and its code.
NANDA = DESIGNS.register("nanda")(GrokkingDesign())
# The code released with paper 1 (2403.06925), which made its figures. The paper says that it follows Nanda et al.; the
# code has no residual stream, torch's first weights and torch's betas.
RELEASED = DESIGNS.register("released")(
    GrokkingDesign(residual=False, biases=True, initial="torch", betas=(0.9, 0.999))
)

# Ours: does a network without attention grok?
MLP = DESIGNS.register("mlp")(GrokkingDesign(attends=False))


def as_design(design: GrokkingDesign | str) -> GrokkingDesign:
    """``design`` if it is one, or the design of that name."""
    if isinstance(design, GrokkingDesign):
        return design
    if not isinstance(design, str):
        raise checks.wrong("design", design, f"a GrokkingDesign or one of {', '.join(DESIGNS.names())}")
    return DESIGNS.get(design)
