"""The worst case: the largest response within a ball around one token. Left: estimates, results. Right: figures.

``worst_case`` searches, ``WorstCase`` holds what was found and ``load`` reads any saved result. Inside: ``cells`` are
the tokens and how the model is asked about them, ``starts`` where the ascent begins, ``ascent`` how it climbs,
``search`` the order of things.
"""

from jostle.worst.result import AtRadius, MeanOverInputs, WorstCase
from jostle.worst.worst import worst_case

__all__ = ["AtRadius", "MeanOverInputs", "WorstCase", "worst_case"]
