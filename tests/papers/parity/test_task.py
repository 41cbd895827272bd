import itertools

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.parity import SparseParity


def test_labels_are_the_product_of_the_chosen_bits():
    task = SparseParity(9, (1, 4, 8))
    sample = task.sample(300, seed=3)
    for bits, label in zip(sample.inputs.tolist(), sample.labels.tolist(), strict=True):
        assert label == (1 if bits[1] * bits[4] * bits[8] == 1 else 0)
    assert set(sample.inputs.flatten().tolist()) == {-1.0, 1.0}
    assert sample.classes == 2


def test_points_are_uniform_and_splits_independent():
    task = SparseParity()
    train, test = task.sample(4000, seed=0), task.sample(4000, seed=0, split="test")
    spread = 4 / 4000**0.5  # four standard errors
    assert train.inputs.mean(dim=0).abs().max() < spread
    assert abs(float((train.inputs * test.inputs).mean())) < spread / 40**0.5
    assert torch.equal(task.sample(100, seed=0).inputs, train.inputs[:100])
    assert not torch.equal(task.sample(100, seed=1).inputs, train.inputs[:100])


def test_sensitivity_is_p_over_d():
    for num_bits, degree in ((6, 1), (6, 3), (7, 7)):
        task = SparseParity.spread(num_bits, degree)
        points = np.array(list(itertools.product((-1, 1), repeat=num_bits)))
        flips = 0
        for point, bit in itertools.product(points, range(num_bits)):
            other = point.copy()
            other[bit] *= -1
            flips += np.prod(point[list(task.coordinates)]) != np.prod(other[list(task.coordinates)])
        assert flips / points.size == task.sensitivity == degree / num_bits
        assert task.function.exact.total_sensitivity == degree


@pytest.mark.parametrize(("num_bits", "degree"), [(1, 1), (5, 5), (40, 4), (41, 7)])
def test_spread_coordinates_are_distinct_and_inside(num_bits, degree):
    coordinates = SparseParity.spread(num_bits, degree).coordinates
    assert len(set(coordinates)) == degree
    assert min(coordinates) >= 0
    assert max(coordinates) < num_bits


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SparseParity(0), "num_bits=.* must be a whole number"),
        (lambda: SparseParity(4, (0, 4)), "coordinate"),
        (lambda: SparseParity(4, (1, 1)), "coordinate"),
        (lambda: SparseParity(4, ()), "at least one bit"),
        (lambda: SparseParity.spread(3, 4), "degree=4 must be at most num_bits=3"),
        (lambda: SparseParity().sample(0, seed=0), "count=.* must be a whole number"),
    ],
)
def test_wrong_use_is_one_clear_line(call, message):
    with pytest.raises(UsageError, match=message):
        call()
