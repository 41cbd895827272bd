"""Weights of several networks in one tensor: a row for each network, a stretch of columns for each weight."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jostle_papers.p2402_09963.hardness.designs import Design


class Layout:
    """Where each weight of a network for n bits lies in its row.

    >>> Layout(Design(dim=4), 10).columns  # 281 and ten positions of two numbers
    301

    Arguments:
        design: its sizes.
        n: bits.
    """

    def __init__(self, design: Design, n: int) -> None:
        self._design, self._n = design, n
        self.shapes = {name: tuple(weight.shape) for name, weight in design.create(n, 0).named_parameters()}
        self.columns = sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Every weight of ``rows`` (networks, columns) by name, each (networks, ...)."""
        # One split, whose derivative is one concatenation; slices would each have one as wide as a row.
        parts = torch.split(rows, [math.prod(shape) for shape in self.shapes.values()], dim=1)
        return {
            name: part.reshape(len(rows), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    @torch.no_grad()
    def stack(self, networks: Sequence[nn.Module]) -> Tensor:
        """The weights of some networks as rows, (networks, columns)."""
        return torch.stack([torch.cat([weight.flatten() for weight in each.parameters()]) for each in networks])

    @torch.no_grad()
    def unstack(self, rows: Tensor, row: int) -> nn.Module:
        """One of the networks as a module of its own, in the type of ``rows``."""
        network = self._design.create(self._n, 0).to(rows.dtype)
        for name, view in self.views(rows).items():  # tied weights and buffers have no place in a row
            network.get_parameter(name).copy_(view[row])
        return network.eval()
