"""Exact sensitivity to replacement by a uniform token: every token of the vocabulary at every position.

The sum over positions and the mean over the vocabulary of Def. 4.1 are computed here in full. ``jostle.measure`` with
``UniformToken`` samples them.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.responses import Flip
from jostle_papers.p2403_06925.synthetic.network import SelfAttention

_AT_ONCE = 50  # sequences


def flips(function: Callable[[Tensor], Tensor], tokens: Tensor, vocabulary: int) -> Tensor:
    """Whether each replacement flips the prediction, (batch, num_tokens, vocabulary).

    Arguments:
        function: from tokens (batch, num_tokens) to logits: one, whose sign is the prediction (0 is a sign of its
            own), or several, whose argmax is the prediction.
        tokens: whole numbers, (batch, num_tokens).
        vocabulary: M; replacements are 0 .. M - 1.

    >>> flips(lambda tokens: 2.0 * tokens.sum(dim=1) - 3, torch.tensor([[1, 0]]), vocabulary=3).int().tolist()
    [[[0, 0, 1], [0, 1, 1]]]
    """
    checks.sizes(vocabulary=vocabulary)
    _check(tokens)
    batch, length = tokens.shape
    response = Flip()
    found = torch.empty(batch, length, vocabulary, dtype=torch.bool)
    positions = torch.arange(length)
    with torch.no_grad():
        for row in range(batch):
            replaced = tokens[row].repeat(length, vocabulary, 1)  # (num_tokens, vocabulary, num_tokens)
            replaced[positions, :, positions] = torch.arange(vocabulary)
            clean = response.reference(function(tokens[row : row + 1]))
            changed = response.change(clean, function(replaced.reshape(-1, length)))
            found[row] = changed.reshape(length, vocabulary) > 0
    return found


def attention_flips(network: SelfAttention, tokens: Tensor) -> Tensor:
    """``flips`` of a layer of self-attention, in float64, with M times fewer operations.

    A new token v at position tau changes one key and value for every other position i, whose output becomes

        (sum over j != tau of e_ij r_ij + e(x_i, v) r(i, v)) / (sum over j != tau of e_ij + e(x_i, v)),

    with e the exponentials of the scores and r the read-out; only position tau itself has a new query. Sums without tau
    are computed again and not by subtraction, which would lose the small remainder where one token has all attention.

    Arguments:
        network: the layer.
        tokens: whole numbers, (batch, num_tokens).
    """
    _check(tokens)
    with torch.no_grad():
        scores, readout = (part.double() for part in (network.scores, network.readout))
        # The largest score of a row cancels in the quotient.
        exponentials = (scores - scores.amax(dim=1, keepdim=True)).exp()
        clean = torch.sign(network(tokens).double())[:, :, None]  # (batch, 1, 1)
        parts = [_logits_after(exponentials, readout, part) for part in torch.split(tokens, _AT_ONCE)]
    logits = torch.cat(parts)
    if not logits.isfinite().all():
        raise FailureError("attention is so sharp that all tokens of a sequence underflow: use flips instead")
    return torch.sign(logits) != clean


def exact_sensitivity(
    function: Callable[[Tensor], Tensor] | SelfAttention, tokens: Tensor, vocabulary: int | None = None
) -> float:
    """The mean over sequences, positions and all tokens of the vocabulary of whether the prediction flips.

    Paper 1 (2403.06925), Def. 4.1, with P uniform over the vocabulary, the present token included.

    >>> from jostle_papers.p2403_06925.synthetic import SparseFrequent, counting
    >>> task = SparseFrequent(sparse=3, frequent=5, difference=1, kinds=16, vocabulary=59)
    >>> inputs = task.sample(3, seed=0).inputs
    >>> round(exact_sensitivity(counting(task, "frequent"), inputs, 59), 4)
    0.2878

    Arguments:
        function: a ``SelfAttention``, or any function as in ``flips``.
        tokens: whole numbers, (batch, num_tokens).
        vocabulary: M; not needed for a ``SelfAttention``.
    """
    if isinstance(function, SelfAttention):
        if vocabulary not in (None, function.vocabulary):
            raise UsageError(f"vocabulary={vocabulary} is not that of the network, {function.vocabulary}; leave it out")
        return float(attention_flips(function, tokens).double().mean())
    if vocabulary is None:
        raise UsageError("vocabulary=None: the size of the vocabulary must be given for a function")
    return float(flips(function, tokens, vocabulary).double().mean())


def _logits_after(exponentials: Tensor, readout: Tensor, tokens: Tensor) -> Tensor:
    """The logits after every replacement, (batch, num_tokens, vocabulary), from e by row and column and from r."""
    length = tokens.shape[1]
    others = 1 - torch.eye(length, dtype=readout.dtype)  # (j, tau)
    asked = exponentials[tokens]  # (batch, i, vocabulary)
    weight = asked.gather(2, tokens.unsqueeze(1).expand(-1, length, -1))  # e_ij: (batch, i, j)
    read = readout[:, tokens].transpose(0, 1)  # r_ij: (batch, i, j)
    below, above = weight @ others, (weight * read) @ others  # (batch, i, tau)
    answers = exponentials[:, tokens].transpose(0, 1)  # e(v, x_j): (batch, v, j)
    itself = exponentials.diagonal()[None, :, None]
    own = (answers @ (read.mT * others) + itself * readout.T) / (answers @ others + itself)  # (batch, v, tau)
    total = torch.zeros_like(own.mT)
    for i in range(length):
        new, new_read = asked[:, i, None, :], readout[i]
        part = (above[:, i, :, None] + new * new_read) / (below[:, i, :, None] + new)  # (batch, tau, v)
        part[:, i] = own[:, :, i]
        total += part
    return total


def _check(tokens: Tensor) -> None:
    if tokens.ndim != 2 or tokens.is_floating_point() or not len(tokens):
        raise UsageError(
            f"tokens must be whole numbers, (batch, num_tokens) with at least one sequence, got {tuple(tokens.shape)} "
            f"of {str(tokens.dtype).removeprefix('torch.')}"
        )
