"""Texts and models of texts for tests: small, random, and one whose flip probabilities are known."""

import functools
import math

import torch
from torch import nn

VOCABULARY, PAD = 40, 1
LENGTHS = [3, 9, 4, 12, 7, 5, 6, 3]
KINDS = {
    "roberta": {"max_position_embeddings": 20},
    "bert": {"max_position_embeddings": 16},
    "distilbert": {"max_position_embeddings": 16},
    "gpt2": {"n_positions": 16},
}
SIZES = {
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 2, "eos_token_id": 3},
}
USUAL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


def sentences(lengths=LENGTHS, seed=0):
    """Random ids from 4 on, between the special ids 0 and 2."""
    generator = torch.Generator().manual_seed(seed)
    words = [torch.randint(4, VOCABULARY, (length,), generator=generator) for length in lengths]
    for ids in words:
        ids[0], ids[-1] = 0, 2
    return words


def padded(words, side="right", width=None, pad=PAD):
    """A mapping as tokenizers give it, with a mask of special tokens."""
    width = width or max(map(len, words))
    ids = torch.full((len(words), width), pad)
    real = torch.zeros_like(ids)
    for row, word in enumerate(words):
        columns = slice(0, len(word)) if side == "right" else slice(width - len(word), width)
        ids[row, columns], real[row, columns] = word, 1
    special = ((ids == 0) | (ids == 2) | (real == 0)).long()
    return {"input_ids": ids, "attention_mask": real, "special_tokens_mask": special}


@functools.cache
def network(kind, head=True):
    """A random model of transformers in float64, with weights large enough for predictions to differ."""
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    sizes = SIZES.get(kind, USUAL) | KINDS[kind]
    config = AutoConfig.for_model(kind, vocab_size=VOCABULARY, pad_token_id=PAD, num_labels=3, **sizes)
    made = (AutoModelForSequenceClassification if head else AutoModel).from_config(config).double().eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.6)
    return made


class Embedder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.words, self.positions = nn.Embedding(VOCABULARY, dim), nn.Embedding(64, dim)

    def forward(self, ids, real):
        return self.words(ids) + self.positions((real.cumsum(dim=1) - 1).clamp(min=0))


class Bag(nn.Module):
    """One logit: the mean over real tokens of (word + position) . w, plus a bias. Flip probabilities are known."""

    pad = PAD

    def __init__(self, dim=5, seed=0):
        super().__init__()
        self.embeddings = Embedder(dim)
        self.weights, self.bias = nn.Parameter(torch.empty(dim)), nn.Parameter(torch.empty(1))
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        self.eval()

    def get_input_embeddings(self):
        return self.embeddings.words

    def forward(self, input_ids, attention_mask=None):
        real = input_ids != self.pad if attention_mask is None else attention_mask.bool()
        embedded = self.embeddings(input_ids, real)
        return ((embedded * real[:, :, None]).sum(dim=1) / real.sum(dim=1, keepdim=True)) @ self.weights + self.bias

    @torch.no_grad()
    def flip_probability(self, words, std):
        """Of each sentence, the same for all its tokens: Phi(-|logit| * length / (std * norm of w))."""
        logits = torch.cat([self(ids[None, :]) for ids in words])
        lengths = torch.tensor([len(ids) for ids in words])
        z = logits.abs() * lengths / (std * self.weights.norm())
        return 0.5 * torch.erfc(z / math.sqrt(2))
