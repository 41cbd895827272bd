"""Noise against its closed forms; tolerances are four standard errors."""

import numpy as np
import pytest
from scipy import stats

from jostle.corruptions import corrupt
from jostle.corruptions.noise import poisson

GREY = np.full((40, 3, 32, 32), 0.5)
NUMBERS = GREY.size


def noisy(name, severity, images=GREY):
    return corrupt(images, name, severity, seed=11, value_range=(0, 1))


@pytest.mark.parametrize(("severity", "std"), list(enumerate([0.04, 0.06, 0.08, 0.09, 0.10], start=1)))
def test_gaussian_noise_has_mean_0_and_its_std(severity, std):
    noise = noisy("gaussian_noise", severity) - GREY
    assert abs(noise.mean()) < 4 * std / np.sqrt(NUMBERS)
    assert abs(noise.std() - std) < 4 * std / np.sqrt(2 * NUMBERS)
    assert stats.kstest(noise.ravel() / std, "norm").pvalue > 1e-4


@pytest.mark.parametrize(("severity", "photons"), list(enumerate([500, 250, 100, 75, 50], start=1)))
def test_shot_noise_counts_photons(severity, photons):
    images = np.full((40, 3, 32, 32), 0.3)
    counts = noisy("shot_noise", severity, images) * photons
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    mean = 0.3 * photons  # and the variance; the fourth central moment is 3 mean^2 + mean
    assert abs(counts.mean() - mean) < 4 * np.sqrt(mean / NUMBERS)
    assert abs(counts.var() - mean) < 4 * np.sqrt((2 * mean**2 + mean) / NUMBERS)


@pytest.mark.parametrize(("severity", "share"), list(enumerate([0.01, 0.02, 0.03, 0.05, 0.07], start=1)))
def test_impulse_noise_hits_its_share_half_black_half_white(severity, share):
    images = noisy("impulse_noise", severity)
    for value in (0.0, 1.0):
        error = np.sqrt(share / 2 * (1 - share / 2) / NUMBERS)
        assert abs((images == value).mean() - share / 2) < 4 * error
    assert np.isin(images, (0.0, 0.5, 1.0)).all()
    assert (noisy("impulse_noise", 5)[images != 0.5] != 0.5).all()  # what is hit at one severity is hit at the next


@pytest.mark.parametrize(("severity", "std"), list(enumerate([0.06, 0.1, 0.12, 0.16, 0.2], start=1)))
def test_speckle_noise_grows_with_the_signal(severity, std):
    for level in (0.1, 0.4):
        noise = noisy("speckle_noise", severity, np.full(GREY.shape, level)) - level
        assert abs(noise.std() - std * level) < 4 * std * level / np.sqrt(2 * NUMBERS)
    assert (noisy("speckle_noise", severity, np.zeros((1, 1, 8, 8))) == 0).all()


def test_channels_and_images_have_noise_of_their_own():
    noise = (noisy("gaussian_noise", 3) - GREY).reshape(-1, 1024)
    correlations = np.corrcoef(noise) - np.eye(len(noise))
    assert np.abs(correlations).max() < 5.5 / np.sqrt(1024)  # the largest of 7140


def test_poisson_is_the_quantile_everywhere():
    generator = np.random.default_rng(0)
    means = np.concatenate([[0.0, 1e-12, 1e-3], generator.uniform(0, 3, 3000), generator.uniform(0, 500, 3000)])
    for uniforms in (
        generator.uniform(size=len(means)),
        np.full(len(means), 2.0**-33),
        np.full(len(means), 1 - 2.0**-33),
    ):
        expected = np.maximum(stats.poisson.ppf(uniforms, means), 0)
        assert (poisson(means, uniforms) == expected).all()


def test_poisson_grows_with_u_and_keeps_the_shape():
    uniforms = np.linspace(0.001, 0.999, 60).reshape(3, 20)
    found = poisson(np.full((3, 20), 30.0), uniforms)
    assert found.shape == (3, 20)
    assert (np.diff(found.ravel()) >= 0).all()
