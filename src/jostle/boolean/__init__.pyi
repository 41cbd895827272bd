# The public names. The stub is what type checkers read and what the package itself imports from, on first use.
# No file is called as a function in it: the file would take the function's place.
from . import functions as functions
from . import kernels as kernels
from . import networks as networks
from .analysis import Analysis as Analysis
from .analysis import analyse as analyse
from .cube import LARGEST as LARGEST
from .cube import points as points
from .ensembles import Ensemble as Ensemble
from .ensembles import random_functions as random_functions
from .ensembles import random_networks as random_networks
from .kernels import kernel_spectrum as kernel_spectrum
from .sampled import Sampled as Sampled
from .sampled import SampledAnalysis as SampledAnalysis
from .stability import Inequality as Inequality
from .tables import read_table as read_table
from .tables import write_table as write_table
