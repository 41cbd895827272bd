"""Training a model until it fits: a plain loop, its checkpoints, and the accuracy of what came out.

Here: how weights are found, saved and loaded. Not here: what a model looks like (``jostle.models``) or how sensitive
it is; measure that from ``on_epoch``.
"""

from jostle.training.checkpoints import load_weights, save_weights
from jostle.training.evaluation import Evaluation, evaluate
from jostle.training.fit import Epoch, History, fit

__all__ = ["Epoch", "Evaluation", "History", "evaluate", "fit", "load_weights", "save_weights"]
