"""Our own question: which trained network is the safest, on average over changes of a token and at worst?

What is measured of a network is in ``average_networks``, of a random map in ``average_maps``; the ladder and its figure
are in ``average_ladder``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from jostle import figures
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    exponential,
    over_seeds,
)
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import (
    Expectation,
    beyond,
    is_above,
    is_smaller,
)
from jostle.worst.search import draw_counts
from jostle_papers.language import TextTrainingSettings
from jostle_papers.own import penalties
from jostle_papers.own.average_ladder import Panel, draw_ladders, log_ratios, rungs
from jostle_papers.own.average_maps import CHANGE, LABELS, MAP_LABELS, MapRecord, MapSettings, climb_map
from jostle_papers.own.average_networks import AverageSettings, LadderRecord, climb
from jostle_papers.p2403_06925 import fashion, text
from jostle_papers.trained import (
    BySeed,
    NetworkCell,
    Networks,
    TrainingSettings,
    follow,
    learnt,
    mean_and_range,
)

WORDS, IMAGES, TEXTS = "words", "images", "texts"
RANKED = {IMAGES: ("vit-small", "cnn", "mlp-leaky-relu"), TEXTS: ("encoder", "encoder-relu", "lstm", "gru")}
ACCURACY = {IMAGES: 0.99, TEXTS: text.ACCURACY}  # on the training inputs; a network with less does not count
_MAPS = ("raf", "raf-relu", "rf")
_AT = (1.0, 3.87)  # radii at which networks are compared
_LABELS = {
    **MAP_LABELS,
    "vit-small": "vision transformer",
    "cnn": "CNN",
    "mlp-leaky-relu": "MLP",
    "encoder": "transformer",
    "encoder-relu": "ReLU transformer",
    "lstm": "LSTM",
    "gru": "GRU",
}
_TITLES = {WORDS: "random maps", IMAGES: "trained on images", TEXTS: "trained on texts"}
_FLIPPED = {IMAGES: "share of patches that flip", TEXTS: "share of tokens that flip"}


@dataclass(frozen=True)
class AverageCell(NetworkCell):
    """One network trained on one kind of data, or one random map of words, from one seed."""

    data: str
    network: str
    seed: int


AverageRecords = Records[AverageSettings, AverageCell, LadderRecord | MapRecord]
LadderRecords = Records[TrainingSettings, AverageCell, LadderRecord]  # of networks trained on one kind of data


def _may_take_longer(networks: Networks, max_epochs: int) -> Networks:
    """The networks as the other studies of Fashion-MNIST train them: those without attention may take longer."""
    return {
        name: network if name == "vit-small" else replace(network, max_epochs=max_epochs)
        for name, network in networks.items()
    }


def _text_settings(scale: str, names: tuple[str, ...]) -> TextTrainingSettings:
    return replace(text.at_scale(scale, "qqp", names), over_training=False)


@register
class AverageToWorst(Study[AverageSettings, AverageCell, LadderRecord | MapRecord]):
    """Flips under random changes of one token, under the worst of K, and under the worst that is found."""

    name = "jostle/average-to-worst"
    title = "Trained networks: from the average change of a token to the worst"
    claim = (
        "On average over random changes of a token, transformers are the safest trained networks; at worst they are "
        "the least safe: the ranking is reversed, as for random maps (at our setting, small scale: 2,000 images of "
        "Fashion-MNIST, 3,000 pairs of QQP)."
    )
    source = "our own question, between 2403.06925 (random changes) and 2402.02969 (the worst change)"
    version = 1
    scales = {
        "smoke": AverageSettings(
            seeds=1,
            images=replace(penalties.SMOKE, networks=fashion.tiny_networks(*RANKED[IMAGES])),
            texts=_text_settings("smoke", ("encoder", "lstm")),
            maps=MapSettings(maps=_MAPS, num_tokens=4, dim=6, radii=_AT, positions=1, draws=4, starts=2, steps=2),
            radii=(0.3, *_AT), inputs=4, draws=4, starts=2, steps=2, passes=200,
        ),
        "small": AverageSettings(
            seeds=5,
            images=replace(penalties.SMALL, networks=_may_take_longer(fashion.small_networks(*RANKED[IMAGES]), 200)),
            texts=_text_settings("small", ("encoder", "lstm")),
            maps=MapSettings(maps=_MAPS, radii=_AT, draws=64),
        ),
        "paper": AverageSettings(
            seeds=5,
            images=replace(penalties.PAPER, networks=fashion.paper_networks(*RANKED[IMAGES])),
            texts=_text_settings("paper", RANKED[TEXTS]),
            maps=MapSettings(maps=_MAPS, radii=_AT, positions=16, draws=64, starts=24, steps=200),
            inputs=1_000, starts=8, steps=100, passes=100_000,
        ),
    }  # fmt: skip
    deviations = (
        "Training ends with the first epoch after which every training image, or 98 % of the training texts, are "
        "classified right. A seed from which one of the networks of a kind of data does not get to 99 % (texts: 98 %) "
        "is left out of comparisons and figures of that data.",
        "Small scale: 2,000 images of Fashion-MNIST, 3,000 pairs of QQP.",
        fashion.SMALL_SCALE,
        "A change has a length in units of the norm of the token: of a patch of 4 x 4 pixels in [-1, 1], or of an "
        "embedding after its LayerNorm. 2403.06925 has noise of one variance for all patches.",
        "Worst changes are the largest found, by projected gradient ascent on the margin from random changes, deletion "
        "and the steepest direction: lower bounds.",
        "The rungs of the axis are of one random token of each of `inputs` training inputs. Averages that are compared "
        "are over all tokens of all training inputs, and an input counts the same whatever its length.",
    )

    def cells(self, settings: AverageSettings, seeds: Sequence[int]) -> list[AverageCell]:
        kinds = {
            IMAGES: list(settings.images.networks),
            TEXTS: list(settings.texts.networks),
            WORDS: list(settings.maps.maps),
        }
        return [AverageCell(data, name, seed) for seed in seeds for data, names in kinds.items() for name in names]

    def measure(self, cell: AverageCell, settings: AverageSettings, context: Context) -> LadderRecord | MapRecord:
        if cell.data == WORDS:
            return climb_map(cell.network, settings.maps, cell.seed, context.report)
        training = _training(settings, cell.data)
        trained = follow(training.networks[cell.network], training, cell.seed, context)
        return climb(trained, training.tokens, settings, cell.seed)

    def figures(self, records: AverageRecords) -> list[Drawing]:
        return [
            *(_axis(records, radius) for radius in _AT),
            *(_against_radius(records, data) for data in (IMAGES, TEXTS)),
        ]

    def expectations(self, records: AverageRecords) -> list[Expectation]:
        found = []
        for data, accuracy in ACCURACY.items():
            compared, counted = learnt(_trained_on(records, data), accuracy)
            found += [*_ranking(compared, data), *map(beyond, _ratios(compared, data)), *counted]
        return found


def _training(settings: AverageSettings, data: str) -> TrainingSettings:
    return settings.images if data == IMAGES else settings.texts


def _trained_on(records: AverageRecords, data: str) -> LadderRecords:
    """The records of the networks trained on one kind of data."""
    part = records.where(data=data).of(AverageCell, LadderRecord)
    return Records(part.cells, {cell.key: one for cell, one in part}, _training(records.settings, data), records.scale)


def _names(records: LadderRecords, data: str) -> list[str]:
    """The names of the networks, in the order of the claim."""
    return [name for name in RANKED[data] if name in records.settings.networks]


def _drawn(records: AverageRecords, data: str) -> tuple[LadderRecords, list[str]]:
    """What a figure shows: the seeds that learnt, and the networks that have one; all of them if no network has."""
    trained = _trained_on(records, data)
    compared = learnt(trained, ACCURACY[data])[0]
    names = [name for name in _names(compared, data) if len(compared.where(network=name))]
    return (compared, names) if names else (trained, _names(trained, data))


def _average(records: LadderRecords, name: str, radius: float) -> BySeed:
    return records.where(network=name).by("seed", lambda record: record.average.mean_at(radius))


def _worst(records: LadderRecords, name: str, radius: float) -> BySeed:
    return records.where(network=name).by("seed", lambda record: record.ladder.worst_at(radius))


def _ranking(records: LadderRecords, data: str) -> list[Expectation]:
    """Every pair of networks, in one order on average and in the other at worst."""
    found = []
    for radius in _AT:
        for first, second in combinations(_names(records, data), 2):
            average = f"share of {data[:-1]} tokens that flip on average, r = {radius:g}: {first} / {second}"
            worst = f"share of {data[:-1]} tokens that flip at worst, r = {radius:g}: {second} / {first}"
            found += [
                is_smaller(average, _average(records, first, radius), _average(records, second, radius)),
                is_smaller(worst, _worst(records, second, radius), _worst(records, first, radius)),
            ]
    return found


def _ratios(records: LadderRecords, data: str) -> list[Expectation]:
    """How far the worst is from the average."""
    found = []
    for radius in _AT:
        for name in _names(records, data):
            logs = log_ratios(_worst(records, name, radius), _average(records, name, radius))
            statement = f"worst / average of {name}, r = {radius:g}"
            found.append(is_above(statement, exponential(over_seeds(logs), 10), 10.0))
    return found


def _axis(records: AverageRecords, radius: float) -> Drawing:
    maps = records.of(AverageCell, MapRecord)
    lines = [
        rungs(_LABELS[name], maps.where(network=name).column(lambda record: record.change), radius)
        for name in records.settings.maps.maps
    ]
    panels = [Panel(_TITLES[WORDS], LABELS[CHANGE], lines)]
    for data in (IMAGES, TEXTS):
        compared, names = _drawn(records, data)
        lines = [
            rungs(_LABELS[name], compared.where(network=name).column(lambda record: record.ladder), radius)
            for name in names
        ]
        panels.append(Panel(_TITLES[data], _FLIPPED[data], lines))
    return Drawing(
        f"axis-{radius:g}".replace(".", "-"),
        draw_ladders(panels, draw_counts(records.settings.draws), f"random changes tried, r = {radius:g}"),
        f"One token is changed by r = {radius:g} times its norm: the mean over random changes, the expected largest of "
        "2, 4, ... of them, and the worst change found (a lower bound). Random maps of words, networks trained on "
        f"Fashion-MNIST and on QQP; the mean and the range over seeds. {_safest(records, radius)}",
        "Three panels with a rising line for each network, from the mean over random changes on the left to the worst "
        "change on the right; logarithmic axes.",
    )


def _safest(records: AverageRecords, radius: float) -> str:
    """Which networks have the smallest means, in words."""
    parts = []
    for data in (IMAGES, TEXTS):
        compared, names = _drawn(records, data)
        least = [min(names, key=lambda name: sum(read(compared, name, radius).values())) for read in (_average, _worst)]
        parts.append(f"of {data} {_LABELS[least[0]]} on average and {_LABELS[least[1]]} at worst")
    return f"The smallest means, decided or not: {'; '.join(parts)}."


def _against_radius(records: AverageRecords, data: str) -> Drawing:
    (compared, names), radii = _drawn(records, data), records.settings.radii
    series = [
        mean_and_range(
            f"{_LABELS[name]}, {label}", radii, [list(read(compared, name, radius).values()) for radius in radii]
        )
        for label, read in (("worst", _worst), ("average", _average))
        for name in names
    ]
    return Drawing(
        f"radius-{data}",
        figures.curves(
            series,
            x_label="radius r, in units of the token's norm",
            y_label=f"{_FLIPPED[data]} (worst: at least)",
            log_x=True,
            log_y=True,
        ),
        f"Networks trained on {data}: the average over random changes of one token, and the worst change found, "
        "against their length; the mean and the range over seeds.",
        "Two lines for each network against the radius, that of the worst change above that of the average.",
    )
