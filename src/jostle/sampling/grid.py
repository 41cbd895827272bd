"""Every input, every token, a fixed number of draws: the papers' protocol."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jostle.errors import UsageError
from jostle.randomness import Stream
from jostle.sampling.trials import Integers, Trials
from jostle.tokens import Inputs


@dataclass(frozen=True)
class Grid:
    """Evaluate all N x T x draws triples: paper 1 (2403.06925), Section 5, which uses 5 draws.

    Inputs are visited in a random order drawn in advance, so that what is known after an interruption is an estimate
    from a random part of the inputs.

    Arguments:
        draws: how often each token of each input is jostled; a deterministic perturbation takes one.
    """

    draws: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise UsageError(f"draws={self.draws!r} of Grid must be a whole number, at least 1")

    def order(self, inputs: Inputs, seed: int) -> Integers:
        """The order in which inputs are visited."""
        return Stream(seed, "order").permutation(len(inputs))

    def blocks(self, inputs: Inputs, chosen: Integers, block: int) -> Iterator[Trials]:
        """Trials of the ``chosen`` inputs, a few whole inputs at a time, about ``block`` trials, token by token."""
        tokens, counts = inputs.num_tokens, inputs.token_counts
        if inputs.padding is not None and counts is not None:
            tokens = round(float(counts.mean()))  # of text many columns are padding
        step = max(1, block // (tokens * self.draws))
        for start in range(0, len(chosen), step):
            yield self._trials(inputs, chosen[start : start + step])

    def _trials(self, inputs: Inputs, chosen: Integers) -> Trials:
        if inputs.mask is None:
            owner = np.repeat(chosen, inputs.num_tokens)
            tokens = np.tile(np.arange(inputs.num_tokens), len(chosen))
        else:
            row, tokens = np.nonzero(inputs.mask[chosen])
            owner = chosen[row]
        cells = len(owner)
        return Trials(
            np.repeat(owner, self.draws), np.repeat(tokens, self.draws), np.tile(np.arange(self.draws), cells)
        )

    def describe(self) -> str:
        """A spec that makes this plan again."""
        return f"grid:draws={self.draws}"
