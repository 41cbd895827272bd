"""Our own question: does the ranking of random maps by the average over changes of a word hold for the worst change?

The search is in ``average_maps``, the ladder and its figure in ``average_ladder``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from jostle import figures
from jostle.figures import Series
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    exponential,
    over_seeds,
)
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import (
    Expectation,
    beyond,
    is_above,
    is_below,
    is_less,
    is_smaller,
    within,
)
from jostle.worst.search import draw_counts
from jostle_papers.own.average_ladder import Panel, crossing, draw_ladders, log_ratios, rungs
from jostle_papers.own.average_maps import (
    CHANGE,
    FLIPS,
    LABELS,
    MAP_LABELS,
    MapRecord,
    MapSettings,
    Response,
    climb_map,
)
from jostle_papers.p2402_02969.features import wide_change
from jostle_papers.trained import BySeed, mean_and_range

RANKED = ("raf", "raf-relu", "rf")  # by the average at r = 1, from below; by the worst case from above
_AT = 1.0
Rung = Literal["mean", "worst"]


@dataclass(frozen=True)
class MapCell(Cell):
    """One map with new words and weights for each seed."""

    map: str
    seed: int


MapRecords = Records[MapSettings, MapCell, MapRecord]


@register
class AverageToWorstMaps(Study[MapSettings, MapCell, MapRecord]):
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
        "smoke": MapSettings(
            seeds=3, num_tokens=6, dim=8, radii=(0.3, 1.0, 3.87), positions=2, draws=8, starts=4, steps=4
        ),
        "small": MapSettings(seeds=8),
        "paper": MapSettings(seeds=20, positions=16, draws=4096, starts=24, steps=200),
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

    def cells(self, settings: MapSettings, seeds: Sequence[int]) -> list[MapCell]:
        return [MapCell(name, seed) for seed in seeds for name in settings.maps]

    def measure(self, cell: MapCell, settings: MapSettings, context: Context) -> MapRecord:
        return climb_map(cell.map, settings, cell.seed, context.report)

    def figures(self, records: MapRecords) -> list[Drawing]:
        radii = sorted({_AT, records.settings.radii[-1]})
        return [*(_axis(records, response, radii) for response in LABELS), _against_radius(records)]

    def expectations(self, records: MapRecords) -> list[Expectation]:
        claimed = _ranking(records, CHANGE, "mean", RANKED) + _ranking(records, CHANGE, "worst", RANKED[::-1])
        return [*claimed, *map(beyond, [*_heads(records), *_ratios(records), *_turns(records), *_others(records)])]


def _values(records: MapRecords, name: str, response: Response, rung: Rung, radius: float = _AT) -> BySeed:
    """One rung of one map, by seed."""

    def value(record: MapRecord) -> float:
        ladder = record.ladder(response)
        return ladder.mean_at(radius) if rung == "mean" else ladder.worst_at(radius)

    return records.where(map=name).by("seed", value)


def _ranking(
    records: MapRecords, response: Response, rung: Rung, names: Sequence[str], radius: float = _AT
) -> list[Expectation]:
    """That maps have this order, from the least to the largest, by the ratio of neighbours."""
    quantifier = "average" if rung == "mean" else "worst"
    return [
        is_smaller(
            f"{quantifier} {LABELS[response]}, r = {radius:g}: {MAP_LABELS[first]} / {MAP_LABELS[second]}",
            _values(records, first, response, rung, radius),
            _values(records, second, response, rung, radius),
        )
        for first, second in pairwise(names)
    ]


def _heads(records: MapRecords) -> list[Expectation]:
    """The same ranking by the share of flipped read-outs."""
    return _ranking(records, FLIPS, "mean", RANKED) + _ranking(records, FLIPS, "worst", RANKED[::-1])


def _ratios(records: MapRecords) -> list[Expectation]:
    """How far the worst is from the average: nearly the same for random features, many times for attention."""
    logs = {
        name: log_ratios(_values(records, name, CHANGE, "worst"), _values(records, name, CHANGE, "mean"))
        for name in RANKED
    }
    softmax, relu, flat = (exponential(over_seeds(logs[name]), 10) for name in RANKED)
    return [
        is_below("worst / average of random features, r = 1", flat, 1.25),
        is_above("worst / average of ReLU attention, r = 1", relu, 5.0),
        is_above("worst / average of softmax attention, r = 1", softmax, 20.0),
        is_less("log10 of worst / average, r = 1: ReLU attention - softmax attention", logs["raf-relu"], logs["raf"]),
    ]


def _turns(records: MapRecords) -> list[Expectation]:
    """The radius from which on the average ranks maps like the worst case."""
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
        statement = f"radius from which {MAP_LABELS[name]} moves more than random features on average"
        found.append(is_above(statement, over_seeds(turns), _AT))
    return found


def _others(records: MapRecords) -> list[Expectation]:
    """Linear attention, and random features against the limit of infinitely many."""
    settings = records.settings
    wide, _ = wide_change(settings.num_tokens, _AT)
    scaled = {seed: value / wide for seed, value in _values(records, "rf", CHANGE, "mean").items()}
    names = ("raf-linear", "raf", "raf-relu")
    linear_mean, softmax_mean, _ = (_values(records, name, CHANGE, "mean") for name in names)
    linear_worst, softmax_worst, relu_worst = (_values(records, name, CHANGE, "worst") for name in names)
    return [
        is_smaller("average, r = 1: softmax attention / linear attention", softmax_mean, linear_mean),
        is_smaller("worst, r = 1: ReLU attention / linear attention", relu_worst, linear_worst),
        is_smaller("worst, r = 1: linear attention / softmax attention", linear_worst, softmax_worst),
        within("average of random features, r = 1, over the limit of many features", over_seeds(scaled), 1.0, 0.05),
    ]


def _axis(records: MapRecords, response: Response, radii: Sequence[float]) -> Drawing:
    ladders = {
        MAP_LABELS[name]: records.where(map=name).column(lambda record: record.ladder(response))
        for name in records.settings.maps
    }
    panels = [
        Panel(f"r = {radius:g}", LABELS[response], [rungs(name, one, radius) for name, one in ladders.items()])
        for radius in radii
    ]
    n, dim = records.settings.num_tokens, records.settings.dim
    return Drawing(
        f"axis-{response}",
        draw_ladders(panels, draw_counts(records.settings.draws)),
        f"{LABELS[response].capitalize()} when one of {n} words of dimension {dim} is changed, by random maps: the "
        "mean over random changes of length r times the word's, the expected largest of several, and the worst found "
        "(a lower bound); the mean and the range over seeds.",
        "A line for each map, rising from left to right: at r = 1 those of attention begin low and end high.",
    )


def _against_radius(records: MapRecords) -> Drawing:
    names, radii = [name for name in records.settings.maps if name != "raf-linear"], records.settings.radii

    def line(name: str, label: str, rung: Rung) -> Series:
        values = [list(_values(records, name, CHANGE, rung, radius).values()) for radius in radii]
        return mean_and_range(f"{MAP_LABELS[name]}, {label}", radii, values)

    series = [line(name, "worst", "worst") for name in names] + [line(name, "average", "mean") for name in names]
    return Drawing(
        "radius",
        figures.curves(
            series, x_label="radius r, in units of the word's norm", y_label=LABELS[CHANGE], log_x=True, log_y=True
        ),
        "The average over random changes of one word and the worst change found, against their length; the mean and "
        "the range over seeds.",
        "Two lines for each map, the worst above the average: close together for random features, far apart for "
        "attention.",
    )
