"""Sensitivity to replacing one number by another, exactly, from the table of all predictions."""

import torch
from torch import Tensor

from jostle_papers.p2403_06925.grokking.tasks import GrokkingTask


def replacement_sensitivity(predicted: Tensor, task: GrokkingTask, rows: Tensor) -> Tensor:
    """How often a prediction changes when one of the two numbers becomes another, (networks,).

        mean over pairs (a, b) in ``rows``, over the two places, and over all numbers c of that place
        of 1[f(c, b) != f(a, b)], or of 1[f(a, c) != f(a, b)]

    Eq. 2 of paper 1 (2403.06925) with replacement by a uniform token, the present one included; nothing is sampled.
    A network that adds modulo p without errors has 1 - 1 / p: every other number has another answer.

    >>> from jostle_papers.p2403_06925.grokking.tasks import Addition
    >>> task = Addition(modulus=5)
    >>> float(replacement_sensitivity(task.answers()[None], task, torch.arange(25)[None]))
    0.8

    Arguments:
        predicted: the prediction for every pair of the task, (networks, all pairs).
        task: with these pairs.
        rows: pairs, (networks, count), as rows of the task.
    """
    pairs, tokens = task.pairs(), task.numbers + 1
    pairs = pairs - pairs.amin(dim=0)  # places count from 0 in both tables
    first, second = (int(size) + 1 for size in pairs.amax(dim=0))
    table = torch.nn.functional.one_hot(predicted.view(len(predicted), first, second), tokens)
    present = predicted.gather(1, rows)  # (networks, count)
    same = torch.zeros(len(predicted), dtype=torch.float64)
    for place, numbers in ((0, first), (1, second)):
        counts = table.sum(dim=1 + place).flatten(1)  # (networks, other numbers * tokens): how many give each answer
        other = pairs[:, 1 - place][rows]
        same += (counts.gather(1, other * tokens + present).double() / numbers).mean(dim=1)
    return 1 - same / 2
