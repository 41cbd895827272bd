"""Lower the sensitivity of a network while it is trained: a penalty to add to the loss, and noise to add to the inputs.

``SensitivityPenalty``, ``StabilityPenalty`` and ``NoiseAugmentation`` work in ``jostle.training.fit`` and in any other
training loop. Inside:
``moves`` moves one random token of each input, ``text_moves`` does so for texts, ``answer`` reads the logits of a model
in training. ``jostle.estimates`` measures how sensitive the network is afterwards.
"""

from jostle.lowering.augmentation import NoiseAugmentation
from jostle.lowering.penalty import SensitivityPenalty, StabilityPenalty, UnalignedSquares

__all__ = ["NoiseAugmentation", "SensitivityPenalty", "StabilityPenalty", "UnalignedSquares"]
