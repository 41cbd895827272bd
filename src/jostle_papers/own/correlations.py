"""Our own question: across trained networks, does low sensitivity go with robustness and with flat minima?"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from jostle import figures
from jostle.corruptions import names
from jostle.landscape import parameter_norm, sharpness
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, bounded, over_seeds, rank_correlation
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_below
from jostle_papers.own import penalties
from jostle_papers.p2403_06925 import cifar, fashion, robustness
from jostle_papers.trained import (
    BySeed,
    CorruptedImages,
    NetworkCell,
    Networks,
    NetworkStudy,
    TrainedRecord,
    TrainingCell,
    TrainingSettings,
    accuracy_kept,
    at_end,
    corrupted_accuracy,
    learnt,
    unseen_accuracy,
)

_DRAWS, _IMAGES = 20, 500
_STD, _SHARE = 0.05, 0.05  # of the noise on each weight: as it is, and as a share of the weights' root mean square
_CLAIM = "Less sensitive networks keep more of their accuracy under corruption and lie in flatter minima."
_SOURCE = "our own question, after Section 7 of 2403.06925"
_DEVIATIONS = (
    f"Sharpness is the share of changed predictions (ShPred) under noise of std {_STD} on all weights, {_DRAWS} draws, "
    f"of at most {_IMAGES} training images; and under noise of {_SHARE:.0%} of the root mean square of the weights, "
    "since networks have weights of different sizes.",
    "The interval over networks takes them for a sample of networks like these; the networks were chosen, not drawn.",
)


@dataclass(frozen=True, kw_only=True)
class CorrelationRecord(TrainedRecord):
    """A trained network, and its sharpness: the share of predictions that noise on the weights changes.

    Arguments:
        sharpness: under noise of one std.
        relative_sharpness: under noise in proportion to the weights.
    """

    sharpness: float
    relative_sharpness: float


_ACCURACY = 0.99  # on the training images, that a network must have to be compared
CorrelationRecords = Records[TrainingSettings, NetworkCell, CorrelationRecord]
_ByNetwork = dict[str, BySeed]


@dataclass(frozen=True)
class _Quantity:
    """What sensitivity is compared with.

    Arguments:
        stem: of the figure's file.
        label: of the axis.
        falls: whether it is expected to fall where sensitivity rises.
        read: the number of a network, by seed.
    """

    stem: str
    label: str
    falls: bool
    read: Callable[[CorrelationRecords, str], BySeed]


def _sharpness(records: CorrelationRecords, name: str) -> BySeed:
    return records.where(network=name).by("seed", lambda record: record.sharpness)


def _relative_sharpness(records: CorrelationRecords, name: str) -> BySeed:
    return records.where(network=name).by("seed", lambda record: record.relative_sharpness)


_QUANTITIES = (
    _Quantity("accuracy-kept", "share of accuracy kept under corruption", True, accuracy_kept),
    _Quantity("corrupted-accuracy", "accuracy on corrupted images", True, corrupted_accuracy),
    _Quantity("test-accuracy", "accuracy on unseen images", True, unseen_accuracy),
    _Quantity("sharpness", "share of predictions changed by noise on the weights", False, _sharpness),
    _Quantity(
        "relative-sharpness",
        "share of predictions changed by noise in proportion to the weights",
        False,
        _relative_sharpness,
    ),
)


def _fashion(networks: Networks, strengths: tuple[float, ...], max_epochs: int = 200) -> Networks:
    """A transformer without penalty and with several, the other networks without, and two of them with one penalty."""
    others = {
        name: replace(network, max_epochs=network.max_epochs or max_epochs)
        for name, network in networks.items()
        if name != "vit-small"
    }
    transformers = penalties.doses(networks["vit-small"], strengths)
    named = {f"vit-small, {name}": network for name, network in transformers.items()}
    return named | others | _with_penalty({name: others[name] for name in ("mlp-leaky-relu", "cnn")}, penalties.STD)


def _with_cnns(networks: Networks) -> Networks:
    """The networks, and their CNNs with a penalty. The one trained on noisy images, which never fits, is left out."""
    cnns = {name: network for name, network in networks.items() if network.model in cifar.CONVOLUTIONAL}
    kept = {name: network for name, network in networks.items() if name != cifar.AUGMENTED}
    return kept | _with_penalty(cnns, 1.0)


def _with_penalty(networks: Networks, std: float) -> Networks:
    return {f"{name} + penalty": network.with_penalty(0.25, std) for name, network in networks.items()}


class _Correlations(NetworkStudy[CorrelationRecord]):
    """Sensitivity against robustness and flatness, one point for each network."""

    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> CorrelationRecord:
        trained = self.train(cell, settings, context)
        model = trained.model
        images = trained.seen.subset(min(len(trained.seen), _IMAGES))
        relative = _SHARE * parameter_norm(model) / trained.record.parameters**0.5
        plain, scaled = (sharpness(model, images, std, _DRAWS, seed=cell.seed) for std in (_STD, relative))
        return CorrelationRecord(
            **vars(trained.record), sharpness=plain.prediction.value, relative_sharpness=scaled.prediction.value
        )

    def figures(self, records: CorrelationRecords) -> list[Drawing]:
        return [_against_sensitivity(records, quantity) for quantity in _QUANTITIES]

    def expectations(self, records: CorrelationRecords) -> list[Expectation]:
        kept, counted = learnt(records, _ACCURACY)
        over_networks = {quantity.stem: _over_networks(kept, quantity) for quantity in _QUANTITIES}
        claimed = [over_networks.pop("accuracy-kept"), over_networks.pop("sharpness")]
        over_seeds_only = [_over_seeds(kept, quantity) for quantity in _QUANTITIES]
        return [*claimed, *counted, *map(beyond, [*over_networks.values(), *over_seeds_only])]


@register
class Correlations(_Correlations):
    """Ten networks on Fashion-MNIST: four kinds, five strengths of the penalty."""

    name = "jostle/correlations"
    title = "Fashion-MNIST: sensitivity against robustness and flatness, across networks"
    claim = _CLAIM
    source = _SOURCE
    version = 1
    scales = {
        "smoke": replace(
            penalties.SMOKE,
            networks=_fashion(fashion.tiny_networks("vit-small", "mlp-leaky-relu", "cnn"), (0.5,), max_epochs=2),
            corrupted=CorruptedImages(names=("shot_noise", "fog"), severities=(2,), images=10),
        ),
        "small": replace(
            penalties.SMALL,
            networks=_fashion(fashion.small_networks(), penalties.STRENGTHS),
            corrupted=CorruptedImages(names=tuple(names("common")), severities=(2,), images=100),
        ),
        "paper": replace(
            penalties.PAPER,
            networks=_fashion(fashion.paper_networks(), penalties.STRENGTHS),
            corrupted=CorruptedImages(names=tuple(names("common")), severities=(2,), images=2_000),
        ),
    }
    deviations = (
        "Training ends with the first epoch after which every training image is classified right.",
        "Small scale: 2,000 training images, batches of 50; the transformer's heads have 16 numbers instead of 64, no "
        "dropout; the CNN learns at rate 0.05.",
        "Corruptions are self-made, the fifteen common ones at severity 2.",
        *_DEVIATIONS,
    )


@register
class CorrelationsOnCifar(_Correlations):
    """Seven networks on CIFAR-10: those of Figure 9 but one, and two CNNs with penalty."""

    name = "jostle/correlations-cifar"
    title = "CIFAR-10: sensitivity against robustness and flatness, across networks"
    claim = _CLAIM
    source = _SOURCE
    version = 1
    scales = {
        "smoke": replace(robustness.SMOKE, networks=_with_cnns(robustness.smoke_networks()), over_training=False),
        "small": replace(robustness.SMALL, networks=_with_cnns(robustness.small_networks()), over_training=False),
        "paper": replace(robustness.PAPER, networks=_with_cnns(robustness.paper_networks()), over_training=False),
    }
    deviations = (cifar.MATCHED, robustness.SMALL_SCALE, robustness.SELF_MADE, *_DEVIATIONS)


def _over_networks(records: CorrelationRecords, quantity: _Quantity) -> Expectation:
    """The correlation of means over seeds, as evidence about networks like these."""
    sensitivity, other = (
        {name: _mean(by_seed) for name, by_seed in found.items()} for found in _both(records, quantity)
    )
    return _expected(
        quantity, f"over {len(sensitivity)} networks", rank_correlation(sensitivity, other, unit="networks")
    )


def _over_seeds(records: CorrelationRecords, quantity: _Quantity) -> Expectation:
    """The mean over seeds of the correlation, as evidence about these networks."""
    sensitivity, other = _both(records, quantity)
    seeds = set[int].intersection(*(set(by_seed) for by_seed in sensitivity.values())) if sensitivity else set()
    found = {
        seed: rank_correlation(*({name: by[seed] for name, by in one.items()} for one in (sensitivity, other))).value
        for seed in sorted(seeds)
    }
    return _expected(quantity, "of these networks, over seeds", bounded(over_seeds(found), -1.0, 1.0))


def _expected(quantity: _Quantity, where: str, measured: Measured) -> Expectation:
    statement = f"rank correlation of sensitivity and {quantity.label}, {where}"
    return is_below(statement, measured, 0.0) if quantity.falls else is_above(statement, measured, 0.0)


def _both(records: CorrelationRecords, quantity: _Quantity) -> tuple[_ByNetwork, _ByNetwork]:
    """Sensitivity and what it is compared with, by network and seed."""
    found = {name: at_end(records, name) for name in records.settings.networks}
    sensitivity = {name: by_seed for name, by_seed in found.items() if by_seed}  # of those that learnt
    return sensitivity, {name: quantity.read(records, name) for name in sensitivity}


def _against_sensitivity(records: CorrelationRecords, quantity: _Quantity) -> Drawing:
    sensitivity, other = _both(records, quantity)
    groups = {}
    for name, values in sensitivity.items():
        known = [seed for seed in values if math.isfinite(other[name][seed])]
        groups[name] = ([values[seed] for seed in known], [other[name][seed] for seed in known])
    return Drawing(
        quantity.stem,
        figures.scatter(groups, x_label="sensitivity", y_label=quantity.label, log_x=True),
        f"{quantity.label.capitalize()} against sensitivity; a point for each network and seed.",
        f"A scatter plot of {quantity.label} against sensitivity.",
    )


def _mean(by_seed: BySeed) -> float:
    return sum(by_seed.values()) / len(by_seed)
