"""Tables from which the logits of every pair are made, computed once for all pairs.

At "=" the query is the same for every pair. So a number in a place has one attention score for each head, whatever its
partner. Between a value and the neurons there are only matrices, so the number also has one vector that it adds to the
inputs of the neurons for each unit of attention. A pair then needs no matrix product before its neurons. With shares
w_h(a), w_h(b) of the attention of head h, the rest being the share of "=",

    inputs of the neurons = start + sum over heads h of w_h(a) row_h(a) + w_h(b) row_h(b),

where scores and rows are counted from those of "=". And between neurons and logits two matrices are multiplied once
instead of applied in turn to thousands of pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from jostle_papers.p2403_06925.grokking.designs import GrokkingDesign

Weights = Mapping[str, Tensor]  # by the names of PlainNetwork, each (networks, ...)

_LINE = 64 // 4  # numbers of float32 in a line of the cache; rows that begin in the middle of one take twice the time


@dataclass
class Tables:
    """Tables of several networks.

    A row is a number in a place: first those in the first place, then those in the second. ``width`` is the number of
    neurons; with a residual stream the logits follow, to which attention adds past the neurons, and then some zeros.

    Arguments:
        scores: (networks, heads, 2 numbers), of each row, above that of "=".
        rows: (networks, heads, 2 numbers, width), what attention to each row adds, above that of "=".
        start: (networks, 1, width), with all attention at "=".
        outer: (networks, hidden, tokens), from neurons to logits.
        bias: (networks, 1, tokens), of the logits.
    """

    scores: Tensor
    rows: Tensor
    start: Tensor
    outer: Tensor
    bias: Tensor


@dataclass
class Attention:
    """The matrices that make scores and rows of the tables from embeddings.

    Arguments:
        keys: (networks, dim, heads), from embedding to scores.
        values: (networks, dim, dim), from embedding to the values of all heads.
        through: (networks, dim, width), from values of all heads to neurons (and logits).
    """

    keys: Tensor
    values: Tensor
    through: Tensor


def attention(weights: Weights, design: GrokkingDesign) -> Attention:
    """The matrices of attention at "=".

    Scores are q k / sqrt(dim / heads). The bias of the keys adds the same to all three scores and cancels in the
    softmax: it is left out, and its gradient is exactly 0.
    """
    query_weight, key_weight, value_weight = weights["attention.in_proj_weight"].chunk(3, dim=1)  # (networks, dim, dim)
    query = _equals(weights) @ query_weight.mT  # (networks, 1, dim)
    if design.biases:
        query = query + weights["attention.in_proj_bias"][:, None, : design.dim]
    by_head = (len(query), design.heads, -1)
    split_query = query.reshape(*by_head).unsqueeze(2) * (design.dim // design.heads) ** -0.5
    keys = (split_query @ key_weight.reshape(*by_head, design.dim)).squeeze(2)  # (networks, heads, dim)
    return Attention(keys.mT, value_weight.mT, weights["attention.out_proj.weight"].mT @ _onward(weights, design))


def tables(weights: Weights, design: GrokkingDesign) -> Tables:
    """The tables of some networks, differentiable.

    Arguments:
        weights: of the networks.
        design: of the networks.
    """
    parts = attention(weights, design)
    above = _rows(weights) - _equals(weights)  # embeddings of the rows, counted from that of "="
    values = (above @ parts.values).view(*above.shape[:2], design.heads, -1).transpose(1, 2)
    unembedding = weights["unembedding.weight"].mT
    return Tables(
        scores=(above @ parts.keys).mT,
        rows=values @ parts.through.view(len(above), design.heads, -1, parts.through.shape[2]),
        start=_start(weights, parts, design),
        outer=weights["outer.weight"].mT @ unembedding,
        bias=weights["outer.bias"].unsqueeze(1) @ unembedding
        + (weights["unembedding.bias"].unsqueeze(1) if design.biases else 0),
    )


def _start(weights: Weights, parts: Attention, design: GrokkingDesign) -> Tensor:
    """The inputs of the neurons (and past them) if "=" attends to itself alone, (networks, 1, width)."""
    equals = _equals(weights)
    value = equals @ parts.values
    stream = equals if design.residual else torch.zeros_like(equals)
    if design.biases:
        value = value + weights["attention.in_proj_bias"][:, None, 2 * design.dim :]
        stream = stream + weights["attention.out_proj.bias"].unsqueeze(1)
    bias = functional.pad(weights["inner.bias"], (0, parts.through.shape[2] - design.hidden)).unsqueeze(1)
    return value @ parts.through + stream @ _onward(weights, design) + bias


def _onward(weights: Weights, design: GrokkingDesign) -> Tensor:
    """From the output of attention to neurons, and to logits past them, (networks, dim, width)."""
    neurons = weights["inner.weight"].mT
    if not design.residual:
        return neurons
    both = torch.cat([neurons, weights["unembedding.weight"].mT], dim=2)
    return functional.pad(both, (0, -both.shape[2] % _LINE))


def _rows(weights: Weights) -> Tensor:
    """Embedding with position of each number in each place, (networks, 2 numbers, dim)."""
    numbers, places = weights["embedding.weight"][:, :-1], weights["positions"]
    return torch.cat([numbers + places[:, 0:1], numbers + places[:, 1:2]], dim=1)


def _equals(weights: Weights) -> Tensor:
    """Embedding with position of "=", (networks, 1, dim)."""
    return weights["embedding.weight"][:, -1:] + weights["positions"][:, 2:]
