"""Numbers with intervals. Left of here: sampling. Right of here: results.

``measure``, ``compare`` and ``sweep`` run the loop in ``run``; tallies count and hand out estimates; measurements,
comparisons, differences and sweeps carry them to people and files.
"""

from jostle.estimates.comparison import Comparison, Difference
from jostle.estimates.estimate import Estimate, Profile
from jostle.estimates.loading import load
from jostle.estimates.measurement import Measurement
from jostle.estimates.measuring import Interrupted, JostleWarning, compare, measure
from jostle.estimates.sweep_result import Sweep
from jostle.estimates.sweeping import sweep

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "Interrupted",
    "JostleWarning",
    "Measurement",
    "Profile",
    "Sweep",
    "compare",
    "load",
    "measure",
    "sweep",
]
