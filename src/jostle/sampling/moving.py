"""What happens to one token of each text on its way through a model."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.perturbations import Perturbation
from jostle.sampling.trials import Integers


class Move:
    """An edit of embedded sequences: one vector of each is moved, or several, and all others stay bit for bit.

    Attributes:
        is_moved: (batch,) of which texts a vector came out other than it was; after the edit.

    Arguments:
        perturbation: what becomes of a vector.
        columns: (vectors,) where they are in their texts.
        uniforms: (vectors, at least as many as the perturbation needs) random numbers, the same for every model.
        rows: (vectors,) of which text of the batch they are; by default one of each, in order.
    """

    def __init__(
        self,
        perturbation: Perturbation,
        columns: Integers,
        uniforms: NDArray[np.float64],
        rows: Integers | None = None,
    ) -> None:
        self.perturbation, self.uniforms = perturbation, uniforms
        self._rows = np.arange(len(columns)) if rows is None else rows
        self._columns = torch.from_numpy(columns)
        self.is_moved: NDArray[np.bool_] = np.zeros(0, dtype=bool)

    def __call__(self, embedded: Tensor) -> Tensor:
        """``embedded`` (batch, tokens, dim) with some vectors moved, in new memory."""
        rows, columns = torch.from_numpy(self._rows), self._columns
        before = embedded[rows, columns].cpu()  # (vectors, dim)
        needed = self.perturbation.num_uniforms(before.shape[1])
        after = self.perturbation.apply(before, self.uniforms[:, :needed])
        self.is_moved = np.zeros(len(embedded), dtype=bool)
        self.is_moved[self._rows[(after != before).any(dim=1).numpy()]] = True
        moved = embedded.clone()
        moved[rows, columns] = after.to(embedded.device)
        return moved
