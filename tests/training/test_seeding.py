import torch

from jostle.training.randomness import order, own_randomness

CPU = torch.device("cpu")


def test_an_order_is_a_permutation_that_seed_and_epoch_decide():
    first = order(50, 0, 1)
    assert sorted(first.tolist()) == list(range(50))
    assert torch.equal(first, order(50, 0, 1))
    # Neighbours share nothing: (0, 2) and (1, 1) would, were the two added.
    assert len({tuple(order(50, seed, epoch).tolist()) for seed in range(4) for epoch in range(4)}) == 16


def test_numbers_inside_depend_on_purpose_seed_and_epoch_and_outside_goes_on():
    def inside(*key):
        with own_randomness(*key, CPU):
            return tuple(torch.rand(4).tolist())

    keys = [("dropout", 0, 1), ("dropout", 1, 0), ("dropout", 0, 2), ("evaluation", 0, 1)]
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    draws = [inside(*key) for key in keys]
    assert torch.equal(torch.rand(2), expected)
    assert len(set(draws)) == 4
    assert draws == [inside(*key) for key in keys]
