import math

import numpy as np
import pytest
import torch

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.perturbations import PERTURBATIONS, GaussianNoise, ReplaceBy, SignFlip, Sphere, UniformToken

TOKENS = torch.randn(5000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def apply(perturbation, tokens, stream):
    count = perturbation.num_uniforms(tokens.shape[1])
    number = np.arange(len(tokens))
    return perturbation.apply(tokens, stream.uniforms(number, number * 0, number * 0, count))


def test_gaussian_noise_has_the_std_and_no_mean(stream):
    noise = (apply(GaussianNoise(2.5), TOKENS, stream) - TOKENS).flatten()
    n = len(noise)
    assert abs(noise.mean()) < 4 * 2.5 / math.sqrt(n)
    assert abs(noise.std() - 2.5) < 4 * 2.5 / math.sqrt(2 * n)
    kurtosis = ((noise / 2.5) ** 4).mean()
    assert abs(kurtosis - 3) < 4 * math.sqrt(96 / n)


def test_the_same_numbers_at_another_std_give_the_same_direction(stream):
    one, two = (apply(GaussianNoise(std), TOKENS, stream) - TOKENS for std in (1.0, 2.0))
    assert torch.allclose(two, 2 * one)


def test_zero_strength_changes_no_bit(stream):
    for still in (GaussianNoise(0), Sphere(0), Sphere(0, relative=True)):
        assert torch.equal(apply(still, TOKENS, stream), TOKENS)
        assert still.is_deterministic


def test_sphere_has_the_radius_and_no_direction(stream):
    step = apply(Sphere(2.0), TOKENS, stream) - TOKENS
    assert torch.allclose(step.norm(dim=1), torch.full((5000,), 2.0))
    assert step.mean(dim=0).norm() < 4 * 2.0 / math.sqrt(5000) * math.sqrt(3)
    relative = apply(Sphere(0.5, relative=True), TOKENS, stream) - TOKENS
    assert torch.allclose(relative.norm(dim=1), 0.5 * TOKENS.norm(dim=1))


def test_sign_flip_and_replacement(stream):
    assert torch.equal(apply(SignFlip(), TOKENS, stream), -TOKENS)
    assert torch.equal(apply(ReplaceBy(0), TOKENS, stream), torch.zeros(5000, 3))
    assert torch.equal(apply(ReplaceBy([1.0, 2.0, 3.0]), TOKENS, stream)[9], torch.tensor([1.0, 2.0, 3.0]))


def test_uniform_token_is_uniform_over_the_vocabulary(stream):
    ids = apply(UniformToken(7), torch.zeros(5000, 1, dtype=torch.int64), stream)
    counts = torch.bincount(ids[:, 0], minlength=7)
    assert ids.dtype == torch.int64
    assert ((counts - 5000 / 7) ** 2 / (5000 / 7)).sum() < 6 + 4 * math.sqrt(12)
    table = torch.randn(4, 3)
    replaced = apply(UniformToken(table), TOKENS, stream)
    distance = (replaced[:, None] - table).abs().sum(dim=2).min(dim=1).values
    assert float(distance.max()) == 0.0
    assert len(torch.unique(replaced[:, 0])) == 4
    assert set(apply(UniformToken([-1, 1]), TOKENS[:, :1], stream)[:, 0].tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_the_type_of_the_tokens_is_kept(dtype, stream):
    for perturbation in (GaussianNoise(1), Sphere(1), SignFlip(), UniformToken([0.0, 1.0, 2.0]), ReplaceBy(3)):
        tokens = TOKENS[:4, :1].to(dtype)
        assert apply(perturbation, tokens, stream).dtype == dtype


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_noise_does_not_depend_on_the_batch(batch, stream):
    number = np.arange(100)
    uniforms = stream.uniforms(number, number, number, 3)
    for dtype in (torch.float32, torch.float64):
        tokens = TOKENS[:100].to(dtype)
        whole = GaussianNoise(1.3).apply(tokens, uniforms)
        parts = [GaussianNoise(1.3).apply(tokens[i : i + batch], uniforms[i : i + batch]) for i in range(0, 100, batch)]
        assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize(
    "spec",
    [
        "gaussian-noise:std=2.5",
        "sphere:radius=1",
        "sphere:radius=1,relative=true",
        "sign-flip",
        "uniform-token:-1/1",
        "uniform-token:7",
        "replace-by:0",
        "replace-by:1/2.5",
        "replace-by:16777217",
        "uniform-token:3/",
        "uniform-token:0.5/",
        "gaussian-noise:std=0.123456789",
    ],
)
def test_specs_describe_themselves(spec):
    assert specs.build(PERTURBATIONS, spec, "perturbation").describe() == spec


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianNoise(-1), "std=-1 must be a finite number, at least 0"),
        (lambda: GaussianNoise(math.nan), "std=nan"),
        (lambda: GaussianNoise(math.inf), "std=inf"),
        (lambda: GaussianNoise("1"), "std='1'"),
        (lambda: Sphere(-0.1), "radius=-0.1 must be a finite number, at least 0"),
        (lambda: UniformToken(0), "vocabulary=0 must be the number of tokens, at least 1"),
        (lambda: UniformToken(torch.zeros(0, 3)), "V >= 1"),
        (lambda: ReplaceBy([]), "at least one"),
        (lambda: ReplaceBy("abc"), "token='abc' must be numbers"),
        (lambda: UniformToken("abc"), "vocabulary='abc' must be numbers"),
        (lambda: ReplaceBy(math.nan), "must be finite"),
        (lambda: specs.build(PERTURBATIONS, "gausian-noise:1", "perturbation"), "did you mean gaussian-noise?"),
        (lambda: specs.build(PERTURBATIONS, "gaussian-noise:sdt=1", "perturbation"), "did you mean std?"),
        (lambda: specs.build(PERTURBATIONS, "gaussian-noise", "perturbation"), "gaussian-noise needs std="),
        (lambda: specs.build(PERTURBATIONS, GaussianNoise, "perturbation"), "is a class; give an object"),
    ],
)
def test_wrong_values_are_one_clear_line(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("perturbation", "token", "message"),
    [
        (GaussianNoise(1), torch.zeros(1, 1, dtype=torch.int64), "needs real-valued tokens"),
        (Sphere(1), torch.zeros(1, 1, dtype=torch.int64), "needs real-valued tokens"),
        (SignFlip(), torch.zeros(1, 1, dtype=torch.int64), "needs real-valued tokens"),
        (UniformToken([[0.0, 1.0]]), torch.zeros(1, 3), "tokens of 2 numbers, the inputs' tokens have 3"),
        (ReplaceBy([0.0, 1.0]), torch.zeros(1, 3), "has 2 numbers, the inputs' tokens have 3"),
    ],
)
def test_tokens_that_do_not_fit_are_one_clear_line(perturbation, token, message):
    with pytest.raises(UsageError) as error:
        perturbation.check(token)
    assert message in str(error.value)
