"""How the time of a measurement grows with the inputs, tokens, classes, the model and the number of models.

One thing is varied at a time, 12,000 passes each, and the exponent b of time ~ size^b is fitted on logarithms. Inputs,
tokens, classes and models are varied for a linear model, which costs next to nothing, so this is jostle's own time.
"""

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

import jostle
from benchmarks.records import record

PASSES, ROUNDS = 12_000, 3

pytestmark = pytest.mark.usefixtures("one_thread")


def linear(tokens: int, classes: int) -> Callable[[torch.Tensor], torch.Tensor]:
    weights = torch.randn(tokens, classes, generator=torch.Generator().manual_seed(0))
    return lambda x: x @ weights


def inputs_and_tokens(
    inputs: int = 2000, tokens: int = 64, classes: int = 10, models: int = 1, hidden: int = 0
) -> float:
    """CPU seconds of one measurement."""
    generator = torch.Generator().manual_seed(1)
    held = torch.randn(inputs, tokens, generator=generator)
    if hidden:
        held = torch.randn(inputs, 1, 28, 28, generator=generator)
        network = jostle.models.create("mlp", hidden=(hidden, hidden), classes=classes, seed=0)
        given, view = {"model": network}, "patches:4"
    else:
        given, view = {f"model {number}": linear(tokens, classes) for number in range(models)}, "coordinates"
    plan = jostle.Until(half_width=1e-4, max_passes=PASSES)
    started = time.process_time()
    jostle.compare(given, held, tokens=view, perturbation="gaussian-noise:0.5", plan=plan)
    return time.process_time() - started


SIZES = {
    "inputs": [500, 2000, 8000],
    "tokens": [16, 64, 256],
    "classes": [2, 30, 500],
    "hidden": [128, 512, 2048],
    "models": [1, 2, 4],
}


@pytest.mark.parametrize("name", list(SIZES))
def test_exponent(name: str) -> None:
    sizes = SIZES[name]
    rounds = np.array([[inputs_and_tokens(**{name: size}) for size in sizes] for _ in range(ROUNDS)])
    seconds = np.median(rounds, axis=0)
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    numbers = {f"microseconds_at_{size}": 1e6 * each / PASSES for size, each in zip(sizes, seconds, strict=True)}
    record(f"scaling-{name}", {"exponent": exponent, **numbers})
    print(f"\n{name}: exponent {exponent:.2f}, " + ", ".join(f"{key} {value:.1f}" for key, value in numbers.items()))
