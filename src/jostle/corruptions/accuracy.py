"""How often a classifier is right on corrupted images, with intervals.

Every corruption and severity is applied to the same images, so the outcomes of one image depend on each other. A mean
over several corruptions is therefore a mean over images of what each image contributes, and its interval comes from the
spread between images (cluster = image): thirty corruptions of 100 images are not 3,000 independent trials.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval
from jostle.base.model import call, check_outputs, eval_mode, logits_of
from jostle.base.products import quick_products
from jostle.base.progress import Progress, State, reporter
from jostle.base.registry import unknown_name
from jostle.base.table import Row, Tabular
from jostle.corruptions.corruption import (
    CORRUPTIONS,
    FAMILIES,
    Range,
    apply_corruption,
    as_array,
    check_images,
    read_names,
    read_severities,
)
from jostle.intervals.fixed import bounded_mean, clopper_pearson, histogram, student

_GAFFKE = "Gaffke's bound over images"


class Accuracy(Estimate):
    """A mean over images, with an interval for the population that the images came from."""

    def to_dict(self) -> dict[str, float]:
        """Value and interval, as JSON values."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, eq=False)
class CorruptionAccuracy(Tabular):
    """Which images a model classified correctly, clean and under every corruption and severity.

    >>> right = np.zeros((1, 2, 4), dtype=bool)
    >>> right[0, 0] = True
    >>> result = CorruptionAccuracy(("fog",), (1, 2), right, np.ones(4, dtype=bool), level=0.95)
    >>> result.accuracy("fog", 1).value, result.mean.value, result.mean_corruption_error({"fog": 2.0}).value
    (1.0, 0.5, 0.5)

    Arguments:
        names: of the corruptions.
        severities: in the order in which they were asked for.
        correct: whether the prediction was right, # (corruptions, severities, images).
        clean_correct: the same without corruption, # (images,).
        level: coverage of each interval by itself.
    """

    names: tuple[str, ...]
    severities: tuple[int, ...]
    correct: NDArray[np.bool_]
    clean_correct: NDArray[np.bool_]
    level: float

    @property
    def clean(self) -> Accuracy:
        """Accuracy without corruption, with its Clopper-Pearson interval."""
        return self._share(self.clean_correct)

    @property
    def mean(self) -> Accuracy:
        """Mean accuracy over all corruptions and severities."""
        return self._mean(self.correct)

    def accuracy(self, name: str, severity: int) -> Accuracy:
        """Accuracy under one corruption at one severity, with its Clopper-Pearson interval."""
        if name not in self.names:
            raise unknown_name("corruption in this result", name, self.names)
        if severity not in self.severities:
            raise UsageError(f"severity={severity!r} was not measured; there are {list(self.severities)}")
        return self._share(self.correct[self.names.index(name), self.severities.index(severity)])

    def family(self, family: str) -> Accuracy:
        """Mean accuracy over the corruptions of a family, all severities."""
        families = self.families()
        if family not in families:
            raise unknown_name("family in this result", family, families)
        return families[family]

    def families(self) -> dict[str, Accuracy]:
        """Mean accuracy over the corruptions of each family in this result."""
        homes = np.asarray([CORRUPTIONS.get(name).family for name in self.names])
        return {family: self._mean(self.correct[homes == family]) for family in FAMILIES if family in homes}

    @property
    def summed_errors(self) -> dict[str, float]:
        """For each corruption the error summed over severities; ``mean_corruption_error`` takes it as a reference."""
        return dict(zip(self.names, self._errors().mean(axis=1).tolist(), strict=True))

    def mean_corruption_error(self, reference: "Mapping[str, float] | CorruptionAccuracy | None" = None) -> Accuracy:
        """The mean over corruptions of error / reference error, both summed over severities: the paper's mCE.

            mCE = 1/C sum over c of (sum over s of E[s, c]) / (sum over s of R[s, c])

        It is a ratio: 1 is the reference, and the paper's percentages are 100 times as large. Without a reference it is
        the plain mean error, 1 - ``mean``. Reference numbers count as exact: the interval is Gaffke's for the mean over
        images. A reference measured on the same images is uncertain too: mCE is then linearised in both errors, and the
        interval is Student's, asymptotic, for paired images.

        Arguments:
            reference: ``summed_errors`` of another result or published numbers, for every corruption here; or a result
                for the same images, corruptions and severities.
        """
        errors = self._errors()  # (corruptions, images)
        if reference is None:
            mean = self.mean
            return self._with_interval(1 - mean.value, 1 - mean.high, 1 - mean.low, mean.interval.method)
        if isinstance(reference, CorruptionAccuracy):
            return self._relative_error(errors, reference)
        divisors = self._divisors(reference)
        shares = (errors / divisors[:, None]).mean(axis=0)  # (images,)
        largest = float((len(self.severities) / divisors).mean())
        low, high = bounded_mean(*histogram(shares), self.level, (0.0, largest))
        return self._with_interval(float(shares.mean()), low, high, _GAFFKE)

    def _relative_error(self, errors: NDArray[np.float64], reference: "CorruptionAccuracy") -> Accuracy:
        ours, theirs = ((one.names, one.severities, one.correct.shape) for one in (self, reference))
        if ours != theirs:
            raise UsageError("reference must be a result for the same images, corruptions and severities")
        divisors = self._divisors(reference.summed_errors)
        others = reference._errors() - divisors[:, None]
        ratios = errors.mean(axis=1) / divisors
        shares = ((errors - ratios[:, None] * others) / divisors[:, None]).mean(axis=0)  # (images,)
        variance = shares.var(ddof=1) if len(shares) > 1 else 0.0
        low, high = student(ratios.mean(), variance, len(shares), self.level)
        return self._with_interval(
            float(ratios.mean()), max(0.0, float(low)), float(high), "paired Student's t over images"
        )

    def _divisors(self, reference: Mapping[str, float]) -> NDArray[np.float64]:
        missing = [name for name in self.names if name not in reference]
        if missing:
            raise UsageError(f"reference has no error for {', '.join(missing)}; give one for every corruption")
        divisors = np.asarray([float(reference[name]) for name in self.names])
        for name, divisor in zip(self.names, divisors.tolist(), strict=True):
            if not 0 < divisor <= len(self.severities):
                raise UsageError(
                    f"reference error {divisor:g} of {name} must be above 0 and, summed over {len(self.severities)} "
                    f"severities, at most {len(self.severities)}: errors are shares, not percentages"
                )
        return divisors

    def _errors(self) -> NDArray[np.float64]:
        """(corruptions, images): at how many severities each image is misclassified."""
        errors: NDArray[np.float64] = (~self.correct).sum(axis=1).astype(np.float64)
        return errors

    def _share(self, correct: NDArray[np.bool_]) -> Accuracy:
        low, high = clopper_pearson(correct.sum(), len(correct), self.level)
        return self._with_interval(float(correct.mean()), float(low), float(high), "Clopper-Pearson")

    def _mean(self, correct: NDArray[np.bool_]) -> Accuracy:
        """The mean over corruptions and severities first, then over images, which are independent."""
        outcomes = correct.shape[0] * correct.shape[1]  # of an image
        hits = correct.sum(axis=(0, 1))  # (images,)
        low, high = bounded_mean(*histogram(hits / outcomes), self.level)
        return self._with_interval(float(hits.mean() / outcomes), low, high, _GAFFKE)

    def _with_interval(self, value: float, low: float, high: float, method: str) -> Accuracy:
        return Accuracy(value, Interval(low, high, self.level, "population", method))

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """Accuracy without corruption (severity 0), under each corruption and severity, and on average."""
        single = [
            self.accuracy(name, severity).row(corruption=name, severity=severity)
            for name in self.names
            for severity in self.severities
        ]
        return [self.clean.row(corruption="none", severity=0), *single, self.mean.row(corruption="mean", severity=None)]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the outcomes of single images, as JSON values."""
        single = [
            {"corruption": name, "severity": severity, **self.accuracy(name, severity).to_dict()}
            for name in self.names
            for severity in self.severities
        ]
        return {
            "images": len(self.clean_correct),
            "level": self.level,
            "clean": self.clean.to_dict(),
            "cells": single,
            "families": {family: one.to_dict() for family, one in self.families().items()},
            "mean": self.mean.to_dict(),
        }

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.names, "corruption"))
        rows = [" ".join(["corruption".ljust(width), *(f"{f'severity {one}':^20}" for one in self.severities)])]
        for name in self.names:
            found = (f"{self.accuracy(name, severity)!s:^20}" for severity in self.severities)
            rows.append(" ".join([name.ljust(width), *found]))
        means = {"clean": self.clean, **self.families(), "mean": self.mean}
        rows.extend(f"{label.ljust(width)} {one}" for label, one in means.items())
        return "\n".join(row.rstrip() for row in rows)


def accuracy_under(
    model: Callable[[Tensor], Any],
    images: Tensor | NDArray[np.generic],
    labels: ArrayLike | Tensor,
    corruptions: str | Sequence[str] = "common",
    severities: Sequence[int] = (1, 2),
    seed: int = 0,
    *,
    value_range: Range = (-1.0, 1.0),
    level: float = 0.95,
    batch_size: int = 500,
    progress: Progress = False,
) -> CorruptionAccuracy:
    """The accuracy of ``model`` under self-made corruptions of ``images``, with intervals.

    Every corruption and severity is applied to every image, by ``corrupt``; the images are also classified clean.

    >>> import torch
    >>> images = torch.linspace(-1, 1, 16).reshape(16, 1, 1, 1).repeat(1, 1, 8, 8)
    >>> labels = (images[:, 0, 0, 0] > 0).long()
    >>> result = accuracy_under(lambda x: x.mean(dim=(1, 2, 3)), images, labels, ["contrast"], severities=[5])
    >>> result.mean.value
    1.0

    Arguments:
        model: from a batch of images, # (batch, channels, height, width), to logits # (batch, classes), or # (batch,)
            or (batch, 1) for two classes, where above 0 is class 1; or to a mapping or object with ``logits``, or a
            tuple whose first entry is the logits. An ``nn.Module`` is put in eval mode, and back afterwards.
        images: as ``corrupt`` takes them; the model sees tensors of the same dtype, device and range.
        labels: the class of each image, from 0, # (images,).
        corruptions: names, or a family as ``names`` takes it, e.g. ``common`` for the fifteen of the benchmark.
        severities: from 1 to 5.
        seed: of the corruptions.
        value_range: of the images, as ``corrupt`` takes it.
        level: coverage of the intervals.
        batch_size: the number of images that the model sees at once; it has no influence on the corruptions.
        progress: a bar on a terminal and plain lines elsewhere, nothing, or your own function.
    """
    checks.function("model", model)
    names, strengths, seed = read_names(corruptions), read_severities(severities), checks.whole("seed", seed)
    check_images(images, value_range)
    truth = _read_labels(labels, len(images))
    level = checks.level(level)
    checks.sizes(batch_size=batch_size)
    count = len(images)
    clean, correct = np.empty(count, dtype=bool), np.empty((len(names), len(strengths), count), dtype=bool)
    settings = [(name, severity, correct[i, j]) for i, name in enumerate(names) for j, severity in enumerate(strengths)]
    settings.insert(0, (names[0], 0, clean))  # severity 0: clean images take the same way
    parts = [slice(start, min(start + batch_size, count)) for start in range(0, count, batch_size)]
    report = reporter(progress, "corruptions")
    try:
        with eval_mode(model), quick_products(model):
            for done, (name, severity, hits) in enumerate(settings, start=1):
                for part in parts:
                    inputs = _corrupt_part(images, part, name, severity, seed, value_range)
                    hits[part] = _find_hits(model, inputs, truth[part])
                report(State(done / len(settings), done * count, f"{name} {severity}", "images"))
    finally:
        report.close()
    return CorruptionAccuracy(names, strengths, correct, clean, level)


def _corrupt_part(images: Any, part: slice, name: str, severity: int, seed: int, value_range: Range) -> Tensor:
    indices = np.arange(part.start, part.stop)
    return torch.as_tensor(apply_corruption(images[part], name, severity, seed, value_range, indices))


def _find_hits(model: Callable[[Tensor], Any], inputs: Tensor, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which images of a batch the model classifies correctly, # (batch,)."""
    logits = find_logits(model, inputs)
    is_single = logits.ndim == 1 or logits.shape[1] == 1
    classes = 2 if is_single else logits.shape[1]
    if labels.max() >= classes:
        answer = "a single logit, for classes 0 and 1" if is_single else f"{classes} classes"
        raise UsageError(f"labels go up to {labels.max()}, but the model answers with {answer}; give labels from 0")
    predicted = (logits.reshape(-1) > 0).long() if is_single else logits.argmax(dim=1)
    correct: NDArray[np.bool_] = predicted.numpy() == labels
    return correct


def find_logits(model: Callable[[Tensor], Any], images: Tensor) -> Tensor:
    """The logits of ``model`` on the CPU, # (batch, classes), (batch, 1) or (batch,), all of them finite.

    >>> find_logits(lambda images: {"logits": images.mean(dim=(2, 3))}, torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3])
    """
    are_bytes = images.dtype == torch.uint8 and isinstance(model, nn.Module)
    hint = " (the images are torch.uint8: give floats, scaled as in training)" if are_bytes else ""
    with torch.no_grad():
        answer = call(model, images, name="the model", hint=hint)
    logits = logits_of(answer, name="the model").detach().cpu()
    check_outputs(logits, len(images), name="the model", real=True)
    if logits.ndim > 2:
        raise UsageError(
            f"the model answered {len(images)} images with shape {tuple(logits.shape)}; expected logits of shape "
            f"({len(images)}, classes)"
        )
    if not logits.isfinite().all():
        raise UsageError("the model answered with values that are not finite, so that no logit is the largest")
    return logits


def _read_labels(labels: ArrayLike | Tensor, count: int) -> NDArray[np.int64]:
    found = as_array(labels)
    if count == 0:
        raise UsageError("images are empty; give at least one")
    if found.shape != (count,) or not np.issubdtype(found.dtype, np.integer):
        raise UsageError(f"labels must be {count} whole numbers, one for each image, got {found.dtype} {found.shape}")
    if found.min() < 0:
        raise UsageError(f"labels go down to {found.min()}; give the class of each image, from 0")
    return found.astype(np.int64)
