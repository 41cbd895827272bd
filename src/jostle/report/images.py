"""Images in a report: single images with a map of the patches whose noise flips the prediction."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from jostle.base.progress import Progress
from jostle.data.image_folder import ImageFiles
from jostle.estimates.request import Request
from jostle.report.page import HeatMap, Picture, Section
from jostle.report.texts import FlipCounts, flip_counts, flips_said
from jostle.tokens import Inputs, Patches

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ImageExamples:
    """Images that a report shows.

    Arguments:
        sections: one for each image, the first of each kind listed in the contents.
        numbers: for each image its row, the draws of each patch, and how many of them flip each model.
    """

    sections: list[Section]
    numbers: list[dict[str, Any]]


def are_pictures(inputs: Any, request: Request) -> bool:
    """Whether inputs can be drawn: images of one or three channels, whose tokens are patches."""
    if not isinstance(request.tokens, Patches):
        return False
    shape = Inputs(inputs, request.tokens).shape
    return len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))


class Developer:
    """Turns pixels as a network takes them back into a picture.

    Arguments:
        inputs: if they are ``ImageFiles``, their normalisation is undone, so that a photograph has its own colours;
            of other inputs only the range is known, which becomes black to white.
        shown: some of the pixels, (images, ...), whose range counts.
    """

    def __init__(self, inputs: Any, shown: Tensor) -> None:
        maker = inputs.preprocessing if isinstance(inputs, ImageFiles) else None
        self.order: list[int] | None = None
        self.gain: Tensor | float
        self.offset: Tensor | float
        if maker is not None:
            self.gain, self.offset = (torch.tensor(part).view(-1, 1, 1) for part in (maker.std, maker.mean))
            self.order = [maker.order.index(colour) for colour in sorted(maker.order)]
        else:
            finite = shown[shown.isfinite()].double() if shown.is_floating_point() else shown.double()
            low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 1.0)
            self.gain = 1 / ((high - low) or 1.0)
            self.offset = -low * self.gain

    def pixels(self, image: Tensor) -> NDArray[np.uint8]:
        """(height, width) or (height, width, 3) from 0 to 255; what is darker than black is black."""
        values = (image.detach().cpu() * self.gain + self.offset).nan_to_num(0.0).clamp(0, 1)
        scaled = (255 * values).round().to(torch.uint8)
        if scaled.dim() == 3:
            scaled = scaled[0] if len(scaled) == 1 else scaled[self.order or [0, 1, 2]].permute(1, 2, 0)
        return np.ascontiguousarray(scaled.numpy())

    def address(self, image: Tensor) -> str:
        """The picture as an address that holds it, for a page."""
        held = io.BytesIO()
        Image.fromarray(self.pixels(image)).save(held, format="png", optimize=True)
        return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode("ascii")


def image_examples(
    models: Mapping[str, Any],
    inputs: Any,
    request: Request,
    margins: NDArray[np.float64],
    said: Sequence[str],
    *,
    count: int,
    draws: int,
    classes: Mapping[str, Sequence[str]] | None = None,
    progress: Progress = False,
) -> ImageExamples:
    """Images of which the models are least sure, and images at random, each with one map for each model.

    Arguments:
        models, inputs, request: what was measured.
        margins: (images,) how sure the least sure model is of each of the first images.
        said: for each of these images, what the models predict, in words.
        count: how many images are shown, half of them close calls.
        draws: how often each of their patches is jostled.
        classes: for each model the names of its classes, if it has names.
        progress: as for ``jostle.measure``.
    """
    close, random = _choose(margins, count, request.seed)
    rows = np.concatenate([close, random])
    held = Inputs(inputs, request.tokens)
    pictures = held.batch(rows)[held.key]
    found = flip_counts(models, pictures, request, draws, progress)
    developer = Developer(inputs, pictures)
    darkest = max((float(np.nanmax(table)) for table in found.flips.values() if len(table)), default=0.0) or found.draws
    sections = list[Section]()
    for title, part in (("Close calls", close), ("Picked at random", random)):
        for number, row in enumerate(part):
            place = int(np.flatnonzero(rows == row)[0])
            address, image = developer.address(pictures[place]), pictures[place]
            maps = [
                _map(name, found, place, tuple(held.positions[-2:]), darkest, (classes or {}).get(name, ()), address)
                for name in models
            ]
            sections.append(
                Section(
                    title if not number else f"{title}: image {row}",
                    text=_introduction(title, found.draws) if not number else (),
                    maps=[Picture(f"image {row}", address, ratio=image.shape[-1] / image.shape[-2]), *maps],
                    scale=("share of draws that flip: 0", f"{darkest / found.draws:.0%}".replace("%", " %")),
                    caption=f"Image {row}: {said[row]}.",
                    is_listed=not number,
                )
            )
    numbers = [
        {"row": int(row), "draws": found.draws, "flips": {name: _listed(t[place]) for name, t in found.flips.items()}}
        for place, row in enumerate(rows)
    ]
    return ImageExamples(sections, numbers)


def _map(
    name: str,
    found: FlipCounts,
    place: int,
    grid: tuple[int, ...],
    darkest: float,
    classes: Sequence[str],
    picture: str,
) -> HeatMap:
    """The map of one model over one image."""
    flips, becomes = found.flips[name][place], found.becomes[name]
    hints = []
    for token, count in enumerate(flips):
        row, column = divmod(token, grid[1])
        after = becomes.get((place, token))
        word = None if after is None else classes[after] if 0 <= after < len(classes) else f"class {after}"
        said = "not jostled" if np.isnan(count) else flips_said(count, found.draws, word)
        hints.append(f"row {row}, column {column}: {said}")
    largest = float(np.nanmax(flips)) / found.draws if np.isfinite(flips).any() else 0.0
    return HeatMap(
        name,
        grid[1],
        shares=[None if np.isnan(count) else float(count / darkest) for count in flips],
        hints=hints,
        picture=picture,
        caption=f"at most {largest:.0%} of draws flip".replace("%", " %") if largest else "no draw flips",
        ratio=grid[1] / grid[0],
    )


def _choose(margins: NDArray[np.float64], count: int, seed: int) -> tuple[Integers, Integers]:
    """Images with the smallest margins, and others at random, together at most ``count``."""
    order = np.argsort(margins, kind="stable")
    close = order[: (count + 1) // 2]
    others = np.sort(np.random.default_rng(seed).permutation(order[len(close) :])[: count - len(close)])
    return close, others


def _introduction(title: str, draws: int) -> str:
    times = f"{draws} times" if draws > 1 else "once"
    shown = (
        f"Each patch was jostled alone, {times}; its colour is the share of draws that flip the prediction. Point at "
        "or tap a patch to see the number and the class that the prediction becomes."
    )
    if title != "Close calls":
        return f"Images as they come. {shown}"
    return f"The images of whose class a model is least sure; most flips happen in such images. {shown}"


def _listed(counts: NDArray[np.float64]) -> list[int | None]:
    return [None if np.isnan(one) else int(one) for one in counts]
