"""Figures of trained networks, from records alone."""

from collections.abc import Callable, Sequence
from functools import partial

from jostle.base.store import Record
from jostle.figures import Series, curves, dots
from jostle.studies.records import Records
from jostle.studies.study import Drawing
from jostle_papers.trained.records import at_end, final_value, mean_accuracy
from jostle_papers.trained.settings import Training

_LAST_POINT = "The last point of a network is at the mean of the epochs at which its seeds ended."


def over_training(records: Records[Training]) -> Drawing:
    """Sensitivity after every epoch at which all seeds were measured, and at the end."""
    return Drawing(
        "over-training",
        curves(
            _over_epochs(records, lambda epoch: epoch["sensitivity"]["value"]),
            x_label="epochs of training",
            y_label="sensitivity",
        ),
        f"Sensitivity to noise of std {records.settings.std:.3g} in one token over training, from the first epoch on: "
        f"the mean and the range over seeds. {_LAST_POINT}",
        "Curves of sensitivity over epochs, one for each network.",
    )


def corrupted_over_training(records: Records[Training], severity: int) -> Drawing:
    """Accuracy on corrupted images after the same epochs."""
    return Drawing(
        f"corrupted-over-training-{severity}",
        curves(
            _over_epochs(records, lambda epoch: mean_accuracy(epoch["corrupted"], severities=[severity])),
            x_label="epochs of training",
            y_label="accuracy on corrupted images",
        ),
        f"Accuracy on unseen images under the mean corruption at severity {severity} over training: the mean and the "
        f"range over seeds. {_LAST_POINT}",
        "Curves of accuracy on corrupted images over epochs, one for each network.",
    )


def by_corruption(records: Records[Training], severity: int) -> Drawing:
    """Accuracy of the trained networks under each corruption."""
    names, networks = records.settings.corrupted["names"], records.settings.networks

    answers = {network: records.where(network=network).column("corrupted") for network in networks}

    def row(read: Callable[[Record], float]) -> list[Series]:
        return [mean_and_range(network, [0.0], [list(map(read, found))]) for network, found in answers.items()]

    rows = {"no corruption": row(lambda answer: float(answer["clean"]))}
    for name in names:
        rows[name.replace("_", " ")] = row(partial(mean_accuracy, corruptions=[name], severities=[severity]))
    return Drawing(
        f"by-corruption-{severity}",
        dots(rows, x_label="accuracy on unseen images", is_dense=True),
        f"Accuracy of the trained networks on unseen images under each corruption at severity {severity}; the mean and "
        "the range over seeds.",
        "Accuracy of each network under each corruption.",
    )


def against_accuracy(records: Records[Training]) -> Drawing:
    """The same against training error: where networks can be compared."""
    errors = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01)
    reached = [lambda epoch, error=error: epoch["accuracy"] >= 1 - error for error in errors]
    return Drawing(
        "against-accuracy",
        curves(
            _where_reached(records, errors, reached, lambda epoch: 1 - epoch["accuracy"]),
            x_label="training error",
            y_label="sensitivity",
            log_x=True,
        ),
        "The same where a share of the training examples was first left wrong, and at the end: the mean and the range "
        "over seeds, where all of them got there. Training goes from right to left.",
        "Curves of sensitivity against training error, one for each network.",
    )


def against_loss(records: Records[Training]) -> Drawing:
    """The same against training loss, which goes on falling where accuracy is all but 1."""
    losses = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
    reached = [lambda epoch, loss=loss: epoch["accuracy"] >= 0.5 and epoch["loss"] <= loss for loss in losses]
    return Drawing(
        "against-loss",
        curves(
            _where_reached(records, losses, reached, lambda epoch: epoch["loss"]),
            x_label="training loss",
            y_label="sensitivity",
            log_x=True,
        ),
        "The same where a training loss was first reached, and at the end. Near 100 % accuracy the loss tells networks "
        "apart that accuracy does not.",
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
        series.append(mean_and_range(name, variances, [values[variance] for variance in variances]))
    return Drawing(
        "against-variance",
        curves(series, x_label="variance of the noise", y_label="sensitivity", log_x=True),
        "Sensitivity of the trained networks against the variance of the noise; the mean and the range over seeds.",
        "Curves of sensitivity against the variance of the noise, one for each network.",
    )


def by_measurement(records: Records[Training], finals: Sequence[str]) -> Drawing:
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
        dots(rows, x_label="sensitivity"),
        "Sensitivity of the trained networks to each kind of noise; the mean and the range over seeds.",
        "Sensitivity of each network under each kind of noise.",
    )


def _where_reached(
    records: Records[Training],
    marks: Sequence[float],
    reached: Sequence[Callable[[Record], bool]],
    at_end: Callable[[Record], float],
) -> list[Series]:
    """For each network: its sensitivity where each mark was first reached by all seeds, and at the end."""
    series = []
    for name in records.settings.networks:
        runs = [
            [epoch for epoch in record if "sensitivity" in epoch]
            for record in records.where(network=name).column("epochs")
        ]
        points: dict[float, list[float]] = {}
        for mark, is_reached in zip(marks, reached, strict=True):
            firsts = [next(filter(is_reached, run), None) for run in runs]
            if all(first is not None and first is not run[-1] for first, run in zip(firsts, runs, strict=True)):
                points[mark] = [first["sensitivity"]["value"] for first in firsts if first]
        end = sum(at_end(run[-1]) for run in runs) / len(runs)
        points[end] = [run[-1]["sensitivity"]["value"] for run in runs]
        x = sorted(points)
        series.append(mean_and_range(name, x, [points[each] for each in x]))
    return series


def mean_and_range(name: str, x: Sequence[float], values: Sequence[Sequence[float]]) -> Series:
    """A series with the mean of each list of values, and their range as its band."""
    means = [sum(v) / len(v) for v in values]
    return Series(name, x, means, [min(v) for v in values], [max(v) for v in values])


def _over_epochs(records: Records[Training], read: Callable[[Record], float]) -> list[Series]:
    """For each network what was read after every epoch at which all seeds were measured, and at the end."""
    series = []
    for name in records.settings.networks:
        runs = [
            {epoch["epoch"]: read(epoch) for epoch in epochs if "sensitivity" in epoch}
            for epochs in records.where(network=name).column("epochs")
        ]
        shared = sorted(set.intersection(*(set(run) for run in runs)) - {0})
        x, values = list(map(float, shared)), [[run[epoch] for run in runs] for epoch in shared]
        ends = [max(run) for run in runs]
        if not shared or max(ends) > shared[-1]:
            x.append(sum(ends) / len(ends))
            values.append([run[end] for run, end in zip(runs, ends, strict=True)])
        series.append(mean_and_range(name, x, values))
    return series
