"""Answers at several tokens of a text, before and after one of its tokens moved: which of them belong together.

Outputs stand at the end of ``width`` places, see ``tokens.readout``. A token that moves leaves all others in their
places. A token that is deleted takes a place with it: the tokens before it stand one place further right.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.responses import Response
from jostle.sampling.plans import Integers, Trials
from jostle.tokens import Inputs, Readout

Floats = NDArray[np.float64]


class ByToken:
    """The changes at the tokens of texts.

    Arguments:
        response: what counts as a change, and where it is read.
        inputs: the texts.
        closes_up: whether the token that moves is deleted.
    """

    def __init__(self, response: Response, inputs: Inputs, *, closes_up: bool) -> None:
        assert inputs.padding is not None
        self.readout, self.over, self.inputs = Readout.of(response), response.over, inputs
        self.closes_up = closes_up and not inputs.has_decoder
        self._padding = inputs.padding

    @property
    def width(self) -> int:
        """Places of the longest text."""
        return self.inputs.answers

    def is_read(self, trials: Trials) -> NDArray[np.bool_]:
        """(trials, width): the places whose answers are compared."""
        if self.inputs.has_decoder:  # a decoder answers after the whole text was read
            return np.ones((len(trials), self.width), dtype=bool)
        lengths = self._padding.lengths[trials.inputs]
        read = self.readout.is_read(self._numbers(trials), lengths, self.width)
        if self.closes_up:  # there is no answer at a token that is gone
            read[np.arange(len(trials)), self._places(trials)] = self._is_last(trials)
        return read

    def references(self, references: Tensor, trials: Trials) -> Tensor:
        """Clean references (trials, width, ...) in the places of the jostled answers."""
        return references if not self.closes_up else references[self._rows(trials), self._shifted(trials, -1)]

    def changes(self, changes: Floats, trials: Trials) -> Floats:
        """(trials, width) changes in the places of the clean answers, 0 where none is read."""
        if self.closes_up:
            changes = changes[self._rows(trials).numpy(), self._shifted(trials, 1).numpy()]
        return np.where(self.is_read(trials), changes, 0.0)

    def total(self, changes: Floats, trials: Trials) -> Floats:
        """(trials,): the mean of the changes over the places that are read, or the largest of them."""
        placed = self.changes(changes, trials)
        if self.over == "largest":
            return np.asarray(placed.max(axis=1))
        return np.asarray(placed.sum(axis=1) / np.maximum(self.is_read(trials).sum(axis=1), 1))

    def _numbers(self, trials: Trials) -> Integers:
        return self._padding.numbers(trials.inputs, trials.tokens)

    def _places(self, trials: Trials) -> Integers:
        """(trials,) the places of the tokens that move."""
        return self.width - self._padding.lengths[trials.inputs] + self._numbers(trials)

    def _is_last(self, trials: Trials) -> NDArray[np.bool_]:
        """(trials,): whether no later token is left; then the answer after the new last token is compared."""
        return np.asarray((self._places(trials) == self.width - 1) & (self.readout.at == "later"))

    def _rows(self, trials: Trials) -> Tensor:
        return torch.arange(len(trials))[:, None]

    def _shifted(self, trials: Trials, step: int) -> Tensor:
        """(trials, width): every place, and those before the token that is gone moved by ``step``."""
        places, gone = np.arange(self.width), self._places(trials)[:, None]
        is_before = (places <= gone if step < 0 else places < gone) & ~self._is_last(trials)[:, None]
        return torch.from_numpy(np.clip(places + step * is_before, 0, self.width - 1))
