"""What counts as fitted over many lengths, and what training and accuracy refuse."""

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan, lengths
from jostle_papers.p2402_09963.hardness.lengths import Span, accuracy, train_encoder, train_writer

SPAN, SMALL, PLAN = (
    Span(shortest=3, longest=5, table=6),
    HardnessDesign(dim=8),
    HardnessPlan(batch_size=16, steps=2, fit_loss=0.0),
)


def test_fitted_is_measured_by_the_variance_of_the_labels():
    """AND of n bits is 1 with p = 2^-n; the loss of a first step is held against fit_loss * mean of 4 p (1 - p)."""
    scale = sum(4 * 2.0**-n * (1 - 2.0**-n) for n in (3, 4, 5)) / 3
    length, [offset] = SPAN.draw(4, 0)
    bits = lengths._strings(16, length, 4, 0)
    labels = (bits == 1).all(dim=1).float()
    with torch.no_grad():
        found = lengths.shift_positions(SMALL.create(6, 4), offset)(bits)
    loss = float((found - labels).square().mean())
    for share, fitted in ((0.999, None), (1.001, 1)):
        plan = HardnessPlan(batch_size=16, steps=1, fit_loss=share * loss / scale)
        assert train_encoder("and", SPAN, SMALL, plan, groups=1, seed=4)[1] == fitted


def test_a_constant_does_not_count_as_fitted():
    """Of 6 and 7 bits, 0 has a loss of about 0.012 where labels are those of AND: below the default of 0.02."""

    class Constant(HardnessDesign):
        def create(self, n, seed):
            network = super().create(n, seed)
            torch.nn.init.zeros_(network.readout.weight)
            torch.nn.init.zeros_(network.readout.bias)
            return network

    span = Span(shortest=6, longest=7, table=7)
    still = HardnessPlan(batch_size=1024, steps=3, lr=1e-30, weight_decay=0.0)  # the network stays what it is
    network, fitted, steps = train_encoder("and", span, Constant(dim=4), still, seed=0)
    assert abs(float(network(torch.ones(1, 6)).detach())) < 1e-20
    assert (fitted, steps) == (None, 3)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"seed": "a"}, "seed='a' must be a whole number from 0 to"),
        ({"seed": -1}, "seed=-1 must be a whole number from 0 to"),
        ({"seed": 2**70}, "must be a whole number from 0 to"),
        ({"folder": 3}, "folder=3 must be the path of a folder"),
    ],
)
def test_wrong_training_is_one_clear_line(choices, message):
    with pytest.raises(UsageError, match=message):
        train_encoder("first", SPAN, SMALL, PLAN, **{"seed": 0} | choices)
    with pytest.raises(UsageError, match=message):
        train_writer(SPAN, PLAN, dim=8, **{"seed": 0} | choices)


@pytest.mark.parametrize("groups", [0, "a", 2.0])
def test_groups_are_a_whole_number(groups):
    with pytest.raises(UsageError, match=r"groups=.* must be a whole number, at least 1"):
        train_encoder("first", SPAN, SMALL, PLAN, groups=groups, seed=0)


def test_a_seed_of_numpy_is_that_seed(tmp_path):
    for place, trainer in enumerate((train_writer, train_encoder)):
        first = ("first", SPAN, SMALL, PLAN) if trainer is train_encoder else (SPAN, PLAN)
        plain = trainer(*first, seed=2)[0]
        found = trainer(*first, seed=np.int64(2), folder=tmp_path / str(place))[0]  # written as JSON
        assert all(torch.equal(*pair) for pair in zip(plain.parameters(), found.parameters(), strict=True))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"places": 0}, "places=0 must be a whole number, at least 1"),
        ({"tests": 0}, "tests=0 must be a whole number, at least 1"),
        ({"tests": -1}, "tests=-1 must be a whole number, at least 1"),
        ({"seed": "a"}, "seed='a' must be a whole number"),
        ({"length": "a"}, "length='a' must be a whole number, at least 1"),
        ({"length": 0}, "length=0 must be a whole number, at least 1"),
        ({"length": 7}, "with 1 to 6 tokens"),
        ({"target": 3}, "name=3 must be the name of a function"),
    ],
)
def test_wrong_use_of_accuracy_is_one_clear_line(choices, message):
    with pytest.raises(UsageError, match=message):
        accuracy(SMALL.create(6, 0), **{"target": "first", "length": 4} | choices)
