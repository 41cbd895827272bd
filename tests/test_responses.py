import math

import pytest
import torch

from jostle import responses
from jostle.base.errors import UsageError
from jostle.responses import RESPONSES, Flip, Margin

A = torch.tensor([[1.0, 3.0, 2.0], [0.0, -1.0, -2.0]], dtype=torch.float64)
B = torch.tensor([[1.0, 2.0, 4.0], [0.0, -3.0, -2.0]], dtype=torch.float64)


def change(response, before, after):
    return response.change(response.reference(before), after).tolist()


def test_flip_by_argmax():
    assert change(Flip(), A, B) == [1.0, 0.0]


def test_flip_by_sign_and_zero_is_a_value_of_its_own():
    before = torch.tensor([1.0, -1.0, 0.0, 0.0, 2.0])
    after = torch.tensor([2.0, 1.0, 1.0, 0.0, 0.0])
    assert change(Flip(), before, after) == [0, 1, 1, 0, 1]
    assert change(Flip("sign"), before[:, None], after[:, None]) == [0, 1, 1, 0, 1]


def test_margin_of_several_logits_and_of_one():
    assert change(Margin(), A, B) == [3.0, 1.0]  # 3 - 2 = 1 becomes 2 - 4 = -2; 0 + 1 = 1 becomes 0 + 2 = 2
    assert change(Margin(), torch.tensor([2.0, -3.0]), torch.tensor([-1.0, -4.0])) == [3.0, 1.0]


def test_changes_of_logits_and_features():
    assert change(responses.LogitChange(), A, B) == [2.0, 2.0]
    assert change(responses.AbsoluteChange(), A, B) == pytest.approx([math.sqrt(5), 2.0])
    assert change(responses.RelativeChange(), A, B) == pytest.approx([math.sqrt(5 / 14), 2 / math.sqrt(5)])
    features = torch.ones(2, 3, 4)
    assert change(responses.AbsoluteChange(), features, features + 1) == pytest.approx([math.sqrt(12)] * 2)


def test_angle():
    before = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    after = torch.tensor([[0.0, 2.0], [-3.0, 0.0], [5.0, 0.0], [1.0, 0.0]])
    assert change(responses.Angle(), before, after) == pytest.approx([math.pi / 2, math.pi, 0.0, math.pi / 4])
    assert change(responses.Angle(), A, A) == [0.0, 0.0]


@pytest.mark.parametrize("name", RESPONSES.names())
def test_no_change_is_exactly_zero_and_only_flips_are_binary(name):
    response = RESPONSES.get(name)()
    outputs = torch.randn(20, 4)
    assert change(response, outputs, outputs.clone()) == [0.0] * 20
    assert response.is_binary == (name in ("flip", "continuation-flip", "next-token-flip", "other-label-flip"))
    assert response.describe() == name


@pytest.mark.parametrize("name", RESPONSES.names())
def test_relabelling_classes_changes_nothing(name):
    response, order = RESPONSES.get(name)(), torch.tensor([2, 0, 3, 1])
    before, after = torch.randn(20, 4), torch.randn(20, 4)
    expected = change(response, before, after)
    assert change(response, before[:, order], after[:, order]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("response", "outputs", "message"),
    [
        (Flip(), torch.zeros(2, 3, 4), "needs (batch, classes)"),
        (Margin(), torch.zeros(2, 0), "needs (batch, classes)"),
        (Flip("sign"), torch.zeros(2, 3), "needs one logit per input, the model gives 3"),
        (Flip("argmax"), torch.zeros(2), "needs at least two logits"),
    ],
)
def test_wrong_outputs_are_one_clear_line(response, outputs, message):
    with pytest.raises(UsageError) as error:
        response.reference(outputs)
    assert message in str(error.value)


def test_wrong_rule():
    with pytest.raises(UsageError, match="unknown rule 'max'; did you mean argmax"):
        Flip("max")


def test_integer_outputs_are_classes():
    assert change(Flip(), torch.tensor([0, 3, 2]), torch.tensor([1, 3, 0])) == [1, 0, 1]
