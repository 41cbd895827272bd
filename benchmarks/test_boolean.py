"""The exact analysis of Boolean functions against boofun and against evaluating every neighbour, in one run.

Full analysis: Fourier coefficients and weights, degree, influences, sensitivity at every point, its mean and maximum,
noise stability. boofun computes the same through its own functions.
"""

import gc
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.records import record
from jostle.boolean import analyse, cube

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import boofun
    from boofun.analysis import sensitivity as their_sensitivity


def random_table(n: int, kind: type = np.int8) -> NDArray[np.int8]:
    return np.random.default_rng(0).choice(np.array([-1, 1], dtype=kind), 2**n)


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """CPU seconds, the best of a few rounds."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def ours(table: NDArray[np.int8]) -> None:
    b = analyse(table)
    _ = b.coefficients, b.degree, b.sensitivity_profile, b.max_sensitivity, b.noise_stability(0.5), b.huang


def theirs(table: NDArray[np.int8]) -> None:
    f = boofun.create((table < 0).astype(int).tolist())
    f.fourier(), f.influences(), f.total_influence(), f.degree(), f.spectral_weight_by_degree(), f.noise_stability(0.5)
    profile = np.asarray(their_sensitivity.sensitivity_profile(f))
    np.bincount(profile), profile.max(), profile.mean()


def neighbour_by_neighbour(f: Callable[[NDArray[np.float64]], NDArray[np.float64]], n: int) -> float:
    """Evaluate f at every neighbour of every point: n 2^n evaluations."""
    x = cube.points(n).astype(np.float64)
    clean, changes = f(x), 0
    for i in range(n):
        flipped = x.copy()
        flipped[:, i] *= -1
        changes += int((f(flipped) != clean).sum())
    return changes / 2**n


def fifteen_lines(table: NDArray[np.int8]) -> None:
    """What one would write in numpy: the transform in place, neighbours by slices."""
    n, f, half = len(table).bit_length() - 1, table.astype(np.float64), 1
    while half < len(f):
        pairs = f.reshape(-1, 2, half)
        below = pairs[:, 0].copy()
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] -= below
        half *= 2
    f /= len(f)
    weight = np.bincount(np.bitwise_count(np.arange(len(f), dtype=np.uint32)), weights=f**2)
    sensitivity, influences = np.zeros(len(f), dtype=np.int64), []
    for i in range(n):
        pairs, sums = (each.reshape(-1, 2, 2 ** (n - 1 - i)) for each in (table, sensitivity))
        changed = pairs[:, 0] != pairs[:, 1]
        sums[:, 0] += changed
        sums[:, 1] += changed
        influences.append(changed.mean())
    np.bincount(sensitivity, minlength=n + 1), sensitivity.max(), sensitivity.mean(), np.flatnonzero(weight).max()
    np.polynomial.polynomial.polyval(0.5, weight)


@pytest.mark.parametrize("n", [4, 8, 10, 12, 14, 16, 18, 20, 22])
def test_against_plain_numpy(n: int) -> None:
    table, times = random_table(n), max(1, 2**14 >> n)
    rounds = []
    for _ in range(11 if n < 20 else 3):
        row = []
        for work in (ours, fifteen_lines):
            started = time.process_time()
            for _ in range(times):
                work(table)
            row.append((time.process_time() - started) / times)
        rounds.append(row)
    mine = statistics.median(row[0] for row in rounds)
    ratio = statistics.median(row[1] / row[0] for row in rounds)
    record(f"boolean-numpy-{n:02d}", {"milliseconds": 1e3 * mine, "numpy_over_ours": ratio})
    print(f"\nn = {n}: {1e3 * mine:.2f} ms, plain numpy {ratio:.2f} x")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [10, 12, 16])
def test_against_boofun(n: int) -> None:
    table = random_table(n)
    mine, other = seconds(lambda: ours(table), 10), seconds(lambda: theirs(table), 1)
    record(f"boolean-{n}-boofun", {"ratio": other / mine, "milliseconds": 1e3 * mine, "boofun_seconds": other})
    print(f"\nn = {n}: {1e3 * mine:.1f} ms, boofun {other:.2f} s, {other / mine:.0f} x")


def test_against_evaluating_every_neighbour() -> None:
    n, weights = 16, np.random.default_rng(0).normal(size=(16, 256))
    readout = np.random.default_rng(1).normal(size=256)

    def network(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.maximum(x @ weights, 0) @ readout > 0, 1.0, -1.0)

    mine = seconds(lambda: analyse(network, n))
    naive = seconds(lambda: neighbour_by_neighbour(network, n), 1)
    assert analyse(network, n).total_sensitivity == neighbour_by_neighbour(network, n)
    record("boolean-16-naive", {"ratio": naive / mine, "seconds": mine, "naive_seconds": naive})
    print(f"\nnetwork of 16 bits: {mine:.2f} s, neighbour by neighbour {naive:.2f} s, {naive / mine:.1f} x")


@pytest.mark.parametrize("n", [20, 24])
def test_large_tables(n: int) -> None:
    numbers = {}
    for name, kind in (("signs", np.int8), ("reals", np.float64)):
        table = random_table(n, kind) if kind is np.int8 else np.random.default_rng(0).normal(size=2**n)
        numbers[f"{name}_seconds"] = seconds(lambda given=table: analyse(given), 3)
        tracemalloc.start()
        analyse(table)
        numbers[f"{name}_copies"] = tracemalloc.get_traced_memory()[1] / table.nbytes
        tracemalloc.stop()
    record(f"boolean-{n}", numbers)
    print(f"\nn = {n}: " + ", ".join(f"{key} {value:.2f}" for key, value in numbers.items()))
