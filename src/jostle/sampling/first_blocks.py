"""For small transformers that are no chain and read in no order: the first attention is not computed again.

Changing one token leaves what enters the first block as it was in all other places. There, the first attention gives

    out_i = sum_h (sum_j e_ij V_h x_j) / (sum_j e_ij),    e_ij = exp(score of i and j in head h),

see ``models.first_block``. Both sums are remembered of each clean input, and a trial exchanges what the changed token
adds to them. For the changed token itself all is computed. A change of an image may reach several tokens of the model;
then all of these are exchanged. The rest of the network is computed as usual. With two blocks, of which the last one is
computed for one token, the first attention is up to two thirds of all work.
"""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, pad

from jostle.base.products import quick_products
from jostle.models.first_block import FirstBlockImages, FirstBlockModel, PairScores
from jostle.models.text_causal import align
from jostle.models.text_model import TextModel, TokenEmbedding, real_tokens
from jostle.perturbations import Perturbation
from jostle.sampling.memory import Memory
from jostle.sampling.plans import Batching, Integers, Trials
from jostle.sampling.readers import MakeBatch, Moved, Pending, RememberingReader, Through
from jostle.sampling.text_checks import agree, some_texts
from jostle.tokens import Batch, TokenFunction, Words
from jostle.tokens.sources import MASK_KEY, ONLY
from jostle.tokens.views import places

# Read this way only if it takes at most this share of the multiplications: several processes are given up for it.
_WORTH_IT = 0.75
_ROWS_AT_ONCE = 64  # images: what is made of them should fit in a cache
_REMEMBERED_AT_ONCE = 32  # inputs: the same of their scores
_CHECKED = 16
# Where the changed token had nearly all of the attention, its part taken from the sum leaves rounding errors. If more
# than this times as much was there as is left, the sums are made anew.
_MOST_LOST = 32.0

_KINDS = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Changed:
    """Tokens of a batch that change, the same number for each input.

    Arguments:
        tokens: what they become, (batch, count, dim).
        numbers: their numbers, (batch, count), none twice in a row.
        slots: where the clean inputs are remembered, (batch,).
        lengths: real tokens of each input, (batch,).
    """

    tokens: Tensor
    numbers: Tensor
    slots: Tensor
    lengths: Tensor


class Sums:
    """The first attention of a model, remembered and with few tokens changed.

    Arguments:
        model: whose attention it is.
        attention: the same, taken apart.
        length: the most tokens of an input.
        count: the number of inputs.
    """

    def __init__(self, model: FirstBlockModel, attention: PairScores, length: int, count: int) -> None:
        self.model, self.attention, self.length = model, attention, length
        self.heads, self.dim = attention.biases.shape
        self.memory = Memory(count, [length * width for width in (self.dim, self.heads * self.dim, 2 * self.heads)])
        # For all heads at once, from the side of the token that looks and from that of the token that is seen. Layers,
        # because those are computed by the quicker library.
        scores, values = attention.scores, attention.values.flatten(0, 1)
        self._looking = _layer(scores.mT.flatten(0, 1), attention.biases.flatten())
        self._seen = _layer(torch.cat([scores.flatten(0, 1), values, attention.biases]))
        self._values = _layer(values)
        self._joined = _layer(attention.values.permute(1, 0, 2).flatten(1))
        self._layers = (self._looking, self._seen, self._values, self._joined)

    def remember(self, indices: Integers, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Keep tokens and sums of clean inputs; returns what the attention gives out, as ``whole`` does."""
        with quick_products(*self._layers):
            return torch.cat(
                [self._remember(indices[rows], tokens[rows], lengths[rows]) for rows in _slices(len(tokens))]
            )

    def _remember(self, indices: Integers, tokens: Tensor, lengths: Tensor) -> Tensor:
        parts, tops, totals = self._sums(self.model.before_attention(tokens), lengths)
        kept = [tokens, parts.flatten(2), torch.cat([tops, totals], dim=-1)]
        self.memory.put(indices, [part.flatten(1) for part in kept])
        return self._joined_of(parts, totals)

    def whole(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """What the attention gives out, (batch, tokens, dim) -> (batch, tokens, dim)."""
        parts, _, totals = self._sums(self.model.before_attention(tokens), lengths)
        return self._joined_of(parts, totals)

    def _joined_of(self, parts: Tensor, totals: Tensor) -> Tensor:
        return (parts / totals[..., None]).sum(dim=2) + self.attention.constant

    def _sums(self, normed: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sums of values (batch, tokens, heads, dim); the top scores and the sums of weights (batch, tokens, heads).

        All weights of a row are relative to that of its top score.
        """
        batch, count = normed.shape[:2]
        looking = self._looking(normed).view(batch, -1, self.dim)
        hidden = self._hidden(torch.arange(count)[None], lengths, count)
        scores = _scores(looking, normed, hidden).view(batch, count, self.heads, count)
        tops = scores.amax(dim=-1)
        weights = scores.sub_(tops[..., None]).exp_()
        values = self._values(normed).view(batch, count, self.heads, self.dim)
        parts = (weights.transpose(1, 2) @ values.transpose(1, 2)).transpose(1, 2)
        return parts, tops, weights.sum(dim=-1)

    def _hidden(self, numbers: Tensor, lengths: Tensor, count: int) -> Tensor | None:
        """Where these tokens (1 or batch, some) may not look, (1 or batch, some, count); None if anywhere."""
        columns = torch.arange(count)
        hidden = None if bool((lengths == count).all()) else (columns >= lengths[:, None])[:, None]
        if self.attention.sees_itself:
            return None if hidden is None else hidden.expand(-1, numbers.shape[1], -1)
        itself = columns == numbers[..., None]
        return itself if hidden is None else itself | hidden

    def outputs(self, changed: Changed) -> Tensor:
        """The logits of remembered inputs with some tokens changed."""
        count = int(changed.lengths.max())
        columns = torch.arange(count)
        real = columns < changed.lengths[:, None]
        if not bool(real.all()):  # padding repeats the last token, so that its numbers are finite
            columns = torch.minimum(columns, changed.lengths[:, None] - 1)
        kept = changed.slots[:, None] * self.length + columns  # (batch, count)
        tokens = self._kept(0, self.dim).index_select(0, kept.flatten()).view(*kept.shape, self.dim)
        rows = torch.arange(len(tokens))[:, None]
        before = self.model.before_attention(tokens[rows, changed.numbers])
        tokens[rows, changed.numbers] = changed.tokens
        with quick_products(*self._layers):
            attended = self._attended(changed, kept, before, tokens)
        return self.model.after_attention(tokens, attended, real)

    def _kept(self, part: int, width: int) -> Tensor:
        return self.memory.parts[part].view(-1, width)

    def _attended(self, changed: Changed, kept: Tensor, before: Tensor, tokens: Tensor) -> Tensor:
        """What the attention gives out.

        Arguments:
            changed: which tokens change.
            kept: where what is remembered of each token is, (batch, tokens).
            before: what the attention saw of the tokens that change, (batch, changed, dim).
            tokens: as they are now, (batch, tokens, dim).
        """
        heads, dim, some = self.heads, self.dim, changed.numbers.shape[1]
        batch, count = kept.shape
        rows = torch.arange(batch)[:, None]
        normed = self.model.before_attention(tokens)
        pair = torch.cat([before, normed[rows, changed.numbers]], dim=1)  # (batch, 2 changed, dim)

        # The scores of each token with the changed ones, before and now.
        seen, values, bias = self._seen(pair).split([heads * dim, heads * dim, heads], dim=-1)
        seen, values = seen.reshape(batch, -1, dim), values.contiguous().view(batch, 2, -1, dim)
        scores = torch.baddbmm(bias.reshape(batch, 1, -1), normed, seen.mT).view(batch, count, 2, some, heads)

        # What is remembered is relative to the top score, which may be another one now.
        tops, totals = self._kept(2, 2 * heads).index_select(0, kept.flatten()).view(batch, count, 2, heads).unbind(2)
        new_tops = torch.maximum(tops, scores[:, :, 1].amax(dim=2))
        scale = (tops - new_tops).exp_()
        weights = scores.sub_(new_tops[:, :, None, None]).exp_()
        totals = totals * scale
        gone, come = weights.sum(dim=3).unbind(2)
        new_totals = totals - gone + come
        is_lost = ~(totals <= _MOST_LOST * new_totals)  # (batch, tokens, heads), also where it is not a number
        is_lost[rows, changed.numbers] = False  # these are made anew below

        # Sums of values: those remembered, as they count now, and what is exchanged.
        weights.div_(new_totals[:, :, None, None])
        values[:, 0].neg_()
        places_of_heads = kept.view(-1, 1) * heads + torch.arange(heads)
        counts = (scale / new_totals).view(-1, heads)
        parts = embedding_bag(places_of_heads, self._kept(1, dim), mode="sum", per_sample_weights=counts)
        exchanged = weights.view(batch, count, -1), values.view(batch, -1, dim)
        attended = torch.baddbmm(parts.view(batch, count, dim), *exchanged)
        attended[rows, changed.numbers] = self._own(changed, normed)
        attended += self.attention.constant
        lost = is_lost.flatten(1).any(dim=1).nonzero().flatten()
        if len(lost):
            attended[lost] = self.whole(tokens[lost], changed.lengths[lost])
        return attended

    def _own(self, changed: Changed, normed: Tensor) -> Tensor:
        """What the changed tokens get from all others, without the constant, (batch, changed, dim)."""
        batch, some = changed.numbers.shape
        own = normed[torch.arange(batch)[:, None], changed.numbers]
        hidden = self._hidden(changed.numbers, changed.lengths, normed.shape[1])
        scores = _scores(self._looking(own).view(batch, -1, self.dim), normed, hidden)
        seen = scores.softmax(dim=-1) @ normed  # (batch, changed heads, dim)
        joined: Tensor = self._joined(seen.view(batch, some, -1))
        return joined


def _layer(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], len(weight), bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.contiguous(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer


def _slices(count: int) -> list[slice]:
    return [slice(start, start + _REMEMBERED_AT_ONCE) for start in range(0, count, _REMEMBERED_AT_ONCE)]


def _scores(looking: Tensor, seen: Tensor, hidden: Tensor | None) -> Tensor:
    """Scores of tokens (batch, some heads, dim) with all others (batch, count, dim); -infinity where they are hidden.

    Arguments:
        looking, seen: see above.
        hidden: (1 or batch, some, count), for all heads.
    """
    if hidden is None:
        return looking @ seen.mT
    bias = looking.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
    heads = looking.shape[1] // hidden.shape[1]
    return torch.baddbmm(bias.repeat_interleave(heads, dim=1), looking, seen.mT)


class ChangedImages:
    """How jostled images become changed tokens.

    Arguments:
        function: a model that is ``FirstBlockImages``.
    """

    def __init__(self, function: TokenFunction) -> None:
        assert isinstance(function.model, FirstBlockImages)
        self.model, self.inputs = function.model, function.inputs
        shape = self.inputs.shape
        numbered = torch.arange(1, int(np.prod(shape)) + 1, dtype=torch.float64).view(1, *shape)
        self._pixels = self.model.cut(numbered)[0].long()  # (tokens, numbers) the pixels of each, from 1; 0 is none
        self.length = self.model.leading + len(self._pixels)
        self._reached = self._reach()
        self.some = self._reached.shape[1]

    def _reach(self) -> Tensor:
        """(tokens of the input, count) the tokens of the model that each reaches, and others where these are fewer."""
        is_seen = torch.zeros(len(self._pixels), int(np.prod(self.inputs.shape)) + 1, dtype=torch.bool)
        is_seen.scatter_(1, self._pixels, value=True)
        is_reached = is_seen[:, places(self.inputs.view, self.inputs.shape) + 1].any(dim=2).mT
        count = max(1, int(is_reached.sum(dim=1).max()))
        return is_reached.byte().argsort(dim=1, descending=True, stable=True)[:, :count]

    def changed(self, trials: Trials, slots: Tensor, images: Tensor) -> Changed:
        """The tokens of jostled images that change."""
        numbers = self._reached[torch.from_numpy(trials.tokens)]
        flat = pad(images.flatten(1), (1, 0))
        pixels = flat.gather(1, self._pixels[numbers].flatten(1)).view(*numbers.shape, -1)
        numbers = numbers + self.model.leading
        return Changed(self.model.place(pixels, numbers), numbers, slots, torch.full((len(images),), self.length))


class FirstBlockReader(RememberingReader):
    """Answers trials of a transformer from the sums of the first attention of clean inputs.

    Arguments:
        function: a model that is a ``FirstBlockModel``.
        attention: the first attention of the model.
        batching: how many inputs may share a batch.
    """

    def __init__(self, function: TokenFunction, attention: PairScores, batching: Batching) -> None:
        assert isinstance(function.model, FirstBlockModel)
        super().__init__(function)
        self.model, self.batching, self.padding = function.model, batching, function.inputs.padding
        self.images = ChangedImages(function) if self.padding is None else None
        length, some = (int(self.padding.lengths.max()), 1) if self.padding is not None else (1, 1)
        if self.images is not None:
            length, some = self.images.length, self.images.some
        spent = min(1.0, some / length + some / attention.head_width)  # of what is remembered, on what is exchanged
        self.share = 1 - attention.share * (1 - spent)
        self.sums = Sums(self.model, attention, length, len(self.inputs))

    def remembering(self, indices: Integers) -> Through | None:
        """Keep tokens and sums of clean inputs on their way."""
        return self._remembering(indices) if self.is_trusted else None

    def _remembering(self, indices: Integers) -> Through:
        return functools.partial(self._keep_images if self.padding is None else self._keep_texts, indices)

    def _keep_images(self, indices: Integers, images: Tensor) -> Tensor:
        assert isinstance(self.model, FirstBlockImages)
        tokens = self.model.enter(images)
        attended = self.sums.remember(indices, tokens, torch.full((len(images),), tokens.shape[1]))
        return self.model.after_attention(tokens, attended, None)

    def _keep_texts(self, indices: Integers, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        assert isinstance(self.model, TextModel)
        embedded = self.model.embeddings(input_ids, attention_mask)
        tokens, lengths = align(embedded, real_tokens(input_ids, attention_mask))
        attended = self.sums.remember(indices, tokens, lengths)
        return self.model.after_attention(tokens, attended, torch.arange(tokens.shape[1]) < lengths[:, None])

    def read(self, part: Moved, pending: Pending, batch: MakeBatch) -> Integers | None:
        """Answer the trials whose clean inputs are remembered, and ask about the others plainly."""
        if not self.is_trusted:
            return None
        is_known = self.sums.memory.knows(part.trials.inputs)
        order = np.concatenate([np.flatnonzero(is_known), np.flatnonzero(~is_known)])
        known, others = np.split(order, [int(is_known.sum())])
        if self.padding is None:
            known = known[np.argsort(part.trials.inputs[known], kind="stable")]  # neighbours find them in a cache
            for rows in np.split(known, range(_ROWS_AT_ONCE, len(known), _ROWS_AT_ONCE)):
                if len(rows):
                    pending.ask(*batch(part, rows), functools.partial(self._of_images, part.trials[rows]))
        else:
            for cut in self.batching.cuts(part.trials.inputs[known]):
                self._ask_texts(part, known[cut], pending, batch)
        for cut in self.batching.cuts(part.trials.inputs[others]):
            pending.ask(*batch(part, others[cut]))
        return np.concatenate([known, others])

    def _ask_texts(self, part: Moved, rows: Integers, pending: Pending, batch: MakeBatch) -> None:
        """Ask about texts: of each, the model is given the changed token alone."""
        trials = part.trials[rows]
        rest, move = batch(part, rows, self._numbers(trials))  # from the changed token on
        pending.ask(_first_tokens(rest), move, functools.partial(self._of_texts, trials))

    def _numbers(self, trials: Trials) -> Integers:
        """The numbers of the changed tokens in their texts, from 0."""
        assert self.padding is not None
        return self.padding.numbers(trials.inputs, trials.tokens)

    def _of_images(self, trials: Trials, images: Tensor) -> Tensor:
        assert self.images is not None
        return self.sums.outputs(self.images.changed(trials, self.sums.memory.slots(trials.inputs), images))

    def _of_texts(self, trials: Trials, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The outputs of texts of which the changed token is given, (batch, 1)."""
        assert isinstance(self.model, TextModel)
        assert self.padding is not None
        numbers, lengths = (
            torch.from_numpy(each) for each in (self._numbers(trials), self.padding.lengths[trials.inputs])
        )
        tokens = self.model.embeddings(input_ids, attention_mask, numbers)
        slots = self.sums.memory.slots(trials.inputs)
        return self.sums.outputs(Changed(tokens, numbers[:, None], slots, lengths))

    def agrees(self) -> bool:
        """Whether a few inputs get the answers of the model, as they are and with one token changed."""
        function, inputs = self.function, self.inputs
        chosen = np.arange(min(_CHECKED, len(inputs))) if self.padding is None else np.sort(some_texts(inputs))
        clean = self.batching.batch(chosen)[0]
        if not agree(function, function(clean), function(clean, through=self._remembering(chosen))):
            return False
        chosen = chosen[self.sums.memory.knows(chosen)]
        if not len(chosen):
            return False
        whole, given, through = (self._moved_images if self.padding is None else self._moved_texts)(chosen)
        return agree(function, function(whole), function(given, through=through))

    def _moved_images(self, chosen: Integers) -> tuple[Batch, Batch, Through]:
        """Images with 1 added to each number of a token; what this reader is given of them, and what answers."""
        tokens = np.linspace(0, self.inputs.num_tokens - 1, len(chosen)).astype(np.int64)
        after = self.inputs.tokens(chosen, tokens) + 1
        whole = {ONLY: self.inputs.view.put(self.inputs.batch(chosen)[ONLY], torch.from_numpy(tokens), after)}
        return whole, whole, functools.partial(self._of_images, Trials(chosen, tokens, tokens))

    def _moved_texts(self, chosen: Integers) -> tuple[Batch, Batch, Through]:
        """The same of texts, one token of each replaced by one of another."""
        assert self.padding is not None
        share = np.linspace(0, 1, len(chosen))
        columns = (share * (self.padding.lengths[chosen] - 1)).astype(np.int64) + self.padding.first[chosen]
        batch, first = self.batching.batch(chosen)
        rows, at = torch.arange(len(chosen)), torch.from_numpy(columns - first)
        whole = {key: entry.clone() for key, entry in batch.items()}
        whole[self.inputs.key][rows, at] = batch[self.inputs.key][rows, at].flip(0)
        alone = {key: entry[rows, at][:, None] for key, entry in whole.items()}
        return whole, alone, functools.partial(self._of_texts, Trials(chosen, columns, columns))


def reader(function: TokenFunction, perturbation: Perturbation, batching: Batching) -> FirstBlockReader | None:
    """A reader, if the first attention of the model can be taken apart and is a good part of its work."""
    model, inputs = function.model, function.inputs
    if not isinstance(model, FirstBlockModel) or function.device.type != "cpu" or perturbation.closes_up:
        return None
    is_served = _serves_images(function) if isinstance(model, FirstBlockImages) else _serves_texts(function)
    attention = model.first_attention() if is_served and inputs.moving is None else None
    if attention is None or attention.values.dtype not in _KINDS or 1 - attention.share > _WORTH_IT:
        return None
    made = FirstBlockReader(function, attention, batching)
    return made if made.share <= _WORTH_IT else None


def _serves_images(function: TokenFunction) -> bool:
    """Whether images are one tensor, and what changes is some of their pixels."""
    model, inputs = function.model, function.inputs
    assert isinstance(model, FirstBlockImages)
    is_plain = inputs.padding is None and inputs.key == ONLY and function.site is None
    return is_plain and tuple(inputs.shape) == (model.channels, model.image_size, model.image_size)


def _serves_texts(function: TokenFunction) -> bool:
    """Whether what changes is a token of a text, before the first block."""
    model, inputs = function.model, function.inputs
    if not isinstance(model, TextModel) or type(model.embeddings) is not TokenEmbedding:
        return False
    is_text = inputs.padding is not None and not inputs.padding.has_gaps
    is_embedded = function.site is None or function.site.module in set(model.embeddings.modules())
    # Without a mask, a word that becomes padding is hidden from the others.
    stays_real = not isinstance(inputs.view, Words) or MASK_KEY in inputs.names or inputs.pad == model.pad
    return is_text and is_embedded and stays_real


def _first_tokens(batch: Batch) -> Batch:
    """The first token of each text."""
    return {key: entry[:, :1].contiguous() for key, entry in batch.items()}
