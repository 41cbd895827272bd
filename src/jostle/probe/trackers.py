"""Where numbers also go: objects of TensorBoard and Weights & Biases that the user made, known by what they can do."""

from collections.abc import Callable, Mapping
from typing import Any

from jostle.errors import UsageError

Sender = Callable[[int, Mapping[str, float]], None]

PREFIX = "jostle/"


def senders(trackers: Any) -> list[Sender]:
    """A function of step and numbers for each tracker; nothing is imported.

    Arguments:
        trackers: one or several of: an object with ``add_scalar(name, number, step)``, as TensorBoard's
            ``SummaryWriter``; an object with ``log(mapping)``, as ``wandb.run``.
    """
    given = list(trackers) if isinstance(trackers, list | tuple) else [trackers]
    return [_sender(tracker) for tracker in given]


def _sender(tracker: Any) -> Sender:
    if callable(getattr(tracker, "add_scalar", None)):
        return _scalars(tracker)
    if callable(getattr(tracker, "log", None)):
        return _rows(tracker)
    hint = "; wandb.run is None before wandb.init()" if tracker is None else ""
    raise UsageError(
        f"trackers holds a {type(tracker).__name__}, expected an object with add_scalar, as TensorBoard's "
        f"SummaryWriter, or with log, as wandb.run{hint}"
    )


def _scalars(writer: Any) -> Sender:
    def send(step: int, numbers: Mapping[str, float]) -> None:
        for name, number in numbers.items():
            writer.add_scalar(PREFIX + name, number, step)

    return send


def _rows(run: Any) -> Sender:
    step_name = f"{PREFIX}step"
    if callable(getattr(run, "define_metric", None)):
        run.define_metric(f"{PREFIX}*", step_metric=step_name)

    def send(step: int, numbers: Mapping[str, float]) -> None:
        # Without step=: a run drops numbers for a step below its own count, which rises with every row of the user's.
        run.log({step_name: step} | {PREFIX + name: number for name, number in numbers.items()})

    return send
