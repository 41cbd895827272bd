"""How many passes a precise answer takes: until a precision, against the papers' grid and against a fixed sample."""

import statistics

import pytest
import torch
from scipy import special, stats

import jostle
from benchmarks.records import record

INPUTS, TOKENS = 10_000, 64


@pytest.mark.parametrize(("value", "half_width"), [(0.005, 0.002), (0.05, 0.01), (0.05, 0.002)])
def test_passes_until_a_precision(value, half_width):
    """A function that flips with a known probability in every trial: the statistics alone decide."""
    torch.set_default_dtype(torch.float64)
    threshold = float(stats.norm.isf(value))
    inputs = torch.zeros(INPUTS, TOKENS)

    def flips_when_noise_is_large(x: torch.Tensor) -> torch.Tensor:
        return threshold - x.sum(dim=1)

    plan = jostle.Until(half_width=half_width)
    runs = [
        jostle.measure(
            flips_when_noise_is_large, inputs, tokens="coordinates", perturbation="gaussian-noise:1", plan=plan, seed=s
        )
        for s in range(15)
    ]
    grid = INPUTS * TOKENS * 5 + INPUTS
    fixed = float(special.ndtri(0.975) ** 2 * value * (1 - value) / half_width**2)
    draws, passes = (statistics.mean(getattr(run, name) for run in runs) for name in ("trials", "passes"))
    numbers = {
        "draws_over_fixed": draws / fixed,
        "grid_passes_over_ours": grid / passes,
        "draws": draws,
        "passes": passes,
    }
    record(f"until-{value:g}-{half_width:g}", numbers)
    print(
        f"\nS = {value}, half-width {half_width}: {draws:,.0f} draws = {draws / fixed:.2f} x a fixed "
        f"sample ({fixed:,.0f}); "
        f"{passes:,.0f} passes = 1/{grid / passes:,.0f} of the grid's {grid:,}"
    )
    assert all(run.high - run.low <= 2 * half_width for run in runs)
    assert draws < 3 * fixed
    if value == 0.005:
        assert passes < grid / 100


def test_draws_of_a_comparison():
    """Several models must all be precise enough, each by the interval of its stopping rule."""
    torch.set_default_dtype(torch.float64)
    value, half_width = 0.05, 0.01
    threshold = float(stats.norm.isf(value))
    models = {"up": lambda x: threshold - x.sum(dim=1), "down": lambda x: threshold + x.sum(dim=1)}
    plan, inputs = jostle.Until(half_width=half_width), torch.zeros(INPUTS, TOKENS)
    runs = [
        jostle.compare(models, inputs, tokens="coordinates", perturbation="gaussian-noise:1", plan=plan, seed=s)
        for s in range(15)
    ]
    fixed = float(special.ndtri(0.975) ** 2 * value * (1 - value) / half_width**2)
    draws = statistics.mean(run["up"].trials for run in runs)
    record("until-comparison-of-two", {"draws_over_fixed": draws / fixed, "draws": draws})
    print(
        f"\ntwo models, S = {value}, half-width {half_width}: {draws:,.0f} draws = {draws / fixed:.2f} x a fixed sample"
    )
    assert draws < 3 * fixed


@pytest.mark.parametrize(("first", "second"), [(0.01, 0.005), (0.05, 0.025), (0.01, 0.0075)])
def test_passes_of_a_decision(first, second):
    """Which of two models flips more often, against measuring both to +-10 %; the noise of the two is unrelated."""
    torch.set_default_dtype(torch.float64)
    high, low = (float(stats.norm.isf(value)) for value in (first, second))
    models = {"often": lambda x: high - x.sum(dim=1), "seldom": lambda x: low + x.sum(dim=1)}
    settings = {"tokens": "coordinates", "perturbation": "gaussian-noise:1"}
    inputs = torch.zeros(INPUTS, TOKENS)
    runs = [
        jostle.compare(models, inputs, plan=jostle.Until(decided=True), seed=seed, **settings) for seed in range(15)
    ]
    right = sum(run.difference("often", "seldom").direction == 1 for run in runs)
    both = [jostle.compare(models, inputs, plan=jostle.Until(relative=0.1), seed=seed, **settings) for seed in range(3)]
    passes, measured = (statistics.mean(run["often"].passes for run in each) for each in (runs, both))
    gap = first - second
    fixed = float((special.ndtri(0.975) + special.ndtri(0.9)) ** 2 * (first + second) / gap**2)
    numbers = {
        "passes_over_measuring_both": passes / measured,
        "passes": passes,
        "draws_over_fixed": statistics.mean(run["often"].trials for run in runs) / fixed,
        "right": right / len(runs),
    }
    record(f"decided-{first:g}-{second:g}", numbers)
    print(
        f"\n{first} or {second}: {passes:,.0f} passes, {passes / measured:.2f} of measuring both; {right} of 15 right"
    )
    assert right == len(runs)
