"""Our own question: across trained networks, does low sensitivity go with robustness and with flat minima?"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from jostle.base.store import Record
from jostle.corruptions import names
from jostle.data import Dataset
from jostle.figures import scatter
from jostle.landscape import parameter_norm, sharpness
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, over_seeds, rank_correlation
from jostle.studies.records import Records
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_below
from jostle_papers.own import dose_response
from jostle_papers.p2403_06925 import cifar, fashion, robustness
from jostle_papers.trained import (
    Training,
    TrainingStudy,
    accuracy_kept,
    at_end,
    at_matched_accuracy,
    corrupted,
    corrupted_accuracy,
    penalised,
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

_BySeed = dict[str, dict[int, float]]  # a number by network and seed


class _Compared(NamedTuple):
    """What sensitivity is compared with, and whether it is to fall where sensitivity rises."""

    field: str
    label: str
    falls: bool
    read: Callable[[Records[Training], str], dict[int, float]]


def _recorded(field: str) -> Callable[[Records[Training], str], dict[int, float]]:
    return lambda records, name: records.where(network=name).by("seed", field)


_COMPARED = (
    _Compared("accuracy-kept", "share of accuracy kept under corruption", True, accuracy_kept),
    _Compared("corrupted-accuracy", "accuracy on corrupted images", True, corrupted_accuracy),
    _Compared("test-accuracy", "accuracy on unseen images", True, _recorded("test_accuracy")),
    _Compared("sharpness", "share of predictions changed by noise on the weights", False, _recorded("sharpness")),
    _Compared(
        "relative-sharpness",
        "share of predictions changed by noise in proportion to the weights",
        False,
        _recorded("relative_sharpness"),
    ),
)


def _fashion(
    chosen: dict[str, dict[str, Any]], strengths: tuple[float, ...], max_epochs: int = 200
) -> dict[str, dict[str, Any]]:
    """A transformer without penalty and with penalties, and the others without and, of two kinds, with one."""
    kinds = {
        name: one | {"max_epochs": one["max_epochs"] or max_epochs}
        for name, one in chosen.items()
        if name != "vit-small"
    }
    transformers = dose_response.doses(chosen["vit-small"], strengths)
    named = {f"vit-small, {name}": one for name, one in transformers.items()}
    return named | kinds | _penalised({name: kinds[name] for name in ("mlp-leaky-relu", "cnn")}, dose_response.STD)


def _with_cnns(chosen: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The networks and their CNNs with a penalty; not the one trained on noisy images, which never gets all right."""
    cnns = {name: one for name, one in chosen.items() if name in cifar.CONVOLUTIONAL}
    return {name: one for name, one in chosen.items() if name != cifar.AUGMENTED} | _penalised(cnns, 1.0)


def _penalised(chosen: dict[str, dict[str, Any]], std: float) -> dict[str, dict[str, Any]]:
    return {f"{name} + penalty": penalised(one, 0.25, std) for name, one in chosen.items()}


class _Correlations(TrainingStudy):
    """Sensitivity against robustness and flatness, one point for each network."""

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:
        images = seen.subset(min(len(seen), _IMAGES))
        weights = sum(parameter.numel() for parameter in model.parameters())
        relative = _SHARE * parameter_norm(model) / weights**0.5
        plain, scaled = (sharpness(model, images, std, _DRAWS, seed=seed) for std in (_STD, relative))
        return {"sharpness": plain.prediction.value, "relative_sharpness": scaled.prediction.value}

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [_against_sensitivity(records, compared) for compared in _COMPARED]

    def expectations(self, records: Records[Training]) -> list[Expectation]:
        over_networks = {compared.field: _over_networks(records, compared) for compared in _COMPARED}
        claimed = [over_networks.pop("accuracy-kept"), over_networks.pop("sharpness")]
        over_seeds_only = [_over_seeds(records, compared) for compared in _COMPARED]
        return [*at_matched_accuracy(records, claimed), *map(beyond, [*over_networks.values(), *over_seeds_only])]


@register
class Correlations(_Correlations):
    """Ten networks on Fashion-MNIST: four kinds, five strengths of the penalty."""

    name = "jostle/correlations"
    title = "Fashion-MNIST: sensitivity against robustness and flatness, across networks"
    claim = _CLAIM
    source = _SOURCE
    version = 1
    scales = {
        "smoke": dose_response.smoke(
            _fashion(fashion.tiny_networks("vit-small", "mlp-leaky-relu", "cnn"), (0.5,), max_epochs=2),
            corrupted=corrupted(["shot_noise", "fog"], [2], images=10),
        ),
        "small": dose_response.small(
            _fashion(fashion.small_networks(), dose_response.STRENGTHS),
            corrupted=corrupted(names("common"), [2], images=100),
        ),
        "paper": dose_response.paper(
            _fashion(fashion.paper_networks(), dose_response.STRENGTHS),
            corrupted=corrupted(names("common"), [2], images=2_000),
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
        "smoke": robustness.smoke(_with_cnns(robustness.smoke_networks()), over_training=False),
        "small": robustness.small(_with_cnns(robustness.small_networks()), over_training=False),
        "paper": robustness.paper(_with_cnns(robustness.paper_networks()), over_training=False),
    }
    deviations = (cifar.MATCHED, robustness.SMALL_SCALE, robustness.SELF_MADE, *_DEVIATIONS)


def _over_networks(records: Records[Training], compared: _Compared) -> Expectation:
    """The correlation of means over seeds, as evidence about networks like these."""
    sensitivity, other = (
        {name: _mean(by_seed) for name, by_seed in found.items()} for found in _both(records, compared)
    )
    return _expected(compared, f"over {len(sensitivity)} networks", rank_correlation(sensitivity, other))


def _over_seeds(records: Records[Training], compared: _Compared) -> Expectation:
    """The mean over seeds of the correlation, as evidence about these networks."""
    sensitivity, other = _both(records, compared)
    seeds = next(iter(sensitivity.values()))
    found = {
        seed: rank_correlation(*({name: by[seed] for name, by in one.items()} for one in (sensitivity, other))).value
        for seed in seeds
    }
    return _expected(compared, "of these networks, over seeds", _within_one(over_seeds(found)))


def _within_one(measured: Measured) -> Measured:
    """The same, less what no correlation can be."""

    def ends(level: float) -> tuple[float, float]:
        low, high = measured.ends(level)
        return max(low, -1.0), min(high, 1.0)

    return dataclasses.replace(measured, ends=ends)


def _expected(compared: _Compared, where: str, measured: Measured) -> Expectation:
    statement = f"rank correlation of sensitivity and {compared.label}, {where}"
    return is_below(statement, measured, 0.0) if compared.falls else is_above(statement, measured, 0.0)


def _both(records: Records[Training], compared: _Compared) -> tuple[_BySeed, _BySeed]:
    """Sensitivity and what it is compared with, by network and seed."""
    networks = records.settings.networks
    sensitivity = {name: at_end(records, name) for name in networks}
    return sensitivity, {name: compared.read(records, name) for name in networks}


def _against_sensitivity(records: Records[Training], compared: _Compared) -> Drawing:
    sensitivity, other = _both(records, compared)
    groups = {}
    for name, values in sensitivity.items():
        known = [seed for seed in values if math.isfinite(other[name][seed])]
        groups[name] = ([values[seed] for seed in known], [other[name][seed] for seed in known])
    return Drawing(
        compared.field,
        scatter(groups, x_label="sensitivity", y_label=compared.label, log_x=True),
        f"{compared.label.capitalize()} against sensitivity; a point for each network and seed.",
        f"A scatter plot of {compared.label} against sensitivity.",
    )


def _mean(by_seed: dict[int, float]) -> float:
    return sum(by_seed.values()) / len(by_seed)
