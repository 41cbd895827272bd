"""Noise of a sensor: Gaussian, shot and impulse noise. Hendrycks and Dietterich (2019), settings of CIFAR-10-C."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from jostle.corruptions.corruption import Draws, Floats, corruption


@corruption("gaussian_noise", "noise", [(0.04,), (0.06,), (0.08,), (0.09,), (0.10,)])
def gaussian_noise(images: Floats, draws: Draws, std: float) -> Floats:
    """x + std * z with z standard normal in every channel of every pixel: noise of low light."""
    return images + std * draws.normals(0, *images.shape[1:])


@corruption("shot_noise", "noise", [(500.0,), (250.0,), (100.0,), (75.0,), (50.0,)])
def shot_noise(images: Floats, draws: Draws, photons: float) -> Floats:
    """Poisson(x * photons) / photons: mean x, variance x / photons; light is made of discrete photons."""
    return poisson(images * photons, draws.uniforms(0, *images.shape[1:])) / photons


@corruption("impulse_noise", "noise", [(0.01,), (0.02,), (0.03,), (0.05,), (0.07,)])
def impulse_noise(images: Floats, draws: Draws, share: float) -> Floats:
    """A share of all values becomes 0 or 1, each half of the time: salt and pepper of bit errors."""
    uniforms = draws.uniforms(0, *images.shape[1:])
    with_pepper = np.where(uniforms < share / 2, 0.0, images)
    return np.where(uniforms > 1 - share / 2, 1.0, with_pepper)


def poisson(means: Floats, uniforms: Floats) -> Floats:
    """The smallest k with P[Poisson(mean) <= k] >= u, element by element: exact inversion.

    A normal approximation with a correction for skewness guesses k; the distribution function moves the guess to where
    it belongs, by few steps of 1. Monotone in u, so that equal uniforms couple different means.

    >>> poisson(np.asarray([0.0, 2.0, 2.0, 2.0]), np.asarray([0.5, 0.1353, 0.1354, 0.999])).tolist()
    [0.0, 0.0, 1.0, 8.0]
    """
    flat, levels = means.reshape(-1), uniforms.reshape(-1)
    normal = special.ndtri(levels)
    guess = np.floor(np.maximum(flat + np.sqrt(flat) * normal + (normal**2 - 1) / 6 + 0.5, 0.0))
    _step(guess, flat, levels, np.flatnonzero(special.pdtr(guess, flat) < levels), 1)
    _step(guess, flat, levels, np.flatnonzero(guess > 0), -1)
    return guess.reshape(means.shape)


def _step(guess: Floats, means: Floats, levels: Floats, active: NDArray[np.intp], by: int) -> None:
    """Move the ``active`` guesses up (by 1) or down (by -1), in place, until each is the smallest that is allowed."""
    while len(active):
        lower = guess[active] - (by < 0)
        reaches = special.pdtr(lower, means[active]) >= levels[active]
        active = active[reaches if by < 0 else ~reaches]
        guess[active] += by
        if by < 0:
            active = active[guess[active] > 0]
