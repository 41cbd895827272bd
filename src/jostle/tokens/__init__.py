"""An input as T tokens. Left of here: models. Right of here: perturbations.

A ``TokenView`` says what a token is, ``sources`` reads inputs, ``Inputs`` holds them and their masks, ``TokenFunction``
asks the model.
"""

from jostle.tokens.function import TokenFunction
from jostle.tokens.inputs import Inputs
from jostle.tokens.sources import Batch
from jostle.tokens.view import VIEWS, TokenView
from jostle.tokens.views import Coordinates, Patches, Rows, Whole

__all__ = ["VIEWS", "Batch", "Coordinates", "Inputs", "Patches", "Rows", "TokenFunction", "TokenView", "Whole"]
