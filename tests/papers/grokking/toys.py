"""Networks small enough for slow twins, in float64."""

import dataclasses

import torch

from jostle_papers.p2403_06925.grokking import MLP, NANDA, RELEASED, Addition
from jostle_papers.p2403_06925.grokking.plain import initial_network, layout_of
from jostle_papers.p2403_06925.grokking.tables import tables

SMALL = {"dim": 8, "heads": 2, "hidden": 12}
DESIGNS = {
    "nanda": dataclasses.replace(NANDA, **SMALL),
    "released": dataclasses.replace(RELEASED, **SMALL),
    "mlp": dataclasses.replace(MLP, **SMALL),
}
TASK = Addition(modulus=5)
SEEDS = (3, 4, 5)


def shaken(design, task=TASK, seeds=SEEDS):
    """Networks of some seeds whose biases and positions are not 0 either, so that nothing is left untested."""
    networks = []
    for seed in seeds:
        network = initial_network(task, design, seed).double()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in network.parameters():
                weight += 0.3 * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        networks.append(network)
    return networks


def stacked(networks, design, task=TASK):
    """Layout, weights as rows, and tables of some networks."""
    layout = layout_of(task, design)
    rows = layout.stack(networks, torch.float64)
    return layout, rows, tables(layout.views(rows), design)
