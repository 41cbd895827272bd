"""The worst case: the largest response to a change of one token within a ball around it.

``worst_case`` searches, and ``WorstCase`` is the result. Inside, in the order of a search: ``worst`` is the call;
``search`` goes through growing balls; ``starts`` says where an ascent begins, and ``ascent`` climbs from there;
``objective`` is the number that is maximised; ``spots`` are the (input, token) pairs that are searched, and how the
model is called on them. ``result`` and ``picture`` show what was found.
"""

from jostle.worst.result import AtRadius, MeanOverInputs, WorstCase
from jostle.worst.worst import worst_case

__all__ = ["AtRadius", "MeanOverInputs", "WorstCase", "worst_case"]
