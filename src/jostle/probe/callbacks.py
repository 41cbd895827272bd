"""Callbacks for Lightning and for the Trainer of transformers.

The hooks of the callbacks are plain classes, so that they can be read and tested without Lightning and transformers.
``lightning_callback`` and ``trainer_callback`` import the package and combine the hooks with its base class.
"""

import importlib
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jostle.base.errors import UsageError
from jostle.base.trackers import make_senders
from jostle.estimates import JostleWarning

PickModel = Callable[[Any], Callable[..., Any]]
"""From the model that is trained to the part of it that is measured."""


class ProbeLike(Protocol):
    """The methods of a probe that a callback needs."""

    @property
    def notes(self) -> list[str]:
        """Which steps were skipped, and why."""

    def __call__(self, model: Any, step: int) -> Mapping[str, float] | None:
        """Measure if it is time."""

    def measure(self, model: Any, step: int) -> Mapping[str, float] | None:
        """Measure now."""


class _Hooks:
    """A probe, and which part of the trained model it measures; at the end it says how many steps it skipped."""

    def __init__(self, probe: ProbeLike, pick: PickModel | None) -> None:
        self._probe, self._pick = probe, pick

    def _model(self, module: Any) -> Any:
        return module if self._pick is None else self._pick(module)

    def _say_skipped(self) -> None:
        skipped = sum(": skipped:" in note for note in self._probe.notes)
        if skipped:
            warnings.warn(
                f"the probe skipped {skipped} step{'' if skipped == 1 else 's'} to stay within its share of the "
                "training time; give Probe(share=None) to measure all of them, or a larger share",
                JostleWarning,
                stacklevel=3,
            )


class LightningHooks(_Hooks):
    """A ``lightning.pytorch.Callback``: measures before the first batch, after each batch, and after the last one.

    A step is ``trainer.global_step``, a step of the optimizer. Batches between two steps, in gradient accumulation, are
    not measured. The numbers go to the loggers of the trainer, under names that begin with ``jostle/``.
    """

    _last = -1  # the last step that the loggers got

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._log(trainer, self._probe(self._model(pl_module), trainer.global_step))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any, **__: Any) -> None:
        self._log(trainer, self._probe(self._model(pl_module), trainer.global_step))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._log(trainer, self._probe.measure(self._model(pl_module), trainer.global_step))
        self._say_skipped()

    def _log(self, trainer: Any, numbers: Mapping[str, float] | None) -> None:
        """Send numbers to the loggers, once for each step."""
        if numbers is None or trainer.global_step == self._last:
            return
        self._last = trainer.global_step
        kept = {name: number for name, number in numbers.items() if math.isfinite(number)}
        for send in make_senders(list(getattr(trainer, "loggers", ()))):
            send(trainer.global_step, kept)


class TrainerHooks(_Hooks):
    """A ``transformers.TrainerCallback``: measures before the first step, after each step, and after the last one.

    A step is ``state.global_step``, a step of the optimizer.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        self._probe(self._model(model), state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        self._probe(self._model(model), state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:  # noqa: ARG002
        self._probe.measure(self._model(model), state.global_step)
        self._say_skipped()


def lightning_callback(probe: ProbeLike, pick: PickModel | None) -> Any:
    """A callback for the ``Trainer`` of Lightning, from either of its two packages."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        try:
            base = importlib.import_module(package).Callback
        except ImportError:
            continue
        return _subclass("LightningProbe", LightningHooks, base)(probe, pick)
    raise UsageError("probe.lightning() needs Lightning: pip install lightning; or call probe(model, step) in the loop")


def trainer_callback(probe: ProbeLike, pick: PickModel | None) -> Any:
    """A callback for the ``Trainer`` of transformers."""
    try:
        base = importlib.import_module("transformers").TrainerCallback
    except ImportError:
        raise UsageError(
            'probe.trainer_callback() needs transformers: pip install "jostle[hf]" accelerate; or call '
            "probe(model, step) in the loop"
        ) from None
    return _subclass("TrainerProbe", TrainerHooks, base)(probe, pick)


def _subclass(name: str, hooks: type, base: type) -> Any:
    """A class with these hooks and the base class that a package needs."""
    return type(name, (hooks, base), {"__doc__": hooks.__doc__})
