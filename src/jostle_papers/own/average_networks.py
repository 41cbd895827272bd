"""Trained networks, from the mean over random changes of one token to the worst: what is measured of one of them."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base.randomness import Stream
from jostle.base.store import Record
from jostle.data import Dataset
from jostle.estimates import measure
from jostle.perturbations import Sphere
from jostle.sampling import Until
from jostle.studies.settings import Settings
from jostle.tokens import Inputs, TextView, TokenView
from jostle.tokens.text import padding_id
from jostle.worst import worst_case
from jostle_papers.language import TextTraining
from jostle_papers.own.average_ladder import Ladder
from jostle_papers.own.average_to_worst_maps import MapChoices
from jostle_papers.trained import Training

LADDER, AVERAGE = "ladder", "average"


@dataclass(frozen=True, kw_only=True)
class Choices(Settings):
    """What is trained and how much is measured.

    Arguments:
        images, texts: the networks, and how they are trained.
        maps: random maps for the headline, which have no training.
        radii: lengths of changes in units of the token's norm; increasing, 1 among them.
        inputs: training inputs of which one token, drawn at random, is moved.
        draws: random changes of each of these tokens.
        starts, steps: of the ascent.
        passes: most inputs a network is asked about for the average at one radius, over all training inputs.
    """

    images: Training = field(default_factory=Training)
    texts: TextTraining = field(default_factory=TextTraining)
    maps: MapChoices = field(default_factory=MapChoices)
    radii: tuple[float, ...] = (0.3, 1.0, 3.87, 10.0)
    inputs: int = 100
    draws: int = 64
    starts: int = 6
    steps: int = 40
    passes: int = 15_000


def observed(model: nn.Module, seen: Dataset, view: TokenView, settings: Choices, seed: int) -> Record:
    """The ladder of flips of one network, and their average over all training inputs.

    All networks of one seed have the same inputs, tokens and random changes. The ladder is that of one token of each of
    a few inputs; the average is over all tokens of all inputs, and so closer to what it estimates.
    """
    few = seen.subset(min(settings.inputs, len(seen)), seed=seed)
    found = worst_case(
        model,
        few.inputs,
        tokens=view,
        radius=settings.radii,
        mask=one_token(model, few.inputs, view, seed),
        draws=settings.draws,
        starts=settings.starts,
        steps=settings.steps,
        seed=seed,
    )
    ladder = Ladder(
        list(found.radii),
        np.nanmean(found.mean, axis=(1, 2)).tolist(),
        np.nanmean(found.max_of, axis=(2, 3)).T.tolist(),
        np.nanmean(found.values, axis=(1, 2)).tolist(),
    )
    averages = [_average(model, seen, view, radius, settings.passes, seed) for radius in settings.radii]
    average = {"radii": list(settings.radii), **{key: [one[key] for one in averages] for key in averages[0]}}
    return {LADDER: ladder.to_dict(), AVERAGE: average, "moved": len(few), "search_passes": found.passes}


def one_token(model: nn.Module, inputs: Tensor, view: TokenView, seed: int) -> Tensor:
    """(inputs, tokens) true for one token of each input, uniform over those that are no padding."""
    held = Inputs(inputs, view, None, padding_id([model]) if isinstance(view, TextView) else None)
    shape = (len(held), held.num_tokens)
    is_token = np.ones(shape, dtype=bool) if held.mask is None else held.mask
    rows, columns = (place.ravel() for place in np.indices(shape))
    drawn = Stream(seed, "average-to-worst/token").uniforms(rows, columns, np.zeros_like(rows), 1).reshape(shape)
    chosen = np.where(is_token, drawn, -1.0).argmax(axis=1)
    return torch.from_numpy(np.arange(shape[1]) == chosen[:, None])


def _average(model: nn.Module, seen: Dataset, view: TokenView, radius: float, passes: int, seed: int) -> Record:
    m = measure(
        model,
        seen.inputs,
        tokens=view,
        perturbation=Sphere(radius, relative=True),
        plan=Until(relative=0.1, max_passes=passes),
        seed=seed,
    )
    return {"mean": m.value, "low": m.low, "high": m.high, "passes": m.passes}
