"""Sparse parity: networks that learn the product of a few of many bits, and their sensitivity on the way.

``task`` has the data, ``transformer`` and ``recurrent`` the networks, ``designs`` how they are trained. ``train``
trains a network and looks at it along the way; ``measures`` has the measures, sampled or by enumeration, and ``onsets``
says what rises when.

Source: paper 1 (2403.06925), appendix A.6, Figure 26.
"""

from jostle_papers.p2403_06925.parity.designs import DESIGNS, BitClassifier, ParityDesign
from jostle_papers.p2403_06925.parity.measures import ParityLook, ParityObserver, enumerate_measures
from jostle_papers.p2403_06925.parity.onsets import (
    lead,
    learning_step,
    relative_lead,
    rise,
    value_before_learning,
    ways,
)
from jostle_papers.p2403_06925.parity.recurrent import BitLSTM, BitStateSpace
from jostle_papers.p2403_06925.parity.task import SparseParity
from jostle_papers.p2403_06925.parity.training import ParityCourse, ParityPlan, TrainedClassifier, train
from jostle_papers.p2403_06925.parity.transformer import BitTransformer

__all__ = [
    "DESIGNS",
    "BitClassifier",
    "BitLSTM",
    "BitStateSpace",
    "BitTransformer",
    "ParityCourse",
    "ParityDesign",
    "ParityLook",
    "ParityObserver",
    "ParityPlan",
    "SparseParity",
    "TrainedClassifier",
    "enumerate_measures",
    "lead",
    "learning_step",
    "relative_lead",
    "rise",
    "train",
    "value_before_learning",
    "ways",
]
