from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from jostle.base.errors import FailureError, UsageError
from jostle.corruptions.accuracy import find_logits

IMAGES, LOGITS = torch.zeros(2, 1, 4, 4, dtype=torch.float64), torch.randn(2, 3)


@pytest.mark.parametrize(
    "answer",
    [LOGITS, (LOGITS, "state"), {"logits": LOGITS}, SimpleNamespace(logits=LOGITS), LOGITS.numpy(), LOGITS.tolist()],
    ids=["tensor", "tuple", "mapping", "object", "array", "list"],
)
def test_logits_are_found_in_every_kind_of_answer(answer):
    assert torch.equal(find_logits(lambda _: answer, IMAGES), LOGITS)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "must answer with a tensor of outputs, not NoneType"),
        ({"scores": LOGITS}, "must answer with a tensor of outputs, not a dict with 'scores'"),
        (["a", "b"], "torch.int64; expected real-valued logits, not numbers of classes"),
        (torch.zeros(2, 0), r"with outputs of shape \(2, 0\); expected \(2, classes\)"),
        (torch.zeros(2, 3, 4), r"with shape \(2, 3, 4\)"),
        (torch.zeros(3), r"with outputs of shape \(3,\)"),
        (torch.tensor(1.0), r"with outputs of shape \(\)"),
        (LOGITS.argmax(dim=1), "torch.int64; expected real-valued logits, not numbers of classes"),
        (LOGITS * np.nan, "values that are not finite"),
    ],
)
def test_answers_that_are_no_logits(answer, message):
    with pytest.raises(UsageError, match=message) as caught:
        find_logits(lambda _: answer, IMAGES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (torch.float32, r"the inputs are torch.float32, the model is torch.float64: .*\)$"),
        (torch.uint8, r"the images are torch.uint8: give floats, scaled as in training\)$"),
    ],
)
def test_images_of_another_type_than_the_weights(kind, hint):
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    with pytest.raises(
        FailureError, match=rf"the model raised RuntimeError on a batch of input \(2, 1, 4, 4\): .*{hint}"
    ):
        find_logits(model, IMAGES.to(kind))
    assert find_logits(model, IMAGES).shape == (2, 3)


def test_what_a_model_raises_is_one_line_and_keeps_its_cause():
    def broken(_):
        raise ValueError("first\n  second")

    with pytest.raises(
        FailureError, match=r"raised ValueError on a batch of input .*: first second \(.*test_logits.py, line \d+\)$"
    ) as caught:
        find_logits(broken, IMAGES)
    assert isinstance(caught.value.__cause__, ValueError)

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_logits(interrupted, IMAGES)


def test_no_gradient_is_kept():
    assert not find_logits(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), IMAGES).requires_grad
