"""Functions to learn: from n bits to labels between 0 and 1, from all strings or from some of them."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean import cube, functions

TARGETS = ("parity", "majority", "first", "mean")
"""The functions of paper 2's figures."""

FACTOR = 4.0
"""By which squared errors grow when labels of 0 and 1 become -1 and 1."""

Floats = NDArray[np.float64]

_FEW_BITS = 20  # 2^n of more bits is more than any batch
_ENUMERATED = 12


@dataclass(frozen=True, eq=False)
class HardnessTask:
    """A function to learn, and the strings to learn it from: fresh ones in every step, or some of the 2^n.

    Labels are those of the released code: 0 for -1, 1 for 1, and for MEAN the mean of bits of 0 and 1. Like there,
    batches are drawn with replacement.

    Arguments:
        name: of the function.
        n: bits.
        labels: of all 2^n strings in table order, (2^n,); None for the function called ``name`` of ``jostle.boolean``.
        rows: of the table, the strings to train on; None for all strings.
    """

    name: str
    n: int
    labels: Floats | None = None
    rows: NDArray[np.int64] | None = None

    def label(self, bits: NDArray[np.int8]) -> Floats:
        """The labels of strings (count, tokens) of -1 and 1; shorter strings are labelled by the shorter function."""
        if self.labels is not None:
            return self.labels[(bits > 0) @ (1 << np.arange(self.n)[::-1])]
        values = functions.create(self.name, bits.shape[1])(bits)
        return (np.asarray(values, dtype=np.float64) + 1) / 2

    def batch(self, size: int, seed: int, step: int, length: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """A batch as a function of seed and step: strings (count, length), labels (count,) and shares (count,).

        ``size`` strings are drawn with replacement, uniformly from those to train on. If these are at most ``size``,
        all of them are returned, each with its share of the batch, which may be 0: the same loss from fewer
        evaluations.

        Arguments:
            size: strings drawn.
            seed, step: what the batch is a function of.
            length: of the strings, n unless given; shorter ones only for functions by name.
        """
        generator = torch.Generator().manual_seed(derive_seed(f"batch {self.name}", seed, step))
        length = self.n if length is None else length
        if self.rows is None and (length > _FEW_BITS or 2**length > size):
            bits = torch.randint(2, (size, length), generator=generator).numpy().astype(np.int8) * 2 - 1
            return torch.from_numpy(bits), torch.from_numpy(self.label(bits)).float(), torch.full((size,), 1 / size)
        strings = cube.points(length) if self.rows is None else cube.points(self.n)[self.rows]
        drawn = torch.randint(len(strings), (size,), generator=generator)
        if len(strings) <= size:
            shares = torch.bincount(drawn, minlength=len(strings)).float() / size
        else:
            strings, shares = strings[drawn.numpy()], torch.full((size,), 1 / size)
        return torch.from_numpy(strings), torch.from_numpy(self.label(strings)).float(), shares

    def scale(self, length: int | None = None) -> float:
        """4 Var(label) over the strings to train on: 1 for a balanced function, 1 / n for MEAN; 1 if constant.

        Exact up to 12 bits; beyond, from 4,096 random strings that are always the same.
        """
        length = self.n if length is None else length
        if self.rows is not None:
            bits = self.training_strings()[0]
        elif length <= _ENUMERATED:
            bits = cube.points(length)
        else:
            bits = self.batch(2**_ENUMERATED, seed=0, step=-1, length=length)[0].numpy()
        return FACTOR * float(self.label(bits).var()) or 1.0

    def training_strings(self) -> tuple[NDArray[np.int8], Floats]:
        """The strings to train on and their labels; all 2^n if ``rows`` is None."""
        points = cube.points(self.n) if self.rows is None else cube.points(self.n)[self.rows]
        return points, self.label(points)

    def describe(self) -> dict[str, Any]:
        """The task as JSON values; labels and rows are digests."""
        return {"name": self.name, "n": self.n, "labels": _digest(self.labels), "rows": _digest(self.rows)}


def named_task(name: str, n: int) -> HardnessTask:
    """The function of ``jostle.boolean.functions`` called ``name``, to learn from fresh strings.

    Differs: parity is 1 for an even number of bits that are -1; the released code's is 1 for an odd number of 1.

    >>> named_task("majority", 3).label(np.array([[1, 1, -1], [-1, -1, 1]], dtype=np.int8)).tolist()
    [1.0, 0.0]
    """
    checks.sizes(n=n)
    if not isinstance(name, str):
        raise checks.wrong("name", name, "the name of a function, e.g. 'parity'")
    functions.create(name, n)
    return HardnessTask(name, n)


def table_task(labels: ArrayLike, *, train_size: int | None = None, seed: int = 0, name: str = "table") -> HardnessTask:
    """A function given by its table, to learn from ``train_size`` strings drawn without replacement, or from all.

    >>> table_task([0, 1, 1, 0], train_size=3).rows.tolist()
    [0, 2, 3]

    Arguments:
        labels: (2^n,) from 0 to 1, in the order of ``itertools.product((-1, 1), repeat=n)``.
        train_size: number of strings; None for all.
        seed: of the choice of strings.
        name: shown in messages and progress.
    """
    try:
        table = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError("labels must be a table of 2^n numbers from 0 to 1") from None
    size = len(table) if table.ndim == 1 else 0
    if size < 2 or size & (size - 1):
        raise UsageError(f"labels of shape {table.shape} must be a table of 2^n numbers")
    if not ((table >= 0) & (table <= 1)).all():
        raise UsageError("labels must lie between 0 and 1; for a table of -1 and 1 give (table + 1) / 2")
    if train_size is None:
        return HardnessTask(name, cube.dimension(table), table, np.arange(size))
    checks.whole("train_size", train_size, least=1, most=size, hint=", the number of all strings")
    generator = torch.Generator().manual_seed(derive_seed("strings", seed, train_size))
    rows = torch.randperm(size, generator=generator)[:train_size].sort().values.numpy()
    return HardnessTask(name, cube.dimension(table), table, rows)


def complete_table(task: HardnessTask, seed: int) -> Floats:
    """A table with the labels of the training strings of ``task`` and fair coins elsewhere, (2^n,)."""
    if task.labels is None or task.rows is None:
        raise UsageError("task must be made by table_task: only a table has strings that are not trained on")
    generator = torch.Generator().manual_seed(derive_seed("completion", seed, 0))
    table = torch.randint(2, (len(task.labels),), generator=generator).numpy().astype(np.float64)
    table[task.rows] = task.labels[task.rows]
    return table


def derive_seed(purpose: str, *numbers: int) -> int:
    """A seed for this purpose and these numbers; random numbers of two such seeds are independent."""
    text = " ".join(map(str, ["jostle.hardness", purpose, *(checks.whole("seed", number) for number in numbers)]))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes 63 bits


def _digest(array: NDArray[Any] | None) -> str | None:
    return None if array is None else hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).hexdigest()
