"""The maps of paper 3 word by word, in loops, sharing nothing with the package but the random matrices."""

import math

import torch


def attention(words, weight, kind):
    """A(S) X, one query at a time, (n, d) -> (n d,)."""
    rows = []
    for query in words:
        scores = [float(query @ weight @ key) / math.sqrt(words.shape[1]) for key in words]
        if kind == "softmax":
            unscaled = [math.exp(score) for score in scores]
        elif kind == "relu":
            unscaled = [max(score, 0.0) for score in scores]
        else:
            unscaled = scores
        total = len(scores) if kind == "linear" else sum(unscaled) or 1.0
        rows.append(sum(share / total * key for share, key in zip(unscaled, words, strict=True)))
    return torch.cat(rows)


def moved(words, position, change):
    """X^i(Delta)."""
    copy = words.clone()
    copy[position] += change
    return copy
