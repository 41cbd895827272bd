"""Numbers by seed, read from the records of trained networks: what paired comparisons take."""

import math
from collections.abc import Sequence

from jostle.base.store import Record
from jostle.studies.evidence import Measured, paired
from jostle.studies.records import Records
from jostle_papers.trained.settings import Training


def at_end(records: Records[Training], name: str) -> dict[int, float]:
    """Sensitivity of the trained network, by seed."""
    return records.where(network=name).by("seed", "sensitivity")


def halvings(records: Records[Training], before: str, after: str) -> Measured:
    """How often the sensitivity of one network is halved to get to that of another, over seeds: log2 of their ratio."""
    return paired(*(_logs(at_end(records, name)) for name in (before, after)))


def final_value(records: Records[Training], name: str, final: str) -> dict[int, float]:
    """One of the further measurements of the trained network, by seed."""
    found = records.where(network=name).by("seed", "final")
    return {seed: measurements[final]["value"] for seed, measurements in found.items()}


def at_accuracy(records: Records[Training], name: str, accuracy: float) -> dict[int, float]:
    """Sensitivity where the network first reached this training accuracy, by seed; seeds that never did are absent."""
    found = records.where(network=name).by("seed", "epochs")
    reached = {seed: _first(epochs, accuracy) for seed, epochs in found.items()}
    return {seed: epoch["sensitivity"]["value"] for seed, epoch in reached.items() if epoch is not None}


def corrupted_accuracy(
    records: Records[Training], name: str, corruptions: Sequence[str] = (), severities: Sequence[int] = ()
) -> dict[int, float]:
    """Accuracy of the trained network on corrupted images, by seed: the mean over some corruptions, or over all."""
    found = records.where(network=name).by("seed", "corrupted")
    return {seed: mean_accuracy(answer, corruptions, severities) for seed, answer in found.items()}


def accuracy_kept(records: Records[Training], name: str) -> dict[int, float]:
    """Accuracy on corrupted images as a share of that on the same images without, by seed; NaN where that is 0."""
    found = records.where(network=name).by("seed", "corrupted")
    return {
        seed: mean_accuracy(answer) / answer["clean"] if answer["clean"] else math.nan for seed, answer in found.items()
    }


def mean_accuracy(answer: Record, corruptions: Sequence[str] = (), severities: Sequence[int] = ()) -> float:
    """The mean of recorded accuracies over some corruptions and severities, or over all."""
    tables = [answer["accuracy"][str(severity)] for severity in severities] or list(answer["accuracy"].values())
    accuracies = [table[corruption] for table in tables for corruption in corruptions or table]
    return float(sum(accuracies) / len(accuracies))


def in_common(first: dict[int, float], second: dict[int, float]) -> tuple[dict[int, float], dict[int, float]]:
    """Both, for the seeds that both have."""
    seeds = [seed for seed in first if seed in second]
    return {seed: first[seed] for seed in seeds}, {seed: second[seed] for seed in seeds}


def _first(epochs: Sequence[Record], accuracy: float) -> Record | None:
    reached = (epoch for epoch in epochs if epoch["accuracy"] >= accuracy and "sensitivity" in epoch)
    return next(reached, None)


def _logs(values: dict[int, float]) -> dict[int, float]:
    return {seed: math.log2(value) if value else math.nan for seed, value in values.items()}
