"""jostle: jostle one input token. Does the prediction hold?

Token sensitivity of neural networks, measured, located, compared and tracked, with intervals. The public names below
are imported on first use, so that ``import jostle`` and ``jostle --help`` do not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "jostle.errors": ["FailureError", "JostleError", "UsageError"],
    "jostle.estimates": [
        "Comparison",
        "Difference",
        "Estimate",
        "Interrupted",
        "JostleWarning",
        "Measurement",
        "Profile",
        "Sweep",
        "compare",
        "measure",
        "sweep",
    ],
    "jostle.intervals": ["Interval"],
    "jostle.lowering": ["NoiseAugmentation", "SensitivityPenalty"],
    "jostle.perturbations": ["Deletion", "GaussianNoise", "ReplaceBy", "SignFlip", "Sphere", "UniformToken"],
    "jostle.probe": ["Probe"],
    "jostle.sampling": ["Grid", "Until"],
    "jostle.studies": ["run"],
    "jostle.tokens": ["Coordinates", "Embeddings", "Patches", "Rows", "Whole", "Words"],
    "jostle.worst": ["WorstCase", "load", "worst_case"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_PACKAGES = [
    "boolean",
    "corruptions",
    "data",
    "features",
    "figures",
    "grokking",
    "hardness",
    "integrations",
    "intervals",
    "landscape",
    "lowering",
    "models",
    "parity",
    "perturbations",
    "probe",
    "report",
    "responses",
    "sampling",
    "studies",
    "synthetic",
    "tokens",
    "training",
    "worst",
]

__all__ = ["__version__", *sorted(_HOME_OF), *_PACKAGES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(importlib.import_module(_HOME_OF[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"jostle.{name}")
    raise AttributeError(f"module 'jostle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from jostle import boolean as boolean
    from jostle import corruptions as corruptions
    from jostle import data as data
    from jostle import features as features
    from jostle import figures as figures
    from jostle import grokking as grokking
    from jostle import hardness as hardness
    from jostle import integrations as integrations
    from jostle import intervals as intervals
    from jostle import landscape as landscape
    from jostle import lowering as lowering
    from jostle import models as models
    from jostle import parity as parity
    from jostle import perturbations as perturbations
    from jostle import probe as probe
    from jostle import report as report
    from jostle import responses as responses
    from jostle import sampling as sampling
    from jostle import studies as studies
    from jostle import synthetic as synthetic
    from jostle import tokens as tokens
    from jostle import training as training
    from jostle import worst as worst
    from jostle.errors import FailureError as FailureError
    from jostle.errors import JostleError as JostleError
    from jostle.errors import UsageError as UsageError
    from jostle.estimates import Comparison as Comparison
    from jostle.estimates import Difference as Difference
    from jostle.estimates import Estimate as Estimate
    from jostle.estimates import Interrupted as Interrupted
    from jostle.estimates import JostleWarning as JostleWarning
    from jostle.estimates import Measurement as Measurement
    from jostle.estimates import Profile as Profile
    from jostle.estimates import Sweep as Sweep
    from jostle.estimates import compare as compare
    from jostle.estimates import measure as measure
    from jostle.estimates import sweep as sweep
    from jostle.intervals import Interval as Interval
    from jostle.lowering import NoiseAugmentation as NoiseAugmentation
    from jostle.lowering import SensitivityPenalty as SensitivityPenalty
    from jostle.perturbations import Deletion as Deletion
    from jostle.perturbations import GaussianNoise as GaussianNoise
    from jostle.perturbations import ReplaceBy as ReplaceBy
    from jostle.perturbations import SignFlip as SignFlip
    from jostle.perturbations import Sphere as Sphere
    from jostle.perturbations import UniformToken as UniformToken
    from jostle.probe import Probe as Probe
    from jostle.sampling import Grid as Grid
    from jostle.sampling import Until as Until
    from jostle.studies import run as run
    from jostle.tokens import Coordinates as Coordinates
    from jostle.tokens import Embeddings as Embeddings
    from jostle.tokens import Patches as Patches
    from jostle.tokens import Rows as Rows
    from jostle.tokens import Whole as Whole
    from jostle.tokens import Words as Words
    from jostle.worst import WorstCase as WorstCase
    from jostle.worst import load as load
    from jostle.worst import worst_case as worst_case
