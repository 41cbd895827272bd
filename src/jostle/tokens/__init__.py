"""An input as T tokens. Left of here: models. Right of here: perturbations.

A ``TokenView`` says what a token is, ``sources`` reads inputs, ``Inputs`` holds them and their masks, ``TokenFunction``
asks the model. Of text, ``Padding`` knows where sentences begin and end, and a ``Site`` is where a model embeds them.
"""

from jostle.tokens.inputs import Inputs
from jostle.tokens.model import TokenFunction
from jostle.tokens.padding import Padding
from jostle.tokens.sites import Edit, Site
from jostle.tokens.sources import Batch
from jostle.tokens.text_views import Embeddings, TextView, Words
from jostle.tokens.view import VIEWS, TokenView
from jostle.tokens.views import Coordinates, Patches, Rows, Whole

__all__ = [
    "VIEWS",
    "Batch",
    "Coordinates",
    "Edit",
    "Embeddings",
    "Inputs",
    "Padding",
    "Patches",
    "Rows",
    "Site",
    "TextView",
    "TokenFunction",
    "TokenView",
    "Whole",
    "Words",
]
