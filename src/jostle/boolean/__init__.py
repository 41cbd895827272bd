"""Functions on the Boolean cube {-1, 1}^n, whose sensitivity and Fourier spectrum are computed exactly.

``analyse`` is the entrance. It makes a table of the function (``tables``, in the order of ``cube``) and computes
sensitivities (``pointwise``), Fourier weights (``fourier``) and noise stability (``stability``); where 2^n points are
too many, ``sampled`` estimates the same quantities. ``functions`` have closed forms to compare with. ``kernels`` has
the kernels of infinitely wide and of finite networks on the cube; ``networks`` are networks on bits, and
``random_networks`` the functions that random weights compute.
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
