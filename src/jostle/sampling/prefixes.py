"""Models that read in order are asked only about what follows the token that was moved.

Moving token k leaves all that a causal model remembers before k as it was, see ``models.text_causal``. So a text is
read once, what is remembered before each of its tokens is kept for a while, and a trial reads on from there: over all
tokens of a text, about half of them. Trials with the same number of tokens left share a batch, whichever texts they are
of, so that hardly anything is padded.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.models.text_causal import CausalTextModel, Prefix
from jostle.models.text_model import TokenEmbedding
from jostle.perturbations import Perturbation
from jostle.sampling.plans import Batching, Integers, Trials
from jostle.sampling.text_checks import agree, some_texts
from jostle.tokens import TokenFunction
from jostle.tokens.padding import beginning_at

Ask = Callable[[Integers, Integers, Callable[..., Any]], None]

_LEAST_ROWS = 16  # fewer in a batch take a recurrent network about as long
_MOST_KEPT = 2**24  # numbers remembered of texts at a time
_ALIKE = 0.2  # texts of a batch differ in the logarithm of their length by at most this, where that matters
_MOST_TOKENS = 2**12  # of a batch
_COST_OF_PREFIX = 2.0  # of a token that is read once, with all that is remembered after it, against one in a batch
_WORTH_IT = 0.8  # of the tokens that reading whole texts takes


@dataclass(frozen=True)
class Reading:
    """Texts that are read once, and the trials that go on from there.

    Arguments:
        texts: (count,) the inputs.
        batches: for each batch, which of the trials share it.
    """

    texts: Integers
    batches: list[Integers]


class Resuming:
    """One causal model, and how it answers trials by reading on from the tokens that were moved.

    Arguments:
        function: a model for which ``can_resume`` is true.
        batching: how many trials and tokens may share a batch.
    """

    def __init__(self, function: TokenFunction, batching: Batching) -> None:
        assert isinstance(function.model, CausalTextModel)
        assert function.inputs.padding is not None
        self.function, self.batching = function, batching
        self.model, self.padding = function.model, function.inputs.padding

    def readings(self, trials: Trials) -> list[Reading] | None:
        """How these trials are best read on from; None where that gains little, as with few trials of many texts."""
        texts = np.unique(trials.inputs)
        aim = (
            _WORTH_IT * self.padding.lengths[trials.inputs].sum() - _COST_OF_PREFIX * self.padding.lengths[texts].sum()
        )
        left = self._left(trials)
        if left.sum() >= aim or self._size is None:
            return None
        readings = [self._reading(group, trials, left) for group in self._groups(texts, self._size)]
        batches = [rows for reading in readings for rows in reading.batches]
        return readings if sum(len(rows) * left[rows].max() for rows in batches) <= aim else None

    def ask(self, trials: Trials, readings: list[Reading], ask: Ask) -> Integers:
        """Ask about all trials; returns the order in which they were asked about.

        Arguments:
            trials: of which ``readings`` were made.
            ask: asks about some of the trials, given as their places, and about their texts from these tokens on,
                through a function in the place of the model.
        """
        lengths, left = self.padding.lengths[trials.inputs], self._left(trials)
        for reading in readings:
            prefix = self._prefix(reading.texts)
            for rows in reading.batches:
                places = np.searchsorted(reading.texts, trials.inputs[rows])
                starts = np.maximum(lengths[rows] - left[rows].max(), 0)
                ask(rows, starts, self._from(prefix, places, starts))
        return np.concatenate([rows for reading in readings for rows in reading.batches])

    def _left(self, trials: Trials) -> Integers:
        """(trials,) the tokens from the moved one to the end of its text."""
        return self.padding.lengths[trials.inputs] - self.padding.numbers(trials.inputs, trials.tokens)

    def _groups(self, texts: Integers, size: int) -> Iterator[Integers]:
        """Texts, of about the same length, of which as much is remembered as there is room for."""
        texts = texts[np.argsort(self.padding.lengths[texts], kind="stable")]
        kept = np.cumsum(self.padding.lengths[texts] * size) // _MOST_KEPT
        yield from (np.sort(texts[kept == number]) for number in np.unique(kept))

    def _reading(self, texts: Integers, trials: Trials, left: Integers) -> Reading:
        """The trials of these texts in batches of at least some rows, those with most tokens left first."""
        members = np.flatnonzero(np.isin(trials.inputs, texts))
        lengths = self.padding.lengths[trials.inputs]
        members = members[np.lexsort((lengths[members], -left[members]))]
        # What a decoder remembers is as long as the text, and is padded to the longest of a batch.
        kind = np.log(lengths[members]) // _ALIKE if self.model.memory_grows else np.zeros(len(members))
        ends = np.flatnonzero(np.diff(left[members]) | np.diff(kind).astype(bool)) + 1
        batches, start = [], 0
        while start < len(members):
            room = min(self.batching.batch_size, max(1, _MOST_TOKENS // left[members[start]]))
            alike = ends[np.searchsorted(ends, start + _LEAST_ROWS) :]
            stop = min(start + room, *alike[:1], len(members))
            batches.append(members[start:stop])
            start = stop
        return Reading(texts, batches)

    def _prefix(self, texts: Integers) -> Prefix:
        """What the model remembers of texts before each of their tokens."""
        inputs, device = self.function.inputs, self.function.device
        batch = {key: tensor.to(device) for key, tensor in self.batching.batch(texts)[0].items()}
        positional, named = inputs.arguments(batch)
        return self.model.prefix(self.model.embeddings(*positional, **named), inputs.real(batch))

    def _from(self, prefix: Prefix, places: Integers, starts: Integers) -> Callable[..., Tensor]:
        """A function in the place of the model: it reads text ``places[i]`` of a prefix from token ``starts[i]`` on."""
        rows, positions = (torch.from_numpy(each).to(self.function.device) for each in (places, starts))
        return functools.partial(_resumed, self.model, prefix, positions, rows)

    @functools.cached_property
    def _size(self) -> int | None:
        """How many numbers are remembered of a token; None if the model cannot be asked this way.

        A few texts, from the shortest to the longest, must be answered as by the model itself: a subclass or a hook may
        see to it that they are not. These passes are no part of the measurement's count.
        """
        texts, passes = np.sort(some_texts(self.function.inputs)), self.function.passes
        prefix, half = self._prefix(texts), self.padding.lengths[texts] // 2
        batch, first = self.batching.batch(texts)
        rest = beginning_at(
            batch,
            self.function.inputs.key,
            torch.from_numpy(self.padding.first[texts] - first + half),
            int((self.padding.lengths[texts] - half).max()),
        )
        found = self.function(rest, through=self._from(prefix, np.arange(len(texts)), half))
        is_same = agree(self.function, self.function(batch), found)
        self.function.passes = passes
        past = (*prefix.pasts, None)[1]
        size = sum(part[0].numel() for part in past or ())
        return size if is_same and self.function.is_steady else None


def can_resume(function: TokenFunction, perturbation: Perturbation) -> bool:
    """Whether a model reads in order, and tokens are moved before it does so, one in its place."""
    model, inputs = function.model, function.inputs
    if not isinstance(model, CausalTextModel) or type(model.embeddings) is not TokenEmbedding:
        return False
    is_text = inputs.padding is not None and not inputs.padding.has_gaps and inputs.moving is None
    is_embedded = function.site is None or function.site.module in set(model.embeddings.modules())
    return is_text and is_embedded and not perturbation.closes_up


def _resumed(
    model: CausalTextModel,
    prefix: Prefix,
    positions: Tensor,
    rows: Tensor,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Logits of texts of a prefix, of which the tokens from ``positions`` (batch,) on are given."""
    embedded = model.embeddings(input_ids, attention_mask, positions)
    return model.continue_from(prefix, positions, embedded, rows)
