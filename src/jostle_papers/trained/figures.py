"""Figures of trained networks, from records alone."""

from collections.abc import Callable, Sequence

from jostle import figures
from jostle.figures import Series
from jostle.studies.study import Drawing
from jostle_papers.trained.records import EpochRecord, TrainedRecord, TrainedRecords, at_end, final_value

_LAST_POINT = "The last point of a network is at the mean of the epochs at which its seeds ended."


def mean_and_range(name: str, x: Sequence[float], values: Sequence[Sequence[float]]) -> Series:
    """A series with the mean of each list of values, and their range as its band."""
    means = [sum(v) / len(v) for v in values]
    return Series(name, x, means, [min(v) for v in values], [max(v) for v in values])


def over_training(records: TrainedRecords) -> Drawing:
    """Sensitivity after every epoch at which all seeds were measured, and at the end."""
    return Drawing(
        "over-training",
        figures.curves(
            _over_epochs(records, lambda epoch: epoch.measured.value),
            x_label="epochs of training",
            y_label="sensitivity",
        ),
        f"Sensitivity to noise of std {records.settings.std:.3g} in one token over training, from the first epoch on: "
        f"the mean and the range over seeds. {_LAST_POINT}",
        "Curves of sensitivity over epochs, one for each network.",
    )


def corrupted_over_training(records: TrainedRecords, severity: int) -> Drawing:
    """Accuracy on corrupted images after the same epochs."""
    return Drawing(
        f"corrupted-over-training-{severity}",
        figures.curves(
            _over_epochs(records, lambda epoch: epoch.on_corrupted.mean(severities=[severity])),
            x_label="epochs of training",
            y_label="accuracy on corrupted images",
        ),
        f"Accuracy on unseen images under the mean corruption at severity {severity} over training: the mean and the "
        f"range over seeds. {_LAST_POINT}",
        "Curves of accuracy on corrupted images over epochs, one for each network.",
    )


def _over_epochs(records: TrainedRecords, read: Callable[[EpochRecord], float]) -> list[Series]:
    """For each network a number after every epoch at which all seeds were measured, and at the end."""
    series = []
    for name in records.settings.networks:
        runs = records.where(network=name).column(
            lambda record: {epoch.epoch: read(epoch) for epoch in record.measured_epochs}
        )
        shared = sorted(set.intersection(*(set(run) for run in runs)) - {0})
        x, values = list(map(float, shared)), [[run[epoch] for run in runs] for epoch in shared]
        ends = [max(run) for run in runs]
        if not shared or max(ends) > shared[-1]:
            x.append(sum(ends) / len(ends))
            values.append([run[end] for run, end in zip(runs, ends, strict=True)])
        series.append(mean_and_range(name, x, values))
    return series


def against_accuracy(records: TrainedRecords) -> Drawing:
    """Sensitivity against training error: where networks can be compared."""
    errors = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01)
    series = _where_reached(
        records,
        errors,
        is_reached=lambda epoch, error: epoch.accuracy >= 1 - error,
        mark=lambda epoch: 1 - epoch.accuracy,
    )
    return Drawing(
        "against-accuracy",
        figures.curves(series, x_label="training error  (training goes ←)", y_label="sensitivity", log_x=True),
        "The same where a share of the training examples was first left wrong, and at the end: the mean and the range "
        "over seeds, where all of them got there. Training goes from right to left.",
        "Curves of sensitivity against training error, one for each network.",
    )


def against_loss(records: TrainedRecords) -> Drawing:
    """Sensitivity against training loss, which still falls when accuracy is close to 1."""
    losses = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
    series = _where_reached(
        records,
        losses,
        is_reached=lambda epoch, loss: epoch.accuracy >= 0.5 and epoch.loss <= loss,
        mark=lambda epoch: epoch.loss,
    )
    return Drawing(
        "against-loss",
        figures.curves(series, x_label="training loss  (training goes ←)", y_label="sensitivity", log_x=True),
        "The same where a training loss was first reached, and at the end. Near 100 % accuracy the loss tells networks "
        "apart that accuracy does not.",
        "Curves of sensitivity against training loss, one for each network.",
    )


def _where_reached(
    records: TrainedRecords,
    marks: Sequence[float],
    is_reached: Callable[[EpochRecord, float], bool],
    mark: Callable[[EpochRecord], float],
) -> list[Series]:
    """For each network: its sensitivity where each mark was first reached by all seeds, and at the end.

    Arguments:
        marks: numbers on the horizontal axis.
        is_reached: whether an epoch has reached a mark.
        mark: where the last epoch stands on the horizontal axis.
    """
    series = []
    for name in records.settings.networks:
        runs = records.where(network=name).column(lambda record: record.measured_epochs)
        points: dict[float, list[float]] = {}
        for each in marks:
            firsts = [next((epoch for epoch in run if is_reached(epoch, each)), None) for run in runs]
            reached = [first for first, run in zip(firsts, runs, strict=True) if first and first is not run[-1]]
            if len(reached) == len(runs):
                points[each] = [epoch.measured.value for epoch in reached]
        end = sum(mark(run[-1]) for run in runs) / len(runs)
        points[end] = [run[-1].measured.value for run in runs]
        x = sorted(points)
        series.append(mean_and_range(name, x, [points[each] for each in x]))
    return series


def against_variance(records: TrainedRecords) -> Drawing:
    """Sensitivity of the trained networks over the variance of the noise, from all further measurements."""
    series = []
    for name in records.settings.networks:
        values = {records.settings.std**2: list(at_end(records, name).values())}
        for final, noise in records.settings.final.items():
            values[noise.std**2] = list(final_value(records, name, final).values())
        variances = sorted(values)
        series.append(mean_and_range(name, variances, [values[variance] for variance in variances]))
    return Drawing(
        "against-variance",
        figures.curves(series, x_label="variance of the noise", y_label="sensitivity", log_x=True, log_y=True),
        "Sensitivity of the trained networks against the variance of the noise; the mean and the range over seeds.",
        "Curves of sensitivity against the variance of the noise, one for each network.",
    )


def by_measurement(records: TrainedRecords, finals: Sequence[str]) -> Drawing:
    """Sensitivity of the trained networks under each of some measurements."""
    rows = {
        final: [
            mean_and_range(name, [0.0], [list(final_value(records, name, final).values())])
            for name in records.settings.networks
        ]
        for final in finals
    }
    return Drawing(
        "by-measurement",
        figures.dots(rows, x_label="sensitivity"),
        "Sensitivity of the trained networks to each kind of noise; the mean and the range over seeds.",
        "Sensitivity of each network under each kind of noise.",
    )


def by_corruption(records: TrainedRecords, severity: int) -> Drawing:
    """Accuracy of the trained networks under each corruption."""
    asked = records.settings.corrupted

    def row(read: Callable[[TrainedRecord], float]) -> list[Series]:
        return [
            mean_and_range(name, [0.0], [records.where(network=name).column(read)])
            for name in records.settings.networks
        ]

    def under(corruption: str) -> Callable[[TrainedRecord], float]:
        return lambda record: record.on_corrupted.mean([corruption], [severity])

    rows = {"no corruption": row(lambda record: record.on_corrupted.clean)}
    rows |= {name.replace("_", " "): row(under(name)) for name in (asked.names if asked else ())}
    return Drawing(
        f"by-corruption-{severity}",
        figures.dots(rows, x_label="accuracy on unseen images", is_dense=True),
        f"Accuracy of the trained networks on unseen images under each corruption at severity {severity}; the mean and "
        "the range over seeds.",
        "Accuracy of each network under each corruption.",
    )
