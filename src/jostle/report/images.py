"""Images in a report: single images with a map of the patches whose noise flips the prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.progress import Progress
from jostle.estimates.request import Request
from jostle.figures import svg
from jostle.figures.maps import heat_maps, largest
from jostle.report.page import Section
from jostle.report.texts import flip_counts
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


def image_examples(
    models: Mapping[str, Any],
    inputs: Any,
    request: Request,
    margins: NDArray[np.float64],
    said: Sequence[str],
    *,
    count: int,
    draws: int,
    progress: Progress = False,
) -> ImageExamples:
    """Images of which the models are least sure, and images at random, each with one map for each model.

    Arguments:
        models, inputs, request: what was measured.
        margins: (images,) how sure the least sure model is of each of the first images.
        said: for each of these images, what the models predict, in words.
        count: how many images are shown, half of them close calls.
        draws: how often each of their patches is jostled.
        progress: as for ``jostle.measure``.
    """
    close, random = _choose(margins, count, request.seed)
    rows = np.concatenate([close, random])
    held = Inputs(inputs, request.tokens)
    pictures = held.batch(rows)[held.key]
    counts, made = flip_counts(models, pictures, request, draws, progress)
    grid = tuple(held.positions[-2:])
    shares = {name: (table / made).reshape(len(rows), *grid) for name, table in counts.items()}
    darkest = largest(list(shares.values()))
    kinds = [("Close calls", close), ("Picked at random", random)]
    sections = list[Section]()
    for title, part in kinds:
        for number, row in enumerate(part):
            place = int(np.flatnonzero(rows == row)[0])
            maps = {name: table[place] for name, table in shares.items()}
            figure = heat_maps(_picture(pictures[place]), maps, label="share of draws that flip", vmax=darkest)
            sections.append(
                Section(
                    title if not number else f"{title}: image {row}",
                    text=_introduction(title, made) if not number else (),
                    figure_svg=svg(figure),
                    caption=f"Image {row}: {said[row]}.",
                    alt=f"Image {row} and, for each model, a map of the patches whose noise flips the prediction.",
                    is_listed=not number,
                )
            )
    numbers = [
        {"row": int(row), "draws": made, "flips": {name: _listed(table[place]) for name, table in counts.items()}}
        for place, row in enumerate(rows)
    ]
    return ImageExamples(sections, numbers)


def _choose(margins: NDArray[np.float64], count: int, seed: int) -> tuple[Integers, Integers]:
    """Images with the smallest margins, and others at random, together at most ``count``."""
    order = np.argsort(margins, kind="stable")
    close = order[: (count + 1) // 2]
    others = np.sort(np.random.default_rng(seed).permutation(order[len(close) :])[: count - len(close)])
    return close, others


def _introduction(title: str, draws: int) -> str:
    times = f"{draws} times" if draws > 1 else "once"
    shown = f"Each patch was jostled alone, {times}; its colour is the share of draws that flip the prediction."
    if title != "Close calls":
        return f"Images as they come. {shown}"
    return f"The images of whose class a model is least sure; most flips happen in such images. {shown}"


def _picture(image: Tensor) -> NDArray[np.float64]:
    """(height, width) or (height, width, 3), as figures take it."""
    pixels = image.detach().cpu().double().numpy()
    return pixels if pixels.ndim == 2 else np.moveaxis(pixels, 0, -1)


def _listed(counts: NDArray[np.float64]) -> list[int | None]:
    return [None if np.isnan(one) else int(one) for one in counts]
