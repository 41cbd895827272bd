"""One network as an ordinary module: readable and slow, the same function as the stacked passes, for users."""

import torch
from torch import Tensor, nn

from jostle_papers.p2403_06925.grokking.designs import GrokkingDesign
from jostle_papers.p2403_06925.grokking.tasks import GrokkingTask
from jostle_papers.stacked.layout import Layout

PLACES = 3  # a, b and "="


class PlainNetwork(nn.Module):
    """The network of a ``GrokkingDesign``, from pairs (batch, 2) to logits (batch, numbers + 1).

    ``embed`` and ``read`` are its two halves; noise is added to the embeddings between them.

    Arguments:
        numbers: different operands; the token after them is "=".
        design: sizes and wiring.
    """

    def __init__(self, numbers: int, design: GrokkingDesign) -> None:
        super().__init__()
        tokens, dim = numbers + 1, design.dim
        self.numbers, self.residual = numbers, design.residual
        # In this order and in float32: torch's generator then gives the weights of the code released with paper 1.
        self.embedding = nn.Embedding(tokens, dim, dtype=torch.float32)
        self.positions = nn.Parameter(torch.zeros(PLACES, dim, dtype=torch.float32))
        self.attention = nn.MultiheadAttention(
            dim, design.heads, bias=design.biases, batch_first=True, dtype=torch.float32
        )
        self.inner = nn.Linear(dim, design.hidden, dtype=torch.float32)
        self.outer = nn.Linear(design.hidden, dim, dtype=torch.float32)
        self.unembedding = nn.Linear(dim, tokens, bias=design.biases, dtype=torch.float32)

    def embed(self, pairs: Tensor) -> Tensor:
        """Embeddings with positions of a, b and "=", (batch, 3, dim)."""
        equals = torch.full_like(pairs[:, :1], self.numbers)
        embedded: Tensor = self.embedding(torch.cat([pairs, equals], dim=1)) + self.positions
        return embedded

    def read(self, embedded: Tensor) -> Tensor:
        """Logits at "=" from embeddings (batch, 3, dim)."""
        mixed, _ = self.attention(embedded, embedded, embedded, need_weights=False)
        mixed = mixed + embedded if self.residual else mixed
        output = self.outer(torch.relu(self.inner(mixed)))
        output = output + mixed if self.residual else output
        logits: Tensor = self.unembedding(output[:, -1])
        return logits

    def forward(self, pairs: Tensor) -> Tensor:
        """Pairs to logits."""
        return self.read(self.embed(pairs))


def layout_of(task: GrokkingTask, design: GrokkingDesign) -> Layout:
    """Where the weights of networks of this task and design lie in a row.

    >>> from jostle_papers.p2403_06925.grokking.designs import NANDA, RELEASED
    >>> from jostle_papers.p2403_06925.grokking.tasks import Addition
    >>> layout_of(Addition(), NANDA).count, layout_of(Addition(), RELEASED).count
    (226816, 227442)
    """
    with torch.random.fork_rng(devices=[]):  # drawing its first weights, which are not used, must change nothing
        return Layout(PlainNetwork(task.numbers, design))


def initial_network(task: GrokkingTask, design: GrokkingDesign, seed: int) -> PlainNetwork:
    """The network of this seed before training; torch's own random state stays as it is.

    With ``initial="torch"`` a seed gives the weights that ``torch.manual_seed(seed)`` gives in the code released with
    paper 1: its shuffling of the data draws from numpy and not from torch, so the embedding comes first. Inside
    ``nn.MultiheadAttention`` the output projection is drawn (and its bias then set to 0) before query, key and value.
    Weights that a design does not use are drawn too, and then set to 0.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = PlainNetwork(task.numbers, design)
        if design.initial == "scaled":
            _scale(network, design)
        if not design.attends:
            with torch.no_grad():
                network.attention.in_proj_weight[: 2 * design.dim] = 0  # queries and keys
    return network


@torch.no_grad()
def _scale(network: PlainNetwork, design: GrokkingDesign) -> None:
    """N(0, 1 / dim) for every matrix, N(0, 1 / tokens) for the unembedding, 0 for every bias."""
    for name, weight in network.named_parameters():
        if weight.ndim == 1:
            weight.zero_()
        else:
            spread = weight.shape[0] if name.startswith("unembedding") else design.dim
            weight.normal_(std=spread**-0.5)
