"""Further numbers that a probe can measure at each step: functions of a model and inputs, by name.

A measure is called with the model in eval mode and all inputs of the probe, a tensor or a mapping of tensors, on the
model's device. It returns a number; an estimate, that is, an object with ``value``, ``low`` and ``high``; or a mapping
of names to these. It may use gradients; everything that it changes is put back.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from jostle.base.checks import wrong
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
    """How far predictions are from a change, in logits: the mean over inputs of the largest logit minus the second.

    For a single logit it is the absolute value. A network can become less sensitive for no other reason than that this
    margin grows.

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

    It makes six passes over all inputs: one without noise, and one for each of five draws of noise on all weights.
    """
    found: Sharpness = sharpness(model, inputs)
    return {"output": found.output, "prediction": found.prediction}


def read_measures(measures: Mapping[str, Measure | str] | Iterable[str], taken: Iterable[str]) -> dict[str, Measure]:
    """The functions that the argument ``measures`` asks for, by name.

    Arguments:
        measures: registered names, or a mapping of names to functions or registered names.
        taken: names that other columns have.
    """
    if isinstance(measures, str):
        raise wrong("measures", measures, f"a list of names or a mapping, for example [{measures!r}]")
    given = dict(measures) if isinstance(measures, Mapping) else {name: name for name in measures}
    for name, function in given.items():
        if not isinstance(name, str) or not name or name in taken:
            raise UsageError(f"measures: the name {name!r} cannot be used; give another than {', '.join(taken)}")
        if not isinstance(function, str) and not callable(function):
            raise wrong(f"measures[{name!r}]", function, "a function of (model, inputs), or a known name")
    return {name: MEASURES.get(each) if isinstance(each, str) else each for name, each in given.items()}


def run_measure(name: str, measure: Measure, model: Any, inputs: Any) -> dict[str, float]:
    """The numbers of a measure by column: ``name``, ``name.low``, ``name.key``, ...

    Everything that the measure raises becomes an error of one line.
    """
    try:
        with torch.enable_grad():
            answer = measure(model, inputs)
    except (JostleError, KeyboardInterrupt):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise FailureError(f"measure {name!r} raised {type(error).__name__}: {reason}") from error
    return columns_of(name, answer)


def columns_of(name: str, answer: Any) -> dict[str, float]:
    """The answer of a measure as numbers by column.

    >>> columns_of("norm", {"first": 1, "second": torch.tensor(2.0)})
    {'norm.first': 1.0, 'norm.second': 2.0}
    """
    if isinstance(answer, Mapping):
        parts = [columns_of(f"{name}.{part}", each) for part, each in answer.items()]
        return {column: number for part in parts for column, number in part.items()}
    if all(hasattr(answer, part) for part in ("value", "low", "high")):
        return {name: float(answer.value), f"{name}.low": float(answer.low), f"{name}.high": float(answer.high)}
    try:
        return {name: float(answer.detach() if isinstance(answer, Tensor) else answer)}
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(
            f"measure {name!r} answered with a {type(answer).__name__}; expected a number, something with value, low "
            "and high, or a mapping of names to these"
        ) from None
