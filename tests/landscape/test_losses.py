import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.landscape import average_direction_sharpness, curvature
from jostle.landscape.losses import as_labels, as_loss, check_labels, is_mean, per_input

MANY, ONE = torch.zeros(4, 3), torch.zeros(4, 1)
CLASSES = torch.tensor([0, 1, 2, 1])
ENTROPY = as_loss("cross-entropy")


@pytest.mark.parametrize(
    ("loss", "outputs", "labels"),
    [
        (ENTROPY, MANY, CLASSES),
        (ENTROPY, MANY, CLASSES.double()),
        (ENTROPY, ONE, CLASSES.clamp(max=1)),
        (ENTROPY, ONE[:, 0], CLASSES.clamp(max=1).bool()),
        (as_loss("mse"), ONE, CLASSES),
        (nn.MSELoss(), ONE, ONE),
        (nn.CrossEntropyLoss(), MANY, CLASSES),
    ],
)
def test_labels_that_suit(loss, outputs, labels):
    check_labels(loss, outputs, labels)
    assert per_input(loss, outputs, labels).isfinite().all()


@pytest.mark.parametrize(
    ("loss", "outputs", "labels", "message"),
    [
        (ENTROPY, MANY, CLASSES + 1, "one whole number from 0 to 2 for each input, and labels go from 1 to 3$"),
        (ENTROPY, MANY, CLASSES - 1, "labels go from -1 to 1$"),
        (ENTROPY, MANY, CLASSES + 0.5, "labels go from 0.5 to 2.5$"),
        (ENTROPY, MANY, torch.eye(3)[CLASSES], r"labels have shape \(4, 3\); give labels.argmax\(dim=1\)"),
        (ENTROPY, MANY, CLASSES[:, None], r"labels have shape \(4, 1\); give labels.reshape\(-1\)"),
        (ENTROPY, ONE, CLASSES, "from 0 to 1 for each input, and labels go from 0 to 2"),
        (ENTROPY, ONE, CLASSES.clamp(max=1) * 2 - 1, r"give \(labels \+ 1\) / 2, or loss='mse'$"),
        (ENTROPY, torch.zeros(4, 3, 2), CLASSES, r"takes outputs \(batch, classes\), and they are \(4, 3, 2\)"),
        (as_loss("mse"), ONE, torch.full((4,), torch.nan), "labels hold NaN or infinity"),
        (nn.MSELoss(), ONE, ONE[:, 0], r"loss=MSELoss compares outputs \(4, 1\) with labels \(4,\), which torch would"),
    ],
)
def test_labels_that_do_not_suit_are_one_clear_line(loss, outputs, labels, message):
    with pytest.raises(UsageError, match=message) as caught:
        check_labels(loss, outputs, labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("labels", [CLASSES + 1, CLASSES - 1, CLASSES + 0.5, torch.eye(3)[CLASSES]])
def test_both_measures_look_at_all_labels(labels):
    model, x = nn.Linear(2, 3), torch.randn(4, 2)
    for batch_size in (1, 4):
        with pytest.raises(UsageError, match="loss='cross-entropy' takes one whole number from 0 to 2"):
            curvature(model, x, labels, batch_size=batch_size)
        with pytest.raises(UsageError, match="loss='cross-entropy' takes one whole number from 0 to 2"):
            average_direction_sharpness(model, x, labels, "cross-entropy", rho=0.1, batch_size=batch_size)


def test_whether_a_loss_is_a_mean():
    assert is_mean(nn.MSELoss(), ONE, ONE)
    assert not is_mean(nn.MSELoss(reduction="none"), ONE[:, 0], ONE[:, 0])
    assert not is_mean(ENTROPY, MANY, CLASSES)
    assert not is_mean(nn.MSELoss(), ONE[:1], ONE[:1])  # that of one input


def test_what_a_loss_raises_is_one_clear_line():
    with pytest.raises(
        UsageError, match=r"loss raised \w+ on outputs \(4, 3\) of torch.float\d+ and labels \(4,\)"
    ) as caught:
        per_input(nn.CrossEntropyLoss(), MANY, CLASSES.double())
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_labels_of_a_dataset_that_are_no_numbers():
    class Words:
        labels = ("a", "b")

    with pytest.raises(UsageError, match="labels of type tuple must be a tensor or an array of numbers"):
        as_labels(None, Words(), 2)
