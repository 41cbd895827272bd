"""The worst case: the largest response within a ball around one token. Left: estimates, results. Right: figures.

``worst_case`` searches, ``WorstCase`` holds what was found and ``load`` reads any saved result. Inside: ``cells`` are
the tokens and how the model is asked about them, ``starts`` where the ascent begins, ``ascent`` how it climbs,
``search`` the order of things.
"""

from jostle.worst.averages import MeanOverInputs
from jostle.worst.loading import load
from jostle.worst.result import AtRadius, WorstCase
from jostle.worst.searching import worst_case

__all__ = ["AtRadius", "MeanOverInputs", "WorstCase", "load", "worst_case"]
