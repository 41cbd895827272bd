"""Which part of a convolutional map one token reaches, and the crop of the image that this part is computed from.

Rows and columns are treated alike, one axis at a time. A span is (low, high), low included and high not.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

Between = tuple[int, int]

_POINTWISE = (
    nn.Identity, nn.Dropout, nn.Dropout2d, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU,
    nn.Mish, nn.Sigmoid, nn.Tanh, nn.Softplus, nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.BatchNorm2d,
)  # fmt: skip


def is_local(layer: nn.Module) -> bool:
    """Whether each output of this layer, in eval mode, depends on a window of its input alone."""
    if type(layer) is nn.Conv2d:
        return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    if type(layer) in (nn.MaxPool2d, nn.AvgPool2d):
        return not layer.ceil_mode and layer.padding in (0, (0, 0))
    return type(layer) in _POINTWISE and getattr(layer, "track_running_stats", True)


class Axis:
    """A local layer along one axis: output o sees the inputs o stride - padding + dilation j, for j below the kernel.

    Arguments:
        layer: one for which ``is_local`` is true.
        axis: 0 for rows, 1 for columns.
        size: the number of its inputs along this axis.
    """

    def __init__(self, layer: nn.Module, axis: int, size: int) -> None:
        given = (getattr(layer, name, usual) for name, usual in _WINDOW.items())
        kernel, self.stride, self.padding, dilation = (
            int(each[axis] if isinstance(each, tuple) else each) for each in given
        )
        self.width = dilation * (kernel - 1)
        self.size, self.outputs = size, (size + 2 * self.padding - self.width - 1) // self.stride + 1

    def reached(self, span: Between) -> Between:
        """The outputs that see one of these inputs."""
        first = -(-(span[0] + self.padding - self.width) // self.stride)
        last = (span[1] - 1 + self.padding) // self.stride
        return max(first, 0), min(last + 1, self.outputs)

    def seen(self, span: Between) -> tuple[Between, Between]:
        """The inputs that these outputs see, and how much padding before and after them."""
        first = span[0] * self.stride - self.padding
        last = (span[1] - 1) * self.stride - self.padding + self.width + 1
        return (max(first, 0), min(last, self.size)), (max(-first, 0), max(last - self.size, 0))


_WINDOW = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


@dataclass(frozen=True)
class Way:
    """The way of one token through the layers along one axis.

    Arguments:
        image: the span of the image that is cut out.
        pads: zeros before and after the input of each layer.
        lengths: how many outputs of each layer are computed.
        region: the span of the map that the token reaches.
    """

    image: Between
    pads: tuple[Between, ...]
    lengths: tuple[int, ...]
    region: Between


def ways(layers: Sequence[Axis], tokens: Iterable[Between]) -> list[Way]:
    """The ways of tokens, given by the spans of the image that they cover.

    All regions get the same length, so that tokens can share a batch: at the border they go further inwards.
    """
    reached = [functools.reduce(lambda span, layer: layer.reached(span), layers, token) for token in tokens]
    length = max(1, *(high - low for low, high in reached))
    return [_way(layers, min(low, layers[-1].outputs - length), length) for low, _ in reached]


def _way(layers: Sequence[Axis], low: int, length: int) -> Way:
    span, steps = (low, low + length), []
    for layer in reversed(layers):
        outputs = span
        span, padding = layer.seen(outputs)
        steps.append((padding, outputs[1] - outputs[0]))
    pads, lengths = zip(*reversed(steps), strict=True)
    return Way(span, pads, lengths, (low, low + length))


class Crops:
    """For each token of an image, the region of the map that it reaches and the crop that the region is made from.

    Attributes:
        regions: (tokens, numbers) the places of each region in the flattened map.
        kinds: (tokens,) tokens of one kind have crops of the same shape and with the same padding.
        products, whole: multiplications of the convolutions for a crop, at most, and for a whole image.

    Arguments:
        stem: local layers, at least one.
        shape: of an image, (channels, height, width).
        tokens: (tokens, dim) the places of each token in the flattened image.
    """

    def __init__(self, stem: Sequence[nn.Module], shape: tuple[int, ...], tokens: Tensor) -> None:
        self.stem = stem
        channels, height, width = shape
        within = tokens % (height * width)
        axes = [_layers(stem, axis, size) for axis, size in enumerate((height, width))]
        ways_by_axis = [
            ways(layers, zip(where.amin(dim=1).tolist(), (where.amax(dim=1) + 1).tolist(), strict=True))
            for layers, where in zip(axes, (within // width, within % width), strict=True)
        ]
        pairs = list(zip(*ways_by_axis, strict=True))
        self.products, self.whole = self._count(axes, pairs)
        maps = next((layer.out_channels for layer in reversed(stem) if isinstance(layer, nn.Conv2d)), channels)
        size = (maps, axes[0][-1].outputs, axes[1][-1].outputs)
        self.regions = torch.stack([_box(size, rows.region, columns.region) for rows, columns in pairs])
        looks = [(rows.pads, columns.pads, rows.lengths, columns.lengths) for rows, columns in pairs]
        known = list(dict.fromkeys(looks))
        self.kinds = np.asarray([known.index(look) for look in looks])
        self._crops = [_box(shape, rows.image, columns.image) for rows, columns in pairs]
        firsts = [pairs[looks.index(look)] for look in known]
        self._shapes = [(channels, *(high - low for low, high in (each.image for each in pair))) for pair in firsts]
        self._pads = [list(zip(rows.pads, columns.pads, strict=True)) for rows, columns in firsts]
        self._tables = [self._table(kind) for kind in range(len(known))]

    def _table(self, kind: int) -> Tensor:
        """(tokens, numbers) the places of the crops of one kind in the flattened image; zeros for other tokens."""
        table = torch.zeros(len(self.kinds), prod(self._shapes[kind]), dtype=torch.int64)
        for token in np.flatnonzero(self.kinds == kind).tolist():
            table[token] = self._crops[token]
        return table

    def _count(self, axes: Sequence[Sequence[Axis]], pairs: Sequence[tuple[Way, Way]]) -> tuple[int, int]:
        part = whole = 0
        for number, layer in enumerate(self.stem):
            if isinstance(layer, nn.Conv2d):
                part += layer.weight.numel() * max(
                    rows.lengths[number] * other.lengths[number] for rows, other in pairs
                )
                whole += layer.weight.numel() * prod(axis[number].outputs for axis in axes)
        return part, whole

    def read(self, images: Tensor, tokens: Tensor, kind: int) -> Tensor:
        """(batch, numbers): the map of these images in the regions of these tokens, which are of one kind."""
        crops = images.flatten(start_dim=1).gather(1, self._tables[kind][tokens])
        found = crops.view(len(images), *self._shapes[kind])
        for layer, (rows, columns) in zip(self.stem, self._pads[kind], strict=True):
            if isinstance(layer, nn.Conv2d):
                padded = pad(found, (*columns, *rows)) if any(rows + columns) else found
                found = conv2d(padded, layer.weight, layer.bias, layer.stride, 0, layer.dilation, layer.groups)
            else:
                found = layer(found)
        return found.flatten(start_dim=1)


def _layers(stem: Sequence[nn.Module], axis: int, size: int) -> list[Axis]:
    layers: list[Axis] = []
    for layer in stem:
        layers.append(Axis(layer, axis, layers[-1].outputs if layers else size))
    return layers


def _box(shape: tuple[int, ...], rows: Between, columns: Between) -> Tensor:
    """The places of a box in a flattened map (channels, height, width)."""
    return torch.arange(prod(shape)).view(shape)[:, slice(*rows), slice(*columns)].flatten()
