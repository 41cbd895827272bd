"""How flat a minimum is: what outputs, predictions and losses do when the weights are moved.

``sharpness`` (paper 1) and ``average_direction_sharpness`` (paper 2) move the weights at random. ``curvature`` is the
Hessian of the loss. ``layernorm_blowup`` and ``parameter_norm`` are the two quantities that paper 2 trades against each
other. ``sensitivity_gap`` is the reason why a sensitive function is sharp.

Inside: ``weights`` chooses and moves parameters, ``network`` evaluates a model with moved parameters, ``draws`` is the
loop over draws, ``averages`` has the means over draws with their intervals, ``losses`` reads losses and labels.
``jostle.estimates`` moves inputs instead of weights.
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
