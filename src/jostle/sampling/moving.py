"""What happens to one token of each text on its way through a model."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.perturbations import Perturbation
from jostle.sampling.trials import Integers


class Move:
    """An edit of embedded sequences: one vector of each is moved, all others stay bit for bit.

    Attributes:
        is_moved: (batch,) which of the vectors came out other than they were; after the edit.

    Arguments:
        perturbation: what becomes of the vector.
        positions: (batch,) its column.
        uniforms: (batch, at least as many as the perturbation needs) random numbers, the same for every model.
    """

    def __init__(self, perturbation: Perturbation, positions: Integers, uniforms: NDArray[np.float64]) -> None:
        self.perturbation, self.uniforms = perturbation, uniforms
        self._positions = torch.from_numpy(positions)
        self.is_moved: NDArray[np.bool_] = np.zeros(len(positions), dtype=bool)

    def __call__(self, embedded: Tensor) -> Tensor:
        """``embedded`` (batch, tokens, dim) with one vector of each text moved, in new memory."""
        rows, columns = torch.arange(len(embedded)), self._positions
        before = embedded[rows, columns].cpu()  # (batch, dim)
        needed = self.perturbation.num_uniforms(before.shape[1])
        after = self.perturbation.apply(before, self.uniforms[:, :needed])
        self.is_moved = (after != before).any(dim=1).numpy()
        moved = embedded.clone()
        moved[rows, columns] = after.to(embedded.device)
        return moved
