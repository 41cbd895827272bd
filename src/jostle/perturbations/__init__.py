"""What a token becomes, one file each. Left of here: tokens. Right of here: sampling.

To add one: a file with a class that derives from ``Perturbation`` and carries ``@PERTURBATIONS.register("its-name")``,
named in the list in ``perturbation.py``.
"""

from jostle.perturbations.deletion import Deletion
from jostle.perturbations.gaussian_noise import GaussianNoise
from jostle.perturbations.perturbation import PERTURBATIONS, Perturbation
from jostle.perturbations.replace_by import ReplaceBy
from jostle.perturbations.sign_flip import SignFlip
from jostle.perturbations.sphere import Sphere
from jostle.perturbations.uniform_token import UniformToken

__all__ = [
    "PERTURBATIONS",
    "Deletion",
    "GaussianNoise",
    "Perturbation",
    "ReplaceBy",
    "SignFlip",
    "Sphere",
    "UniformToken",
]
