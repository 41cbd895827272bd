"""What studies of trained networks of images or texts share: training, measuring on the way, keeping, comparing.

* ``settings``: networks, data, training and noise. ``study``: the base class of such a study.
* ``course``: trains one network and measures it on the way. ``questions``: what is measured.
* ``networks``: where trained networks are kept for all studies.
* ``records``: what is recorded of a network, and numbers by seed. ``figures``: figures of records.

To add a study of trained networks, imitate ``jostle_papers/p2403_06925/figure_4.py``; for one that measures more than
sensitivity, ``table_2.py`` beside it.
"""

from jostle_papers.trained.course import TrainedNetwork, follow
from jostle_papers.trained.figures import (
    against_accuracy,
    against_loss,
    against_variance,
    by_corruption,
    by_measurement,
    corrupted_over_training,
    mean_and_range,
    over_training,
)
from jostle_papers.trained.records import (
    BySeed,
    EpochRecord,
    MeasuredValue,
    NetworkCell,
    Sensitivity,
    TrainedRecord,
    TrainedRecords,
    accuracy_kept,
    at_accuracy,
    at_end,
    corrupted_accuracy,
    final_value,
    in_common,
    sensitivity_at_accuracy,
    sensitivity_at_end,
    unseen_accuracy,
)
from jostle_papers.trained.settings import (
    OFFICIAL,
    CorruptedImages,
    Network,
    Networks,
    Noise,
    Size,
    Sizes,
    TrainingSettings,
    at_variances,
)
from jostle_papers.trained.study import (
    NetworkStudy,
    TrainingCell,
    TrainingStudy,
    at_matched_accuracy,
    learnt,
    less_sensitive,
    not_constant,
)

__all__ = [
    "OFFICIAL",
    "BySeed",
    "CorruptedImages",
    "EpochRecord",
    "MeasuredValue",
    "Network",
    "NetworkCell",
    "NetworkStudy",
    "Networks",
    "Noise",
    "Sensitivity",
    "Size",
    "Sizes",
    "TrainedNetwork",
    "TrainedRecord",
    "TrainedRecords",
    "TrainingCell",
    "TrainingSettings",
    "TrainingStudy",
    "accuracy_kept",
    "against_accuracy",
    "against_loss",
    "against_variance",
    "at_accuracy",
    "at_end",
    "at_matched_accuracy",
    "at_variances",
    "by_corruption",
    "by_measurement",
    "corrupted_accuracy",
    "corrupted_over_training",
    "final_value",
    "follow",
    "in_common",
    "learnt",
    "less_sensitive",
    "mean_and_range",
    "not_constant",
    "over_training",
    "sensitivity_at_accuracy",
    "sensitivity_at_end",
    "unseen_accuracy",
]
