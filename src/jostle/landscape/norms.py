"""The size of the weights."""

import math
from typing import Any

from jostle.landscape.arguments import chosen_parameters


def parameter_norm(model: Any, *, skip: tuple[str, ...] | list[str] = ()) -> float:
    """The Euclidean norm of all parameters together, sqrt(sum of squares), in float64.

    Paper 2's code (2402.09963) leaves out positional encodings, whose number grows with the length of the input:
    ``skip=jostle.landscape.POSITIONS``.

    >>> from torch import nn
    >>> _ = (line := nn.Linear(2, 1)).weight.data.fill_(2.0), line.bias.data.fill_(1.0)
    >>> parameter_norm(line), parameter_norm(nn.LayerNorm(4), skip=["bias"])
    (3.0, 2.0)

    Arguments:
        model: a module; floating-point parameters count, tied ones once, buffers do not.
        skip: patterns of names of parameters that are left out.
    """
    squares = [float(tensor.double().square().sum()) for tensor in chosen_parameters(model, skip).values()]
    return math.sqrt(math.fsum(squares))
