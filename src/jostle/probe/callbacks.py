"""A probe as a callback of Lightning and of the Trainer of transformers; each is imported only when asked for.

The hooks are plain classes, so that they can be read and tested without these packages; ``lightning_callback`` and
``trainer_callback`` join them to the base class that the package wants.
"""

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from jostle.errors import UsageError

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
