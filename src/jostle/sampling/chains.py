"""For networks that are a chain of layers, only what one token can change is computed again.

A chain is a stem of local layers (convolutions, pooling, activations; an MLP has none), then a linear layer W m + b of
the flattened map m that the stem gives out, then the rest. A token reaches only a region of the map. So m and W m + b
of each clean input are remembered, and a trial computes

    W m' + b = (W m + b) + W[region] (m'[region] - m[region]),

where m'[region] comes from the crop of the jostled image that the region sees, see ``crops``. For an MLP the region is
the token itself.
"""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from jostle.perturbations import Perturbation
from jostle.sampling.crops import Crops, is_local
from jostle.sampling.memory import Memory
from jostle.sampling.plans import Batching, Integers, Trials
from jostle.sampling.readers import MakeBatch, Moved, Pending, RememberingReader, Through
from jostle.sampling.text_checks import agree
from jostle.tokens import TokenFunction
from jostle.tokens.sources import ONLY
from jostle.tokens.views import places

_WORTH_IT = 0.7  # read this way only if it takes at most this share of the multiplications
_CROPS_AT_ONCE = 256  # their maps should fit in a cache
_ROWS_AT_ONCE = 512  # 2,048 took half as long again
_CHECKED = 16
_FEW = 4  # so many trials of a token, or more, get a product of matrices of their own
_GATHERED_AT_ONCE = 2**20  # numbers of W
_GATHERED_FOR_ALL = 2**22  # numbers of W that are kept in the order of tokens: 16 MiB in float32


@dataclass(frozen=True)
class Chain:
    """A network as stem -> flatten -> first -> rest.

    Arguments:
        stem: local layers.
        first: the linear layer that sees the whole map.
        rest: all that follows.
    """

    stem: tuple[nn.Module, ...]
    first: nn.Linear
    rest: tuple[nn.Module, ...]

    def maps(self, inputs: Tensor) -> Tensor:
        """What ``first`` sees, (batch, numbers)."""
        return _through(self.stem, inputs).flatten(start_dim=1)

    def outputs(self, sums: Tensor) -> Tensor:
        """The outputs of the network from those of ``first``."""
        return _through(self.rest, sums)


def _through(layers: tuple[nn.Module, ...], found: Tensor) -> Tensor:
    return functools.reduce(lambda found, layer: layer(found), layers, found)


def chain_of(model: object) -> Chain | None:
    """A model as a chain: an ``nn.Sequential``, or a model whose ``chain()`` is one; None if its layers do not fit."""
    whole = model if type(model) is nn.Sequential else getattr(model, "chain", lambda: None)()
    layers = list(_flat(whole)) if isinstance(whole, nn.Sequential) else []
    for number, first in enumerate(layers):
        if type(first) is nn.Linear:
            stem = tuple(layer for layer in layers[:number] if type(layer) is not nn.Flatten)
            return Chain(stem, first, tuple(layers[number + 1 :])) if all(map(is_local, stem)) else None
    return None


def _flat(layers: nn.Sequential) -> Iterator[nn.Module]:
    for layer in layers:
        yield from _flat(layer) if type(layer) is nn.Sequential else (layer,)


def reader(function: TokenFunction, perturbation: Perturbation, batching: Batching) -> "ChainReader | None":
    """A reader, if the model is a chain, its input one tensor on the CPU, and a token reaches a small part of it."""
    inputs, chain = function.inputs, chain_of(function.model)
    is_plain = inputs.padding is None and inputs.key == ONLY and function.device.type == "cpu"
    is_image = len(inputs.shape) == 3
    if chain is None or not is_plain or perturbation.closes_up or (chain.stem and not is_image):
        return None
    made = ChainReader(function, chain, batching)
    return made if made.share <= _WORTH_IT else None


class ChainReader(RememberingReader):
    """Answers trials of a chain from what is remembered of the clean inputs.

    Attributes:
        share: of the multiplications of a whole input, how many a trial takes.

    Arguments:
        function: the model.
        chain: the same model in parts.
        batching: how many whole inputs may share a batch.
    """

    def __init__(self, function: TokenFunction, chain: Chain, batching: Batching) -> None:
        super().__init__(function)
        self.chain, self.batching = chain, batching
        tokens = places(self.inputs.view, self.inputs.shape)  # (tokens, dim)
        self.crops = Crops(chain.stem, self.inputs.shape, tokens) if chain.stem else None
        self.regions = tokens if self.crops is None else self.crops.regions
        self.share = self._share()
        self.memory = Memory(len(self.inputs))

    def _share(self) -> float:
        """The multiplications of a trial over those of a whole input."""
        width = self.chain.first.out_features
        rest = sum(layer.weight.numel() for layer in self.chain.rest if isinstance(layer, nn.Linear))
        part, whole = (0, 0) if self.crops is None else (self.crops.products, self.crops.whole)
        trial = part + width * self.regions.shape[1] + rest
        return trial / (whole + width * self.chain.first.in_features + rest)

    @functools.cached_property
    def _weights(self) -> Tensor:
        """W^T, (numbers of the map, outputs of ``first``)."""
        return self.chain.first.weight.t().contiguous()

    @functools.cached_property
    def _by_token(self) -> Tensor | None:
        """W^T[region] of every token, (tokens, numbers of a region, outputs of ``first``); None if that is large."""
        is_small = self.regions.numel() * self._weights.shape[1] <= _GATHERED_FOR_ALL
        return self._weights[self.regions] if is_small else None

    def _weights_of(self, token: int) -> Tensor:
        """W^T[region] of a token."""
        if self._by_token is None:
            return self._weights.index_select(0, self.regions[token])
        return self._by_token[token]

    def agrees(self) -> bool:
        """Whether a few inputs, with 1 added to each number of a token, get the answers of the model itself."""
        count = min(_CHECKED, len(self.inputs))
        tokens = np.linspace(0, self.inputs.num_tokens - 1, count).astype(np.int64)
        trials = Trials(np.arange(count), tokens, np.zeros(count, dtype=np.int64))
        self.function(self.inputs.batch(trials.inputs), through=functools.partial(self._remember, trials.inputs))
        trials = trials[np.flatnonzero(self.memory.knows(trials.inputs))]
        after = self.inputs.tokens(trials.inputs, trials.tokens) + 1
        if not len(trials) or not after.is_floating_point():
            return False
        whole = self.inputs.view.put(self.inputs.batch(trials.inputs)[ONLY], torch.from_numpy(trials.tokens), after)
        change = after - self.inputs.tokens(trials.inputs, trials.tokens)
        given, read = (change, self._outputs_of_changes) if self.crops is None else (whole, self._outputs_of_images)
        found = self.function({ONLY: given}, through=functools.partial(read, trials))
        return agree(self.function, self.function({ONLY: whole}), found)

    def remembering(self, indices: Integers) -> Through | None:
        """Pass clean inputs through the parts of the chain, and keep the map and the sums."""
        return functools.partial(self._remember, indices) if self.is_trusted else None

    def _remember(self, indices: Integers, inputs: Tensor) -> Tensor:
        maps = self.chain.maps(inputs)
        sums = self.chain.first(maps)
        self.memory.put(indices, [sums] if self.crops is None else [sums, maps])
        return self.chain.outputs(sums)

    def read(self, part: Moved, pending: Pending, batch: MakeBatch) -> Integers | None:
        """Answer the trials whose clean inputs are remembered, sorted by token, and ask about the others plainly."""
        if part.tokens is None or not self.is_trusted:
            return None
        is_known = self.memory.knows(part.trials.inputs)
        known, others = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        order = known[np.argsort(part.trials.tokens[known], kind="stable")]
        if self.crops is None:
            if len(order):
                self._read_tokens(part, order, pending)
        else:
            order = order[np.argsort(self.crops.kinds[part.trials.tokens[order]], kind="stable")]
            for rows in np.split(order, range(_CROPS_AT_ONCE, len(order), _CROPS_AT_ONCE)):
                pending.ask(*batch(part, rows), functools.partial(self._outputs_of_images, part.trials[rows]))
        for cut in self.batching.cuts(others):
            pending.ask(*batch(part, others[cut]))
        return np.concatenate([order, others])

    def _read_tokens(self, part: Moved, rows: Integers, pending: Pending) -> None:
        """Answer trials of a chain without a stem: the tokens are all it needs."""
        assert part.tokens is not None
        assert part.before is not None
        changes = part.tokens - part.before
        for some in np.split(rows, range(_ROWS_AT_ONCE, len(rows), _ROWS_AT_ONCE)):
            change = changes.index_select(0, torch.from_numpy(some))
            pending.ask({ONLY: change}, None, functools.partial(self._outputs_of_changes, part.trials[some]))

    def _outputs_of_changes(self, trials: Trials, change: Tensor) -> Tensor:
        return self._outputs(trials, change, self.memory.slots(trials.inputs))

    def _outputs_of_images(self, trials: Trials, images: Tensor) -> Tensor:
        """The outputs for jostled images, which are sorted by the kind of their tokens."""
        assert self.crops is not None
        tokens, kinds = torch.from_numpy(trials.tokens), self.crops.kinds[trials.tokens]
        parts = [self.crops.read(images[rows], tokens[rows], kinds[rows.start]) for rows in _runs(kinds)]
        slots = self.memory.slots(trials.inputs)
        before = self.memory.pick(1, slots, self.regions[tokens])
        return self._outputs(trials, torch.cat(parts) - before, slots)

    def _outputs(self, trials: Trials, change: Tensor, slots: Tensor) -> Tensor:
        """The outputs for trials whose map changes by ``change`` (trials, numbers) in the region of their token."""
        sums = self.memory.parts[0].index_select(0, slots)
        runs = list(_runs(trials.tokens))
        if len(trials) >= _FEW * len(runs):
            for rows in runs:
                sums[rows].addmm_(change[rows], self._weights_of(int(trials.tokens[rows.start])))
            return self.chain.outputs(sums)
        regions = self.regions[torch.from_numpy(trials.tokens)]
        step = max(1, _GATHERED_AT_ONCE // (regions.shape[1] * sums.shape[1]))
        for start in range(0, len(trials), step):
            rows = slice(start, start + step)
            sums[rows] += torch.bmm(change[rows, None], self._weights[regions[rows]])[:, 0]
        return self.chain.outputs(sums)


def _runs(values: Integers) -> Iterator[slice]:
    """Slices of equal neighbours."""
    bounds = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return (slice(low, high) for low, high in itertools.pairwise(bounds) if high > low)
