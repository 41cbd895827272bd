"""What corrupting images costs: milliseconds an image in a batch, and the ratio to a plain loop over images.

10,000 images of 3 x 32 x 32 at severity 3, on one core, in CPU time, so that others on the machine do not count. The
loop calls the same function with one image at a time, as a transform of a data loader would, on the first 500 of them,
interleaved with batches of those. Some corruptions gain nothing from a batch: what they do to an image dwarfs the call.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch

from benchmarks.records import record
from jostle.corruptions import corrupt, names

IMAGES, LOOPED, ROUNDS, SEVERITY = 10_000, 500, 3, 3
MOST_MILLISECONDS = 20.0

pytestmark = pytest.mark.usefixtures("one_thread")


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    """Smooth fields: how long JPEG takes depends on what is in a picture."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(IMAGES, 3, 9, 9, generator=generator, dtype=torch.float32)
    return torch.nn.functional.interpolate(coarse, size=(32, 32), mode="bilinear") * 2 - 1


def test_milliseconds_an_image(images):
    found: dict[str, float] = {}
    few = images[:LOOPED]
    print()
    for name in names():

        def loop(name: str = name) -> None:
            for index in range(LOOPED):
                corrupt(few[index : index + 1], name, SEVERITY, indices=[index])

        def batch(name: str = name) -> None:
            corrupt(few, name, SEVERITY)

        batch()
        ratio = statistics.median(seconds(loop) / seconds(batch) for _ in range(ROUNDS))
        found[name] = seconds(lambda name=name: corrupt(images, name, SEVERITY)) / IMAGES * 1e3
        found[f"{name}_loop_ratio"] = ratio
        print(f"{name:18} {found[name]:6.3f} ms an image; a loop takes {ratio:.1f} times as long")
    record("corruptions", found)
    assert max(found[name] for name in names()) < MOST_MILLISECONDS
    assert statistics.median(found[f"{name}_loop_ratio"] for name in names()) > 1.5
