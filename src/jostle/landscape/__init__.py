"""How flat a minimum is: what outputs, predictions and losses do when the weights are moved.

``sharpness`` (paper 1) and ``average_direction_sharpness`` (paper 2) move the weights at random, ``curvature`` looks at
the Hessian of the loss, ``layernorm_blowup`` and ``parameter_norm`` are what paper 2 trades against each other, and
``sensitivity_gap`` is why a sensitive function is sharp. Left on the line: perturbations, responses, sampling; beside
it: estimates, which moves inputs instead of weights; right: ``jostle.boolean``. ``weights`` moves weights, ``network``
evaluates them, ``drawing`` is the loop over draws; ``normalising`` knows what norms do.
"""

from jostle.landscape.averages import MeanOverDraws
from jostle.landscape.directions import DirectionSharpness, average_direction_sharpness
from jostle.landscape.hessian import Curvature, curvature
from jostle.landscape.layernorm import Blowup, layernorm_blowup
from jostle.landscape.sensitivity_gap import SensitivityGap, sensitivity_gap
from jostle.landscape.sharpness import Sharpness, sharpness
from jostle.landscape.weights import POSITIONS, parameter_norm

__all__ = [
    "POSITIONS",
    "Blowup",
    "Curvature",
    "DirectionSharpness",
    "MeanOverDraws",
    "SensitivityGap",
    "Sharpness",
    "average_direction_sharpness",
    "curvature",
    "layernorm_blowup",
    "parameter_norm",
    "sensitivity_gap",
    "sharpness",
]
