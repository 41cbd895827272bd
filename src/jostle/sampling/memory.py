"""What readers remember of clean inputs: of the ones seen last, as many as there is room for."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.sampling.plans import Integers

REMEMBERED_NUMBERS = 2**26  # of all clean inputs together: 256 MiB in float32


class Memory:
    """Tensors of the inputs that were remembered last, as many as there is room for.

    Arguments:
        count: the number of inputs.
        widths: the most numbers of each tensor for one input; by default as many as are put first.
    """

    def __init__(self, count: int, widths: Sequence[int] | None = None) -> None:
        self._widths = widths
        self._slot = np.full(count, -1)
        self._owner = np.zeros(0, dtype=np.int64)
        self._next = 0
        self.parts: list[Tensor] = []

    def put(self, indices: Integers, parts: list[Tensor]) -> None:
        """Keep rows of tensors, one of each for each of these inputs; what is behind shorter rows has no meaning."""
        if not self.parts:
            widths = self._widths or [part.shape[1] for part in parts]
            room = min(len(self._slot), REMEMBERED_NUMBERS // sum(widths))
            self.parts = [part.new_empty(room, width) for part, width in zip(parts, widths, strict=True)]
            self._owner = np.full(room, -1)
        kept = indices[: len(self._owner)]
        slots = (self._next + np.arange(len(kept))) % max(1, len(self._owner))
        gone = self._owner[slots]
        self._slot[gone[(gone >= 0) & (self._slot[gone] == slots)]] = -1  # an input may have moved since
        self._slot[kept], self._owner[slots] = slots, kept
        self._next = int(slots[-1]) + 1 if len(slots) else 0
        for held, part in zip(self.parts, parts, strict=True):
            held[:, : part.shape[1]][torch.from_numpy(slots)] = part[: len(kept)]

    def knows(self, indices: Integers) -> NDArray[np.bool_]:
        """(len(indices),) which of these inputs are kept."""
        return self._slot[indices] >= 0

    def slots(self, indices: Integers) -> Tensor:
        """Where these inputs are kept."""
        return torch.from_numpy(self._slot[indices])

    def pick(self, number: int, slots: Tensor, columns: Tensor) -> Tensor:
        """Numbers ``columns`` (rows, ...) of the rows ``slots`` of one of the tensors."""
        held = self.parts[number]
        return torch.take(held, columns + slots[:, None] * held.shape[1])
