"""Figures of trained networks, from records alone."""

from collections.abc import Sequence
from typing import Any

from jostle.figures import Series, curves
from jostle.results import Record
from jostle.studies.records import Records
from jostle.studies.study import Drawing
from jostle.studies.vision.comparing import at_end, final_value
from jostle.studies.vision.settings import Training


def over_training(records: Records[Training]) -> Drawing:
    """Sensitivity after every measured epoch, the mean over seeds and the range of the seeds."""
    series = []
    for name in records.settings.networks:
        runs = [_by_epoch(record) for record in records.where(network=name).column("epochs")]
        shared = sorted(set.intersection(*(set(run) for run in runs)))
        series.append(_mean_and_range(name, shared, [[run[epoch] for run in runs] for epoch in shared]))
    return Drawing(
        "over-training",
        curves(series, x_label="epochs of training", y_label="sensitivity"),
        f"Sensitivity to noise of std {records.settings.std:.3g} in one patch over training; bands are the range over "
        "seeds, up to the epoch at which the first seed ended.",
        "Curves of sensitivity over epochs, one for each network.",
    )


def against_accuracy(records: Records[Training]) -> Drawing:
    """The same against training accuracy: where networks can be compared."""
    return Drawing(
        "against-accuracy",
        curves(_all_points(records, "accuracy"), x_label="training accuracy", y_label="sensitivity"),
        "The same measurements against the training accuracy at which they were made; all seeds of a network together.",
        "Curves of sensitivity against training accuracy, one for each network.",
    )


def against_loss(records: Records[Training]) -> Drawing:
    """The same against training loss, which goes on falling where accuracy is all but 1."""
    return Drawing(
        "against-loss",
        curves(_all_points(records, "loss"), x_label="training loss", y_label="sensitivity", log_x=True),
        "The same measurements against the training loss; near 100 % accuracy it tells networks apart that accuracy "
        "does not. Training goes from right to left.",
        "Curves of sensitivity against training loss, one for each network.",
    )


def against_variance(records: Records[Training]) -> Drawing:
    """Sensitivity of the trained networks over the variance of the noise, from all further measurements."""
    series = []
    for name in records.settings.networks:
        values = {records.settings.std**2: list(at_end(records, name).values())}
        for final, wanted in records.settings.final.items():
            values[wanted["std"] ** 2] = list(final_value(records, name, final).values())
        variances = sorted(values)
        series.append(_mean_and_range(name, variances, [values[variance] for variance in variances]))
    return Drawing(
        "against-variance",
        curves(series, x_label="variance of the noise", y_label="sensitivity", log_x=True),
        "Sensitivity of the trained networks against the variance of the noise; the mean and the range over seeds.",
        "Curves of sensitivity against the variance of the noise, one for each network.",
    )


def by_measurement(records: Records[Training], finals: Sequence[str]) -> Drawing:
    """Sensitivity of the trained networks under each of some measurements, every seed a point."""
    numbers = {final: position for position, final in enumerate(finals, start=1)}
    series = []
    for name in records.settings.networks:
        values = [list(final_value(records, name, final).values()) for final in finals]
        series.append(_mean_and_range(name, list(numbers.values()), values))
    legend = "; ".join(f"{position}: {final}" for final, position in numbers.items())
    return Drawing(
        "by-measurement",
        curves(series, x_label="kind of noise", y_label="sensitivity"),
        f"Sensitivity of the trained networks to {legend}. The mean and the range over seeds.",
        "Sensitivity of each network under each kind of noise.",
    )


def _all_points(records: Records[Training], field: str) -> list[Series]:
    """Every measurement of every seed from 50 % training accuracy on, over one field of the epoch."""
    series = []
    for name in records.settings.networks:
        points = [
            (epoch[field], epoch["sensitivity"]["value"])
            for record in records.where(network=name).column("epochs")
            for epoch in record
            if "sensitivity" in epoch and epoch["accuracy"] >= 0.5
        ]
        if points:
            x, y = zip(*sorted(points), strict=True)
            series.append(Series(name, x, y))
    return series or [Series("no network has reached 50 %", [1.0], [0.0])]


def _mean_and_range(name: str, x: Sequence[float], values: Sequence[Sequence[float]]) -> Series:
    means = [sum(v) / len(v) for v in values]
    return Series(name, x, means, [min(v) for v in values], [max(v) for v in values])


def _by_epoch(epochs: list[Record]) -> dict[int, Any]:
    return {epoch["epoch"]: epoch["sensitivity"]["value"] for epoch in epochs if "sensitivity" in epoch}
