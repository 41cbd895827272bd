"""Experiment trackers: TensorBoard, Weights & Biases, MLflow, the loggers of Lightning, and everything like them.

A tracker is an object that the user made. It is recognised by its methods, and nothing is imported for it. The command
line names one by a spec, and ``open_tracker`` makes it.
"""

import importlib
import importlib.util
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from jostle.base.errors import FailureError, UsageError

Sender = Callable[[int, Mapping[str, float]], None]
"""Sends the numbers of a step to a tracker."""

PREFIX = "jostle/"
SPECS = "tensorboard:FOLDER, wandb:PROJECT or mlflow:EXPERIMENT"
_NOT_IN_NAMES = re.compile(r"[^\w\-. /:]")  # MLflow allows no more than these in the name of a metric


def make_senders(trackers: Any) -> list[Sender]:
    """A function of step and numbers for each tracker.

    Arguments:
        trackers: one or several of: an object with ``add_scalar(name, number, step)``, as TensorBoard's
            ``SummaryWriter``; an object or module with ``log_metrics(mapping, step=)``, as ``mlflow`` and the loggers
            of Lightning; an object with ``log(mapping)``, as ``wandb.run``.
    """
    given = list(trackers) if isinstance(trackers, list | tuple) else [trackers]
    return [_sender(tracker) for tracker in given]


def send(trackers: Any, numbers: Mapping[str, float], step: int = 0) -> None:
    """Send finite numbers to one or several trackers; a tracker that fails is an error of one line."""
    kept = {name: number for name, number in numbers.items() if math.isfinite(number)}
    for deliver in make_senders(trackers):
        try:
            deliver(step, kept)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise FailureError(f"the tracker did not take the numbers: {type(error).__name__}: {reason}") from error


def metric_name(name: str) -> str:
    """The name of a metric under which trackers take it.

    >>> metric_name("zoo:mlp:image_size=28,channels=1/flip")
    'jostle/zoo:mlp:image_size_28_channels_1/flip'
    """
    return PREFIX + _NOT_IN_NAMES.sub("_", name)


def _sender(tracker: Any) -> Sender:
    for method, make in (("add_scalar", _scalar_sender), ("log_metrics", _metrics_sender), ("log", _row_sender)):
        if callable(getattr(tracker, method, None)):
            return make(tracker)
    hint = "; wandb.run is None before wandb.init()" if tracker is None else ""
    raise UsageError(
        f"trackers holds a {type(tracker).__name__}, expected an object with add_scalar, as TensorBoard's "
        f"SummaryWriter, with log_metrics, as mlflow, or with log, as wandb.run{hint}"
    )


def _scalar_sender(writer: Any) -> Sender:
    """For TensorBoard: one scalar for each number."""

    def deliver(step: int, numbers: Mapping[str, float]) -> None:
        for name, number in numbers.items():
            writer.add_scalar(metric_name(name), number, step)

    return deliver


def _metrics_sender(logger: Any) -> Sender:
    """For MLflow and the loggers of Lightning: all numbers of a step at once."""

    def deliver(step: int, numbers: Mapping[str, float]) -> None:
        logger.log_metrics({metric_name(name): float(number) for name, number in numbers.items()}, step=step)

    return deliver


def _row_sender(run: Any) -> Sender:
    """For Weights & Biases: one row for each step."""
    step_name = f"{PREFIX}step"
    if callable(getattr(run, "define_metric", None)):
        run.define_metric(f"{PREFIX}*", step_metric=step_name)

    def deliver(step: int, numbers: Mapping[str, float]) -> None:
        # Without step=: a run drops rows for a step below its own count, and every row of the user raises that count.
        run.log({step_name: step} | {metric_name(name): number for name, number in numbers.items()})

    return deliver


@contextmanager
def open_tracker(spec: str) -> Iterator[Any]:
    """The tracker that a spec of the command line names; it is closed at the end.

    Arguments:
        spec: ``tensorboard:FOLDER``, ``wandb:PROJECT`` or ``mlflow:EXPERIMENT``; what follows the colon can be left
            out. The settings of Weights & Biases and MLflow are those of their own environment variables.
    """
    kind, _, where = spec.partition(":")
    check_tracker(spec)
    with ExitStack() as opened:
        try:
            tracker = _open(kind, where, opened)
        except UsageError:
            raise
        except Exception as error:  # of the tracker, whose errors are of any kind
            reason = " ".join(str(error).split())
            raise FailureError(f"--tracker {spec} cannot be opened: {type(error).__name__}: {reason}") from error
        yield tracker


def _open(kind: str, where: str, opened: ExitStack) -> Any:
    """A tracker of this kind, which ``opened`` closes."""
    if kind == "tensorboard":
        return opened.enter_context(
            closing(_import("torch.utils.tensorboard", "tensorboard").SummaryWriter(where or None))
        )
    if kind == "wandb":
        return opened.enter_context(_import("wandb", "wandb").init(project=where or "jostle"))
    mlflow = _import("mlflow", "mlflow-skinny")
    mlflow.set_experiment(where or "jostle")
    opened.enter_context(mlflow.start_run())
    return mlflow


def check_tracker(spec: str | None) -> None:
    """Raise, before any work, unless ``spec`` names a tracker whose package is there."""
    if spec is None:
        return
    kind = spec.partition(":")[0]
    packages = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
    if kind not in packages:
        raise UsageError(f"--tracker {spec} is not known; expected {SPECS}")
    if importlib.util.find_spec(packages[kind]) is None:
        raise UsageError(f"--tracker {spec} needs a package: pip install {packages[kind]}")


def _import(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{package} cannot be used ({error}): pip install {package}") from None
