"""The Boolean cube, where everything can be computed exactly. Left of here: estimates.

``cube`` fixes the order of tables; ``pointwise`` and ``fourier`` compute on them; ``stability`` holds what follows
from the Fourier weights; ``tables`` evaluates a function once at every point; ``analysing`` puts them together, and
``sampled`` estimates the same quantities where 2^n points are too many.
"""

from jostle.boolean.analysing import analyse
from jostle.boolean.analysis import Analysis
from jostle.boolean.cube import LARGEST, points
from jostle.boolean.sampled import Sampled, SampledAnalysis
from jostle.boolean.stability import Inequality

__all__ = ["LARGEST", "Analysis", "Inequality", "Sampled", "SampledAnalysis", "analyse", "points"]
