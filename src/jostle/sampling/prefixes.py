"""For causal models, only the text from the changed token on is computed again, as with a key-value cache.

Changing token k leaves everything that a causal model remembers before k as it was, see ``models.text_causal``. So a
text is read once, the memory before each of its tokens is kept, and a trial continues from there. On average this saves
about half of the computation. Trials with equally many tokens left share a batch, also if they belong to different
texts, so that there is hardly any padding.

If the memory of all texts fits, it is kept to the end of a measurement: random draws come back to each text again and
again. Otherwise that of the texts of some trials is kept until these are answered. Which texts are read together
depends on no earlier trial, so that answers do not either.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jostle.models.text_causal import CausalTextModel, Prefix
from jostle.models.text_model import TokenEmbedding
from jostle.perturbations import Perturbation
from jostle.sampling.plans import Batching, Integers, Trials
from jostle.sampling.readers import MakeBatch, Moved, Pending, Reader
from jostle.sampling.text_checks import agree, some_texts
from jostle.tokens import TokenFunction
from jostle.tokens.padding import beginning_at

_LEAST_ROWS = 16  # a recurrent network takes about as long for a smaller batch
_MOST_KEPT = 2**24  # numbers that are remembered at a time, if those of all texts are too many
_MOST_IN_ALL = 2**25  # numbers that are remembered of all texts together: 128 MiB in float32
_READ_AT_ONCE = 2**22  # of these
_SAME_LENGTH = 0.4  # the logarithms of the lengths in a batch differ by at most this, where the memory grows
_MOST_PADDING = 0.05  # of the tokens of a batch
_MOST_TOKENS = 2**12  # in a batch
# Of reading a token and keeping the memory after it, in units of reading a token in a batch: of a model with attention,
# and of a recurrent one, which goes from token to token (an LSTM took 3.1 to 4.5).
_COST_OF_PREFIX, _COST_OF_STATE = 2.0, 3.5
_WORTH_IT = 0.8  # continue only if that takes at most this share of the tokens of reading whole texts


@dataclass(frozen=True)
class PrefixGroup:
    """Texts whose memory is kept at the same time, and the trials that continue from it.

    Arguments:
        texts: (count,) the inputs.
        batches: for each batch, the places of its trials.
        part: the number of these texts among the parts of all texts; None if they are read for these trials alone.
    """

    texts: Integers
    batches: list[Integers]
    part: int | None = None


class PrefixReader(Reader):
    """Asks a causal model about trials by continuing from the jostled token of each text.

    Arguments:
        function: a model for which ``can_continue`` is true.
        batching: how many trials and tokens may share a batch.
    """

    unit = 2**13

    def __init__(self, function: TokenFunction, batching: Batching) -> None:
        assert isinstance(function.model, CausalTextModel)
        assert function.inputs.padding is not None
        self.function, self.batching = function, batching
        self.model, self.padding = function.model, function.inputs.padding
        self._kept: dict[int, Prefix] = {}  # by part

    def group(self, trials: Trials) -> list[PrefixGroup] | None:
        """The trials in groups; None if continuing gains little, as with few trials of many texts."""
        texts, lengths = np.unique(trials.inputs), self.padding.lengths
        free = self.batching.free_padding  # what a batch costs, in tokens
        full = min(self.batching.most_tokens, self.batching.batch_size * lengths[trials.inputs].mean())
        whole = lengths[trials.inputs].sum() * (1 + free / full)
        left = self._left(trials)
        cost = (_COST_OF_PREFIX if self.model.memory_grows else _COST_OF_STATE) * lengths[texts].sum()
        # What is kept serves all trials of the measurement: these pay their share of reading it.
        share = len(trials) / max(len(trials), self.expected)
        if left.sum() >= _WORTH_IT * whole - share * cost or self._size is None:
            return None
        aim = _WORTH_IT * whole - (cost if self._parts is None else share * cost)
        if left.sum() >= aim:
            return None
        groups = self._make_groups(texts, trials, left)
        batches = [rows for group in groups for rows in group.batches]
        return groups if sum(len(rows) * left[rows].max() + free for rows in batches) <= aim else None

    def read(self, part: Moved, pending: Pending, batch: MakeBatch) -> Integers | None:
        """Answer the trials group by group, if continuing gains enough."""
        groups = self.group(part.trials)
        if groups is None:
            return None
        trials = part.trials
        lengths, left = self.padding.lengths[trials.inputs], self._left(trials)
        for group in groups:
            prefix = self._prefix_of(group)
            for rows in group.batches:
                places = np.searchsorted(group.texts, trials.inputs[rows])
                starts = np.maximum(lengths[rows] - left[rows].max(), 0)
                pending.ask(*batch(part, rows, starts), self._from(prefix, places, starts))
        return np.concatenate([rows for group in groups for rows in group.batches])

    def _left(self, trials: Trials) -> Integers:
        """(trials,) how many tokens there are from the jostled one to the end of its text."""
        return self.padding.lengths[trials.inputs] - self.padding.numbers(trials.inputs, trials.tokens)

    @functools.cached_property
    def _parts(self) -> list[Integers] | None:
        """All texts in the parts in which they are read and kept; None if that is too much to keep."""
        if self._size is None or self.padding.lengths.sum() * self._size > _MOST_IN_ALL:
            return None
        return self._split(np.arange(len(self.padding.lengths)), _READ_AT_ONCE)

    def _split(self, texts: Integers, most: int) -> list[Integers]:
        """Parts of ``texts`` of about the same length, whose memory holds about so many numbers each, or fewer."""
        lengths = self.padding.lengths
        texts = texts[np.argsort(lengths[texts], kind="stable")]
        kept = np.cumsum(lengths[texts] * (self._size or 0)) // most
        # A decoder's memory is as long as the text and is padded to the longest text of a batch.
        kind = np.log(lengths[texts]) // _SAME_LENGTH if self.model.memory_grows else np.zeros(len(texts))
        ends = np.flatnonzero(np.diff(kept) | np.diff(kind).astype(bool)) + 1
        return [np.sort(part) for part in np.split(texts, ends)]

    def _make_groups(self, texts: Integers, trials: Trials, left: Integers) -> list[PrefixGroup]:
        """The trials by the parts of their texts, in batches."""
        parts = self._split(texts, _MOST_KEPT) if self._parts is None else self._parts
        part_of = np.zeros(len(self.padding.lengths), dtype=np.int64)
        for number, part in enumerate(parts):
            part_of[part] = number
        lengths, groups = self.padding.lengths[trials.inputs], list[PrefixGroup]()
        owner = part_of[trials.inputs]
        for number in np.unique(owner).tolist():
            members = np.flatnonzero(owner == number)
            # Sort by tokens left, most first, then by length: neighbours are padded little.
            members = members[np.lexsort((lengths[members], -left[members]))]
            batches = self._batches(members, left[members])
            groups.append(PrefixGroup(parts[number], batches, None if self._parts is None else number))
        return groups

    def _batches(self, members: Integers, left: Integers) -> list[Integers]:
        """Trials, sorted by the tokens that are left of their texts, in batches with little padding."""
        batches, start = list[Integers](), 0
        while start < len(members):
            room = min(self.batching.batch_size, max(1, _MOST_TOKENS // int(left[start])))
            computed = left[start] * np.arange(1, len(members[start : start + room]) + 1)
            padding = computed - np.cumsum(left[start : start + room])
            fitting = np.flatnonzero(padding <= np.maximum(_MOST_PADDING * computed, self.batching.free_padding))
            stop = start + max(int(fitting[-1]) + 1, min(_LEAST_ROWS, room))
            batches.append(members[start:stop])
            start = stop
        return batches

    def _prefix_of(self, group: PrefixGroup) -> Prefix:
        """The model's memory before each token of the texts of a group, kept if it is a part of all texts."""
        if group.part is None:
            return self._prefix(group.texts)
        if group.part not in self._kept:
            self._kept[group.part] = self._prefix(group.texts)
        return self._kept[group.part]

    def _prefix(self, texts: Integers) -> Prefix:
        """The model's memory before each token of these texts."""
        inputs, device = self.function.inputs, self.function.device
        batch = {key: tensor.to(device) for key, tensor in self.batching.batch(texts)[0].items()}
        positional, named = inputs.arguments(batch)
        return self.model.prefix(self.model.embeddings(*positional, **named), inputs.real(batch))

    def _from(self, prefix: Prefix, places: Integers, starts: Integers) -> Callable[..., Tensor]:
        """Reads text ``places[i]`` of the prefix from token ``starts[i]`` on, in the place of the model."""
        rows, positions = (torch.from_numpy(each).to(self.function.device) for each in (places, starts))
        return functools.partial(_continue, self.model, prefix, positions, rows)

    @functools.cached_property
    def _size(self) -> int | None:
        """How many numbers are remembered for a token; None if the model cannot be asked this way.

        A few texts, from the shortest to the longest, must get the same answer as from the model itself: a subclass or
        a hook may change it. These passes do not count.
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


def reader(function: TokenFunction, perturbation: Perturbation, batching: Batching) -> PrefixReader | None:
    """A reader, if the model is causal and the perturbation leaves its past alone."""
    is_text = function.inputs.padding is not None
    return PrefixReader(function, batching) if is_text and can_continue(function, perturbation) else None


def can_continue(function: TokenFunction, perturbation: Perturbation) -> bool:
    """Whether a model reads in order, and one token at a time is changed before it does so, in its place."""
    model, inputs = function.model, function.inputs
    if not isinstance(model, CausalTextModel) or type(model.embeddings) is not TokenEmbedding:
        return False
    is_text = inputs.padding is not None and not inputs.padding.has_gaps and inputs.moving is None
    is_embedded = function.site is None or function.site.module in set(model.embeddings.modules())
    return is_text and is_embedded and not perturbation.closes_up


def _continue(
    model: CausalTextModel,
    prefix: Prefix,
    positions: Tensor,
    rows: Tensor,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """The logits of texts whose tokens from ``positions`` (batch,) on are given, continuing from a prefix."""
    embedded = model.embeddings(input_ids, attention_mask, positions)
    return model.continue_from(prefix, positions, embedded, rows)
