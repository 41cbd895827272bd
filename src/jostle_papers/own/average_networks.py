"""Trained networks, from the mean over random changes of one token to the worst: what is measured of one network."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base.randomness import Stream
from jostle.data import Dataset
from jostle.estimates import measure
from jostle.perturbations import Sphere
from jostle.sampling import Until
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.tokens import Inputs, TextView, TokenView
from jostle.tokens.text import padding_id
from jostle.worst import worst_case
from jostle_papers.language import TextTrainingSettings
from jostle_papers.own.average_ladder import Ladder
from jostle_papers.own.average_maps import MapSettings
from jostle_papers.trained import TrainedNetwork, TrainedRecord, TrainingSettings


@dataclass(frozen=True, kw_only=True)
class AverageSettings(Settings):
    """What is trained and how much is measured.

    Arguments:
        images, texts: the networks, and how they are trained.
        maps: random maps for the headline, which have no training.
        radii: lengths of changes in units of the token's norm; increasing, 1 among them.
        inputs: training inputs of which one token, drawn at random, is moved.
        draws: random changes of each of these tokens.
        starts, steps: of the ascent.
        passes: most forward passes for the average at one radius, over all training inputs.
    """

    images: TrainingSettings = field(default_factory=TrainingSettings)
    texts: TextTrainingSettings = field(default_factory=TextTrainingSettings)
    maps: MapSettings = field(default_factory=MapSettings)
    radii: tuple[float, ...] = (0.3, 1.0, 3.87, 10.0)
    inputs: int = 100
    draws: int = 64
    starts: int = 6
    steps: int = 40
    passes: int = 15_000


@dataclass(frozen=True, kw_only=True)
class AverageFlips(Struct):
    """The share of flips under random changes at each radius, over all tokens of all training inputs.

    Arguments:
        radii: in units of the token's norm.
        mean, low, high: (radii,) with the ends of their intervals.
        passes: (radii,) forward passes that each took.
    """

    radii: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    passes: tuple[int, ...]

    def mean_at(self, radius: float) -> float:
        """The mean at one of the radii."""
        return self.mean[self.radii.index(radius)]


@dataclass(frozen=True, kw_only=True)
class LadderRecord(TrainedRecord):
    """A trained network, and its flips from the mean over random changes to the worst.

    Arguments:
        ladder: of one token of each of a few inputs.
        average: over all tokens of all inputs, and so closer to what it estimates.
        moved: inputs behind the ladder.
        search_passes: forward and backward passes of the search.
    """

    ladder: Ladder
    average: AverageFlips
    moved: int
    search_passes: int


def climb(trained: TrainedNetwork, view: TokenView, settings: AverageSettings, seed: int) -> LadderRecord:
    """The record of one network.

    All networks of one seed have the same inputs, tokens and random changes.
    """
    few = trained.seen.subset(min(settings.inputs, len(trained.seen)), seed=seed)
    found = worst_case(
        trained.model,
        few.inputs,
        tokens=view,
        radius=settings.radii,
        mask=one_token(trained.model, few.inputs, view, seed),
        draws=settings.draws,
        starts=settings.starts,
        steps=settings.steps,
        seed=seed,
    )
    ladder = Ladder(
        tuple(found.radii),
        tuple(np.nanmean(found.mean, axis=(1, 2)).tolist()),
        tuple(tuple(rung) for rung in np.nanmean(found.max_of, axis=(2, 3)).T.tolist()),
        tuple(np.nanmean(found.values, axis=(1, 2)).tolist()),
    )
    return LadderRecord(
        **vars(trained.record),
        ladder=ladder,
        average=_average(trained.model, trained.seen, view, settings, seed),
        moved=len(few),
        search_passes=found.passes,
    )


def one_token(model: nn.Module, inputs: Tensor, view: TokenView, seed: int) -> Tensor:
    """(inputs, tokens) true for one token of each input, uniform over those that are no padding."""
    held = Inputs(inputs, view, None, padding_id([model]) if isinstance(view, TextView) else None)
    shape = (len(held), held.num_tokens)
    is_token = np.ones(shape, dtype=bool) if held.mask is None else held.mask
    rows, columns = (place.ravel() for place in np.indices(shape))
    uniforms = Stream(seed, "average-to-worst/token").uniforms(rows, columns, np.zeros_like(rows), 1).reshape(shape)
    chosen = np.where(is_token, uniforms, -1.0).argmax(axis=1)
    return torch.from_numpy(np.arange(shape[1]) == chosen[:, None])


def _average(model: nn.Module, seen: Dataset, view: TokenView, settings: AverageSettings, seed: int) -> AverageFlips:
    found = [
        measure(
            model,
            seen.inputs,
            tokens=view,
            perturbation=Sphere(radius, relative=True),
            plan=Until(relative=0.1, max_passes=settings.passes),
            seed=seed,
        )
        for radius in settings.radii
    ]
    return AverageFlips(
        radii=settings.radii,
        mean=tuple(m.value for m in found),
        low=tuple(m.low for m in found),
        high=tuple(m.high for m in found),
        passes=tuple(m.passes for m in found),
    )
