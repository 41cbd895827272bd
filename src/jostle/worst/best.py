"""The best that was found so far for each cell."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.sampling.trials import Integers
from jostle.worst.cells import Cells, Floats


class Best:
    """For each cell the largest response seen, the change that gives it, and how high it got.

    A larger response is better, and of equal responses the one that is higher. Nothing is ever given up, so what was
    found in a small ball counts in a larger one.

    Attributes:
        values, heights: (cells,) the response and the number that is ascended; at first those of no change.
        deltas: (cells, dim) the change.
        is_seen: (cells,) whether any change of the cell had a finite response.
        predictions: (cells,) for flips, what is predicted after the change.
    """

    def __init__(self, cells: Cells) -> None:
        references = cells.references(np.arange(len(cells)))
        self.objective = cells.objective
        self.values: Floats = np.zeros(len(cells))
        self.heights: Floats = self.objective.clean_height(references).numpy().copy()
        self.deltas = torch.zeros_like(cells.clean)
        self.is_seen = np.zeros(len(cells), dtype=bool)
        self.predictions: Integers = np.zeros(len(cells), dtype=np.int64)
        if self.objective.is_flip:
            self.predictions = references[:, 0].long().numpy().copy()

    def take(
        self, rows: Integers, deltas: Tensor, values: Floats, heights: Floats, outputs: Tensor
    ) -> NDArray[np.bool_]:
        """Keep what is better than before; a cell may occur several times. Returns which of them were finite."""
        finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).numpy() & np.isfinite(values)
        kept = np.flatnonzero(finite)
        self.is_seen[rows[kept]] = True
        order = kept[np.lexsort((heights[kept], values[kept], rows[kept]))]  # best of each cell last
        last = order[np.append(rows[order][1:] != rows[order][:-1], True)] if len(order) else order
        row, value, height = rows[last], values[last], heights[last]
        is_better = (value > self.values[row]) | ((value == self.values[row]) & (height > self.heights[row]))
        row, last = row[is_better], last[is_better]
        self.values[row], self.heights[row] = values[last], heights[last]
        chosen = torch.from_numpy(last)
        self.deltas[torch.from_numpy(row)] = deltas.detach()[chosen]
        if self.objective.is_flip:
            self.predictions[row] = self.objective.response.reference(outputs[chosen]).numpy()
        return finite
