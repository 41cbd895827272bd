"""What models answer about inputs as they are, and how often they are right."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.report.measurement import percent


@dataclass(frozen=True)
class CleanAnswers:
    """What models answer about the first inputs as they are.

    Arguments:
        outputs: for each model (inputs, classes).
        labels: (inputs,) the right classes; None if they are not known.
        classes: for each model the names of its classes; empty if it has none.
    """

    outputs: dict[str, Tensor]
    labels: Tensor | None
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.outputs.values())))

    @property
    def have_classes(self) -> bool:
        """Whether every model answers with one number, or with one for each class."""
        return all(outputs.dim() <= 2 for outputs in self.outputs.values())

    def accuracies(self) -> dict[str, float]:
        """The share of inputs that a model gets right, for each model with a class for every label."""
        if self.labels is None:
            return {}
        return {
            name: float((self.predictions(name) == self.labels).double().mean())
            for name in self.outputs
            if not self.why_no_accuracy(name)
        }

    def why_no_accuracy(self, name: str) -> str:
        """Why labels do not tell how often a model is right; empty if they do, or if there are none."""
        if self.labels is None:
            return ""
        outputs = self.outputs[name]
        if outputs.dim() > 2:
            return f"it answers with {tuple(outputs.shape[1:])} numbers and not with one for each class"
        classes = 2 if _is_single(outputs) else outputs.shape[1]
        low, high = int(self.labels.min()), int(self.labels.max())
        if 0 <= low <= high < classes:
            return ""
        return f"labels go from {low} to {high} and its classes from 0 to {classes - 1}"

    def predictions(self, name: str) -> Tensor:
        """(inputs,) the class that a model predicts; for a single output whether it is above 0."""
        outputs = self.outputs[name]
        return (outputs.reshape(len(outputs)) > 0).long() if _is_single(outputs) else outputs.argmax(dim=1)

    def said(self) -> list[str]:
        """For each input, what the models predict and how sure they are, and the right class if it is known."""
        sentences = []
        for row in range(len(self)):
            parts = [f"{name} predicts {self._prediction(name, row)}" for name in self.outputs]
            right = [] if self.labels is None else [f"labelled {self._label(row)}"]
            sentences.append(", ".join([*parts, *right]))
        return sentences

    def _label(self, row: int) -> str:
        """The right class, by its name if all models call it that."""
        assert self.labels is not None
        number = int(self.labels[row])
        named = {known[number] if 0 <= number < len(known) else "" for known in self.classes.values()}
        return named.pop() or str(number) if len(named) == 1 else str(number)

    def _prediction(self, name: str, row: int) -> str:
        number, outputs = int(self.predictions(name)[row]), self.outputs[name]
        known = self.classes.get(name, ())
        word = known[number] if number < len(known) else f"class {number}"
        if _is_single(outputs):
            return word
        return f"{word} ({percent(float(outputs[row].softmax(dim=0)[number]))})"

    def margins(self) -> NDArray[np.float64]:
        """(inputs,) how sure the least sure model is: by how much the first class is ahead of the second."""
        return torch.stack([_margins(outputs) for outputs in self.outputs.values()]).amin(dim=0).numpy()


def _is_single(outputs: Tensor) -> bool:
    return outputs.dim() == 1 or outputs.shape[1] == 1


def _margins(outputs: Tensor) -> Tensor:
    if _is_single(outputs):
        return outputs.reshape(len(outputs)).abs()
    best = outputs.softmax(dim=1).topk(2, dim=1).values
    return best[:, 0] - best[:, 1]
