"""Images that look natural to a corruption: smooth random fields with some edges, different in every channel."""

import numpy as np


def natural(count, channels=3, height=32, width=32, seed=0):
    """(count, channels, height, width) in [0, 1], amplitude falling with frequency as in photographs."""
    generator = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    falling = 1 / np.maximum(np.hypot(rows, columns), 1 / max(height, width)) ** 1.3
    noise = generator.standard_normal((count, channels + 1, height, width))
    fields = np.fft.ifft2(np.fft.fft2(noise) * falling).real
    fields = 0.7 * fields[:, :1] + 0.3 * fields[:, 1:]  # channels share most of their light
    fields = (fields - fields.mean(axis=(2, 3), keepdims=True)) / fields.std(axis=(2, 3), keepdims=True)
    levels = generator.uniform(0.35, 0.65, (count, 1, 1, 1))
    return np.clip(levels + 0.22 * fields, 0, 1)
