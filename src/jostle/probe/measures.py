"""What else a probe can ask at each step: functions of a model and inputs, by name.

A measure is called with the model in eval mode and all inputs of the probe, a tensor or a mapping of tensors, on the
model's device. It answers with a number; with an object that has ``value``, ``low`` and ``high``; or with a mapping of
names to either. It may use gradients; whatever it changes is put back.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.registry import Registry
from jostle.landscape import Sharpness, sharpness
from jostle.lowering.answer import ask
from jostle.tokens.sources import ONLY

Measure = Callable[[Any, Any], Any]

MEASURES: Registry[Measure] = Registry("measure")
register = MEASURES.register

_BATCH = 128


@register("logit-margin")
def logit_margin(model: Callable[..., Any], inputs: Any) -> float:
    """How far predictions are from changing, in logits: the mean over inputs of the largest logit minus the second.

    For a single logit, its absolute value. A network can become less sensitive only because this grows.

    >>> logit_margin(lambda x: x, torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    1.5

    Arguments:
        model: from inputs to logits (batch, classes), (batch, 1) or (batch,).
        inputs: a tensor (N, ...) or a mapping of tensors.
    """
    tensors = dict(inputs) if isinstance(inputs, Mapping) else {ONLY: inputs}
    count, total = len(next(iter(tensors.values()))), 0.0
    with torch.no_grad():
        for start in range(0, count, _BATCH):
            logits = ask(model, {key: tensor[start : start + _BATCH] for key, tensor in tensors.items()})
            total += float(_margins(logits.double()).sum())
    return total / count


def _margins(logits: Tensor) -> Tensor:
    if logits.dim() == 1 or logits.shape[1] == 1:
        return logits.abs()
    if logits.dim() != 2:
        raise UsageError(f"logit-margin needs logits of shape (batch, classes), not {tuple(logits.shape)}")
    largest = logits.topk(2, dim=1).values
    return largest[:, 0] - largest[:, 1]


@register("sharpness")
def weight_sharpness(model: Any, inputs: Any) -> dict[str, Any]:
    """Paper 1's sharpness with its defaults: ``output`` (ShOp) and ``prediction`` (ShPred), see ``jostle.landscape``.

    Five draws of noise on all weights: five passes over all inputs, and one without noise.
    """
    found: Sharpness = sharpness(model, inputs)
    return {"output": found.output, "prediction": found.prediction}


def chosen(measures: Mapping[str, Measure | str] | Iterable[str], taken: Iterable[str]) -> dict[str, Measure]:
    """Functions by name.

    Arguments:
        measures: registered names, or a mapping of names to functions or registered names.
        taken: names that columns already have.
    """
    if isinstance(measures, str):
        raise UsageError(f"measures={measures!r} must be a list of names or a mapping, for example [{measures!r}]")
    given = dict(measures) if isinstance(measures, Mapping) else {name: name for name in measures}
    for name, function in given.items():
        if not isinstance(name, str) or not name or name in taken:
            raise UsageError(f"measures: the name {name!r} cannot be used; give another than {', '.join(taken)}")
        if not isinstance(function, str) and not callable(function):
            raise UsageError(f"measures[{name!r}]={function!r} must be a function of (model, inputs), or a known name")
    return {name: MEASURES.get(each) if isinstance(each, str) else each for name, each in given.items()}


def numbers_of(name: str, measure: Measure, model: Any, inputs: Any) -> dict[str, float]:
    """What a measure says, as columns: ``name``, ``name.low``, ``name.key``, ...; whatever it raises is one line."""
    try:
        with torch.enable_grad():
            answer = measure(model, inputs)
    except (JostleError, KeyboardInterrupt):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise FailureError(f"measure {name!r} raised {type(error).__name__}: {reason}") from error
    return flat(name, answer)


def flat(name: str, answer: Any) -> dict[str, float]:
    """Numbers by column.

    >>> flat("norm", {"first": 1, "second": torch.tensor(2.0)})
    {'norm.first': 1.0, 'norm.second': 2.0}
    """
    if isinstance(answer, Mapping):
        return {key: number for part, each in answer.items() for key, number in flat(f"{name}.{part}", each).items()}
    if all(hasattr(answer, part) for part in ("value", "low", "high")):
        return {name: float(answer.value), f"{name}.low": float(answer.low), f"{name}.high": float(answer.high)}
    try:
        return {name: float(answer.detach() if isinstance(answer, Tensor) else answer)}
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(
            f"measure {name!r} answered with a {type(answer).__name__}; expected a number, something with value, low "
            "and high, or a mapping of names to these"
        ) from None
