"""Grokking: networks that memorise a table first and find its rule much later, several of them at once.

``tasks`` has the tables and ``designs`` the networks. ``train`` trains a network from each seed, all together, and
keeps their weights; ``load_run`` finds them, also during training. ``follow`` measures the networks along the way, and
``phases`` finds where the measures change. ``plain`` is one network as an ordinary module; ``tables``, ``passes`` and
``gradients`` are the fast way to train many. ``noise``, ``replacement`` and ``fourier`` are the measures.

Sources: Power et al. (2201.02177), Nanda et al. (2301.05217), and paper 1 (2403.06925), Section 7.3.
"""

from jostle_papers.p2403_06925.grokking.course import follow
from jostle_papers.p2403_06925.grokking.designs import DESIGNS, MLP, NANDA, RELEASED, GrokkingDesign
from jostle_papers.p2403_06925.grokking.phases import change_points, lead_times, memorisation, onset, turning_point
from jostle_papers.p2403_06925.grokking.plain import PlainNetwork, initial_network
from jostle_papers.p2403_06925.grokking.tasks import (
    TASKS,
    Addition,
    Division,
    GrokkingTask,
    Permutations,
    Subtraction,
    split,
)
from jostle_papers.p2403_06925.grokking.training import GrokkingRun, load_run, train
from jostle_papers.stacked.trajectory import Trajectory

__all__ = [
    "DESIGNS",
    "MLP",
    "NANDA",
    "RELEASED",
    "TASKS",
    "Addition",
    "Division",
    "GrokkingDesign",
    "GrokkingRun",
    "GrokkingTask",
    "Permutations",
    "PlainNetwork",
    "Subtraction",
    "Trajectory",
    "change_points",
    "follow",
    "initial_network",
    "lead_times",
    "load_run",
    "memorisation",
    "onset",
    "split",
    "train",
    "turning_point",
]
