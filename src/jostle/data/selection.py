"""The examples of a subset: the first, a random choice fixed by a seed, or the same number of each class."""

import numpy as np
from numpy.typing import NDArray

from jostle.base import checks
from jostle.base.errors import UsageError

Rows = slice | NDArray[np.intp]


def choose(
    labels: NDArray[np.generic],
    classes: int,
    limit: int | None = None,
    *,
    seed: int | None = None,
    balanced: bool = False,
    called: str = "examples",
) -> Rows:
    """The rows of a subset, in the order of their use.

    >>> import numpy as np
    >>> labels = np.array([0, 0, 0, 1, 0, 1])
    >>> choose(labels, 2, limit=4, balanced=True).tolist()
    [0, 1, 3, 5]

    Arguments:
        labels: the class of each example, # (examples,).
        classes: number of classes.
        limit: number of examples; all of them by default.
        seed: of a shuffled order, in which a smaller limit is the beginning of a larger one; without a seed the order
            is that of the file.
        balanced: take the same number of each class, or one more of the first ``limit % classes`` classes.
        called: the word for the examples in error messages.
    """
    _check(len(labels), limit, seed, balanced, called)
    if seed is None and not balanced:
        return slice(0, limit)
    order = np.arange(len(labels)) if seed is None else random_order(len(labels), seed)
    return _choose_balanced(labels, order, classes, limit, called) if balanced and limit is not None else order[:limit]


def random_order(n: int, seed: int) -> NDArray[np.intp]:
    """The numbers 0 to n - 1 in an order that depends on n and ``seed`` only, for ever."""
    # Sorting the raw PCG64 stream, because numpy promises that stream for ever, but not what Generator.permutation
    # makes of it.
    return np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")


def check_limit(limit: int | None) -> None:
    """Raise unless ``limit`` is None or a whole number of at least 1."""
    if limit is not None:
        checks.whole("limit", limit, least=1, hint="; leave it out to load everything")


def check_seed(seed: int | None) -> None:
    """Raise unless ``seed`` is None or a whole number of at least 0."""
    if seed is not None:
        checks.whole("seed", seed, least=0, hint="; leave it out for the file's order")


def _check(n: int, limit: int | None, seed: int | None, balanced: bool, called: str) -> None:
    check_seed(seed)
    if balanced and limit is None:
        raise UsageError("balanced=True needs a limit: how many examples, for example limit=1000")
    if limit is not None and not 1 <= limit <= n:
        raise UsageError(f"cannot take {limit} of the {n} {called}")


def _choose_balanced(
    labels: NDArray[np.generic], order: NDArray[np.intp], classes: int, limit: int, called: str
) -> NDArray[np.intp]:
    in_order, keep = labels[order], np.zeros(len(order), dtype=bool)
    for label in range(classes):
        wanted = limit // classes + (label < limit % classes)
        places = np.flatnonzero(in_order == label)
        if len(places) < wanted:
            raise UsageError(
                f"cannot take {wanted} examples of class {label} for a balanced subset of {limit}: there are "
                f"{len(places)} among the {len(labels)} {called}; use a smaller limit or balanced=False"
            )
        keep[places[:wanted]] = True
    return order[keep]
