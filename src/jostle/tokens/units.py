"""The size of each column of a table, so that noise of one strength suits columns of all units."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Units:
    """Mean and standard deviation of each column.

    >>> units = Units.of([torch.tensor([[1.0, 10.0], [3.0, 30.0]]), torch.tensor([[5.0, 50.0]])])
    >>> units.mean.tolist(), [round(float(one), 3) for one in units.std]
    ([3.0, 30.0], [1.633, 16.33])

    Arguments:
        mean, std: (columns,) of float64; the standard deviation divides by N.
    """

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, parts: Iterable[Tensor]) -> "Units":
        """Those of all rows, part by part, (rows, columns) each: the update of Chan, Golub and LeVeque (1983)."""
        count, mean, squares = 0, torch.zeros(()), torch.zeros(())
        for part in parts:
            rows = part.double()
            own, size = rows.mean(dim=0), len(rows)
            shift = own - mean
            squares = squares + (rows - own).square().sum(dim=0) + shift.square() * (count * size / (count + size))
            mean = mean + shift * (size / (count + size))
            count += size
        return cls(mean, (squares / max(count, 1)).sqrt())

    def at(self, columns: Tensor, *, is_whole: bool = False) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of these columns, (len(columns), 1) each, or of whole rows, (1, columns)."""
        if is_whole:
            return self.mean[None], self.std[None]
        return self.mean[columns][:, None], self.std[columns][:, None]
