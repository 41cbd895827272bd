"""Boolean functions with known answers: parity and majority on 9 bits, exact, sampled, and in closed form.

A flipped bit always changes the parity: sensitivity 1. It changes the majority only if the other 8 bits are tied:
C(8, 4) / 2^8 = 0.273.
"""

from itertools import product
from math import comb

import torch

import jostle

BITS = torch.tensor(list(product((-1.0, 1.0), repeat=9)))  # (512, 9): all inputs there are
FUNCTIONS = {
    "parity": (lambda x: x.prod(dim=1), 1.0),
    "majority": (lambda x: x.sum(dim=1), comb(8, 4) / 2**8),
}


def main() -> None:
    print(f"{'function':<10}{'closed form':>12}{'every flip':>12}{'sampled':>10}   95 % interval     passes")
    for name, (function, answer) in FUNCTIONS.items():
        every, some = (
            jostle.measure(function, BITS, name=name, tokens="coordinates", perturbation="sign-flip", plan=plan)
            for plan in (jostle.Grid(1), jostle.Until(half_width=0.05))
        )
        interval = f"[{some.low:.3f}, {some.high:.3f}]"
        print(f"{name:<10}{answer:>12.4f}{every.value:>12.4f}{some.value:>10.4f}   {interval}   {some.passes:>5}")


if __name__ == "__main__":
    main()
