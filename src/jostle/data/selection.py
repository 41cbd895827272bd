"""Which examples make a subset: the first, a random choice fixed by a seed, or as many of each class."""

import numpy as np
from numpy.typing import NDArray

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
    """The rows of a subset, in the order in which they are to be used.

    >>> import numpy as np
    >>> labels = np.array([0, 0, 0, 1, 0, 1])
    >>> choose(labels, 2, limit=4, balanced=True).tolist()
    [0, 1, 3, 5]

    Arguments:
        labels: the class of each example, # (examples,).
        classes: how many classes there are.
        limit: how many examples; all of them if left out.
        seed: without it the order is that of the file; with it the order is shuffled, the same for the same seed, and
            a smaller limit is the beginning of a larger one.
        balanced: take the same number of each class, or one more of the first ``limit % classes`` classes.
        called: what error messages call the examples.
    """
    _check(len(labels), limit, seed, balanced, called)
    if seed is None and not balanced:
        return slice(0, limit)
    order = np.arange(len(labels)) if seed is None else shuffled(len(labels), seed)
    return _balanced(labels, order, classes, limit, called) if balanced and limit is not None else order[:limit]


def shuffled(n: int, seed: int) -> NDArray[np.intp]:
    """The numbers 0 to n - 1 in an order that depends on n and ``seed`` only, for ever."""
    # Sorting the raw PCG64 stream, because numpy promises that stream for ever, but not what Generator.permutation
    # makes of it.
    return np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")


def check_limit(limit: int | None) -> None:
    """Raise unless ``limit`` is a whole number of at least 1 or left out."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageError(f"limit must be a whole number of at least 1, got {limit!r}; leave it out to load everything")


def check_seed(seed: int | None) -> None:
    """Raise unless ``seed`` is a whole number of at least 0 or left out."""
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise UsageError(f"seed must be a whole number of at least 0, got {seed!r}; leave it out for the file's order")


def _check(n: int, limit: int | None, seed: int | None, balanced: bool, called: str) -> None:
    check_seed(seed)
    if balanced and limit is None:
        raise UsageError("balanced=True needs a limit: how many examples, for example limit=1000")
    if limit is not None and not 1 <= limit <= n:
        raise UsageError(f"cannot take {limit} of the {n} {called}")


def _balanced(
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
