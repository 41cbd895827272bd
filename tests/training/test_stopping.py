import pytest

from jostle.base.errors import UsageError
from jostle.training.evaluation import Evaluation
from jostle.training.fit import Limits


@pytest.mark.parametrize(
    ("max_epochs", "every", "expected"),
    [(4, 1, [0, 1, 2, 3, 4]), (6, 3, [0, 3, 6]), (7, 3, [0, 3, 6, 7]), (2, 5, [0, 2]), (1, 1, [0, 1])],
)
def test_evaluations_before_at_the_end_and_every_so_often(max_epochs, every, expected):
    limits = Limits(max_epochs, None, every)
    assert [epoch for epoch in range(max_epochs + 1) if limits.is_due(epoch)] == expected


def test_the_target_is_reached_when_it_is_met():
    limits = Limits(5, 0.9, 1)
    assert limits.is_reached(Evaluation(0.0, 0.9))
    assert not limits.is_reached(Evaluation(0.0, 0.8999))
    assert not Limits(5, None, 1).is_reached(Evaluation(0.0, 1.0))


def test_a_run_that_would_have_stopped():
    record = {0: Evaluation(1.0, 0.1), 2: Evaluation(0.5, 0.9), 4: Evaluation(0.4, 0.95)}
    Limits(5, 0.95, 2).check_not_past(4, record, "c")
    with pytest.raises(UsageError, match=r"^c has 5 epochs, but target_accuracy=0\.95 was reached at epoch 4; use"):
        Limits(5, 0.95, 2).check_not_past(5, record, "c")
    with pytest.raises(UsageError, match=r"^c has 4 epochs already, more than max_epochs=3; use another file"):
        Limits(3, None, 2).check_not_past(4, record, "c")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_epochs": 0}, "max_epochs=0 must be a whole number, at least 1"),
        ({"max_epochs": 2.0}, r"max_epochs=2\.0 must be a whole number, at least 1"),
        ({"evaluate_every": 0}, "evaluate_every=0 must be a whole number, at least 1"),
        ({"evaluate_every": True}, "evaluate_every=True must be a whole number, at least 1"),
        ({"target_accuracy": 99}, r"target_accuracy=99 must be a finite number above 0 and at most 1; 99 % is 0\.99"),
        ({"target_accuracy": 0.0}, "target_accuracy=0.0 must be"),
    ],
)
def test_limits_that_cannot_be(change, message):
    with pytest.raises(UsageError, match=message):
        Limits(**({"max_epochs": 3, "target_accuracy": None, "evaluate_every": 1} | change))
