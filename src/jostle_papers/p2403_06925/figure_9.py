"""Figure 9, with Figures 20 and 21: accuracy on corrupted images, and of networks trained for low sensitivity."""

from collections.abc import Iterable
from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_above
from jostle_papers.p2403_06925 import cifar, robustness
from jostle_papers.trained import (
    BySeed,
    CorruptedImages,
    TrainedRecords,
    TrainingStudy,
    accuracy_kept,
    at_matched_accuracy,
    by_corruption,
    corrupted_accuracy,
    corrupted_over_training,
    halvings,
    over_training,
    unseen_accuracy,
)

_LOWERED = (cifar.PENALISED, cifar.AUGMENTED)


@register
class Figure9(TrainingStudy):
    """Corruption accuracy of CNNs, vision transformers, and a transformer with penalty or noise augmentation."""

    name = "2403.06925/figure-9"
    title = "CIFAR-10-C: low sensitivity and robustness to corruptions"
    claim = (
        "Vision transformers are more accurate than CNNs on corrupted images, and more so, under noise and blur, if "
        "they are trained for low sensitivity."
    )
    source = "Section 7.1, Figures 9, 20 and 21"
    version = 1
    scales = {
        "smoke": replace(robustness.SMOKE, networks=robustness.smoke_networks()),
        "small": replace(robustness.SMALL, networks=robustness.small_networks()),
        "paper": replace(robustness.PAPER, networks=robustness.paper_networks()),
    }
    deviations = (
        cifar.MATCHED,
        robustness.SMALL_SCALE,
        "At small scale there is no DenseNet.",
        robustness.SELF_MADE,
        "Both severities are measured, 1 (Figure 21) and 2 (Figure 20). The paper's claims hold for 'almost all' "
        "corruptions; here they are judged by the mean over its fourteen, and each is drawn.",
        "The penalty's noise is in one aligned patch; the released code's square starts anywhere but never reaches the "
        "last row and column. Augmentation has noise of variance 0.1 on every image of every step; whether the paper "
        "replaces images or adds noisy ones, it does not say.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        severities = _corruptions(records).severities
        return [
            *(corrupted_over_training(records, severity) for severity in severities),
            *(by_corruption(records, severity) for severity in severities),
            over_training(records),
        ]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        plain = [name for name in _networks(records) if name not in _LOWERED]
        ahead = [_transformers_ahead(records, severity) for severity in _corruptions(records).severities]
        found = at_matched_accuracy(records, ahead, networks=plain)
        for name in _LOWERED:
            lower = halvings(records, "vit-small", name)
            claimed = [is_above(f"how often {name} halves the sensitivity of vit-small", lower, 0.0)]
            claimed += [_more_robust(records, name, kind) for kind in ("noise", "blur")]
            found += at_matched_accuracy(records, claimed, networks=["vit-small", name])
        return [*found, *map(beyond, _questions(records))]


def _transformers_ahead(records: TrainedRecords, severity: int) -> Expectation:
    transformers, others = (
        _mean(corrupted_accuracy(records, name, severities=[severity]) for name in names if name in _networks(records))
        for names in (cifar.TRANSFORMERS, cifar.CONVOLUTIONAL)
    )
    statement = f"accuracy on corrupted images of severity {severity}: mean of transformers - mean of CNNs"
    return is_above(statement, paired(transformers, others), 0.0)


def _more_robust(records: TrainedRecords, name: str, kind: str) -> Expectation:
    wanted = {"noise": robustness.NOISE, "blur": robustness.BLUR}[kind]
    listed = [each for each in wanted if each in _corruptions(records).names]
    after, before = (corrupted_accuracy(records, each, listed) for each in (name, "vit-small"))
    return is_above(f"accuracy under {kind}: {name} - vit-small", paired(after, before), 0.0)


def _questions(records: TrainedRecords) -> list[Expectation]:
    """Questions beyond the paper: the share of accuracy kept under corruption, and the accuracy on clean images."""
    kept = {name: accuracy_kept(records, name) for name in _networks(records)}
    transformers, others = (
        _mean(kept[name] for name in names if name in kept) for names in (cifar.TRANSFORMERS, cifar.CONVOLUTIONAL)
    )
    share = "share of accuracy kept under corruption"
    asked = [is_above(f"{share}: mean of transformers - mean of CNNs", paired(transformers, others), 0.0)]
    for name in _LOWERED:
        asked.append(is_above(f"{share}: {name} - vit-small", paired(kept[name], kept["vit-small"]), 0.0))
        clean, before = (unseen_accuracy(records, each) for each in (name, "vit-small"))
        asked.append(is_above(f"accuracy on unseen images: {name} - vit-small", paired(clean, before), -0.01))
    return asked


def _networks(records: TrainedRecords) -> Iterable[str]:
    return records.settings.networks


def _corruptions(records: TrainedRecords) -> CorruptedImages:
    assert records.settings.corrupted is not None
    return records.settings.corrupted


def _mean(values: Iterable[BySeed]) -> BySeed:
    """The mean of several networks, by seed."""
    listed = list(values)
    return {seed: sum(value[seed] for value in listed) / len(listed) for seed in listed[0]}
