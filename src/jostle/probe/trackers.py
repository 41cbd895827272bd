"""Where numbers also go: objects of TensorBoard and Weights & Biases that the user made, known by what they can do.

A probe as a callback of Lightning and of the Trainer of transformers; each is imported only when asked for.

The hooks are plain classes, so that they can be read and tested without these packages; ``lightning_callback`` and
``trainer_callback`` join them to the base class that the package wants.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jostle.base.errors import UsageError

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


Pick = Callable[[Any], Callable[..., Any]]


class Probing(Protocol):
    """What a callback needs of a probe."""

    def __call__(self, model: Any, step: int) -> object:
        """Measure if it is time."""

    def measure(self, model: Any, step: int) -> object:
        """Measure now."""


class _Hooks:
    def __init__(self, probe: Probing, pick: Pick | None) -> None:
        self._probe, self._pick = probe, pick

    def _model(self, module: Any) -> Any:
        return module if self._pick is None else self._pick(module)


class LightningHooks(_Hooks):
    """``lightning.pytorch.Callback``: before the first batch, after each batch, and after the last one.

    Steps are ``trainer.global_step``: steps of the optimizer. Batches between them, in gradient accumulation, are
    passed over.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._probe(self._model(pl_module), trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any, **__: Any) -> None:
        self._probe(self._model(pl_module), trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._probe.measure(self._model(pl_module), trainer.global_step)


class TrainerHooks(_Hooks):
    """``transformers.TrainerCallback``: before the first step, after each step, and after the last one.

    Steps are ``state.global_step``: steps of the optimizer.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        self._probe(self._model(model), state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        self._probe(self._model(model), state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        self._probe.measure(self._model(model), state.global_step)


def lightning_callback(probe: Probing, pick: Pick | None) -> Any:
    """An object for ``Trainer(callbacks=[...])`` of Lightning, in either of its two packages."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        try:
            base = importlib.import_module(package).Callback
        except ImportError:
            continue
        return _joined("LightningProbe", LightningHooks, base)(probe, pick)
    raise UsageError("probe.lightning() needs Lightning: pip install lightning; or call probe(model, step) in the loop")


def trainer_callback(probe: Probing, pick: Pick | None) -> Any:
    """An object for ``Trainer(callbacks=[...])`` of transformers."""
    try:
        base = importlib.import_module("transformers").TrainerCallback
    except ImportError:
        raise UsageError(
            'probe.trainer_callback() needs transformers: pip install "jostle[hf]" accelerate; or call '
            "probe(model, step) in the loop"
        ) from None
    return _joined("TrainerProbe", TrainerHooks, base)(probe, pick)


def _joined(name: str, hooks: type, base: type) -> Any:
    return type(name, (hooks, base), {"__doc__": hooks.__doc__})
