"""Train a model until it fits: a plain loop with checkpoints, and the loss and accuracy of the result.

To read it: ``fit.py`` is a run, ``loop.py`` an epoch, ``objective.py`` what a step minimises. To measure sensitivity
while a model trains, use ``on_epoch`` of ``fit``.
"""

from jostle.training.checkpoints import load_weights, save_weights
from jostle.training.evaluation import Evaluation, evaluate
from jostle.training.fit import fit
from jostle.training.history import Epoch, History
from jostle.training.schedules import SCHEDULES, Constant, Cosine, Schedule, Step

__all__ = [
    "SCHEDULES",
    "Constant",
    "Cosine",
    "Epoch",
    "Evaluation",
    "History",
    "Schedule",
    "Step",
    "evaluate",
    "fit",
    "load_weights",
    "save_weights",
]
