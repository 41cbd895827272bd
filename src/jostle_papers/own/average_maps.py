"""Random maps of words, from the mean over random changes of one word to the worst: the search."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor

from jostle.base.progress import State
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.worst.search import draw_counts
from jostle_papers.own.average_ladder import Ladder, average_ladders
from jostle_papers.p2402_02969.features import DrawnFeatures, OneWord, ascend, create, shared_mean_words
from jostle_papers.p2402_02969.features.word_sensitivity import on_ball, random_changes

MAP_LABELS = {
    "raf": "softmax attention",
    "raf-relu": "ReLU attention",
    "rf": "random features",
    "raf-linear": "linear attention",
}
Response = Literal["change", "flips"]
CHANGE: Final = "change"
FLIPS: Final = "flips"
LABELS: dict[Response, str] = {CHANGE: "relative change of features", FLIPS: "share of read-outs flipped"}

_AT_ONCE = 64  # changes whose features are in memory together


@dataclass(frozen=True, kw_only=True)
class MapSettings(Settings):
    """Which maps and words there are, and how much is measured.

    Arguments:
        seeds: each draws new words and new weights.
        maps: names of ``jostle_papers.p2402_02969.features``.
        num_tokens, dim: n and d.
        cosine: of two words, on average.
        radii: lengths of changes in units of sqrt(d), the norm of a word; increasing, 1 among them.
        positions: words of an input that are moved, evenly spread; of random features one, as all have the same law.
        draws: random changes of each word.
        starts, steps: of the ascent.
    """

    maps: tuple[str, ...] = tuple(MAP_LABELS)
    num_tokens: int = 80
    dim: int = 192
    cosine: float = 0.3
    radii: tuple[float, ...] = (0.1, 0.3, 1.0, 1.5, 2.5, 3.87)
    positions: int = 4
    draws: int = 512
    starts: int = 12
    steps: int = 80


@dataclass(frozen=True, kw_only=True)
class MapRecord(Struct):
    """The ladders of one map and seed.

    Arguments:
        change: of the relative change of features.
        flips: of the share of read-outs flipped.
    """

    change: Ladder
    flips: Ladder

    def ladder(self, response: Response) -> Ladder:
        """The ladder of one response."""
        return self.change if response == CHANGE else self.flips


def climb_map(name: str, settings: MapSettings, seed: int, report: Callable[[State], None]) -> MapRecord:
    """The record of one map and seed."""
    found: dict[Response, list[Ladder]] = {CHANGE: [], FLIPS: []}
    count = 1 if name == "rf" else settings.positions
    for place, one_word in enumerate(_words(name, settings, seed)):
        for response, (height, read) in _responses(one_word).items():
            found[response].append(_climb_word(one_word, height, read, settings, f"{seed}/{place}"))
        report(State((place + 1) / count, 0, f"word {place + 1} of {count}"))
    return MapRecord(change=average_ladders(found[CHANGE]), flips=average_ladders(found[FLIPS]))


def _words(name: str, settings: MapSettings, seed: int) -> Iterator[OneWord]:
    """The features of one input as a function of some of its words, one after another."""
    n, dim = settings.num_tokens, settings.dim
    words = shared_mean_words(1, num_tokens=n, dim=dim, cosine=settings.cosine, seed=seed)
    if name == "rf":
        yield DrawnFeatures(words.float(), 0, seed=seed).one_word()
    else:
        places = range(0, n, max(1, n // settings.positions))[: settings.positions]
        yield from create(name, num_tokens=n, dim=dim, seed=seed).one_words(words[0], places)


def _responses(one_word: OneWord) -> dict[Response, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]:
    """For each response the height to ascend, (count, dim) -> (count,), and the response at a height.

    A read-out theta, standard normal, has another sign after a change with probability angle(phi, phi') / pi, and
    1 - cos(angle), half the squared distance of the unit vectors, has a gradient where the angle has none.
    """
    aim = one_word.clean / one_word.norm

    def turned(changes: Tensor) -> Tensor:
        features = one_word.features(changes)
        unit: Tensor = features / torch.linalg.vector_norm(features, dim=1, keepdim=True)
        return (unit - aim).square().sum(dim=1) / 2

    return {
        CHANGE: (one_word.squared_change, lambda height: height.sqrt() / one_word.norm),
        FLIPS: (turned, lambda height: (height / 2).clamp(0, 1).sqrt().asin() * 2 / math.pi),
    }


def _climb_word(
    one_word: OneWord,
    height: Callable[[Tensor], Tensor],
    read: Callable[[Tensor], Tensor],
    settings: MapSettings,
    name: str,
) -> Ladder:
    """The ladder of one word: random changes, then an ascent from known directions and from the best of them.

    The random directions are the same at all radii, and the worst change of a radius is a start of the next.
    """
    word, dim = one_word.word, settings.dim
    random = random_changes(settings.draws, dim, 0, f"axis/{name}").to(word)
    responses, worst = np.empty((len(settings.radii), settings.draws)), list[float]()
    with torch.no_grad():
        known = torch.cat([one_word.directions(), word.new_zeros(1, dim)])  # the last one becomes the worst so far
    for level, radius in enumerate(settings.radii):
        length = radius * math.sqrt(dim)
        with torch.no_grad():
            heights = torch.cat([height(on_ball(part, length)) for part in torch.split(random, _AT_ONCE)])
        responses[level] = read(heights).double().numpy()
        best = random[heights.argsort(descending=True)[: max(1, settings.starts - len(known) - 1)]]
        begun = torch.cat([on_ball(torch.cat([known, best]), length), _deletion(word, length)])
        ascent = ascend(height, begun, length, steps=settings.steps)
        known[-1] = ascent.changes[ascent.best]
        found = float(read(ascent.values.max()))
        worst.append(max(found, float(responses[level].max()), *worst[-1:]))
    return Ladder.of(settings.radii, responses, worst, draw_counts(settings.draws))


def _deletion(word: Tensor, length: float) -> Tensor:
    """The change (1, d) that makes the word zero, or as near to zero as the length allows."""
    return -word[None] * min(1.0, length / float(torch.linalg.vector_norm(word)))
