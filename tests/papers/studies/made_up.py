"""Records of trained networks that were never trained, for tests of what is read from records."""

from jostle_papers.trained import Sensitivity, TrainedRecord


def trained_record(kind=TrainedRecord, **fields):
    """A record with these fields; all others have some value."""
    usual = {
        "epochs": (),
        "stopped": "target accuracy",
        "train_accuracy": 1.0,
        "test_accuracy": 0.9,
        "low": 0.0,
        "high": 1.0,
        "sensitivity": 0.1,
        "final": {},
        "parameters": 1,
        "data": "made up",
    }
    return kind(**{**usual, **fields})


def sensitivity(value, passes=1):
    """A sensitivity of this value."""
    return Sensitivity(value=value, low=value, high=value, level=0.95, passes=passes)
