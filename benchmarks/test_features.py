"""What the one-word updates of feature maps save, against computing the map again; ratios of CPU times in one run.

A step of the ascent is a value and its gradient for each start. The plain way puts the changed word into the input and
computes all of attention; both give the same numbers (tests/papers/features). Memory is counted, not timed.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch

from benchmarks.records import record
from jostle_papers.p2402_02969.features import (
    DeepRandomFeatures,
    DrawnFeatures,
    OneWord,
    RandomAttention,
    RecomputedWord,
    shared_mean_words,
)

STARTS, ROUNDS = 8, 7
SIZES = [(40, 192), (160, 192), (120, 768)]

pytestmark = pytest.mark.usefixtures("one_thread")


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def one_step(one_word: OneWord, changes: torch.Tensor) -> Callable[[], object]:
    def work() -> object:
        asked = changes.clone().requires_grad_()
        return torch.autograd.grad(one_word.squared_change(asked).sum(), asked)

    return work


@pytest.mark.parametrize(("n", "dim"), SIZES)
def test_one_word_against_the_whole_map(n: int, dim: int) -> None:
    words = shared_mean_words(1, num_tokens=n, dim=dim)[0]
    phi = RandomAttention(dim=dim)
    changes = shared_mean_words(1, num_tokens=STARTS, dim=dim, seed=1)[0]
    fast, plain = phi.one_word(words, 0), RecomputedWord(phi, words, 0)
    one_step(plain, changes)()
    rounds = [(seconds(one_step(plain, changes)), seconds(one_step(fast, changes))) for _ in range(ROUNDS)]
    ratio = statistics.median(slow / max(quick, 1e-9) for slow, quick in rounds)
    milliseconds = 1e3 * statistics.median(quick for _, quick in rounds)
    record(f"features-attention-{n}x{dim}", {"ratio": ratio, "milliseconds_a_step": milliseconds})
    print(f"\nattention, n = {n}, d = {dim}: {milliseconds:.2f} ms a step of {STARTS} starts, {ratio:.0f} x less")
    assert ratio > 3


def test_paper_size_in_megabytes() -> None:
    """n = 150 and d = 768 in float32, and 8 layers of n = 80 after one gradient: what is held, against matrices."""
    n, dim = 150, 768
    words = shared_mean_words(1, num_tokens=n, dim=dim).float()
    drawn = DrawnFeatures(words, 0)
    took = seconds(lambda: drawn.block)
    held = sum(part.numel() * part.element_size() for part in (drawn.block, drawn.sums, words)) / 2**20
    whole = 8 * (n * dim) ** 2 / 2**20
    deep_n, depth = 80, 8
    deep = DeepRandomFeatures(num_tokens=deep_n, dim=dim, depth=depth, lazy=True)
    asked = shared_mean_words(1, num_tokens=deep_n, dim=dim).requires_grad_()
    deep_took = seconds(lambda: torch.autograd.grad(deep(asked).sum(), asked))
    record(
        "features-memory",
        {"drawn_megabytes": held, "matrix_megabytes": whole, "drawn_seconds": took, "deep_seconds": deep_took},
    )
    print(f"\nRF n = {n}, d = {dim}: {held:.0f} MB instead of {whole:,.0f} MB, drawn in {took:.1f} s of CPU")
    print(f"DRF n = {deep_n}, d = {dim}, {depth} layers: value and gradient in {deep_took:.1f} s of CPU")
    assert held < whole / 100
