"""Lowering sensitivity while a network is trained: a penalty and an augmentation.

Here: what is added to a loss or done to a batch, in a loop of ``jostle.training`` or in anyone's own. Not here: how
sensitive the network then is (``jostle.estimates``). Left on the line: ``jostle.perturbations``.
"""

from jostle.lowering.augmentation import NoiseAugmentation
from jostle.lowering.moves import UnalignedSquares
from jostle.lowering.penalty import SensitivityPenalty

__all__ = ["NoiseAugmentation", "SensitivityPenalty", "UnalignedSquares"]
