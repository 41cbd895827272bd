"""Settings of the penalty, the augmentation and the squares: numbers of numpy are welcome, other things are refused."""

import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.lowering import NoiseAugmentation, SensitivityPenalty, UnalignedSquares


@pytest.mark.parametrize("value", [np.float32(0.25), np.float64(0.25), np.int64(1), 0.25, 1])
def test_numbers_of_numpy_are_numbers(value):
    assert SensitivityPenalty(strength=value, std=value).strength == value
    assert NoiseAugmentation(std=value, share=value).share == value
    assert SensitivityPenalty(strength=value).describe() == SensitivityPenalty(strength=float(value)).describe()


@pytest.mark.parametrize(
    ("create", "name", "wrong", "expected"),
    [
        (SensitivityPenalty, "strength", [np.float32("nan"), -1, True, "1", None], "a finite number, at least 0"),
        (SensitivityPenalty, "std", [-1.0, "1"], "a finite number, at least 0"),
        (SensitivityPenalty, "mix", ["no", 1, None], "True or False"),
        (NoiseAugmentation, "std", [-0.1, None], "a finite number, at least 0"),
        (lambda share: NoiseAugmentation(std=1.0, share=share), "share", [1.5, -0.5], "a finite number from 0 to 1"),
        (UnalignedSquares, "size", [0, -1, 2.0, True, "4"], "a whole number, at least 1"),
        (lambda released: UnalignedSquares(4, released=released), "released", ["no", 1], "True or False"),
    ],
)
def test_what_cannot_be_is_one_clear_line(create, name, wrong, expected):
    for value in wrong:
        with pytest.raises(UsageError, match=rf"^{name}=.* must be {expected}$"):
            create(**{name: value})
