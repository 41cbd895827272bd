import numpy as np
import pytest

from jostle.base.randomness import Stream
from jostle.corruptions import Draws
from jostle.corruptions.textures import _diamond_square, _fold, clouds, crystals

DRAWS = Draws(Stream(0, "textures"), np.arange(50))


def slow_diamond_square(noise, size, decay):
    """One point at a time, by the letter of the algorithm on a torus."""
    grid, used, amplitude, step = np.zeros((size, size)), 0, 1.0, size
    while step >= 2:
        half, cells = step // 2, size // step
        bumps = amplitude * noise[used : used + 3 * cells * cells].reshape(3, cells, cells)
        used += 3 * cells * cells

        def around(row, column, steps, grid=grid):
            return np.mean([grid[(row + down) % size, (column + right) % size] for down, right in steps])

        cross = [(half, 0), (-half, 0), (0, half), (0, -half)]
        corners = [(half, half), (half, -half), (-half, half), (-half, -half)]
        for i, j in np.ndindex(cells, cells):
            row, column = i * step + half, j * step + half
            grid[row, column] = around(row, column, corners) + bumps[0, i, j]
        for i, j in np.ndindex(cells, cells):
            top, left = i * step, j * step
            grid[top, left + half] = around(top, left + half, cross) + bumps[1, i, j]
            grid[top + half, left] = around(top + half, left, cross) + bumps[2, i, j]
        step, amplitude = half, amplitude / decay**2
    return grid


@pytest.mark.parametrize("size", [2, 4, 16])
def test_diamond_square_is_the_slow_one(size):
    noise = np.random.default_rng(size).uniform(-1, 1, (3, size * size))
    found = _diamond_square(noise, size, 1.7)
    for image in range(3):
        np.testing.assert_allclose(found[image], slow_diamond_square(noise[image], size, 1.7), atol=1e-12)


def test_clouds_fill_0_to_1_and_are_rougher_for_a_smaller_decay():
    rough, smooth = clouds(DRAWS, 0, 32, 32, 1.75), clouds(DRAWS, 0, 32, 32, 3.0)
    for found in (rough, smooth):
        assert found.min(axis=(1, 2)) == pytest.approx(0)
        assert found.max(axis=(1, 2)) == pytest.approx(1)
    steps = [np.abs(np.diff(found, axis=2)).mean() for found in (rough, smooth)]
    assert steps[0] > 1.05 * steps[1]


@pytest.mark.parametrize("size", [(28, 28), (33, 33), (17, 40), (64, 64)])
def test_clouds_span_the_picture_at_any_size(size):
    found = clouds(DRAWS, 0, *size, 3.0)
    assert found.shape == (50, *size)
    at_32 = clouds(DRAWS, 0, 32, 32, 3.0)
    assert found.std(axis=(1, 2)).mean() == pytest.approx(at_32.std(axis=(1, 2)).mean(), rel=0.15)


def test_crystals_are_bright_lines_on_dark():
    found = crystals(Draws(DRAWS.stream, np.arange(4)), 0, 128, 128)
    assert found.min() >= 0
    assert 0.5 < found.max() <= 1
    assert np.median(found) < found.mean() < 0.3


def test_folding_keeps_lengths_and_is_sixfold():
    angles = np.linspace(0, 2 * np.pi, 721)
    x, y = _fold(np.cos(angles), np.sin(angles))
    np.testing.assert_allclose(np.hypot(x, y), 1, atol=1e-12)
    assert (np.arctan2(y, x) <= np.pi / 6 + 1e-9).all()
    assert y.min() >= 0
    np.testing.assert_allclose(y[:-120], y[120:], atol=1e-9)  # turned by 60 degrees
