"""From tables to logits and losses of many pairs."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from jostle_papers.p2403_06925.grokking.tables import Tables
from jostle_papers.p2403_06925.grokking.tasks import GrokkingTask

_PAIRS_AT_ONCE = 2048  # of all networks together: 4 MiB of 512 neurons in float32; 1024 to 4096 take the same time


@dataclass
class Pairs:
    """Pairs of several networks: each network has pairs of its own, all the same number.

    Arguments:
        places: (networks, count, 2), the rows of the tables of the two numbers.
        labels: (networks, count).
        flat: (networks * count, heads * 2), the same for each head, in the tables of all networks laid end to end.
    """

    places: Tensor
    labels: Tensor
    flat: Tensor

    @classmethod
    def of(cls, task: GrokkingTask, rows: Tensor, heads: int) -> "Pairs":
        """The pairs ``rows`` (networks, count) of a task."""
        networks, numbers = len(rows), task.numbers
        places = task.pairs()[rows] + torch.tensor([0, numbers])
        tables = 2 * numbers * torch.arange(networks * heads).view(networks, 1, heads, 1)  # where each begins
        flat = places.unsqueeze(2) + tables  # (networks, count, heads, 2)
        return cls(places, task.answers()[rows], flat.reshape(-1, heads * 2))

    def __len__(self) -> int:
        return self.places.shape[1]

    def to(self, device: str | torch.device) -> "Pairs":
        """The same pairs on ``device``."""
        return Pairs(self.places.to(device), self.labels.to(device), self.flat.to(device))


def parts(count: int, networks: int) -> list[slice]:
    """Slices of ``count`` pairs of each network, small enough for the cache."""
    step = max(32, _PAIRS_AT_ONCE // networks)
    return [slice(start, start + step) for start in range(0, count, step)]


def scores_of(tables: Tables, pairs: Pairs) -> Tensor:
    """Attention scores of both numbers above that of "=", (networks, count, heads, 2)."""
    heads = tables.scores.shape[1]
    return tables.scores.reshape(-1)[pairs.flat].view(len(pairs.places), -1, heads, 2)


def shares_of(scores: Tensor) -> Tensor:
    """The attention to both numbers, (..., 2), from their scores above that of "=", which gets the rest.

    exp(s_i) / (1 + exp(s_1) + exp(s_2)), without overflow.
    """
    most = scores.detach().amax(dim=-1, keepdim=True).clamp_min(0)  # it cancels, so it has no gradient
    raised = (scores - most).exp()
    return raised / (raised.sum(dim=-1, keepdim=True) + (-most).exp())


def gather_rows(tables: Tables, pairs: Pairs, shares: Tensor) -> Tensor:
    """What attention adds to ``start``, (networks, count, width): rows of both numbers, weighted with shares."""
    # embedding_bag sums weighted rows without copying them side by side first. It takes a fifth of the time of the
    # matrix product from mixed values to neurons that it replaces.
    width = tables.rows.shape[3]
    summed = functional.embedding_bag(
        pairs.flat, tables.rows.reshape(-1, width), per_sample_weights=shares.reshape(len(pairs.flat), -1), mode="sum"
    )
    return summed.view(len(pairs.places), -1, width)


def neurons_(tables: Tables, inputs: Tensor) -> Tensor:
    """The hidden neurons (networks, pairs, hidden), from the inputs above ``start``, which are overwritten."""
    inputs += tables.start
    return inputs[..., : tables.outer.shape[1]].relu_()


def read(tables: Tables, hidden: Tensor, inputs: Tensor) -> Tensor:
    """Logits (networks, pairs, tokens) from neurons and, with a residual stream, from the inputs past them."""
    logits = torch.bmm(hidden, tables.outer).add_(tables.bias)
    past = past_neurons(tables, inputs)
    return logits if past is None else logits.add_(past)


def past_neurons(tables: Tables, inputs: Tensor) -> Tensor | None:
    """The part of ``inputs`` (..., width) that goes to the logits as it is; None without a residual stream."""
    hidden, tokens = tables.outer.shape[1:]
    return inputs[..., hidden : hidden + tokens] if inputs.shape[-1] > hidden else None


@torch.no_grad()
def logits_of(tables: Tables, pairs: Pairs) -> Tensor:
    """Logits of all pairs, (networks, count, tokens)."""
    return logits_from_(tables, gather_rows(tables, pairs, shares_of(scores_of(tables, pairs))))


@torch.no_grad()
def logits_from_(tables: Tables, inputs: Tensor) -> Tensor:
    """Logits from the inputs of the neurons above ``start`` (networks, count, width), which are overwritten."""
    networks, count, _ = inputs.shape
    logits = inputs.new_empty(networks, count, tables.outer.shape[2])
    for rows in parts(count, networks):
        some = inputs[:, rows]
        logits[:, rows] = read(tables, neurons_(tables, some), some)
    return logits


def cross_entropy_(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of each pair and its gradient by the logits, which overwrites them.

    loss = log(1 + sum over wrong classes of exp(logit - right logit)), summed over the wrong classes alone, and the
    gradient at the right class is minus their share. Both keep their digits in float32 however sure a network is.
    log(softmax) and softmax - 1 have steps of 1.2e-7 there, about as large as the losses at the end of these tasks.

    Arguments:
        logits: (networks, pairs, tokens), overwritten.
        labels: (networks, pairs).
    """
    index = labels.unsqueeze(2)
    logits.sub_(logits.amax(dim=2, keepdim=True))
    right = logits.gather(2, index)
    odds = logits.exp_().scatter_(2, index, 0.0)
    wrong = odds.sum(dim=2, keepdim=True)
    total = wrong + right.exp()
    losses = torch.where(right == 0, torch.log1p(wrong), total.log() - right)
    slope = odds.div_(total).scatter_(2, index, -wrong / total)
    return losses.squeeze(2), slope
