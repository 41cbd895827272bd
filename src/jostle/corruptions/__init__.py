"""Common corruptions of images: noise, blur, weather and digital, with five severities.

Hendrycks and Dietterich (2019), "Benchmarking neural network robustness to common corruptions and perturbations", with
the settings of CIFAR-10-C for 32 x 32 images, written anew from the definitions and for any size, grey or colour. The
images that ``corrupt`` makes are self-made: they are not the published files, which ``jostle.data.cifar_10_c`` reads.

To add a corruption, put ``corruption`` on a function, as ``noise.py`` does.
"""

from jostle.corruptions.accuracy import Accuracy, CorruptionAccuracy, accuracy_under
from jostle.corruptions.corruption import CORRUPTIONS, FAMILIES, Corruption, Draws, corrupt, corruption, names

__all__ = [
    "CORRUPTIONS",
    "FAMILIES",
    "Accuracy",
    "Corruption",
    "CorruptionAccuracy",
    "Draws",
    "accuracy_under",
    "corrupt",
    "corruption",
    "names",
]
