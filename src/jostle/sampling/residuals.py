"""For residual networks of small images: only the region of each map that a changed token reaches is computed again.

A 3x3 convolution carries a change one pixel further, and a stride of 2 halves the region with its map. So in the first
blocks a changed patch reaches a small box of each map. The maps of clean inputs are remembered; a trial computes the
box alone, from the box before it and what is remembered around it. Where the boxes are nearly as large as the maps,
the box is put into the remembered map, and the rest of the network is computed as usual.
"""

import functools
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from jostle.models.resnet import ResNet, ResNetBlock
from jostle.perturbations import Perturbation
from jostle.sampling import memory
from jostle.sampling.crops import Axis, Between
from jostle.sampling.memory import Memory
from jostle.sampling.plans import Batching, Integers, Trials
from jostle.sampling.readers import MakeBatch, Moved, Pending, RememberingReader, Through
from jostle.sampling.text_checks import agree
from jostle.tokens import TokenFunction
from jostle.tokens.sources import ONLY
from jostle.tokens.views import places

_WORTH_IT = 0.8  # read this way only if it takes at most this share of the multiplications
_SMALL = 1.6  # times as long a multiplication takes in a box, with what is cut out and put in
_ROWS_AT_ONCE = 128
_CHECKED = 16


@dataclass(frozen=True)
class Convolution:
    """A convolution with the norm after it, as one.

    Arguments:
        layer: the convolution.
        weight, bias: with the norm.
    """

    layer: nn.Conv2d
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, pair: nn.Module) -> "Convolution":
        """From a convolution without bias and a norm in eval mode."""
        assert isinstance(pair, nn.Sequential)
        layer, norm = pair
        assert isinstance(layer, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        assert norm.running_var is not None
        assert norm.running_mean is not None
        scale = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()
        weight = (layer.weight * scale[:, None, None, None]).detach().contiguous(memory_format=torch.channels_last)
        return cls(layer, weight, (norm.bias - norm.running_mean * scale).detach())

    def whole(self, maps: Tensor) -> Tensor:
        """Of whole maps, (batch, height, width, channels)."""
        return self._convolved(maps, 1 if self.weight.shape[2] == 3 else 0)

    def within(self, window: Tensor) -> Tensor:
        """Of windows (batch, height, width, channels), which bring their padding along."""
        return self._convolved(window, 0)

    def _convolved(self, maps: Tensor, padding: int) -> Tensor:
        found = conv2d(maps.permute(0, 3, 1, 2), self.weight, self.bias, self.layer.stride, padding)
        return found.permute(0, 2, 3, 1)


@dataclass(frozen=True)
class MapStep:
    """One map from those before it: relu(convolution(source) + shortcut(other)). Map 0 is the image.

    Arguments:
        convolution: what is computed.
        source: the number of the map that it sees.
        other: the number of the map that is added; None for nothing.
        shortcut: of that map; None if it is added as it is.
    """

    convolution: Convolution
    source: int
    other: int | None = None
    shortcut: Convolution | None = None


def steps_of(model: ResNet) -> list[MapStep]:
    """The stem and all blocks, as steps."""
    steps = [MapStep(Convolution.of(model.stem[0]), 0)]
    for block in model.blocks:
        assert isinstance(block, ResNetBlock)
        first, last = Convolution.of(block.residual[0]), Convolution.of(block.residual[2])
        entered = len(steps)
        shortcut = None if isinstance(block.shortcut, nn.Identity) else Convolution.of(block.shortcut)
        steps += [MapStep(first, entered), MapStep(last, entered + 1, entered, shortcut)]
    return steps


class Boxes:
    """The boxes of each map that tokens reach: all of a map have one shape, so that tokens can share a batch.

    At the border a box goes further inwards than the token reaches.

    Attributes:
        sizes: height and width of each map, the image first.
        corners: of each map, the first row and column of the box of each token, (tokens, 2).
        shapes: of each map, height and width of a box.

    Arguments:
        steps: the maps.
        size: of the image.
        tokens: for each token, the rows and columns of the image that hold it.
    """

    def __init__(self, steps: list[MapStep], size: tuple[int, int], tokens: list[tuple[Between, Between]]) -> None:
        self.sizes, self.corners, self.shapes = [size], list[Tensor](), list[tuple[int, int]]()
        self._add([[token[axis] for token in tokens] for axis in (0, 1)])
        for step in steps:
            layer, source = step.convolution.layer, step.source
            rows, columns = (Axis(layer, axis, self.sizes[source][axis]) for axis in (0, 1))
            self.sizes.append((rows.outputs, columns.outputs))
            self._add(
                [
                    [
                        axis.reached((low, low + self.shapes[source][number]))
                        for low in self.corners[source][:, number].tolist()
                    ]
                    for number, axis in enumerate((rows, columns))
                ]
            )

    def _add(self, spans: list[list[Between]]) -> None:
        """The boxes of the next map, from what tokens reach of its rows and of its columns."""
        lengths = [max(high - low for low, high in axis) for axis in spans]
        lows = [
            [min(low, size - length) for low, _ in axis]
            for axis, length, size in zip(spans, lengths, self.sizes[-1], strict=True)
        ]
        self.shapes.append((lengths[0], lengths[1]))
        self.corners.append(torch.tensor(lows).mT.contiguous())

    def share(self, number: int) -> float:
        """The share of a map that is in a box."""
        return prod(self.shapes[number]) / prod(self.sizes[number])


class Regions:
    """The first maps of a network, of clean inputs and with one token changed.

    Arguments:
        steps: how all maps are made.
        kept: how many of them are remembered, the image left out.
        boxes: what tokens reach of them.
        count: the number of inputs.
    """

    def __init__(self, steps: list[MapStep], kept: int, boxes: Boxes, count: int) -> None:
        self.steps, self.rest, self.boxes = steps[:kept], steps[kept:], boxes
        # Of each map as it is remembered: with a border of zeros, so that no window at the border is another case; and
        # channels last.
        self.shapes = [
            (height + 2, width + 2, len(step.convolution.weight))
            for step, (height, width) in zip(self.steps, boxes.sizes[1:], strict=False)
        ]
        self.memory = Memory(count)

    def remember(self, indices: Integers, images: Tensor) -> Tensor:
        """Keep all maps of clean inputs; returns the last map of the network."""
        maps = [images.permute(0, 2, 3, 1)]
        _follow(self.steps, maps)
        self.memory.put(indices, [pad(each, (0, 0, 1, 1, 1, 1)).flatten(1) for each in maps[1:]])
        _follow(self.rest, maps)
        return maps[-1]

    def last(self, slots: Tensor, images: Tensor, tokens: Tensor) -> Tensor:
        """The last map of the network for remembered images, with these tokens as they are in ``images``."""
        made = [pad(images.permute(0, 2, 3, 1), (0, 0, 1, 1, 1, 1)).contiguous()]
        for step in self.steps:
            found = step.convolution.within(self._window(step.source, len(made), slots, made, tokens))
            if step.other is not None:
                # A window as for a 3x3 convolution holds the box of map ``other``; of it, the middles are added.
                stride = 1 if step.shortcut is None else int(step.shortcut.layer.stride[0])
                other = self._window(step.other, len(made), slots, made, tokens, stride)[:, 1:-1, 1:-1]
                found += other if step.shortcut is None else step.shortcut.within(other)
            made.append(found.relu_())
        number = len(self.steps)
        whole = self._clean(number).index_select(0, slots)
        _put(whole, made[-1], self.boxes.corners[number][tokens] + 1)
        maps = [whole] * number + [whole[:, 1:-1, 1:-1]]  # no step that is left looks at earlier ones
        _follow(self.rest, maps)
        return maps[-1]

    def _window(
        self, source: int, number: int, slots: Tensor, made: list[Tensor], tokens: Tensor, stride: int | None = None
    ) -> Tensor:
        """What a 3x3 convolution sees of map ``source`` to make the boxes of map ``number``.

        Arguments:
            source, number: see above.
            slots: where the inputs are remembered.
            made: the boxes of the maps before ``number``; of map 0, whole images with a border.
            tokens: of each input, the token that changes.
            stride: by default that of map ``number``.
        """
        if stride is None:
            stride = int(self.steps[number - 1].convolution.layer.stride[0])
        corners = self.boxes.corners[number][tokens] * stride
        height, width = ((length - 1) * stride + 3 for length in self.boxes.shapes[number])
        if source == 0:
            return _cut(made[0], torch.arange(len(slots)), corners, height, width)
        window = _cut(self._clean(source), slots, corners, height, width)
        _put(window, made[source], self.boxes.corners[source][tokens] + 1 - corners)
        return window

    def _clean(self, number: int) -> Tensor:
        """Map ``number`` of the inputs that are remembered, (inputs, height, width, channels)."""
        return self.memory.parts[number - 1].view(-1, *self.shapes[number - 1])


def _follow(steps: list[MapStep], maps: list[Tensor]) -> None:
    """Add the maps that these steps make, (batch, height, width, channels)."""
    for step in steps:
        found = step.convolution.whole(maps[step.source])
        if step.other is not None:
            found += maps[step.other] if step.shortcut is None else step.shortcut.whole(maps[step.other])
        maps.append(found.relu_())


def _windows(maps: Tensor, height: int, width: int) -> Tensor:
    """All windows of maps (batch, height, width, channels) in the same memory.

    (batch, first row, first column, height, width channels): rows of a window are whole pieces of memory, which are
    copied several times as fast as single numbers.
    """
    channels = maps.shape[3]
    return maps.flatten(2).unfold(1, height, 1).unfold(2, width * channels, channels)


def _cut(maps: Tensor, rows: Tensor, corners: Tensor, height: int, width: int) -> Tensor:
    """A window of each of these maps, (batch, height, width, channels)."""
    return _windows(maps, height, width)[rows, corners[:, 0], corners[:, 1]].view(len(rows), height, width, -1)


def _put(maps: Tensor, boxes: Tensor, corners: Tensor) -> None:
    """Write a box into each map, with these first rows and columns, (batch, 2)."""
    windows = _windows(maps, boxes.shape[1], boxes.shape[2])
    windows[torch.arange(len(maps)), corners[:, 0], corners[:, 1]] = boxes.flatten(2)


class ResidualReader(RememberingReader):
    """Answers trials of a residual network from the maps of clean inputs.

    Arguments:
        function: a model that is a ``ResNet``.
        regions: its first maps.
        share: of the multiplications of a whole input, about how many a trial takes.
        batching: how many inputs may share a batch.
    """

    def __init__(self, function: TokenFunction, regions: Regions, share: float, batching: Batching) -> None:
        assert isinstance(function.model, ResNet)
        super().__init__(function)
        self.model, self.regions, self.share, self.batching = function.model, regions, share, batching

    def _outputs(self, maps: Tensor) -> Tensor:
        logits: Tensor = self.model.classifier(maps.mean(dim=(1, 2)))
        return logits

    def remembering(self, indices: Integers) -> Through | None:
        """Keep the first maps of clean inputs on their way."""
        return functools.partial(self._keep, indices) if self.is_trusted else None

    def _keep(self, indices: Integers, images: Tensor) -> Tensor:
        return self._outputs(self.regions.remember(indices, images))

    def read(self, part: Moved, pending: Pending, batch: MakeBatch) -> Integers | None:
        """Answer the trials whose clean inputs are remembered, and ask about the others plainly."""
        if not self.is_trusted:
            return None
        is_known = self.regions.memory.knows(part.trials.inputs)
        known, others = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        known = known[np.argsort(part.trials.inputs[known], kind="stable")]  # neighbours find them in a cache
        for rows in np.split(known, range(_ROWS_AT_ONCE, len(known), _ROWS_AT_ONCE)):
            if len(rows):
                pending.ask(*batch(part, rows), functools.partial(self._of_images, part.trials[rows]))
        for cut in self.batching.cuts(part.trials.inputs[others]):
            pending.ask(*batch(part, others[cut]))
        return np.concatenate([known, others])

    def _of_images(self, trials: Trials, images: Tensor) -> Tensor:
        """The outputs for jostled images."""
        return self._outputs(
            self.regions.last(self.regions.memory.slots(trials.inputs), images, torch.from_numpy(trials.tokens))
        )

    def agrees(self) -> bool:
        function, inputs = self.function, self.inputs
        chosen = np.arange(min(_CHECKED, len(inputs)))
        clean = inputs.batch(chosen)
        if not agree(function, function(clean), function(clean, through=functools.partial(self._keep, chosen))):
            return False
        tokens = np.linspace(0, inputs.num_tokens - 1, len(chosen)).astype(np.int64)
        after = inputs.tokens(chosen, tokens) + 1
        whole = {ONLY: inputs.view.put(clean[ONLY], torch.from_numpy(tokens), after)}
        through = functools.partial(self._of_images, Trials(chosen, tokens, tokens))
        return agree(function, function(whole), function(whole, through=through))


def reader(function: TokenFunction, perturbation: Perturbation, batching: Batching) -> ResidualReader | None:
    """A reader, if a token reaches small parts of the first maps, and those of all inputs can be remembered."""
    model, inputs = function.model, function.inputs
    if not isinstance(model, ResNet) or function.device.type != "cpu" or perturbation.closes_up:
        return None
    shape = tuple(inputs.shape)
    is_plain = inputs.padding is None and inputs.key == ONLY and function.site is None
    if not is_plain or shape != (model.channels, model.image_size, model.image_size):
        return None
    where = places(inputs.view, shape) % prod(shape[1:])
    size = (shape[1], shape[2])
    spans = [[(int(each.min()), int(each.max()) + 1) for each in axis] for axis in (where // size[1], where % size[1])]
    steps = steps_of(model)
    boxes = Boxes(steps, size, list(zip(*spans, strict=True)))
    blocks, share = _best(steps, boxes)
    regions = Regions(steps, 1 + 2 * blocks, boxes, len(inputs))
    # Otherwise large networks would stay in one process, and most maps would be gone when they are needed.
    fits = len(inputs) * sum(map(prod, regions.shapes)) <= memory.REMEMBERED_NUMBERS
    return ResidualReader(function, regions, share, batching) if share <= _WORTH_IT and fits else None


def _best(steps: list[MapStep], boxes: Boxes) -> tuple[int, float]:
    """After how many blocks boxes are best given up, and the share of the multiplications that is then left."""
    whole = np.zeros(len(steps))
    for number, step in enumerate(steps):
        weights = sum(each.weight.numel() for each in (step.convolution, step.shortcut) if each is not None)
        whole[number] = weights * prod(boxes.sizes[number + 1])
    part = whole * [_SMALL * boxes.share(number + 1) for number in range(len(steps))]
    costs = [part[:stop].sum() + whole[stop:].sum() for stop in range(1, len(steps) + 1, 2)]
    best = int(np.argmin(costs))
    return best, float(costs[best] / whole.sum())
