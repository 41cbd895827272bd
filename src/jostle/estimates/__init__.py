"""Numbers with intervals. Left of here: sampling. Right of here: results.

``measure`` and ``compare`` run the loop in ``run``; tallies count and hand out estimates; measurements, comparisons and
differences carry them to people and files.
"""

from jostle.estimates.comparison import Comparison, Difference
from jostle.estimates.estimate import Estimate, Profile
from jostle.estimates.loading import load
from jostle.estimates.measurement import Measurement
from jostle.estimates.measuring import Interrupted, JostleWarning, compare, measure

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "Interrupted",
    "JostleWarning",
    "Measurement",
    "Profile",
    "compare",
    "load",
    "measure",
]
