"""Predictors that use one group of tokens only, and their sensitivity in closed form."""

from collections.abc import Callable
from fractions import Fraction

from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.synthetic.task import SparseFrequent

INFORMATIVE = ("sparse", "frequent")


def counting(task: SparseFrequent, group: str) -> Callable[[Tensor], Tensor]:
    """The predictor of Tables 1 and 3: tokens of the group that speak for +1, minus those that speak for -1.

    Arguments:
        task: with the vocabulary.
        group: ``sparse`` or ``frequent``.

    Returns:
        A function from tokens (batch, num_tokens) to (batch, 1), whose sign is the prediction.

    >>> import torch
    >>> task = SparseFrequent(sparse=1, frequent=3, difference=1, kinds=2, vocabulary=7, num_tokens=6)
    >>> counting(task, "frequent")(torch.tensor([[6, 3, 6, 5, 4, 1]])).item()
    -1.0
    """
    checks.choice("group", group, INFORMATIVE)
    weights = task.direction(group)
    return lambda tokens: weights[tokens].sum(dim=-1, keepdim=True)


def counting_sensitivity(
    task: SparseFrequent, group: str, *, tie: Fraction | int = 1, includes_present: bool = True
) -> Fraction:
    """The sensitivity of ``counting`` on ``task``, exactly.

    Every sequence has the same counts: p tokens of the group for its label, q against it, and T - p - q others; of the
    M tokens of the vocabulary v speak for each label. Only replacements that lower the count D = p - q can flip it.
    With P uniform over all M tokens, of the T M replacements

        p v              lower it by 2 (one for the label becomes one against it),
        p (M - 2v) + (T - p - q) v    lower it by 1 (it becomes another, or another becomes one against it).

    So T M S is the sum of both for D = 1, p v for D = 2, and 0 for D >= 3, where a count of 0 differs from both signs.
    Source: paper 1 (2403.06925), Def. 4.1, Tables 1 and 3. With M = 59 and 69 the formula gives their digits; the paper
    has no formula and names no M.

    >>> task = SparseFrequent(sparse=3, frequent=5, difference=1, kinds=16, vocabulary=59)
    >>> value = counting_sensitivity(task, "frequent")
    >>> value, round(float(value), 4)
    (Fraction(849, 2950), 0.2878)

    Arguments:
        task: the data.
        group: ``sparse`` or ``frequent``.
        tie: how much a count that becomes 0 counts as a change. With balanced labels, sign(0) = +1 amounts to 1/2.
        includes_present: whether P may draw the present token again.
    """
    checks.choice("group", group, INFORMATIVE)
    if not 0 <= tie <= 1:
        raise UsageError(f"tie={tie} must be from 0 (a count of 0 is no change) to 1 (it is a change)")
    is_sparse = group == "sparse"
    speaking = 1 if is_sparse else task.kinds
    own = task.sparse if is_sparse else task.majority
    against = 0 if is_sparse else task.frequent - task.majority
    by_two = own * speaking
    by_one = own * (task.vocabulary - 2 * speaking) + (task.num_tokens - own - against) * speaking
    flipped = {1: by_two + tie * by_one, 2: tie * by_two}.get(own - against, 0)
    return Fraction(flipped) / (task.num_tokens * (task.vocabulary - (not includes_present)))
