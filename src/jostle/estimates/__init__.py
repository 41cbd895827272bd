"""Sensitivities with intervals: ``measure``, ``compare``, ``sweep`` and ``stability``, and what they return.

A call becomes a ``Request`` (``request``), the loop of its plan runs (``measure``), tallies count and estimate
(``tallies``), and results carry the numbers to people and files (``result``, ``sweep``, ``stability``).
"""

from jostle.estimates.certainty import Certainty
from jostle.estimates.certificate import Certificates, certify
from jostle.estimates.depth import Depth, depth
from jostle.estimates.influence import influence
from jostle.estimates.influence_result import Influence, PromptInfluence
from jostle.estimates.measure import Interrupted, JostleWarning, compare, measure
from jostle.estimates.result import Comparison, Difference, MeanChange, Measurement, Profile
from jostle.estimates.stability import Stability, StabilityPoint, stability
from jostle.estimates.sweep import Sweep, sweep
from jostle.estimates.texts import TextChanges, change_texts

__all__ = [
    "Certainty",
    "Certificates",
    "Comparison",
    "Depth",
    "Difference",
    "Influence",
    "Interrupted",
    "JostleWarning",
    "MeanChange",
    "Measurement",
    "Profile",
    "PromptInfluence",
    "Stability",
    "StabilityPoint",
    "Sweep",
    "TextChanges",
    "certify",
    "change_texts",
    "compare",
    "depth",
    "influence",
    "measure",
    "stability",
    "sweep",
]
