"""Three small language models of stories that others trained, written here from their papers; weights are in files.

The files are not part of jostle. The environment variable ``JOSTLE_NETWORKS`` names the folder that holds them:

    stories260K/stories260K.bin                  a Llama of 260 k weights on 512 pieces of words
    babyllama105/model5000.bin                   a Llama of 0.9 M weights on 105 characters
    tinystories_gru/tinystoriespuregru.pt        a recurrent network of 0.2 M weights on 98 characters

The Llamas are in the format of llama2.c: seven whole numbers (dim, hidden, layers, heads, key-value heads, vocabulary,
positions), then all weights in float32.
"""

import math
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from jostle.base.errors import UsageError
from jostle.base.weights import fill_weights, read_weights
from jostle_papers.own.published.cifar_10 import VARIABLE, networks_folder

_EPS = 1e-5


class StoryLlama(nn.Module):
    """Llama (Touvron et al. 2023, 2302.13971): pre-norm blocks with RMSNorm, rotary positions and a gated MLP.

    Arguments:
        dim, hidden, depth, heads, kv_heads: sizes; several heads share a key and a value if there are fewer of these.
        vocabulary: number of tokens.
        tied: whether words are read with the vectors that embed them.
    """

    def __init__(
        self, *, dim: int, hidden: int, depth: int, heads: int, kv_heads: int, vocabulary: int, tied: bool = True
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, dim)
        self.blocks = nn.ModuleList(_LlamaBlock(dim, hidden, heads, kv_heads) for _ in range(depth))
        self.norm = nn.RMSNorm(dim, eps=_EPS)
        self.readout = nn.Linear(dim, vocabulary, bias=False)
        if tied:
            self.readout.weight = self.words.weight

    def get_input_embeddings(self) -> nn.Module:
        """The table of word vectors."""
        return self.words

    def forward(self, input_ids: Tensor) -> Tensor:
        """(batch, tokens) -> (batch, tokens, vocabulary)."""
        tokens = self.words(input_ids)
        for block in self.blocks:
            tokens = block(tokens)
        logits: Tensor = self.readout(self.norm(tokens))
        return logits


class _LlamaBlock(nn.Module):
    def __init__(self, dim: int, hidden: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        narrow = dim // heads * kv_heads
        self.attention_norm, self.mlp_norm = nn.RMSNorm(dim, eps=_EPS), nn.RMSNorm(dim, eps=_EPS)
        self.to_query, self.to_out = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.to_key, self.to_value = nn.Linear(dim, narrow, bias=False), nn.Linear(dim, narrow, bias=False)
        self.gate, self.widen = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.narrow = nn.Linear(hidden, dim, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        normed = self.attention_norm(tokens)
        query = _rotated(self._split(self.to_query(normed), self.heads))
        key = _rotated(self._split(self.to_key(normed), self.kv_heads))
        value = self._split(self.to_value(normed), self.kv_heads)
        shared = self.heads // self.kv_heads
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        tokens = tokens + self.to_out(mixed.transpose(1, 2).flatten(2))
        normed = self.mlp_norm(tokens)
        after: Tensor = tokens + self.narrow(functional.silu(self.gate(normed)) * self.widen(normed))
        return after

    @staticmethod
    def _split(vectors: Tensor, heads: int) -> Tensor:
        """(batch, tokens, heads * width) -> (batch, heads, tokens, width)."""
        return vectors.view(*vectors.shape[:2], heads, -1).transpose(1, 2)


def _rotated(vectors: Tensor) -> Tensor:
    """Pairs of neighbouring numbers turned by an angle that grows with the position (Su et al. 2021)."""
    count, width = vectors.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, width, 2, dtype=vectors.dtype) / width)
    angles = torch.arange(count, dtype=vectors.dtype)[:, None] * speeds  # (tokens, width / 2)
    even, odd = vectors[..., ::2], vectors[..., 1::2]
    turned = (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos())
    return torch.stack(turned, dim=-1).flatten(-2)


class StoryGRU(nn.Module):
    """A gated recurrent unit with a second memory that a gate writes to; learned positions, up to 256 tokens."""

    def __init__(self, vocabulary: int = 98, dim: int = 124, positions: int = 256) -> None:
        super().__init__()
        self.token_emb, self.pos_emb = nn.Embedding(vocabulary, dim), nn.Embedding(positions, dim)
        self.gru_cell = nn.GRUCell(2 * dim, dim)
        self.priority_gate, self.memory_writer = nn.Linear(dim, 1), nn.Linear(dim, dim)
        self.ln_f, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary)

    def get_input_embeddings(self) -> nn.Module:
        """The table of word vectors."""
        return self.token_emb

    def forward(self, input_ids: Tensor) -> Tensor:
        """(batch, tokens) -> (batch, tokens, vocabulary)."""
        tokens = self.token_emb(input_ids) + self.pos_emb.weight[: input_ids.shape[1]]
        state = memory = torch.zeros_like(tokens[:, 0])
        states = []
        for token in tokens.unbind(dim=1):
            state = self.gru_cell(torch.cat([token, memory], dim=1), state)
            share = torch.sigmoid(self.priority_gate(state))
            memory = (1 - share) * memory + share * torch.tanh(self.memory_writer(state))
            states.append(state)
        logits: Tensor = self.head(self.ln_f(torch.stack(states, dim=1)))
        return logits


def read_llama(path: Path) -> StoryLlama:
    """The Llama in a file of llama2.c, of the format without a magic number."""
    content = path.read_bytes()
    if len(content) < 28:
        raise UsageError(f"{path} is too short for a network of llama2.c")
    dim, hidden, depth, heads, kv_heads, words, positions = struct.unpack("7i", content[:28])
    numbers = np.frombuffer(content, dtype="<f4", offset=28)
    sizes = {"dim": dim, "hidden": hidden, "depth": depth, "heads": heads, "kv_heads": kv_heads}
    network, narrow = StoryLlama(**sizes, vocabulary=abs(words), tied=words > 0), dim // heads * kv_heads
    place = 0

    def take(*shape: int) -> Tensor:
        nonlocal place
        count = math.prod(shape)
        if place + count > len(numbers):
            raise UsageError(f"{path} ends before its last weight")
        found = torch.from_numpy(numbers[place : place + count].reshape(shape).copy())
        place += count
        return found

    tensors = {"words.weight": take(abs(words), dim)}
    order = [
        ("attention_norm", (dim,)), ("to_query", (dim, dim)), ("to_key", (narrow, dim)), ("to_value", (narrow, dim)),
        ("to_out", (dim, dim)), ("mlp_norm", (dim,)), ("gate", (hidden, dim)), ("narrow", (dim, hidden)),
        ("widen", (hidden, dim)),
    ]  # fmt: skip
    for name, shape in order:
        for layer, weight in enumerate(take(depth, *shape)):
            tensors[f"blocks.{layer}.{name}.weight"] = weight
    tensors["norm.weight"] = take(dim)
    take(positions, dim // heads)  # tables of angles, which are computed
    tensors["readout.weight"] = tensors["words.weight"] if words > 0 else take(abs(words), dim)
    fill_weights(network, tensors, path)
    return network.eval()


def find_file(file: str) -> Path:
    """A file of the folder of published networks."""
    path = networks_folder() / file
    if not path.is_file():
        raise UsageError(f"{VARIABLE} has no file {file}; see the docstring of {__name__} for what it is")
    return path


def stories_260k() -> StoryLlama:
    """The Llama of 260 k weights."""
    return read_llama(find_file("stories260K/stories260K.bin"))


def babyllama() -> StoryLlama:
    """The Llama of 0.9 M weights on characters."""
    return read_llama(find_file("babyllama105/model5000.bin"))


def story_gru() -> StoryGRU:
    """The recurrent network on characters."""
    network, path = StoryGRU(), find_file("tinystories_gru/tinystoriespuregru.pt")
    fill_weights(network, read_weights(path)[0], path)
    return network.eval()


def untrained() -> StoryLlama:
    """A tiny Llama with random weights, for a run that needs no files."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return StoryLlama(dim=16, hidden=24, depth=1, heads=2, kv_heads=1, vocabulary=20).eval()


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    # how it is made, the tokens that a story begins with, and the first id that is not a special token
    "stories260K": (stories_260k, (1,), 3),
    "babyllama105": (babyllama, (1,), 3),
    "tinystories-gru": (story_gru, (), 0),
    "untrained": (untrained, (1,), 3),
}


@torch.no_grad()
def tell(network: nn.Module, begin: tuple[int, ...], first: int, count: int, seed: int) -> Tensor:
    """A story of ``count`` tokens that the network tells itself, (1, count), sampled at temperature 0.8.

    Without a token to begin with, the first one is drawn among all. Special tokens other than the first are not drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    words = network.get_input_embeddings().num_embeddings  # type: ignore[operator]
    ids = list(begin) or [int(torch.randint(first, words, (1,), generator=generator))]
    while len(ids) < count:
        logits = network(torch.tensor([ids]))[0, -1] / 0.8
        logits[:first] = -torch.inf
        ids.append(int(torch.multinomial(logits.softmax(dim=0), 1, generator=generator)))
    return torch.tensor([ids])
