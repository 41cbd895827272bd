"""The Boolean cube, where everything can be computed exactly. Left of here: estimates. Right of here: results.

``cube`` fixes the order of tables; ``pointwise`` and ``fourier`` compute on them; ``stability`` holds what follows
from the Fourier weights; ``tables`` evaluates a function once at every point; ``analysing`` puts them together, and
``sampled`` estimates the same quantities where 2^n points are too many. ``functions`` are known answers,
``truth_tables`` reads and writes files, ``kernels`` are what wide networks prefer, ``networks`` and
``random_networks`` what random weights compute.
"""

from jostle.boolean import functions, kernels, networks
from jostle.boolean.analysis import Analysis, analyse
from jostle.boolean.cube import LARGEST, points
from jostle.boolean.kernels import kernel_spectrum
from jostle.boolean.random_networks import Ensemble, random_functions, random_networks
from jostle.boolean.sampled import Sampled, SampledAnalysis
from jostle.boolean.stability import Inequality
from jostle.boolean.tables import read_table, write_table

__all__ = [
    "LARGEST",
    "Analysis",
    "Ensemble",
    "Inequality",
    "Sampled",
    "SampledAnalysis",
    "analyse",
    "functions",
    "kernel_spectrum",
    "kernels",
    "networks",
    "points",
    "random_functions",
    "random_networks",
    "read_table",
    "write_table",
]
