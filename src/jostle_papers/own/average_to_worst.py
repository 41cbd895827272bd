"""Our own question: which trained network is the safest, on average over changes of a token and at worst?"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from torch import nn

from jostle.base.store import Record
from jostle.data import Dataset
from jostle.figures import curves
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_less
from jostle.worst.search import draw_counts
from jostle_papers.own import average_to_worst_maps as average_maps
from jostle_papers.own import dose_response
from jostle_papers.own.average_ladder import BySeed, Panel, exponential, ladders, over_radii, ratios, rung, rungs
from jostle_papers.own.average_networks import AVERAGE, LADDER, Choices, observed
from jostle_papers.own.average_to_worst_maps import CHANGE, LABELS, MapChoices
from jostle_papers.p2403_06925 import fashion, text
from jostle_papers.trained import Training, at_matched_accuracy, follow, where_all_learnt

WORDS, IMAGES, TEXTS = "words", "images", "texts"
RANKED = {IMAGES: ("vit-small", "cnn", "mlp-leaky-relu"), TEXTS: ("encoder", "encoder-relu", "lstm", "gru")}
ACCURACY = {IMAGES: 0.99, TEXTS: text.ACCURACY}  # on the training inputs, from which on a network counts
_MAPS = ("raf", "raf-relu", "rf")
_AT = (1.0, 3.87)  # radii at which networks are compared
_SAID = {
    **average_maps.SAID,
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


def _image_networks(chosen: dict[str, dict[str, Any]], max_epochs: int) -> dict[str, dict[str, Any]]:
    """The networks as the other studies of Fashion-MNIST train them: those without attention may take longer."""
    longer = {"max_epochs": max_epochs}
    return {name: one if name == "vit-small" else one | longer for name, one in chosen.items()}


@register
class AverageToWorst(Study[Choices]):
    """Flips under random changes of one token, under the worst of K, and under the worst that is found."""

    name = "jostle/average-to-worst"
    title = "Trained networks: from the average change of a token to the worst"
    claim = (
        "On average over random changes of a token, transformers are the safest trained networks; at worst they are "
        "the least safe: the ranking is reversed, as for random maps."
    )
    source = "our own question, between 2403.06925 (random changes) and 2402.02969 (the worst change)"
    version = 1
    scales = {
        "smoke": Choices(
            seeds=1,
            images=dose_response.smoke(fashion.tiny_networks(*RANKED[IMAGES])),
            texts=text.at_scale("smoke", "qqp", ("encoder", "lstm"), over_training=False),
            maps=MapChoices(maps=_MAPS, num_tokens=4, dim=6, radii=_AT, positions=1, draws=4, starts=2, steps=2),
            radii=(0.3, *_AT), inputs=4, draws=4, starts=2, steps=2, passes=200,
        ),
        "small": Choices(
            seeds=5,
            images=dose_response.small(_image_networks(fashion.small_networks(*RANKED[IMAGES]), 200)),
            texts=text.at_scale("small", "qqp", ("encoder", "lstm"), over_training=False),
            maps=MapChoices(maps=_MAPS, radii=_AT, draws=64),
        ),
        "paper": Choices(
            seeds=5,
            images=dose_response.paper(fashion.paper_networks(*RANKED[IMAGES])),
            texts=text.at_scale("paper", "qqp", RANKED[TEXTS], over_training=False),
            maps=MapChoices(maps=_MAPS, radii=_AT, positions=16, draws=64, starts=24, steps=200),
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

    def cells(self, settings: Choices, seeds: Sequence[int]) -> list[Cell]:
        kinds = {IMAGES: settings.images.networks, TEXTS: settings.texts.networks, WORDS: settings.maps.maps}
        return [
            Cell.of(data=data, network=name, seed=seed)
            for seed in seeds
            for data, names in kinds.items()
            for name in names
        ]

    def measure(self, cell: Cell, settings: Choices, context: Context) -> Record:
        data, name, seed = (cell.values[key] for key in ("data", "network", "seed"))
        if data == WORDS:
            return average_maps.measured(name, settings.maps, seed, context.report)
        training = _training(settings, data)

        def further(model: nn.Module, seen: Dataset, unseen: Dataset) -> Record:  # noqa: ARG001
            return observed(model, seen, training.tokens, settings, seed)

        return follow(training.networks[name], training, seed, context, further)

    def figures(self, records: Records[Choices]) -> list[Drawing]:
        return [
            *(_axis(records, radius) for radius in _AT),
            *(_against_radius(records, data) for data in (IMAGES, TEXTS)),
        ]

    def expectations(self, records: Records[Choices]) -> list[Expectation]:
        found = []
        for data, accuracy in ACCURACY.items():
            compared = _compared(records, data)
            asked = [*_ranking(compared, data), *map(beyond, _ratios(compared, data))]
            found += at_matched_accuracy(compared, asked, accuracy)[: len(asked)]
            found += map(beyond, at_matched_accuracy(_of(records, data), [], accuracy))
        return found


def _training(settings: Choices, data: str) -> Training:
    return {IMAGES: settings.images, TEXTS: settings.texts}[data]


def _of(records: Records[Choices], data: str) -> Records[Training]:
    """The records of the networks trained on one kind of data."""
    part = records.where(data=data)
    found = {cell.key: record for cell, record in part}
    return Records(part.cells, found, _training(records.settings, data), records.scale)


def _compared(records: Records[Choices], data: str) -> Records[Training]:
    """Those of the seeds that count."""
    return where_all_learnt(_of(records, data), ACCURACY[data])


def _names(records: Records[Training], data: str) -> list[str]:
    """The networks that there are, in the order of the claim."""
    return [name for name in RANKED[data] if name in records.settings.networks]


def _average(records: Records[Training], name: str, radius: float) -> BySeed:
    return rung(records.where(network=name), AVERAGE, "mean", radius)


def _worst(records: Records[Training], name: str, radius: float) -> BySeed:
    return rung(records.where(network=name), LADDER, "worst", radius)


def _ranking(records: Records[Training], data: str) -> list[Expectation]:
    """Every pair of networks, in one order on average and in the other at worst."""
    found = []
    for radius in _AT:
        for first, second in combinations(_names(records, data), 2):
            average = f"share of {data[:-1]} tokens that flip on average, r = {radius:g}: {first} - {second}"
            worst = f"share of {data[:-1]} tokens that flip at worst, r = {radius:g}: {second} - {first}"
            found += [
                is_less(average, _average(records, first, radius), _average(records, second, radius)),
                is_less(worst, _worst(records, second, radius), _worst(records, first, radius)),
            ]
    return found


def _ratios(records: Records[Training], data: str) -> list[Expectation]:
    """How far the worst is from the average."""
    found = []
    for radius in _AT:
        for name in _names(records, data):
            logs = ratios(_worst(records, name, radius), _average(records, name, radius))
            statement = f"worst / average of {name}, r = {radius:g}"
            found.append(is_above(statement, exponential(over_seeds(logs)), 10.0))
    return found


def _axis(records: Records[Choices], radius: float) -> Drawing:
    maps = records.where(data=WORDS)
    panels = [
        Panel(
            _TITLES[WORDS],
            LABELS[CHANGE],
            [rungs(_SAID[name], maps.where(network=name), CHANGE, radius) for name in records.settings.maps.maps],
        )
    ]
    for data in (IMAGES, TEXTS):
        compared = _compared(records, data)
        lines = [rungs(_SAID[name], compared.where(network=name), LADDER, radius) for name in _names(compared, data)]
        panels.append(Panel(_TITLES[data], _FLIPPED[data], lines))
    return Drawing(
        f"axis-{radius:g}".replace(".", "-"),
        ladders(panels, draw_counts(records.settings.draws), f"random changes tried, r = {radius:g}"),
        f"One token is changed by r = {radius:g} times its norm: the mean over random changes, the expected largest of "
        "2, 4, ... of them, and the worst change found (a lower bound). Random maps of words, networks trained on "
        f"Fashion-MNIST and on QQP; the mean and the range over seeds. {_safest(records, radius)}",
        "Three panels with a rising line for each network, from the mean over random changes on the left to the worst "
        "change on the right; logarithmic axes.",
    )


def _safest(records: Records[Choices], radius: float) -> str:
    """Which networks have the smallest means, in words."""
    said = []
    for data in (IMAGES, TEXTS):
        compared = _compared(records, data)
        least = [
            min(_names(compared, data), key=lambda name: sum(read(compared, name, radius).values()))
            for read in (_average, _worst)
        ]
        said.append(f"of {data} {_SAID[least[0]]} on average and {_SAID[least[1]]} at worst")
    return f"The smallest means, decided or not: {'; '.join(said)}."


def _against_radius(records: Records[Choices], data: str) -> Drawing:
    compared, radii = _compared(records, data), records.settings.radii
    parts = {_SAID[name]: compared.where(network=name) for name in _names(compared, data)}
    series = [
        *(over_radii(f"{name}, worst", part, LADDER, "worst", radii) for name, part in parts.items()),
        *(over_radii(f"{name}, average", part, AVERAGE, "mean", radii) for name, part in parts.items()),
    ]
    return Drawing(
        f"radius-{data}",
        curves(
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
