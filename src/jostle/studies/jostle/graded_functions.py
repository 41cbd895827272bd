"""Functions of n bits of graded sensitivity: from AND to PARITY, of several families."""

import numpy as np
from numpy.typing import NDArray

from jostle.boolean import functions
from jostle.registry import unknown_name

FAMILIES = ("sparse parities", "juntas", "thresholds", "formulas", "times parity", "random")
TIMES = "parity times "
_JUNTAS = ((2, 0), (3, 1), (4, 3), (5, 2), (6, 0))  # bits and seeds: sensitivities 1, 1.5, 2.25, 2.625 and 3.4375


def members(family: str, n: int) -> list[str]:
    """The functions of a family on n bits, n even, by the names that ``table`` knows."""
    if family not in FAMILIES:
        raise unknown_name("family", family, FAMILIES)
    return {
        "sparse parities": [f"sparse-parity:k={k}" for k in range(1, n + 1)],
        "juntas": [*(f"junta:k={k},seed={seed}" for k, seed in _JUNTAS if k < n), f"dictator:coordinate={n - 1}"],
        "thresholds": [
            "majority", f"threshold:theta={n // 4}", f"threshold:theta={n // 2}",
            f"threshold:weights={'/'.join(str(weight) for weight in range(n, 0, -1))}",
        ],
        "formulas": ["and", "or", "not-all-equal", "tribes:width=2", f"tribes:width={n // 2}", "decision-list",
                     "multiplexer"],
        "times parity": [f"{TIMES}{other}" for other in ("majority", "multiplexer", "tribes:width=2", "decision-list")],
        "random": [*(f"random:seed={seed}" for seed in range(3)), "bent"],
    }[family]  # fmt: skip


def table(name: str, n: int) -> NDArray[np.int8]:
    """The values -1 and 1 of a function at all 2^n strings.

    A function times the parity of all bits has sensitivity n - as_n: where a bit decides it no longer does, and the
    other way round. The multiplexer looks at the first a + 2^a bits, with the largest a for which there are as many.

    >>> from jostle.boolean import pointwise
    >>> [float(pointwise.influences(table(name, 6)).sum()) for name in ("majority", "parity times majority")]
    [1.875, 4.125]
    """
    if name.startswith(TIMES):
        return table(name.removeprefix(TIMES), n) * functions.parity(n).table().astype(np.int8)
    if name == "multiplexer":
        seen = max(a + 2**a for a in range(1, n) if a + 2**a <= n)
        return np.repeat(functions.multiplexer(seen).table(), 2 ** (n - seen)).astype(np.int8)
    return functions.create(name, n).table().astype(np.int8)
