"""An input as T tokens, and a model that is asked about inputs.

A ``TokenView`` says what a token is, ``Inputs`` reads inputs and holds them with their masks, and ``TokenFunction``
asks the model. For texts, ``Padding`` knows where each begins and ends, and a ``Site`` is where a model embeds them.
"""

from jostle.tokens.inputs import Inputs
from jostle.tokens.model import TokenFunction
from jostle.tokens.padding import Padding
from jostle.tokens.readout import Readout
from jostle.tokens.sites import Edit, Site
from jostle.tokens.sources import Batch
from jostle.tokens.text_views import Embeddings, TextView, Words
from jostle.tokens.views import VIEWS, Columns, Coordinates, Inside, Patches, Rows, TokenView, Whole

__all__ = [
    "VIEWS",
    "Batch",
    "Columns",
    "Coordinates",
    "Edit",
    "Embeddings",
    "Inputs",
    "Inside",
    "Padding",
    "Patches",
    "Readout",
    "Rows",
    "Site",
    "TextView",
    "TokenFunction",
    "TokenView",
    "Whole",
    "Words",
]
