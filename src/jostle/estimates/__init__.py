"""Numbers with intervals. Left of here: sampling. Right of here: results.

``measure``, ``compare`` and ``sweep`` run the loop in ``run``; tallies count and hand out estimates; measurements,
comparisons, differences and sweeps carry them to people and files.
"""

from jostle.estimates.measure import Interrupted, JostleWarning, compare, measure
from jostle.estimates.result import Comparison, Difference, MeanChange, Measurement, Profile
from jostle.estimates.sweep import Sweep, sweep

__all__ = [
    "Comparison",
    "Difference",
    "Interrupted",
    "JostleWarning",
    "MeanChange",
    "Measurement",
    "Profile",
    "Sweep",
    "compare",
    "measure",
    "sweep",
]
