"""What a measurement costs over plain inference in ideal batches: of 128, of the same inputs, sorted by length
(for a grid, of each input as often as it has tokens).

``Until`` for some thousand passes and ``Grid(1)`` on some inputs, with all checks, clean passes and intervals.
Also with readers switched off, to show what they save. Ratios of CPU times a pass, medians of interleaved rounds.
"""

import statistics
import time
from contextlib import nullcontext

import pytest
import torch

import jostle
from benchmarks import rivals
from benchmarks.networks import NETWORKS, available, trained
from benchmarks.records import record
from jostle.sampling import readers

ROUNDS, SECONDS = 5, 1.2  # of three rounds the median was still 5 % up or down, on a busy machine

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", list(NETWORKS))
def test_overhead_over_ideal_batches(name: str) -> None:
    if name not in available():
        pytest.skip(f"the data of {name} is not here")
    model, inputs = trained(name)

    def plain(passes: int, count: int | None = None) -> float:
        """Without ``count``, of random inputs; with it, of the tokens of the first inputs."""
        with torch.inference_mode():
            started = time.process_time()
            rivals.clean(model, inputs[:count], 0.0, passes, by_token=count is not None)
            return (time.process_time() - started) / passes

    def measured(plan: jostle.Until | jostle.Grid, count: int) -> float:
        started = time.process_time()
        noise = jostle.GaussianNoise(1.0)
        found = jostle.measure(
            model, inputs[:count], tokens=NETWORKS[name].tokens, perturbation=noise, plan=plan, engine="serial"
        )
        return (time.process_time() - started) / found.passes

    plain(512)
    passes = int(min(max(SECONDS / plain(512), 2000), 12_000))
    some = passes // 45
    until = jostle.Until(half_width=1e-5, max_passes=passes)
    measured(until, len(inputs))  # everybody has run once before any clock starts
    numbers = {}
    for label, way in (("", nullcontext), ("_without_readers", readers.switched_off)):
        with way():
            rounds = [
                (plain(passes), measured(until, len(inputs)), plain(passes, some), measured(jostle.Grid(1), some))
                for _ in range(ROUNDS)
            ]
        numbers[f"until{label}"] = statistics.median(row[1] / row[0] for row in rounds) - 1
        numbers[f"grid{label}"] = statistics.median(row[3] / row[2] for row in rounds) - 1
    numbers |= {"microseconds_a_plain_pass": 1e6 * statistics.median(row[0] for row in rounds), "passes": passes}
    record(f"ideal-{name}", numbers)
    print(f"\n{name}: " + ", ".join(f"{key} {value:+.2f}" for key, value in numbers.items()))
