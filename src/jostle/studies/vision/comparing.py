"""Numbers by seed, read from the records of trained networks: what paired comparisons take."""

from collections.abc import Sequence

from jostle.results import Record
from jostle.studies.records import Records
from jostle.studies.vision.settings import Training


def at_end(records: Records[Training], name: str) -> dict[int, float]:
    """Sensitivity of the trained network, by seed."""
    return records.where(network=name).by("seed", "sensitivity")


def final_value(records: Records[Training], name: str, final: str) -> dict[int, float]:
    """One of the further measurements of the trained network, by seed."""
    found = records.where(network=name).by("seed", "final")
    return {seed: measurements[final]["value"] for seed, measurements in found.items()}


def at_accuracy(records: Records[Training], name: str, accuracy: float) -> dict[int, float]:
    """Sensitivity where the network first reached this training accuracy, by seed; seeds that never did are absent."""
    found = records.where(network=name).by("seed", "epochs")
    reached = {seed: _first(epochs, accuracy) for seed, epochs in found.items()}
    return {seed: epoch["sensitivity"]["value"] for seed, epoch in reached.items() if epoch is not None}


def in_common(first: dict[int, float], second: dict[int, float]) -> tuple[dict[int, float], dict[int, float]]:
    """Both, for the seeds that both have."""
    seeds = [seed for seed in first if seed in second]
    return {seed: first[seed] for seed in seeds}, {seed: second[seed] for seed in seeds}


def _first(epochs: Sequence[Record], accuracy: float) -> Record | None:
    reached = (epoch for epoch in epochs if epoch["accuracy"] >= accuracy and "sensitivity" in epoch)
    return next(reached, None)
