"""What a probe measures, the same at every step: fixed inputs, fixed noise, fixed labels."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base.errors import UsageError
from jostle.estimates import Interrupted, Measurement
from jostle.estimates.measure import run_request
from jostle.estimates.request import Request
from jostle.probe.model import tensor_checksum
from jostle.sampling import DefaultPlan, Plan
from jostle.tokens import Batch, Inputs, TextView, TokenFunction
from jostle.tokens.sources import ONLY, as_dataset, as_tensors, collate_items
from jostle.training.evaluation import predictions

DEFAULT_PLAN = DefaultPlan(half_width=0.02, relative=0.1, most_tokens=4096)
"""Looser than that of ``jostle.measure``: a probe measures many times."""

_OF_SETTINGS = ("tokens", "perturbation", "response", "plan", "target", "level", "seed", "num_inputs", "num_tokens")


class FixedMeasurement:
    """A measurement that is repeated on the same inputs with the same noise; inputs and labels are copied.

    Attributes:
        source: all inputs, a tensor or a mapping of tensors.
        inputs: the same, cut into tokens.
        labels: (N,) whole numbers; None if there are none.
        plan: how a measurement samples if it need not save time.

    Arguments:
        request: what is asked.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; read once, here.
        labels: (N,) whole numbers; by default those of the inputs, if a dataset has them.
    """

    def __init__(self, request: Request, inputs: Any, labels: Any) -> None:
        tensors, own_labels = _read(inputs)
        mask = request.mask
        copied = None if mask is None else np.array(mask.cpu() if isinstance(mask, Tensor) else mask)
        self.request = replace(request, mask=copied)
        self.source: Any = tensors[ONLY] if set(tensors) == {ONLY} else tensors
        self.inputs = self.request.read_inputs(self.source)
        self.labels = _as_labels(own_labels if labels is None else labels, len(self.inputs))
        self.plan = self.request.plan_for(self.inputs)

    @property
    def quantity(self) -> str:
        """The name of the measured number: ``sensitivity`` for flips, and the name of any other response."""
        return "sensitivity" if self.request.response.is_binary else self.request.response.describe()

    def describe(self) -> dict[str, Any]:
        """Everything that decides the numbers, as text and numbers; inputs, mask and labels as checksums."""
        settings = self.request.settings(self.inputs)
        return {
            **{name: getattr(settings, name) for name in _OF_SETTINGS},
            "inputs": _checksum(self.source if isinstance(self.source, dict) else {ONLY: self.source}),
            "mask": None if self.inputs.mask is None else zlib.crc32(np.packbits(self.inputs.mask).tobytes()),
            "labels": None if self.labels is None else _checksum({ONLY: self.labels}),
        }

    def measure(self, model: Callable[..., Any], plan: Plan, name: str) -> Measurement:
        """The sensitivity of ``model``, which is in eval mode already.

        Arguments:
            model: the model of the loop.
            plan: how to sample this time.
            name: how messages call the model.
        """
        request, asked = replace(self.request, plan=plan), _without_inference_mode(model)
        result = run_request(request, {name: asked}, self._inputs_for(asked))[name]
        if result.stopped == "interrupted":
            raise Interrupted(result)
        return result

    def accuracy(self, model: Callable[..., Any], name: str) -> float:
        """The share of the inputs whose prediction is their label."""
        assert self.labels is not None
        asked, hits, size = _without_inference_mode(model), 0, self.request.batch_size or 128
        function = TokenFunction(asked, self._inputs_for(asked), name)
        for start in range(0, len(self.inputs), size):
            rows = np.arange(start, min(start + size, len(self.inputs)))
            outputs = function(self.inputs.batch(rows))
            logits = outputs[:, None] if outputs.dim() == 1 else outputs  # (batch, classes)
            classes = max(logits.shape[1], 2)
            if logits.dim() != 2 or int(self.labels.max()) >= classes:
                raise UsageError(
                    f"labels up to {int(self.labels.max())} do not fit outputs of shape {tuple(outputs.shape)} of "
                    f"{name}; expected (batch, classes) with a class for each label, or inputs without labels"
                )
            hits += int((predictions(logits) == self.labels[torch.from_numpy(rows)]).sum())
        return hits / len(self.inputs)

    def inputs_on(self, device: torch.device) -> Any:
        """A copy of all inputs on ``device``, for measures that may change them."""
        if isinstance(self.source, dict):
            return {key: tensor.clone().to(device) for key, tensor in self.source.items()}
        return self.source.clone().to(device)

    def _inputs_for(self, model: Callable[..., Any]) -> Inputs:
        """The inputs as this model reads them: for texts without a mask, the model knows which id is padding."""
        if not isinstance(self.request.tokens, TextView):
            return self.inputs
        return self.request.read_inputs(self.source, [model])


class _WithoutInferenceMode(nn.Module):
    """A model that answers without gradients, but never in ``inference_mode``, which measurements use.

    A model may keep something of a pass, for example a table of positions. If that were made in ``inference_mode``, it
    could not be used in training afterwards. In all else it is the model: it has its modules under their names, and its
    attributes.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = False

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def named_modules(self, *positional: Any, **named: Any) -> Iterator[tuple[str, nn.Module]]:
        found: Iterator[tuple[str, nn.Module]] = self.model.named_modules(*positional, **named)
        return found

    def forward(self, *positional: Tensor, **named: Tensor) -> Any:
        with torch.inference_mode(False), torch.no_grad():
            # Copies, because outside that mode a model may not write to tensors that were made in it.
            copies = {key: tensor.clone() for key, tensor in named.items()}
            return self.model(*(tensor.clone() for tensor in positional), **copies)


def _without_inference_mode(model: Callable[..., Any]) -> Callable[..., Any]:
    return _WithoutInferenceMode(model) if isinstance(model, nn.Module) else model


def _read(source: Any) -> tuple[Batch, Any]:
    """Copies of the inputs as named tensors, and their labels if they come with them."""
    tensors = as_tensors(source)
    if tensors is not None:
        return {key: tensor.detach().clone() for key, tensor in tensors.items()}, getattr(source, "labels", None)
    dataset, stacked = as_dataset(source)
    if dataset is None:
        return stacked or {}, None
    if len(dataset) == 0:
        raise UsageError("inputs are empty: there is nothing to measure")
    items = [dataset[index] for index in range(len(dataset))]
    return collate_items(items), _labels_of(items)


def _labels_of(items: list[Any]) -> Tensor | None:
    """The labels of (input, label) pairs; None if the items are something else."""
    if not all(isinstance(item, tuple | list) and len(item) == 2 and _is_label(item[1]) for item in items):
        return None
    return torch.as_tensor([int(item[1]) for item in items])


def _is_label(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dim() == 0 and not value.is_floating_point()
    return isinstance(value, int | np.integer)


def _as_labels(labels: Any, count: int) -> Tensor | None:
    """A copy of the labels, (count,) whole numbers from 0; None if there are none."""
    if labels is None or isinstance(labels, Mapping):
        return None
    copied = torch.as_tensor(labels).detach().cpu().clone()
    if copied.shape != (count,) or copied.is_floating_point() or copied.is_complex():
        raise UsageError(
            f"labels of shape {tuple(copied.shape)} and {copied.dtype} must be {count} whole numbers, one for each "
            "input"
        )
    copied = copied.long()
    if int(copied.min()) < 0:
        raise UsageError(
            f"labels hold {int(copied.min())}; expected classes from 0, so leave out inputs without a label"
        )
    return copied


def _checksum(tensors: Batch) -> int:
    found = 0
    for key in sorted(tensors):
        tensor = tensors[key]
        found = zlib.crc32(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = tensor_checksum(tensor, found)
    return found
