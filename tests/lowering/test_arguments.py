import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.lowering import NoiseAugmentation, SensitivityPenalty, UnalignedSquares
from jostle.lowering.arguments import number, truth


@pytest.mark.parametrize("value", [np.float32(0.25), np.float64(0.25), np.int64(1), 0.25, 1])
def test_numbers_of_numpy_are_numbers(value):
    assert number(value) == value
    assert type(number(value)) in (int, float)
    assert SensitivityPenalty(strength=value, std=value).strength == value
    assert NoiseAugmentation(std=value, share=value).share == value


@pytest.mark.parametrize("value", [np.float32("nan"), np.float64(-1), np.bool_(True), "1", None])
def test_what_is_no_number_stays_and_is_refused(value):
    with pytest.raises(UsageError, match=r"strength=.* of SensitivityPenalty must be a finite number, 0 or larger"):
        SensitivityPenalty(strength=value)


def test_truth():
    assert truth("mix", True, "x") is True
    assert truth("mix", np.bool_(False), "x") is False


@pytest.mark.parametrize("value", ["no", 1, None])
def test_what_is_neither_true_nor_false(value):
    with pytest.raises(UsageError, match=r"mix=.* of SensitivityPenalty must be True or False"):
        SensitivityPenalty(mix=value)
    with pytest.raises(UsageError, match=r"released=.* of UnalignedSquares must be True or False"):
        UnalignedSquares(4, released=value)
