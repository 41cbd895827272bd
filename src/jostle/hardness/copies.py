"""The functions that a network computes once its weights have taken a step: whole tables of them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from jostle.boolean import cube
from jostle.hardness.observing import check_numbers
from jostle.landscape import POSITIONS
from jostle.landscape.arguments import not_negative, whole
from jostle.landscape.network import Network
from jostle.landscape.weights import WeightNoise, kept
from jostle.models.sizes import check_positive

Floats = NDArray[np.float64]


def moved_tables(network: nn.Module, n: int, *, rho: float, directions: int, seed: int = 0) -> tuple[Floats, Floats]:
    """A network's outputs at all 2^n strings, (2^n,), and those of its copies, (directions, 2^n), in table order.

    The copies are those of ``average_direction_sharpness``: its value is factor * the mean of (copy - table)^2.

    >>> from jostle.hardness.designs import Design
    >>> table, copies = moved_tables(Design(dim=4).create(3, seed=0), 3, rho=0.1, directions=5)
    >>> table.shape, copies.shape
    ((8,), (5, 8))

    Arguments:
        network: on bits, one number a string; left as it was.
        n: bits.
        rho: the length of a step; positions stay.
        directions: how many copies, at least 1.
        seed: of the directions.
    """
    check_positive(n=n, directions=directions)
    rho, seed = not_negative("rho", rho), whole("seed", seed)
    strings = torch.from_numpy(cube.points(n)).to(next(network.parameters()).dtype)
    held = Network(network, strings, skip=POSITIONS)
    noise = WeightNoise(held.parameters, "sphere", rho, seed)
    copies = np.empty((directions, 2**n))
    with kept(network):
        outputs = torch.cat([held.answer(rows) for rows in held.batches()])
        check_numbers(outputs, 2**n)
        table = outputs.double().numpy()
        for group in held.groups(noise, directions, None):
            for rows, moved in held.answers(noise, group):  # (batch, draws)
                copies[group, rows] = moved.double().mT.numpy()
    return table, copies
