"""Weights of several networks in one tensor: a row for each network, a stretch of columns for each weight.

The optimiser then works on one tensor, a state on disk is three of them, and a matrix product takes all networks at
once.
"""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

_ALIGNMENT = 64 // 4  # numbers of float32 in a line of the cache; every weight begins at a new line


class Layout:
    """Where each weight of a network lies in its row.

    Tied weights have one place. Buffers have none: they are the same in all networks.

    >>> layout = Layout(nn.Linear(3, 2))
    >>> layout.columns, layout.count  # 6 weights and 2 biases, each filled up to 16
    (32, 8)
    >>> layout.views(torch.zeros(5, 32))["weight"].shape
    torch.Size([5, 2, 3])

    Arguments:
        template: a network of the kind. Its weights are not used.
    """

    def __init__(self, template: nn.Module) -> None:
        self._template = template
        self.shapes = {name: tuple(weight.shape) for name, weight in template.named_parameters()}
        self.count = sum(math.prod(shape) for shape in self.shapes.values())
        self._sizes: list[int] = []  # of a weight and of the gap behind it, in turn; gaps stay 0
        for shape in self.shapes.values():
            size = math.prod(shape)
            self._sizes += [size, -size % _ALIGNMENT]
        self.columns = sum(self._sizes)

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Every weight of ``rows`` (networks, columns) by name, each (networks, ...), without a copy."""
        # One split, whose derivative is one concatenation; the derivative of a slice would be as wide as a row.
        weights = torch.split(rows, self._sizes, dim=1)[::2]
        return {
            name: weight.view(len(rows), *shape)
            for (name, shape), weight in zip(self.shapes.items(), weights, strict=True)
        }

    @torch.no_grad()
    def stack(self, networks: Sequence[nn.Module], dtype: torch.dtype | None = None) -> Tensor:
        """The weights of some networks as rows, (networks, columns), in ``dtype`` or else in their own type."""
        like = next(networks[0].parameters())
        rows = torch.zeros(len(networks), self.columns, dtype=like.dtype if dtype is None else dtype)
        views = self.views(rows)
        for row, network in enumerate(networks):
            for name, weight in network.named_parameters():
                views[name][row] = weight.to(rows.dtype)
        return rows

    def unstack(self, rows: Tensor, row: int) -> nn.Module:
        """One of the networks as a module of its own, in eval mode, on the CPU and in the type of ``rows``."""
        network = copy.deepcopy(self._template).to(rows.dtype)
        self.fill(network, rows, row)
        return network.eval()

    @torch.no_grad()
    def fill(self, network: nn.Module, rows: Tensor, row: int) -> None:
        """Copy the weights of one row into ``network``."""
        for name, view in self.views(rows).items():
            network.get_parameter(name).copy_(view[row])

    def bind(self, network: nn.Module, rows: Tensor, row: int) -> None:
        """Make the parameters of ``network`` views of one row, so that a step of the row is a step of the network.

        Arguments:
            network: on the device and in the type of ``rows``.
            rows: (networks, columns).
            row: which of them.
        """
        for name, view in self.views(rows).items():
            network.get_parameter(name).data = view[row]
