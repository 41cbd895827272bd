"""What is recorded of a trained network, and the numbers by seed that paired comparisons take from the records."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.studies.records import Records
from jostle.studies.schema import IfGiven, Struct
from jostle.studies.study import Cell
from jostle_papers.trained.settings import TrainingSettings

BySeed = dict[int, float]


@dataclass(frozen=True, kw_only=True)
class MeasuredValue(Struct):
    """A number between the ends of its interval, as a record holds it.

    Arguments:
        value, low, high: the number and the ends.
        level: of the interval.
    """

    value: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, kw_only=True)
class Sensitivity(MeasuredValue):
    """Sensitivity of a network to one kind of noise.

    Arguments:
        passes: forward passes that it took.
    """

    passes: int


@dataclass(frozen=True, kw_only=True)
class CorruptedAccuracy(Struct):
    """Accuracy of a network on corrupted images.

    Arguments:
        images: how many there were.
        clean: accuracy on the same images without corruption.
        accuracy: by severity, by corruption.
    """

    images: int
    clean: float
    accuracy: dict[int, dict[str, float]]

    def mean(self, corruptions: Sequence[str] = (), severities: Sequence[int] = ()) -> float:
        """The mean over some corruptions and severities, or over all."""
        tables = [self.accuracy[severity] for severity in severities] or list(self.accuracy.values())
        accuracies = [table[corruption] for table in tables for corruption in corruptions or table]
        return float(sum(accuracies) / len(accuracies))


@dataclass(frozen=True, kw_only=True)
class PredictedShare(Struct):
    """The share of the training inputs that get the class which is predicted most."""

    value: float


@dataclass(frozen=True, kw_only=True)
class EpochRecord(Struct):
    """A network after some epochs of training.

    Arguments:
        epoch: their number; 0 is before training.
        loss, accuracy: on the training inputs.
        sensitivity, corrupted, largest_share: None where they were not measured.
    """

    epoch: int
    loss: float
    accuracy: float
    sensitivity: IfGiven[Sensitivity | None] = None
    corrupted: IfGiven[CorruptedAccuracy | None] = None
    largest_share: IfGiven[PredictedShare | None] = None

    @property
    def measured(self) -> Sensitivity:
        """The sensitivity; only of an epoch at which it was measured."""
        assert self.sensitivity is not None
        return self.sensitivity

    @property
    def on_corrupted(self) -> CorruptedAccuracy:
        """Accuracy on corrupted images; only where it was measured."""
        assert self.corrupted is not None
        return self.corrupted


@dataclass(frozen=True, kw_only=True)
class TrainedRecord(Struct):
    """A network from the first epoch to the last.

    Arguments:
        epochs: all of them, also where nothing was measured.
        stopped: what ended training: ``target accuracy`` or ``max epochs``.
        train_accuracy, test_accuracy: at the end.
        sensitivity, low, high: at the end, to the study's own noise, with the ends of its interval.
        final: further measurements at the end, by name.
        parameters: of the network.
        data: what the dataset says about itself.
        corrupted: at the end; None where there were no corrupted images.
    """

    epochs: tuple[EpochRecord, ...]
    stopped: str
    train_accuracy: float
    test_accuracy: float
    low: float
    high: float
    sensitivity: float
    final: dict[str, Sensitivity]
    parameters: int
    data: str
    corrupted: IfGiven[CorruptedAccuracy | None] = None

    @property
    def measured_epochs(self) -> list[EpochRecord]:
        """The epochs at which sensitivity was measured."""
        return [epoch for epoch in self.epochs if epoch.sensitivity is not None]

    @property
    def on_corrupted(self) -> CorruptedAccuracy:
        """Accuracy on corrupted images at the end; only where it was measured."""
        assert self.corrupted is not None
        return self.corrupted


class NetworkCell(Cell):
    """A cell that is one network trained from one seed. A subclass is a dataclass with at least these fields."""

    network: str
    seed: int


TrainedRecords = Records[TrainingSettings, NetworkCell, TrainedRecord]


def at_end(records: TrainedRecords, name: str) -> BySeed:
    """Sensitivity of the trained network, by seed."""
    return records.where(network=name).by("seed", lambda record: record.sensitivity)


def unseen_accuracy(records: TrainedRecords, name: str) -> BySeed:
    """Accuracy of the trained network on unseen inputs, by seed."""
    return records.where(network=name).by("seed", lambda record: record.test_accuracy)


def smoothed(found: Sensitivity) -> float:
    """(flips + 1/2) / (n + 1), above 0 also where nothing flipped: what ``is_smaller`` takes.

    n is the number of forward passes of the record, clean ones included. It stands for the number of trials, which
    the record does not hold; the difference matters only where hardly anything flipped.
    """
    return (found.value * found.passes + 0.5) / (found.passes + 1)


def sensitivity_at_end(records: TrainedRecords, name: str, final: str = "") -> BySeed:
    """Sensitivity of the trained network by seed, for ratios: (flips + 1/2) / (n + 1), never 0.

    Arguments:
        records: of a study.
        name: of the network.
        final: one of the further measurements; by default the study's own noise.
    """
    part = records.where(network=name)
    return part.by("seed", lambda record: smoothed(record.final[final] if final else record.epochs[-1].measured))


def sensitivity_at_accuracy(records: TrainedRecords, name: str, accuracy: float) -> BySeed:
    """The same where the network first had this training accuracy; seeds that never did are absent."""
    found = records.where(network=name).by("seed", lambda record: _first(record, accuracy))
    return {seed: smoothed(one) for seed, one in found.items() if one is not None}


def final_value(records: TrainedRecords, name: str, final: str) -> BySeed:
    """One of the further measurements of the trained network, by seed."""
    return records.where(network=name).by("seed", lambda record: record.final[final].value)


def at_accuracy(records: TrainedRecords, name: str, accuracy: float) -> BySeed:
    """Sensitivity where the network first reached this training accuracy, by seed; seeds that never did are absent."""
    found = records.where(network=name).by("seed", lambda record: _first(record, accuracy))
    return {seed: one.value for seed, one in found.items() if one is not None}


def corrupted_accuracy(
    records: TrainedRecords, name: str, corruptions: Sequence[str] = (), severities: Sequence[int] = ()
) -> BySeed:
    """Accuracy of the trained network on corrupted images, by seed: the mean over some corruptions, or over all."""
    part = records.where(network=name)
    return part.by("seed", lambda record: record.on_corrupted.mean(corruptions, severities))


def accuracy_kept(records: TrainedRecords, name: str) -> BySeed:
    """Accuracy on corrupted images / accuracy on the same images without corruption, by seed; NaN for 0 / 0."""
    found = records.where(network=name).by("seed", lambda record: record.on_corrupted)
    return {seed: one.mean() / one.clean if one.clean else math.nan for seed, one in found.items()}


def in_common(first: BySeed, second: BySeed) -> tuple[BySeed, BySeed]:
    """Both sides, for the seeds that both have."""
    seeds = [seed for seed in first if seed in second]
    return {seed: first[seed] for seed in seeds}, {seed: second[seed] for seed in seeds}


def _first(record: TrainedRecord, accuracy: float) -> Sensitivity | None:
    reached = (epoch.sensitivity for epoch in record.epochs if epoch.accuracy >= accuracy)
    return next((found for found in reached if found is not None), None)
