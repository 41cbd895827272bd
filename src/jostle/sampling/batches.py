"""Which trials share a batch: any of them, or, for text, those of about the same length."""

from collections.abc import Iterator

import numpy as np

from jostle.sampling.plans import Integers
from jostle.tokens import Batch, Inputs

_MOST_PADDING = 0.05
# What a layer hands on should fit in a cache: with 4,400 tokens at once an encoder of hidden width 3072 took 24 %
# longer a text than with 1,100, one with 1024 as long.
TOKENS_ON_CPU = 1024


class Batching:
    """Cuts trials into batches.

    Texts are put together by length, so that at most 5 % of the tokens of a batch are padding, and cut to the longest
    of them; a batch may then be smaller than ``batch_size``. What a trial gives does not depend on its batch beyond
    rounding, and results are handed on in the order in which trials were drawn, whatever the order in which they were
    evaluated.

    Arguments:
        inputs: what trials are about.
        batch_size: the most that share a batch.
        most_tokens: for text, the most tokens of a batch of more than one.
    """

    def __init__(self, inputs: Inputs, batch_size: int, most_tokens: float = np.inf) -> None:
        self.inputs, self.batch_size, self.most_tokens = inputs, batch_size, most_tokens
        self.trims = inputs.padding is not None

    def order(self, chosen: Integers) -> Integers:
        """The order in which these inputs are best evaluated: (len(chosen),) places in ``chosen``."""
        if self.inputs.padding is None or not self.trims:
            return np.arange(len(chosen))
        return np.argsort(self.inputs.padding.lengths[chosen], kind="stable")

    def cuts(self, chosen: Integers) -> Iterator[slice]:
        """Slices of ``chosen``, a batch each; for text, ``chosen`` is sorted by ``order``."""
        start = 0
        while start < len(chosen):
            stop = min(start + self.batch_size, len(chosen))
            if self.inputs.padding is not None and self.trims:
                stop = start + self._even(chosen[start:stop])
            yield slice(start, stop)
            start = stop

    def _even(self, chosen: Integers) -> int:
        """The most of the first of these inputs that can share a batch with little padding, at least 1."""
        padding = self.inputs.padding
        assert padding is not None
        first, stop = padding.first[chosen], padding.stop[chosen]
        width = np.maximum.accumulate(stop) - np.minimum.accumulate(first)
        computed = width * np.arange(1, len(chosen) + 1)  # tokens, padding included, of the first 1, 2, ...
        is_even = np.cumsum(stop - first) >= (1 - _MOST_PADDING) * computed
        return int(np.flatnonzero(is_even & (computed <= max(self.most_tokens, computed[0])))[-1]) + 1

    def batch(self, chosen: Integers) -> tuple[Batch, int]:
        """These inputs, without columns that are padding in all of them, and the first column that was kept."""
        if self.inputs.padding is None or not self.trims:
            return self.inputs.batch(chosen), 0
        window = self.inputs.padding.window(chosen)
        return self.inputs.batch(chosen, window), window[0]
