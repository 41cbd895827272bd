"""Random maps of words, from the mean over changes of one word to the worst: the search.

Our own question: does the ranking of random maps by the average over changes of a word hold for the worst change?
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from jostle.base.progress import State
from jostle.base.store import Record
from jostle.figures import curves
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.records import Records
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below, is_less, within
from jostle.worst.search import draw_counts
from jostle_papers.own.average_ladder import (
    BySeed,
    Ladder,
    Panel,
    averaged,
    crossing,
    exponential,
    ladders,
    over_radii,
    ratios,
    rung,
    rungs,
)
from jostle_papers.p2402_02969.features import DrawnFeatures, OneWord, ascend, create, shared_mean_words, wide_change
from jostle_papers.p2402_02969.features.word_sensitivity import on_ball, random_changes

SAID = {
    "raf": "softmax attention",
    "raf-relu": "ReLU attention",
    "rf": "random features",
    "raf-linear": "linear attention",
}
CHANGE, FLIPS = "change", "flips"
LABELS = {CHANGE: "relative change of features", FLIPS: "share of read-outs flipped"}

_AT_ONCE = 64  # changes whose features are there together


@dataclass(frozen=True, kw_only=True)
class MapChoices(Settings):
    """How much is measured.

    Arguments:
        seeds: each draws new words and new weights.
        maps: names of ``jostle_papers.p2402_02969.features``.
        num_tokens, dim: n and d.
        cosine: of two words, on average.
        radii: lengths of changes in units of sqrt(d), the norm of a word; increasing, 1 among them.
        positions: words of an input that are moved, evenly spread; of random features, where all are alike, one.
        draws: random changes of each word.
        starts, steps: of the ascent.
    """

    maps: tuple[str, ...] = tuple(SAID)
    num_tokens: int = 80
    dim: int = 192
    cosine: float = 0.3
    radii: tuple[float, ...] = (0.1, 0.3, 1.0, 1.5, 2.5, 3.87)
    positions: int = 4
    draws: int = 512
    starts: int = 12
    steps: int = 80


def measured(name: str, settings: MapChoices, seed: int, report: Callable[[State], None]) -> Record:
    """The ladders of one map and seed, by response."""
    found: dict[str, list[Ladder]] = {CHANGE: [], FLIPS: []}
    count = 1 if name == "rf" else settings.positions
    for place, one_word in enumerate(_words(name, settings, seed)):
        for response, (height, read) in _responses(one_word).items():
            found[response].append(_climbed(one_word, height, read, settings, f"{seed}/{place}"))
        report(State((place + 1) / count, 0, f"word {place + 1} of {count}"))
    return {response: averaged(ladders).to_dict() for response, ladders in found.items()}


def _words(name: str, settings: MapChoices, seed: int) -> Iterator[OneWord]:
    """The features of one input as a function of some of its words, one after another."""
    n, dim = settings.num_tokens, settings.dim
    words = shared_mean_words(1, num_tokens=n, dim=dim, cosine=settings.cosine, seed=seed)
    if name == "rf":
        yield DrawnFeatures(words.float(), 0, seed=seed).one_word()
    else:
        places = range(0, n, max(1, n // settings.positions))[: settings.positions]
        yield from create(name, num_tokens=n, dim=dim, seed=seed).one_words(words[0], places)


def _responses(one_word: OneWord) -> dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]:
    """What is ascended, (count, dim) -> (count,), and what is made of it, by response.

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


def _climbed(
    one_word: OneWord,
    height: Callable[[Tensor], Tensor],
    read: Callable[[Tensor], Tensor],
    settings: MapChoices,
    name: str,
) -> Ladder:
    """The ladder of one word: random changes, then an ascent from known directions and from the best of them.

    The random directions are the same at all radii, and the worst change of a radius is a start of the next.
    """
    word, dim = one_word.word, settings.dim
    random = random_changes(settings.draws, dim, 0, f"axis/{name}").to(word)
    drawn, worst = np.empty((len(settings.radii), settings.draws)), list[float]()
    with torch.no_grad():
        known = torch.cat([one_word.directions(), word.new_zeros(1, dim)])  # the last one becomes the worst so far
    for level, radius in enumerate(settings.radii):
        length = radius * math.sqrt(dim)
        with torch.no_grad():
            heights = torch.cat([height(on_ball(part, length)) for part in torch.split(random, _AT_ONCE)])
        drawn[level] = read(heights).double().numpy()
        best = random[heights.argsort(descending=True)[: max(1, settings.starts - len(known) - 1)]]
        begun = torch.cat([on_ball(torch.cat([known, best]), length), _deleted(word, length)])
        ascent = ascend(height, begun, length, steps=settings.steps)
        known[-1] = ascent.changes[ascent.best]
        found = float(read(ascent.values.max()))
        worst.append(max(found, float(drawn[level].max()), *worst[-1:]))
    return Ladder.of(settings.radii, drawn, worst, draw_counts(settings.draws))


def _deleted(word: Tensor, length: float) -> Tensor:
    """The change (1, d) that makes the word zero, or brings it as near as it may."""
    return -word[None] * min(1.0, length / float(torch.linalg.vector_norm(word)))


RANKED = ("raf", "raf-relu", "rf")  # by the average at r = 1, from below; by the worst case from above
_AT = 1.0


@register
class AverageToWorstMaps(Study[MapChoices]):
    """Random features and random attention: the mean over changes of a word, the largest of K, and the worst found."""

    name = "jostle/average-to-worst-maps"
    title = "Random maps: from the average change of a word to the worst"
    claim = (
        "For changes as long as the word, softmax attention moves least on average, before ReLU attention and random "
        "features, and at worst most: the ranking is exactly reversed."
    )
    source = "our own question, between 2403.06925 (random changes) and 2402.02969 (the worst change)"
    version = 1
    scales = {
        "smoke": MapChoices(
            seeds=3, num_tokens=6, dim=8, radii=(0.3, 1.0, 3.87), positions=2, draws=8, starts=4, steps=4
        ),
        "small": MapChoices(seeds=8),
        "paper": MapChoices(seeds=20, positions=16, draws=4096, starts=24, steps=200),
    }
    deviations = (
        "Words are made up: shared-mean words with a mean cosine of 0.3, n = 80, d = 192 at small scale.",
        "Worst changes are the largest found by projected gradient ascent from closed-form directions, deletion and "
        "the best random changes: lower bounds.",
        "Values are means over evenly spread positions of one input for each seed, not over the worst position; of "
        "random features, where all positions have the same law, one is moved.",
        "The share of read-outs flipped is angle / pi between the features before and after: the probability that a "
        "Gaussian linear read-out changes its sign. The worst change is the same for all read-outs.",
    )

    def cells(self, settings: MapChoices, seeds: Sequence[int]) -> list[Cell]:
        return [Cell.of(map=name, seed=seed) for seed in seeds for name in settings.maps]

    def measure(self, cell: Cell, settings: MapChoices, context: Context) -> Record:
        return measured(cell.values["map"], settings, cell.values["seed"], context.report)

    def figures(self, records: Records[MapChoices]) -> list[Drawing]:
        radii = sorted({_AT, records.settings.radii[-1]})
        return [*(_axis(records, field, radii) for field in LABELS), _against_radius(records)]

    def expectations(self, records: Records[MapChoices]) -> list[Expectation]:
        claimed = _ranking(records, CHANGE, "mean", RANKED) + _ranking(records, CHANGE, "worst", RANKED[::-1])
        return [*claimed, *map(beyond, [*_heads(records), *_ratios(records), *_turns(records), *_others(records)])]


def _of(records: Records[MapChoices]) -> dict[str, Records[MapChoices]]:
    return {SAID[name]: records.where(map=name) for name in records.settings.maps}


def _values(records: Records[MapChoices], name: str, field: str, part: str, radius: float = _AT) -> BySeed:
    return rung(records.where(map=name), field, part, radius)


def _ranking(
    records: Records[MapChoices], field: str, part: str, names: Sequence[str], radius: float = _AT
) -> list[Expectation]:
    """That maps are in this order from below, each against the next, seed by seed."""
    quantifier = {"mean": "average", "worst": "worst"}[part]
    return [
        is_less(
            f"{quantifier} {LABELS[field]}, r = {radius:g}: {SAID[first]} - {SAID[second]}",
            _values(records, first, field, part, radius),
            _values(records, second, field, part, radius),
        )
        for first, second in pairwise(names)
    ]


def _heads(records: Records[MapChoices]) -> list[Expectation]:
    """The same ranking of read-outs that flip."""
    return _ranking(records, FLIPS, "mean", RANKED) + _ranking(records, FLIPS, "worst", RANKED[::-1])


def _ratios(records: Records[MapChoices]) -> list[Expectation]:
    """How far the worst is from the average: nearly the same for random features, many times for attention."""
    logs = {name: ratios(*(_values(records, name, CHANGE, part) for part in ("worst", "mean"))) for name in RANKED}
    softmax, relu, flat = (exponential(over_seeds(logs[name])) for name in RANKED)
    return [
        is_below("worst / average of random features, r = 1", flat, 1.25),
        is_above("worst / average of ReLU attention, r = 1", relu, 5.0),
        is_above("worst / average of softmax attention, r = 1", softmax, 20.0),
        is_less("log10 of worst / average, r = 1: ReLU attention - softmax attention", logs["raf-relu"], logs["raf"]),
    ]


def _turns(records: Records[MapChoices]) -> list[Expectation]:
    """Where the average begins to rank like the worst case."""
    radii = records.settings.radii
    found = _ranking(records, CHANGE, "mean", RANKED[::-1], radii[-1])
    for name in RANKED[:2]:
        by_radius = {
            each: {radius: _values(records, each, CHANGE, "mean", radius) for radius in radii} for each in (name, "rf")
        }
        turns = {
            seed: crossing(*({radius: at[radius][seed] for radius in radii} for at in by_radius.values()))
            for seed in records.distinct("seed")
        }
        statement = f"radius from which {SAID[name]} moves more than random features on average"
        found.append(is_above(statement, over_seeds(turns), _AT))
    return found


def _others(records: Records[MapChoices]) -> list[Expectation]:
    """Linear attention, and random features against the limit of many of them."""
    settings = records.settings
    wide, _ = wide_change(settings.num_tokens, _AT)
    scaled = {seed: value / wide for seed, value in _values(records, "rf", CHANGE, "mean").items()}
    linear, softmax, relu = (
        {part: _values(records, name, CHANGE, part) for part in ("mean", "worst")}
        for name in ("raf-linear", "raf", "raf-relu")
    )
    return [
        is_less("average, r = 1: softmax attention - linear attention", softmax["mean"], linear["mean"]),
        is_less("worst, r = 1: ReLU attention - linear attention", relu["worst"], linear["worst"]),
        is_less("worst, r = 1: linear attention - softmax attention", linear["worst"], softmax["worst"]),
        within("average of random features, r = 1, over the limit of many features", over_seeds(scaled), 1.0, 0.05),
    ]


def _axis(records: Records[MapChoices], field: str, radii: Sequence[float]) -> Drawing:
    panels = [
        Panel(
            f"r = {radius:g}", LABELS[field], [rungs(name, part, field, radius) for name, part in _of(records).items()]
        )
        for radius in radii
    ]
    n, dim = records.settings.num_tokens, records.settings.dim
    return Drawing(
        f"axis-{field}",
        ladders(panels, draw_counts(records.settings.draws)),
        f"{LABELS[field].capitalize()} when one of {n} words of dimension {dim} is changed, by random maps: the mean "
        "over random changes of length r times the word's, the expected largest of several, and the worst found (a "
        "lower bound); the mean and the range over seeds.",
        "A line for each map, rising from left to right: at r = 1 those of attention begin low and end high.",
    )


def _against_radius(records: Records[MapChoices]) -> Drawing:
    parts = {name: part for name, part in _of(records).items() if name != SAID["raf-linear"]}
    series = [
        over_radii(f"{name}, {said}", part, CHANGE, rung_name, records.settings.radii)
        for said, rung_name in (("worst", "worst"), ("average", "mean"))
        for name, part in parts.items()
    ]
    return Drawing(
        "radius",
        curves(series, x_label="radius r, in units of the word's norm", y_label=LABELS[CHANGE], log_x=True, log_y=True),
        "The average over random changes of one word and the worst change found, against their length; the mean and "
        "the range over seeds.",
        "Two lines for each map, the worst above the average: close together for random features, far apart for "
        "attention.",
    )
