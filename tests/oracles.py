"""Slow, obvious, independent: what an estimator must agree with. Imports nothing from the estimators."""

import itertools
import math
from collections.abc import Callable, Sequence

import torch

Bits = tuple[int, ...]


def cube(n: int) -> list[Bits]:
    return list(itertools.product((-1, 1), repeat=n))


def sensitivity_by_enumeration(f: Callable[[Bits], float], n: int) -> float:
    """Paper 1, Eq. 1 over d: the share of (input, bit) pairs whose flip changes the sign of f."""

    def sign(value: float) -> int:
        return (value > 0) - (value < 0)

    changes = 0
    for x in cube(n):
        for i in range(n):
            y = list(x)
            y[i] = -y[i]
            changes += sign(f(x)) != sign(f(tuple(y)))
    return changes / (n * 2**n)


def majority_sensitivity(n: int) -> float:
    """n odd: total sensitivity n C(n-1, (n-1)/2) / 2^(n-1), divided by n."""
    return math.comb(n - 1, (n - 1) // 2) / 2 ** (n - 1)


def halfspace_sensitivity(weights: torch.Tensor, std: float) -> float:
    """For x ~ N(0, I) and f = sign(w x), one coordinate a token: the mean of arctan(std |w_i| / |w|) / pi."""
    return float((torch.arctan(std * weights.abs() / weights.norm()) / math.pi).mean())


def halfspace_sensitivity_given_inputs(weights: torch.Tensor, inputs: torch.Tensor, std: float) -> torch.Tensor:
    """(inputs, tokens): Phi(-|w x| / (std |w_i|)), the flip probability of each cell."""
    margin = (inputs @ weights).abs()[:, None]
    z = -margin / (std * weights.abs())
    return 0.5 * torch.erfc(-z / math.sqrt(2))


def loop_over_grid(
    model: Callable[[torch.Tensor], torch.Tensor],
    inputs: torch.Tensor,
    positions: Sequence[Sequence[int]],
    noise: Callable[[int, int, int], torch.Tensor],
    draws: int,
) -> list[list[list[int]]]:
    """Flips [input][token][draw] by a loop: every input, every token, every draw, one at a time.

    ``positions[t]`` lists the flat indices of token t; ``noise(i, t, r)`` is what is added to that token.
    """
    flips = []
    for i in range(len(inputs)):
        before = int(model(inputs[i : i + 1]).argmax())
        rows = []
        for t, places in enumerate(positions):
            row = []
            for r in range(draws):
                jostled = inputs[i].flatten().clone()
                jostled[list(places)] += noise(i, t, r)
                row.append(int(int(model(jostled.reshape(1, *inputs.shape[1:])).argmax()) != before))
            rows.append(row)
        flips.append(rows)
    return flips
