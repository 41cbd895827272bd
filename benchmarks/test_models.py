"""What it gains to store the weights of convolutions with their channels last, as ``jostle.models.create`` does.

A step of training without an optimiser (forward and backward) on the same network arranged both ways, interleaved;
printed as a ratio of CPU times, the median of the rounds.
"""

import statistics
import time

import pytest
import torch

import jostle
from benchmarks.records import record

ROUNDS, BATCH = 9, 50
SIZES = {
    "resnet-18": {"width": 8},
    "densenet-121": {"growth": 8, "blocks": (4, 4, 4)},
    "convmixer": {"dim": 64, "depth": 4},
    "cnn": {},
}

pytestmark = pytest.mark.usefixtures("one_thread")


def seconds(model: torch.nn.Module, images: torch.Tensor) -> float:
    started = time.process_time()
    model(images).sum().backward()
    return time.process_time() - started


@pytest.mark.parametrize("name", SIZES)
def test_channels_last(name):
    images = torch.randn(BATCH, 3, 32, 32)
    last = jostle.models.create(name, image_size=32, channels=3, seed=0, **SIZES[name])
    first = jostle.models.create(name, image_size=32, channels=3, seed=0, **SIZES[name])
    first = first.to(memory_format=torch.contiguous_format)
    rounds = [(seconds(first, images), seconds(last, images)) for _ in range(ROUNDS + 1)][1:]
    ratio = statistics.median(before / after for before, after in rounds)
    print(f"\n{name}: {ratio:.2f} times as fast with the channels last")
    record(f"channels-last-{name}", {"times_as_fast": ratio})
