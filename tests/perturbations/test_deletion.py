import numpy as np
import pytest
import torch

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.perturbations import PERTURBATIONS, Deletion, GaussianNoise, ReplaceBy, Sphere

NO_NUMBERS = np.empty((3, 0))


@pytest.mark.parametrize("spec", ["deletion", "deletion:pad=7"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_what_holds_for_every_perturbation(spec, dtype):
    perturbation, tokens = specs.build(PERTURBATIONS, spec, "perturbation"), torch.tensor([[4], [5], [6]], dtype=dtype)
    before = tokens.clone()
    perturbation.check(tokens[:1])
    after = perturbation.apply(tokens, NO_NUMBERS)
    assert (after.dtype, after.shape, perturbation.num_uniforms(1)) == (dtype, tokens.shape, 0)
    assert torch.equal(tokens, before)
    assert perturbation.describe() == spec
    assert specs.build(PERTURBATIONS, perturbation.describe(), "perturbation") == perturbation
    assert perturbation.is_deterministic
    assert perturbation.closes_up
    assert not perturbation.moves_nothing


def test_only_a_deletion_closes_up_and_only_no_noise_moves_nothing():
    assert [p.closes_up for p in (Deletion(), ReplaceBy(0), GaussianNoise(0))] == [True, False, False]
    still = [GaussianNoise(0), Sphere(0), GaussianNoise(1), Sphere(1), ReplaceBy(0)]
    assert [perturbation.moves_nothing for perturbation in still] == [True, True, False, False, False]


@pytest.mark.parametrize("pad", [-1, 1.5, True, "x"])
def test_padding_is_a_token_id(pad):
    with pytest.raises(UsageError, match=r"pad=.* must be a whole number, at least 0: a token id"):
        Deletion(pad=pad)


def test_vectors_cannot_be_deleted():
    with pytest.raises(UsageError, match="perturbation=deletion needs token ids"):
        Deletion().check(torch.zeros(1, 4))
