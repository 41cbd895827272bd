"""How long the bench takes to answer a click: the first estimate, and how quickly it becomes precise."""

import os
import statistics
import time
from collections.abc import Callable

from benchmarks.records import record
from jostle.cli.play import SAMPLES, drawn_digits
from jostle.integrations import load
from jostle.play.bench import Bench
from jostle.play.kinds import make_bench

ROUNDS = 25


def made() -> Bench:
    """The bench that ``jostle play`` shows by itself."""
    models = {name: load(SAMPLES[name]) for name in ("vit", "cnn")}
    return make_bench(models, drawn_digits(models))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    wall, cpu = time.perf_counter(), sum(os.times()[:2])
    work()
    return sum(os.times()[:2]) - cpu, time.perf_counter() - wall


def test_first_estimate() -> None:
    bench = made()
    next(bench.watch("0", None, bench.strength))  # the first pass of a network allocates
    for name, token in (("token", 24), ("all", None)):
        found = [timed(lambda token=token: next(bench.watch("0", token, bench.strength))) for _ in range(ROUNDS)]
        cpu, wall = (statistics.median(part) for part in zip(*found, strict=True))
        record(f"play-first-{name}", {"cpu_seconds": cpu, "seconds": wall, "models": 2})
        print(f"\nfirst estimate, {name}: {1000 * cpu:.0f} ms of CPU time, {1000 * wall:.0f} ms")


def test_whole_stream() -> None:
    bench = made()
    updates = 0

    def watch() -> None:
        nonlocal updates
        updates = sum(1 for _ in bench.watch("0", None, bench.strength))

    cpu, wall = timed(watch)
    record("play-stream", {"cpu_seconds": cpu, "seconds": wall, "updates": updates, "models": 2})
    print(f"\nwhole stream: {cpu:.1f} s of CPU time, {wall:.1f} s, {updates} updates")
