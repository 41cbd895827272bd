"""Figure 17: CIFAR-10, sensitivity against the variance of the noise."""

import itertools
from dataclasses import replace

from jostle.studies.catalogue import register
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_less
from jostle_papers.p2403_06925 import cifar
from jostle_papers.trained import (
    BySeed,
    TrainedRecords,
    TrainingStudy,
    against_variance,
    at_matched_accuracy,
    at_variances,
    final_value,
)

_FINAL = at_variances(0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0)


@register
class Figure17(TrainingStudy):
    """Sensitivity of networks trained on CIFAR-10 over a range of noise."""

    name = "2403.06925/figure-17"
    title = "CIFAR-10: sensitivity against the variance of the noise"
    claim = "Transformers are less sensitive than CNNs at every variance, and the gap grows with the variance."
    source = "Appendix A.3 and Figure 17"
    version = 1
    scales = {
        "smoke": replace(
            cifar.SMOKE, networks=cifar.tiny_networks(), over_training=False, final=at_variances(1.0, 5.0)
        ),
        "small": replace(cifar.SMALL, networks=cifar.small_networks(), over_training=False, final=_FINAL),
        "paper": replace(cifar.PAPER, networks=cifar.paper_networks(), over_training=False, final=_FINAL),
    }
    deviations = (
        cifar.MATCHED,
        cifar.SMALL_SCALE,
        "The paper does not list its variances; here 0.1 to 15.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [against_variance(records)]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        overall, *steps = _growth(records)
        return [*at_matched_accuracy(records, [*_orders(records), overall]), *map(beyond, steps)]


def _orders(records: TrainedRecords) -> list[Expectation]:
    """The most sensitive transformer against the least sensitive CNN, at each variance."""
    return [
        is_less(f"most sensitive transformer - least sensitive CNN, {name}", *_extremes(records, name))
        for name in records.settings.final
    ]


def _growth(records: TrainedRecords) -> list[Expectation]:
    """The gap at the smallest variance against the gap at the largest, and each gap against the next."""
    gaps = {name: _gap(records, name) for name in records.settings.final}
    names = list(gaps)
    return [
        is_less(f"gap at {smaller} - gap at {larger}", gaps[smaller], gaps[larger])
        for smaller, larger in [(names[0], names[-1]), *itertools.pairwise(names)]
    ]


def _extremes(records: TrainedRecords, final: str) -> tuple[BySeed, BySeed]:
    transformers = [final_value(records, name, final) for name in cifar.TRANSFORMERS]
    others = [final_value(records, name, final) for name in cifar.CONVOLUTIONAL]
    seeds = transformers[0]
    most = {seed: max(values[seed] for values in transformers) for seed in seeds}
    least = {seed: min(values[seed] for values in others) for seed in seeds}
    return most, least


def _gap(records: TrainedRecords, final: str) -> BySeed:
    """Mean over CNNs minus mean over transformers, by seed."""
    transformers = [final_value(records, name, final) for name in cifar.TRANSFORMERS]
    others = [final_value(records, name, final) for name in cifar.CONVOLUTIONAL]
    return {
        seed: sum(v[seed] for v in others) / len(others) - sum(v[seed] for v in transformers) / len(transformers)
        for seed in transformers[0]
    }
