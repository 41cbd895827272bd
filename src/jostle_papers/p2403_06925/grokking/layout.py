"""Weights of several networks in one tensor: a row for each network, a stretch of columns for each weight.

The optimiser then works on one tensor, a checkpoint is three of them, and a matrix product takes all networks at once.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from jostle_papers.p2403_06925.grokking.designs import Design
from jostle_papers.p2403_06925.grokking.plain import PlainNetwork
from jostle_papers.p2403_06925.grokking.tasks import Task

_ALIGNMENT = 64 // 4  # numbers of float32 in a line of the cache


class Layout:
    """Where each weight of a network lies in its row.

    >>> from jostle_papers.p2403_06925.grokking.designs import NANDA, RELEASED
    >>> from jostle_papers.p2403_06925.grokking.tasks import Addition
    >>> Layout(Addition(), NANDA).count, Layout(Addition(), RELEASED).count
    (226816, 227442)

    Arguments:
        task: for the number of tokens.
        design: for the sizes.
    """

    def __init__(self, task: Task, design: Design) -> None:
        self._task, self._design = task, design
        self.shapes = {name: tuple(weight.shape) for name, weight in self._blank().named_parameters()}
        self._starts: dict[str, int] = {}
        self.columns = 0
        for name, shape in self.shapes.items():
            self._starts[name] = self.columns
            self.columns += -(-math.prod(shape) // _ALIGNMENT) * _ALIGNMENT  # what is left over stays 0

    @property
    def count(self) -> int:
        """Weights of one network."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Every weight of ``rows`` (networks, columns) by name, each (networks, ...), without a copy."""
        return {
            name: rows[:, self._starts[name] : self._starts[name] + math.prod(shape)].view(len(rows), *shape)
            for name, shape in self.shapes.items()
        }

    @torch.no_grad()
    def stack(self, networks: Sequence[PlainNetwork], dtype: torch.dtype = torch.float32) -> Tensor:
        """The weights of some networks as rows, (networks, columns)."""
        rows = torch.zeros(len(networks), self.columns, dtype=dtype)
        views = self.views(rows)
        for row, network in enumerate(networks):
            for name, weight in network.named_parameters():
                views[name][row] = weight.to(dtype)
        return rows

    @torch.no_grad()
    def unstack(self, rows: Tensor, row: int) -> PlainNetwork:
        """One of the networks as a module of its own, in the type of ``rows``."""
        network = self._blank().to(rows.dtype)
        network.load_state_dict({name: view[row].cpu() for name, view in self.views(rows).items()})
        return network.eval()

    def _blank(self) -> PlainNetwork:
        with torch.random.fork_rng(devices=[]):  # its first weights are not wanted, nor what drawing them would change
            return PlainNetwork(self._task.numbers, self._design)
