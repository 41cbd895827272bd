"""Which triples (input, token, draw) are evaluated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Trials:
    """Triples in the order in which they are consumed.

    Arguments:
        inputs, tokens, draws: (count,) each. The noise of a trial is a function of its triple and the seed.
    """

    inputs: Integers
    tokens: Integers
    draws: Integers

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, part: slice | Integers) -> "Trials":
        return Trials(self.inputs[part], self.tokens[part], self.draws[part])
