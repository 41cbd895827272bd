"""Batches of examples of similar length, so that few of the computed tokens are padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream


def length_order(
    lengths: Sequence[int] | NDArray[np.integer] | Tensor, batch_size: int, seed: int, *, pool: int = 100
) -> "LengthOrder":
    """Batches of examples of similar length, in random order: every example once.

    Examples are shuffled and dealt into pools of ``pool`` batches; each pool is sorted by length (equal lengths stay
    shuffled) and cut into batches; then all batches are shuffled. Give each epoch its own seed. A larger pool leaves
    less padding, and batches that differ less from epoch to epoch.

    Share of padding = 1 - sum of lengths / sum over batches of (size * longest).

    >>> order = length_order([9, 2, 8, 3, 2, 9], batch_size=2, seed=0)
    >>> sorted(sorted(batch.tolist()) for batch in order.batches), round(order.padding, 3)
    ([[0, 5], [1, 4], [2, 3]], 0.132)

    Arguments:
        lengths: number of tokens of each example, # (examples,), e.g. ``(ids != 0).sum(1)``.
        batch_size: examples of a batch; the last batch of a pool may have fewer.
        seed: of both shuffles: the same seed gives the same batches on any machine.
        pool: number of batches that are sorted together.
    """
    checks.sizes(batch_size=batch_size, pool=pool)
    checks.whole("seed", seed, least=0)
    sizes = _read_lengths(lengths)
    shuffled = Stream(seed, "length order of examples").permutation(len(sizes))
    cuts: list[NDArray[np.int64]] = []
    for start in range(0, len(sizes), pool * batch_size):
        dealt = shuffled[start : start + pool * batch_size]
        ordered = dealt[np.argsort(sizes[dealt], kind="stable")]
        cuts += [ordered[at : at + batch_size] for at in range(0, len(ordered), batch_size)]
    turns = Stream(seed, "length order of batches").permutation(len(cuts))
    computed = sum(len(batch) * int(sizes[batch].max()) for batch in cuts)
    return LengthOrder(
        batches=tuple(cuts[turn] for turn in turns),
        padding=1 - int(sizes.sum()) / computed,
        padding_of_all=1 - int(sizes.sum()) / (len(sizes) * int(sizes.max())),
    )


@dataclass(frozen=True, eq=False)
class LengthOrder:
    """The batches of an epoch, in the order of their use.

    Arguments:
        batches: the numbers of the examples of each, # (batch,) of int64; some may be smaller than the others.
        padding: the share of padding among all tokens if each batch is padded to its own longest.
        padding_of_all: the same if all examples are padded to the longest of all, for comparison.
    """

    batches: tuple[NDArray[np.int64], ...]
    padding: float
    padding_of_all: float


def _read_lengths(lengths: Sequence[int] | NDArray[np.integer] | Tensor) -> NDArray[np.int64]:
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or len(sizes) == 0 or not np.issubdtype(sizes.dtype, np.integer) or sizes.min() < 1:
        shown = f"shape {sizes.shape} of {sizes.dtype}" + (f", least {sizes.min()}" if sizes.size else "")
        raise UsageError(f"lengths has {shown}; give one whole number of at least 1 for each example")
    return sizes.astype(np.int64)
