"""Our own question: is a prediction that flips easily a wrong one, and does jostling tell more than confidence does?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from jostle import data, figures, models
from jostle.base import checks
from jostle.base.progress import State
from jostle.data import Dataset
from jostle.estimates import Certainty, measure
from jostle.figures import Series
from jostle.perturbations import GaussianNoise
from jostle.sampling import Grid
from jostle.studies.catalogue import register
from jostle.studies.evidence import BySeed, over_seeds
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above
from jostle.tokens import Patches
from jostle.training import Epoch, fit
from jostle_papers.own.demo.settings import FULL, QUICK, DemoNetwork
from jostle_papers.own.published import cifar_10

PUBLISHED = {"resnet-20": cifar_10.resnet_20, "cct": cifar_10.cct, "vit": cifar_10.vit}
_CIFAR_PATCH = 8
_TRAINING = 0.5  # share of a cell's time


@dataclass(frozen=True, kw_only=True)
class CertaintySettings(Settings):
    """What is trained and asked.

    Arguments:
        networks: trained on digits, by name.
        published: names of networks of CIFAR-10 that others trained; their files are in the folder that the
            environment variable JOSTLE_NETWORKS names.
        train, unseen: images of each.
        epochs: of training; it ends earlier where all training images are right.
        patch: side of a token in pixels; 8 for CIFAR-10, so that an image has 16 tokens too.
        published_unseen: images of CIFAR-10, whose networks are larger.
        std, draws: of the noise in one patch.
    """

    seeds: int = 6
    networks: dict[str, DemoNetwork] = field(default_factory=dict)
    published: tuple[str, ...] = ()
    train: int = 1000
    unseen: int = 1000
    published_unseen: int = 100
    epochs: int = 15
    patch: int = 7
    std: float = 2.0
    draws: int = 3

    def __post_init__(self) -> None:
        checks.sizes(
            train=self.train, unseen=self.unseen, published_unseen=self.published_unseen, epochs=self.epochs,
            draws=self.draws,
        )  # fmt: skip
        for name in self.published:
            checks.choice("published", name, PUBLISHED)


@dataclass(frozen=True)
class CertaintyCell(Cell):
    """A network and its unseen images; the seed is that of training, of the choice of images, and of the noise."""

    network: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class CertaintyRecord(Struct):
    """Flip rates beside errors.

    Arguments:
        sensitivity: the mean flip rate.
        accuracy: on the unseen images.
        wrong: how many of them are predicted wrong.
        auroc, confidence: of the flip rate and of 1 - the largest probability, for finding wrong predictions.
        tops: the largest flip rate of each bin that has images.
        rates, errors: the mean flip rate and the share of wrong predictions in each of these bins.
        inputs: how many images each bin has.
    """

    sensitivity: float
    accuracy: float
    wrong: int
    auroc: float
    confidence: float
    tops: tuple[float, ...]
    rates: tuple[float, ...]
    errors: tuple[float, ...]
    inputs: tuple[int, ...]


CertaintyRecords = Records[CertaintySettings, CertaintyCell, CertaintyRecord]


@register
class CertaintyStudy(Study[CertaintySettings, CertaintyCell, CertaintyRecord]):
    """How well flip rates find wrong predictions, beside the networks' own confidence."""

    name = "jostle/certainty"
    title = "Digits: is a sensitive prediction a wrong one?"
    claim = (
        "Of four small networks trained on 1,000 digits, the flip rate of a prediction under noise in one patch finds "
        "wrong predictions better than the network's own confidence: its AUROC is larger, on average over the networks "
        "(at our setting: noise of std 2 in one of 16 patches)."
    )
    source = "our own question, after 2602.02427, which finds wrong steps of language models by sensitivity"
    version = 1
    scales = {
        "smoke": CertaintySettings(seeds=1, networks=QUICK.networks, train=60, unseen=80, epochs=2, draws=1),
        "small": CertaintySettings(networks=FULL.networks, published=("resnet-20", "vit")),
        "paper": CertaintySettings(
            networks=FULL.networks,
            published=tuple(PUBLISHED),
            train=4000,
            epochs=30,
            draws=10,
            seeds=10,
            published_unseen=1000,
        ),
    }
    deviations = (
        "2602.02427 is about steps of reasoning of language models and noise in their embeddings; here it is digits of "
        "mnist-5000, 16 patches and noise of std 2 in one of them, 3 times each.",
        "Confidence is the largest probability after the softmax, not calibrated; entropy is not tried.",
        "Networks that others trained on CIFAR-10, a ResNet-20 and a vision transformer, are beyond the claim: "
        "they have 100 test images a seed, and a seed draws the images and the noise, not the weights.",
        "A pilot with another seed, run after the claim was written, had confidence ahead for four networks. After it "
        "the networks of others and their differences, beyond the claim, were added, and the cost was set: six seeds, "
        "and 100 images of CIFAR-10.",
    )

    def cells(self, settings: CertaintySettings, seeds: Sequence[int]) -> list[CertaintyCell]:
        names = (*settings.networks, *settings.published)
        return [CertaintyCell(name, seed) for seed in seeds for name in names]

    def measure(self, cell: CertaintyCell, settings: CertaintySettings, context: Context) -> CertaintyRecord:
        if cell.network in settings.networks:
            network, images, patch = _trained(cell, settings, context)
        else:
            network, patch = PUBLISHED[cell.network](), _CIFAR_PATCH
            images = data.load("cifar-10", "test").subset(settings.published_unseen, seed=cell.seed)
        found = measure(
            network, images.inputs, tokens=Patches(patch), perturbation=GaussianNoise(settings.std),
            plan=Grid(settings.draws), labels=images.labels, seed=cell.seed,
        )  # fmt: skip
        assert found.certainty is not None
        return _record(found.value, found.certainty)

    def figures(self, records: CertaintyRecords) -> list[Drawing]:
        series = []
        for name in records.distinct("network"):
            bins: dict[float, list[tuple[float, float, int]]] = {}
            for _, record in records.where(network=name):
                for top, *row in zip(record.tops, record.rates, record.errors, record.inputs, strict=True):
                    bins.setdefault(top, []).append((row[0], row[1], int(row[2])))
            points = [_pooled(rows) for _, rows in sorted(bins.items())]
            series.append(Series(name, [rate for rate, _ in points], [error for _, error in points]))
        return [
            Drawing(
                "calibration",
                figures.curves(series, x_label="flip rate of a prediction", y_label="share of wrong predictions"),
                "The share of wrong predictions by flip rate, unseen images of all seeds together.",
                "Share of wrong predictions against flip rate, a line for each network.",
            )
        ]

    def expectations(self, records: CertaintyRecords) -> list[Expectation]:
        names = [name for name in records.distinct("network") if name in records.settings.networks]
        gains = [records.where(network=name).by("seed", lambda one: one.auroc - one.confidence) for name in names]
        mean = {seed: sum(each[seed] for each in gains) / len(gains) for seed in gains[0]}
        asked = [is_above("AUROC of flip rates - of confidence, mean over networks", over_seeds(mean), 0.0)]
        for name in records.distinct("network"):
            areas: BySeed = records.where(network=name).by("seed", lambda one: one.auroc)
            asked.append(beyond(is_above(f"AUROC of flip rates, {name}", over_seeds(areas), 0.5)))
        for name in records.distinct("network"):
            gained: BySeed = records.where(network=name).by("seed", lambda one: one.auroc - one.confidence)
            asked.append(beyond(is_above(f"AUROC of flip rates - of confidence, {name}", over_seeds(gained), 0.0)))
        return asked


def _trained(cell: CertaintyCell, settings: CertaintySettings, context: Context) -> tuple[nn.Module, Dataset, int]:
    """A network trained on some digits, and digits that it has not seen."""
    design = settings.networks[cell.network]
    model = models.create(design.model, seed=cell.seed, **design.sizes)
    seen = data.load("mnist-5000", "train").subset(settings.train, seed=cell.seed)
    unseen = data.load("mnist-5000", "test").subset(settings.unseen, seed=cell.seed)

    def tell(epoch: Epoch) -> None:
        share = _TRAINING * epoch.number / settings.epochs
        context.report(State(share, epoch.number, f"accuracy {epoch.accuracy:.1%}", "epochs"))

    fit(
        model, seen, lr=design.lr, max_epochs=settings.epochs, target_accuracy=1.0, seed=cell.seed, on_epoch=tell,
        device=context.device,
    )  # fmt: skip
    return model.to(torch.device("cpu")), unseen, settings.patch


def _record(sensitivity: float, certainty: Certainty) -> CertaintyRecord:
    half = 0.5  # of an AUROC that does not exist, since all predictions are right or all are wrong
    is_known = 0 < certainty.wrong < certainty.inputs
    return CertaintyRecord(
        sensitivity=sensitivity,
        accuracy=certainty.accuracy.value,
        wrong=certainty.wrong,
        auroc=certainty.auroc.value if is_known else half,
        confidence=certainty.confidence.value if is_known else half,
        tops=tuple(each.most for each in certainty.bins),
        rates=tuple(each.flips for each in certainty.bins),
        errors=tuple(each.share for each in certainty.bins),
        inputs=tuple(each.inputs for each in certainty.bins),
    )


def _pooled(rows: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    """Rates and errors of one bin over seeds, weighed by their images."""
    total = sum(count for _, _, count in rows)
    return sum(r * n for r, _, n in rows) / total, sum(e * n for _, e, n in rows) / total
