"""What studies of image networks share: networks that are trained, followed on the way, kept and compared.

``settings`` says what is trained and measured, ``networks`` where trained networks are kept for all studies,
``following`` trains one and measures it, ``drawings`` shows the records and ``comparing`` reads numbers from them.
"""

from jostle.studies.vision.comparing import at_accuracy, at_end, final_value, in_common
from jostle.studies.vision.drawings import (
    against_accuracy,
    against_loss,
    against_variance,
    by_measurement,
    mean_and_range,
    over_training,
)
from jostle.studies.vision.following import follow
from jostle.studies.vision.settings import Training, at_variances, augmented, network, noise, penalised
from jostle.studies.vision.study import TrainingStudy, at_matched_accuracy

__all__ = [
    "Training",
    "TrainingStudy",
    "against_accuracy",
    "against_loss",
    "against_variance",
    "at_accuracy",
    "at_end",
    "at_matched_accuracy",
    "at_variances",
    "augmented",
    "by_measurement",
    "final_value",
    "follow",
    "in_common",
    "mean_and_range",
    "network",
    "noise",
    "over_training",
    "penalised",
]
