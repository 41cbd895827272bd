"""What studies of networks of images or texts share: they are trained, followed on the way, kept and compared.

``settings`` says what is trained and measured, ``networks`` where trained networks are kept for all studies,
``following`` trains one and asks it ``questions``, ``drawings`` shows the records and ``comparing`` reads numbers from
them.
"""

from jostle_papers.trained.course import follow
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
    accuracy_kept,
    at_accuracy,
    at_end,
    corrupted_accuracy,
    final_value,
    halvings,
    in_common,
    mean_accuracy,
)
from jostle_papers.trained.settings import (
    OFFICIAL,
    Training,
    at_variances,
    augmented,
    corrupted,
    network,
    noise,
    partly_trained,
    penalised,
)
from jostle_papers.trained.study import TrainingStudy, at_matched_accuracy, where_all_learnt

__all__ = [
    "OFFICIAL",
    "Training",
    "TrainingStudy",
    "accuracy_kept",
    "against_accuracy",
    "against_loss",
    "against_variance",
    "at_accuracy",
    "at_end",
    "at_matched_accuracy",
    "at_variances",
    "augmented",
    "by_corruption",
    "by_measurement",
    "corrupted",
    "corrupted_accuracy",
    "corrupted_over_training",
    "final_value",
    "follow",
    "halvings",
    "in_common",
    "mean_accuracy",
    "mean_and_range",
    "network",
    "noise",
    "over_training",
    "partly_trained",
    "penalised",
    "where_all_learnt",
]
