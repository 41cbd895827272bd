"""What a probe asks, the same at every step: fixed inputs, fixed noise, and how a model in training is asked."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.estimates import Measurement, measure
from jostle.estimates.result import checked_level, checked_target, checked_whole
from jostle.perturbations import PERTURBATIONS, Perturbation
from jostle.probe.model import checksum
from jostle.responses import RESPONSES, Response
from jostle.sampling import PLANS, Grid, Plan, Until
from jostle.tokens import VIEWS, Batch, Inputs, TextView, TokenFunction, TokenView
from jostle.tokens.sources import ONLY, as_dataset, as_tensors, collated
from jostle.tokens.text import padding_id
from jostle.training.evaluation import predictions

_FEW_TOKENS = 4096


class Question:
    """The arguments of ``jostle.measure`` but the model, checked once; inputs and labels are copied.

    Arguments:
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``; read once, here.
        labels: (N,) whole numbers; by default those of the inputs, where a dataset has them.
        tokens, perturbation, response, plan, target, mask, level, seed, batch_size: as for ``jostle.measure``.
    """

    def __init__(
        self,
        inputs: Any,
        labels: Any,
        tokens: TokenView | str,
        perturbation: Perturbation | str,
        response: Response | str,
        plan: Plan | str | None,
        target: str,
        mask: Any,
        level: float,
        seed: int,
        batch_size: int,
    ) -> None:
        view = specs.build(VIEWS, tokens, "tokens", TokenView)
        self.perturbation = specs.build(PERTURBATIONS, perturbation, "perturbation", Perturbation)
        self.response = specs.build(RESPONSES, response, "response", Response)
        tensors, found = _read(inputs)
        self.source: Any = tensors[ONLY] if set(tensors) == {ONLY} else tensors
        self.mask = np.array(mask.cpu() if isinstance(mask, Tensor) else mask) if mask is not None else None
        self.inputs = Inputs(self.source, view, self.mask)
        self.inputs.check_finite()
        if not isinstance(view, TextView):  # of text, when it is measured: only the model knows its embeddings
            self.perturbation.check(self.inputs.sample_token())
        self.labels = _checked_labels(found if labels is None else labels, len(self.inputs))
        given = self._default_plan() if plan is None else specs.build(PLANS, plan, "plan", Plan)
        self.plan: Plan = Grid(1) if isinstance(given, Grid) and self.perturbation.is_deterministic else given
        self.target, self.level = checked_target(target), checked_level(level)
        self.seed, self.batch_size = checked_whole("seed", seed), checked_whole("batch_size", batch_size, least=1)

    @property
    def quantity(self) -> str:
        """What the measured number is called: sensitivity is the mean of flips, and nothing else."""
        return "sensitivity" if self.response.is_binary else self.response.describe()

    def describe(self) -> dict[str, Any]:
        """What decides the numbers, as text and numbers; contents of inputs and labels as checksums."""
        return {
            "tokens": self.inputs.view.describe(),
            "perturbation": self.perturbation.describe(),
            "response": self.response.describe(),
            "plan": self.plan.describe(),
            "target": self.target,
            "level": self.level,
            "seed": self.seed,
            "num_inputs": len(self.inputs),
            "num_tokens": self.inputs.num_tokens,
            "inputs": _checksum(self.source if isinstance(self.source, dict) else {ONLY: self.source}),
            "mask": None if self.inputs.mask is None else zlib.crc32(np.packbits(self.inputs.mask).tobytes()),
            "labels": None if self.labels is None else _checksum({ONLY: self.labels}),
        }

    def measure(self, model: Callable[..., Any], plan: Plan, name: str) -> Measurement:
        """The sensitivity of ``model``, which is in eval mode already."""
        return measure(
            _asked(model),
            self.source,
            tokens=self.inputs.view,
            perturbation=self.perturbation,
            response=self.response,
            plan=plan,
            target=self.target,
            mask=self.mask,
            level=self.level,
            seed=self.seed,
            batch_size=self.batch_size,
            name=name,
        )

    def accuracy(self, model: Callable[..., Any], name: str) -> float:
        """The share of all inputs whose prediction is their label."""
        assert self.labels is not None
        function, hits = TokenFunction(_asked(model), self._inputs_of(model), name), 0
        for start in range(0, len(self.inputs), self.batch_size):
            rows = np.arange(start, min(start + self.batch_size, len(self.inputs)))
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

    def _inputs_of(self, model: Callable[..., Any]) -> Inputs:
        """The inputs as this model reads them: of text without a mask, it says which id is padding."""
        if not isinstance(self.inputs.view, TextView):
            return self.inputs
        return Inputs(self.source, self.inputs.view, self.mask, padding_id([model]))

    def inputs_on(self, device: torch.device) -> Any:
        """A copy of all inputs where the model is, for measures that may change them."""
        if isinstance(self.source, dict):
            return {key: tensor.clone().to(device) for key, tensor in self.source.items()}
        return self.source.clone().to(device)

    def _default_plan(self) -> Plan:
        if self.perturbation.is_deterministic and len(self.inputs) * self.inputs.num_tokens <= _FEW_TOKENS:
            return Grid(draws=1)
        return Until(half_width=0.02) if self.response.is_binary else Until(relative=0.1)


class _Asked(nn.Module):
    """A model asked without gradients, and without ``inference_mode``, in which a measurement asks its models.

    What a model keeps of a pass in that mode, say a table of positions, could not be trained with afterwards. Beside
    that it is the model: it has its modules under their names, and its attributes.
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
            # Copies, since outside that mode a model may not write to tensors that were made in it.
            copies = {key: tensor.clone() for key, tensor in named.items()}
            return self.model(*(tensor.clone() for tensor in positional), **copies)


def _asked(model: Callable[..., Any]) -> Callable[..., Any]:
    return _Asked(model) if isinstance(model, nn.Module) else model


def _read(source: Any) -> tuple[Batch, Any]:
    """Copies of the inputs as named tensors, and their labels where they come with them."""
    tensors = as_tensors(source)
    if tensors is not None:
        return {key: tensor.detach().clone() for key, tensor in tensors.items()}, getattr(source, "labels", None)
    dataset, stacked = as_dataset(source)
    if dataset is None:
        return stacked or {}, None
    if len(dataset) == 0:
        raise UsageError("inputs are empty: there is nothing to measure")
    items = [dataset[index] for index in range(len(dataset))]
    return collated(items), _second_parts(items)


def _second_parts(items: list[Any]) -> Tensor | None:
    """The labels of (input, label) pairs, if that is what they are."""
    if not all(isinstance(item, tuple | list) and len(item) == 2 and _is_whole(item[1]) for item in items):
        return None
    return torch.as_tensor([int(item[1]) for item in items])


def _is_whole(label: Any) -> bool:
    if isinstance(label, Tensor):
        return label.dim() == 0 and not label.is_floating_point()
    return isinstance(label, int | np.integer)


def _checked_labels(labels: Any, count: int) -> Tensor | None:
    if labels is None or isinstance(labels, Mapping):
        return None
    held = torch.as_tensor(labels).detach().cpu().clone()
    if held.shape != (count,) or held.is_floating_point() or held.is_complex():
        raise UsageError(
            f"labels of shape {tuple(held.shape)} and {held.dtype} must be {count} whole numbers, one for each input"
        )
    held = held.long()
    if int(held.min()) < 0:
        raise UsageError(f"labels hold {int(held.min())}; expected classes from 0, so leave out inputs without a label")
    return held


def _checksum(tensors: Batch) -> int:
    found = 0
    for key in sorted(tensors):
        tensor = tensors[key]
        found = zlib.crc32(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = checksum(tensor, found)
    return found
