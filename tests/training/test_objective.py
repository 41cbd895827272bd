import math

import pytest
import torch

from jostle.base.errors import UsageError
from jostle.training.evaluation import check_logits, predictions
from jostle.training.objective import losses


def test_cross_entropy_by_hand():
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]], dtype=torch.float64)
    expected = [
        math.log(1 + math.exp(1) + math.exp(2)) - 1,
        math.log(math.exp(3) + 2) - 3,
    ]
    assert losses(logits, torch.tensor([1, 0])).tolist() == pytest.approx(expected)
    assert predictions(logits).tolist() == [2, 0]


def test_a_single_logit_by_hand():
    logits = torch.tensor([[2.0], [2.0], [-1.0], [0.0]], dtype=torch.float64)
    expected = [math.log1p(math.exp(-2)), math.log1p(math.exp(2)), math.log1p(math.exp(-1)), math.log(2)]
    assert losses(logits, torch.tensor([1, 0, 0, 1])).tolist() == pytest.approx(expected)
    assert predictions(logits).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("num_logits", [1, 3])
def test_half_precision_logits_have_a_loss_in_single_precision(kind, num_logits):
    logits = torch.randn(5, num_logits, generator=torch.Generator().manual_seed(0)).to(kind)
    labels = torch.tensor([0, 1, 1, 0, 0])
    assert losses(logits, labels).dtype == torch.float32
    assert torch.equal(losses(logits, labels), losses(logits.float(), labels))


@pytest.mark.parametrize(("num_logits", "classes"), [(3, 3), (2, 2), (1, 2)])
def test_logits_that_fit(num_logits, classes):
    check_logits(torch.zeros(4, num_logits), classes)


@pytest.mark.parametrize(("num_logits", "classes"), [(2, 3), (4, 3), (1, 3)])
def test_logits_that_do_not_fit(num_logits, classes):
    with pytest.raises(UsageError, match=f"{classes} classes but the model has classes={num_logits}"):
        check_logits(torch.zeros(4, num_logits), classes)


def test_logits_of_another_shape():
    with pytest.raises(UsageError, match=r"logits of shape \(batch, classes\), got \(4,\)"):
        check_logits(torch.zeros(4), 2)
