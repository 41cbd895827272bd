"""Is that a lot? What stands beside a sensitivity: two functions whose answer is known, and recorded networks.

A constant function never flips. A function that answers every input at random, one of C classes each, flips with
probability 1 - 1/C whenever the input changes at all. Recorded networks are those of committed runs on the same data,
tokens and noise (``references.json``, written by ``make scoreboard`` from docs/results).
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jostle.base import specs

if TYPE_CHECKING:
    from jostle.estimates import Comparison, Measurement
    from jostle.estimates.request import Request

_ALWAYS_MOVES = ("gaussian-noise", "sphere", "sign-flip")  # perturbations after which an input is never the same
_FLIPS = ("flip",)


def reference_lines(result: "Measurement | Comparison", data: str, classes: int | None) -> list[str]:
    """A line of reference values for flips; none for other responses, or if only that of a constant is known.

    Arguments:
        result: of ``measure`` or ``compare``.
        data: the spec of the inputs.
        classes: how many the models tell apart; None if that is not known.
    """
    from jostle.estimates import Comparison

    settings = (next(iter(result.measurements.values())) if isinstance(result, Comparison) else result).settings
    if settings.response.split(":")[0] not in _FLIPS:
        return []
    parts = ["a constant function 0"]
    if classes and settings.perturbation.split(":")[0] in _ALWAYS_MOVES:
        parts.append(f"a random one {1 - 1 / classes:.2g}")
    found = recorded(data, settings.tokens, settings.perturbation)
    if found is not None:
        shown = ", ".join(f"{name} {_shown(one)}" for name, one in found["networks"].items())
        at = "" if found["is_same"] else f" at std {found['std']:g}, the nearest"
        parts.append(f"trained networks on {data}{at}: {shown} ({found['source']})")
    return [f"is that a lot? {'; '.join(parts)}"] if len(parts) > 1 else []


def count_classes(models: Mapping[str, Any], inputs: Any, request: "Request") -> int | None:
    """How many classes the models tell apart, from their answers to the first input; None if they differ in that."""
    from jostle.report.texts import clean_answers
    from jostle.tokens.readout import gives_labels

    if any(gives_labels(model) for model in models.values()):
        return None  # a class for every token
    counts = set()
    for outputs in clean_answers(models, _first_of(inputs), request).values():
        if outputs.dim() > 2:
            return None
        counts.add(2 if outputs.dim() == 1 or outputs.shape[1] == 1 else outputs.shape[1])
    return counts.pop() if len(counts) == 1 else None


def _first_of(inputs: Any) -> Any:
    """The first input, as inputs."""
    from torch.utils.data import DataLoader, Dataset, Subset

    from jostle.data.image_folder import ImageFiles

    if isinstance(inputs, Mapping):
        return {key: value[:1] for key, value in inputs.items()}
    if isinstance(inputs, DataLoader):
        return _first_of(inputs.dataset)
    if isinstance(inputs, ImageFiles):
        return [inputs[0]]
    if hasattr(inputs, "iloc"):  # a frame of pandas
        return inputs.iloc[:1]
    return Subset(inputs, [0]) if isinstance(inputs, Dataset) else inputs[:1]


def recorded(data: str, tokens: str, perturbation: str) -> dict[str, Any] | None:
    """The recorded networks at the std nearest to this one; None if there are none for such data and tokens."""
    name, positional, named = specs.parse(perturbation)
    if name != "gaussian-noise":
        return None
    std = float(named.get("std", positional[0] if positional else 0.0))
    alike = [one for one in _records() if (one["data"], one["tokens"]) == (data.split(":")[0], tokens)]
    if not alike or std <= 0:
        return None
    nearest = min(alike, key=lambda one: abs(one["std"] - std))
    return {**nearest, "is_same": abs(nearest["std"] - std) < 1e-3 * std}


@cache
def _records() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(files("jostle.cli").joinpath("references.json").read_text())["references"]
    return found


def _shown(one: dict[str, float]) -> str:
    return f"{one['value']:.2g} [{one['low']:.2g}, {one['high']:.2g}]"
