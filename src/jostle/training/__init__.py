"""Training a model until it fits: a plain loop, its checkpoints, and the accuracy of what came out.

Here: how weights are found, saved and loaded. Not here: what a model looks like (``jostle.models``) or how sensitive
it is; measure that from ``on_epoch``. To read it: ``fit.py`` is the run, ``loop.py`` an epoch of it.
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
