"""For language models of transformers: the text before the changed token is taken from the model's key-value cache.

Changing token k leaves the keys and values of all tokens before k as they were. So a text is read once with the model's
own cache, and a trial reads only the tokens from k on. Trials are sorted by k: those of a batch continue from the same
token, so that nothing has to be masked.
"""

import functools
import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.perturbations import Perturbation
from jostle.sampling.plans import Batching, Integers
from jostle.sampling.readers import MakeBatch, Moved, Pending, Reader
from jostle.sampling.text_checks import agree, some_texts
from jostle.tokens import TokenFunction
from jostle.tokens.padding import beginning_at

_NAMES = ("ForCausalLM", "LMHeadModel")
_IDS, _MASK = "input_ids", "attention_mask"
_NEEDED = {_IDS, _MASK, "past_key_values", "use_cache"}
_ENTRIES = {_IDS, _MASK, "special_tokens_mask"}
_MOST_KEPT = 2**25  # numbers of keys and values that are kept at a time
_MOST_TOKENS = 2**11  # in a batch
_WORTH_IT = 0.8  # continue only if that takes at most this share of the tokens of reading whole texts

Layers = list[tuple[Tensor, Tensor]]  # keys and values of each layer, (heads, tokens, dim) of one text


def reader(function: TokenFunction, perturbation: Perturbation, batching: Batching) -> "CacheReader | None":
    """The reader for a language model of transformers that has a key-value cache, where one token at a time moves."""
    model, inputs = function.model, function.inputs
    if not isinstance(model, nn.Module) or not type(model).__name__.endswith(_NAMES) or inputs.padding is None:
        return None
    is_plain = inputs.is_aligned and inputs.moving is None and not inputs.padding.has_gaps
    reads_end = function.readout.at in ("answer", "last", "later")
    takes = set(inspect.signature(model.forward).parameters) >= _NEEDED
    if not (is_plain and reads_end and takes) or perturbation.closes_up or inputs.key not in (_IDS, ""):
        return None
    return CacheReader(function, batching) if set(inputs.names) <= {*_ENTRIES, ""} else None


class CacheReader(Reader):
    """Asks a language model about trials by continuing from its cache.

    Arguments:
        function: the model.
        batching: how many trials may share a batch.
    """

    def __init__(self, function: TokenFunction, batching: Batching) -> None:
        assert function.inputs.padding is not None
        self.function, self.batching, self.padding = function, batching, function.inputs.padding
        self._kept: dict[int, Layers] = {}
        self._takes_positions = "position_ids" in inspect.signature(function.model.forward).parameters  # type: ignore[attr-defined]

    def forget(self) -> None:
        """Texts of another unit are read again: what was kept would depend on the units that came before."""
        self._kept.clear()

    def read(self, part: Moved, pending: Pending, batch: MakeBatch) -> Integers | None:
        """Answer these trials, sorted by the token that moves; None if whole texts are hardly more work."""
        trials = part.trials
        numbers, lengths = self.padding.numbers(trials.inputs, trials.tokens), self.padding.lengths[trials.inputs]
        new = [text for text in np.unique(trials.inputs).tolist() if text not in self._kept]
        effort = (lengths - numbers).sum() + self.padding.lengths[new].sum()
        if effort > _WORTH_IT * lengths.sum() or not self._is_exact:
            return None
        order = np.lexsort((lengths, numbers))
        for rows in self._batches(order, numbers, lengths):
            start = int(numbers[rows[0]])
            if start == 0:
                pending.ask(*batch(part, rows))
                continue
            through = self._through(trials.inputs[rows], start)
            pending.ask(*batch(part, rows, np.full(len(rows), start)), through)
        return order

    def _batches(self, order: Integers, numbers: Integers, lengths: Integers) -> list[Integers]:
        """The trials, sorted by ``numbers``, in batches that continue from the first token that moves in them."""
        batches, start = [], 0
        while start < len(order):
            first = numbers[order[start]]
            room = min(self.batching.batch_size, max(1, int(_MOST_TOKENS // (lengths[order[start:]].max() - first))))
            stop = start + room
            if first == 0:  # whole texts are read: no trial that could continue joins them
                stop = min(stop, int(np.searchsorted(numbers[order], 1)))
            batches.append(order[start:stop])
            start = stop
        return batches

    def _through(self, texts: Integers, start: int) -> Any:
        """What to call in the place of the model: it reads the rest of these texts, from token ``start`` on."""
        self._keep(np.unique(texts))
        layers = [
            tuple(
                torch.stack([self._kept[text][number][part][:, :start] for text in texts.tolist()]) for part in (0, 1)
            )
            for number in range(len(self._kept[int(texts[0])]))
        ]
        return functools.partial(self._continue, layers, start)

    def _continue(self, layers: list[tuple[Tensor, ...]], start: int, *given: Tensor, **named: Tensor) -> Any:
        from transformers import DynamicCache

        ids = given[0] if given else named[_IDS]
        mask = named.get(_MASK, torch.ones_like(ids))
        cache = DynamicCache()
        for number, (keys, values) in enumerate(layers):
            cache.update(keys, values, number)
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)[None].expand_as(ids)
        return self.function.model(
            input_ids=ids,
            attention_mask=torch.cat([mask.new_ones(len(ids), start), mask], dim=1),
            past_key_values=cache,
            use_cache=True,
            **({"position_ids": positions} if self._takes_positions else {}),
        )

    def _keep(self, texts: Integers) -> None:
        """Read texts whose keys and values are not kept, and forget others if there are too many."""
        missing = np.asarray([text for text in texts.tolist() if text not in self._kept], dtype=np.int64)
        if not len(missing):
            return
        order = missing[self.batching.order(missing)]
        for cut in self.batching.cuts(order):
            batch = {key: one.to(self.function.device) for key, one in self.batching.batch(order[cut])[0].items()}
            ids = batch[self.function.inputs.key]
            answer = self.function.model(
                input_ids=ids, attention_mask=self.function.inputs.real(batch).long(), use_cache=True
            )
            for place, text in enumerate(order[cut].tolist()):
                self._kept[text] = [(layer.keys[place], layer.values[place]) for layer in answer.past_key_values.layers]
        while len(self._kept) > len(texts) and self._size() > _MOST_KEPT:
            oldest = next(text for text in self._kept if text not in set(texts.tolist()))
            del self._kept[oldest]

    def _size(self) -> int:
        return sum(part.numel() for layers in self._kept.values() for pair in layers for part in pair)

    @functools.cached_property
    def _is_exact(self) -> bool:
        """Whether continuing gives the answers of whole texts, asked for a few texts; these passes do not count."""
        lengths = self.padding.lengths
        texts = np.sort(some_texts(self.function.inputs))
        texts = texts[lengths[texts] > 1]
        if not len(texts) or not self.function.is_steady:
            return False
        passes, half = self.function.passes, int(lengths[texts].min() // 2)
        batch, _ = self.batching.batch(texts)
        key = self.function.inputs.key
        rest = beginning_at(batch, key, torch.full((len(texts),), half), int(lengths[texts].max()) - half)
        try:
            found = self.function(rest, through=self._through(texts, half))
        except Exception:  # a cache of another kind: then whole texts are read
            return False
        finally:
            self.function.passes = passes
        expected = self.function(batch)
        self.function.passes = passes
        if self.function.readout.reads_several:
            kept = int((lengths[texts] - half).min())
            expected, found = expected[:, -kept:], found[:, -kept:]
        return agree(self.function, expected, found)
