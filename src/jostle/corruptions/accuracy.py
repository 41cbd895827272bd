"""What a model got right under corruptions, and the means of it, each with an interval.

Every corruption and severity is applied to the same images, so that outcomes of one image belong together. A mean over
several corruptions is therefore a mean over images of what each image contributes, and its interval comes from the
spread between images (cluster = image): thirty corruptions of 100 images are not 3,000 trials.

``accuracy_under``: how often a classifier is right on corrupted images.

A classifier asked about a batch of images: its logits, or one line on why there are none.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from jostle.base.errors import FailureError, JostleError, UsageError
from jostle.base.progress import Progress, State, reporter
from jostle.base.registry import unknown_name
from jostle.corruptions.corruption import (
    CORRUPTIONS,
    FAMILIES,
    Range,
    as_array,
    check_images,
    checked_names,
    checked_seed,
    checked_severities,
    corrupted,
)
from jostle.intervals.fixed import bounded_mean, clopper_pearson, histogram, student


class Accuracy(NamedTuple):
    """A mean over images and its confidence interval for the population that the images came from."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, eq=False)
class CorruptionAccuracy:
    """Which images a model classified correctly, clean and under every corruption and severity.

    >>> right = np.zeros((1, 2, 4), dtype=bool)
    >>> right[0, 0] = True
    >>> result = CorruptionAccuracy(("fog",), (1, 2), right, np.ones(4, dtype=bool), level=0.95)
    >>> result.accuracy("fog", 1).value, result.mean.value, result.mean_corruption_error({"fog": 2.0}).value
    (1.0, 0.5, 0.5)

    Arguments:
        names: of the corruptions.
        severities: in the order asked for.
        correct: whether the prediction was right, # (corruptions, severities, images).
        clean_correct: the same without corruption, # (images,).
        level: coverage of every interval by itself.
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
        """Mean accuracy over the corruptions of each family that occurs."""
        homes = np.asarray([CORRUPTIONS.get(name).family for name in self.names])
        return {family: self._mean(self.correct[homes == family]) for family in FAMILIES if family in homes}

    @property
    def summed_errors(self) -> dict[str, float]:
        """For each corruption the error summed over severities: what ``mean_corruption_error`` takes as reference."""
        return dict(zip(self.names, self._errors().mean(axis=1).tolist(), strict=True))

    def mean_corruption_error(self, reference: "Mapping[str, float] | CorruptionAccuracy | None" = None) -> Accuracy:
        """The mean over corruptions of error / reference error, both summed over severities: the paper's mCE.

            mCE = 1/C sum over c of (sum over s of E[s, c]) / (sum over s of R[s, c])

        As a ratio: 1 is the reference, and the paper's percentages are 100 times as large. Without a reference it is
        the plain mean error, 1 - ``mean``. Reference numbers are taken as exact: the interval is Gaffke's for the mean
        over images. A reference measured on the same images is uncertain too: then mCE is linearised in both errors and
        the interval is Student's, asymptotic, for paired images.

        Arguments:
            reference: ``summed_errors`` of another result or published numbers, for every corruption here; or a result
                for the same images, corruptions and severities.
        """
        errors = self._errors()  # (corruptions, images)
        if reference is None:
            value, low, high = self.mean
            return Accuracy(1 - value, 1 - high, 1 - low)
        if isinstance(reference, CorruptionAccuracy):
            return self._paired(errors, reference)
        divisors = self._divisors(reference)
        shares = (errors / divisors[:, None]).mean(axis=0)  # (images,)
        largest = float((len(self.severities) / divisors).mean())
        low, high = bounded_mean(*histogram(shares), self.level, (0.0, largest))
        return Accuracy(float(shares.mean()), low, high)

    def _paired(self, errors: NDArray[np.float64], reference: "CorruptionAccuracy") -> Accuracy:
        ours, theirs = ((one.names, one.severities, one.correct.shape) for one in (self, reference))
        if ours != theirs:
            raise UsageError("reference must be a result for the same images, corruptions and severities")
        divisors = self._divisors(reference.summed_errors)
        others = reference._errors() - divisors[:, None]
        ratios = errors.mean(axis=1) / divisors
        shares = ((errors - ratios[:, None] * others) / divisors[:, None]).mean(axis=0)  # (images,)
        variance = shares.var(ddof=1) if len(shares) > 1 else 0.0
        low, high = student(ratios.mean(), variance, len(shares), self.level)
        return Accuracy(float(ratios.mean()), max(0.0, float(low)), float(high))

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
        return Accuracy(float(correct.mean()), float(low), float(high))

    def _mean(self, correct: NDArray[np.bool_]) -> Accuracy:
        """Over corruptions and severities first, then over images, which are the independent ones."""
        cells = correct.shape[0] * correct.shape[1]
        hits = correct.sum(axis=(0, 1))  # (images,)
        values, counts = histogram(hits / cells)
        return Accuracy(float(hits.mean() / cells), *bounded_mean(values, counts, self.level))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the outcomes of single images, as JSON values."""
        cells = [
            {"corruption": name, "severity": severity, **self.accuracy(name, severity)._asdict()}
            for name in self.names
            for severity in self.severities
        ]
        return {
            "images": len(self.clean_correct),
            "level": self.level,
            "clean": self.clean._asdict(),
            "cells": cells,
            "families": {family: one._asdict() for family, one in self.families().items()},
            "mean": self.mean._asdict(),
        }

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.names, "corruption"))
        rows = [" ".join(["corruption".ljust(width), *(f"{f'severity {one}':^20}" for one in self.severities)])]
        for name in self.names:
            cells = (f"{self.accuracy(name, severity)!s:^20}" for severity in self.severities)
            rows.append(" ".join([name.ljust(width), *cells]))
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
            or (batch, 1) for two classes, where above 0 is class 1; or to what holds them: a mapping or object with
            ``logits``, or a tuple that begins with them. An ``nn.Module`` is put in eval mode and back.
        images: as ``corrupt`` takes them; the model sees tensors of the same dtype, device and range.
        labels: the number of each image's class, from 0, # (images,).
        corruptions: names, or a family as ``names`` takes it, e.g. ``common`` for the fifteen of the benchmark.
        severities: from 1 to 5.
        seed: of the corruptions.
        value_range: of the images, as ``corrupt`` takes it.
        level: coverage of the intervals.
        batch_size: how many images the model sees at once; no influence on the corruptions.
        progress: a bar on a terminal and plain lines elsewhere, nothing, or your own function.
    """
    chosen, strengths, seed = checked_names(corruptions), checked_severities(severities), checked_seed(seed)
    check_images(images, value_range)
    truth = _checked_labels(labels, len(images))
    _check_numbers(level, batch_size)
    clean, correct = np.empty(len(images), dtype=bool), np.empty((len(chosen), len(strengths), len(images)), dtype=bool)
    cells = [(name, severity, correct[i, j]) for i, name in enumerate(chosen) for j, severity in enumerate(strengths)]
    cells.insert(0, (chosen[0], 0, clean))  # severity 0: clean images take the same way
    report = reporter(progress, "corruptions")
    rows = [slice(start, min(start + batch_size, len(images))) for start in range(0, len(images), batch_size)]
    done = 0
    try:
        with _evaluating(model):
            for name, severity, hits in cells:
                for part in rows:
                    inputs = _corrupted(images, part, name, severity, seed, value_range)
                    hits[part] = _hits(model, inputs, truth[part])
                done += len(images)
                report(State(done / (len(cells) * len(images)), done, f"{name} {severity}", "images"))
    finally:
        report.close()
    return CorruptionAccuracy(chosen, strengths, correct, clean, level)


def _corrupted(images: Any, part: slice, name: str, severity: int, seed: int, value_range: Range) -> Tensor:
    indices = np.arange(part.start, part.stop)
    return torch.as_tensor(corrupted(images[part], name, severity, seed, value_range, indices))


def _hits(model: Callable[[Tensor], Any], inputs: Tensor, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which images of a batch the model classifies correctly."""
    logits = ask(model, inputs)
    is_single = logits.ndim == 1 or logits.shape[1] == 1
    classes = 2 if is_single else logits.shape[1]
    if labels.max() >= classes:
        answer = "a single logit, for classes 0 and 1" if is_single else f"{classes} classes"
        raise UsageError(f"labels go up to {labels.max()}, but the model answers with {answer}; give labels from 0")
    predicted = (logits.reshape(-1) > 0).long() if is_single else logits.argmax(dim=1)
    correct: NDArray[np.bool_] = predicted.numpy() == labels
    return correct


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Inside, every part of a module is in eval mode; afterwards each is in the mode it was in."""
    modes = {part: part.training for part in model.modules()} if isinstance(model, nn.Module) else {}
    for part in modes:
        part.training = False
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _checked_labels(labels: ArrayLike | Tensor, count: int) -> NDArray[np.int64]:
    found = as_array(labels)
    if count == 0:
        raise UsageError("images are empty; give at least one")
    if found.shape != (count,) or not np.issubdtype(found.dtype, np.integer):
        raise UsageError(f"labels must be {count} whole numbers, one for each image, got {found.dtype} {found.shape}")
    if found.min() < 0:
        raise UsageError(f"labels go down to {found.min()}; give the number of the class of each image, from 0")
    return found.astype(np.int64)


def _check_numbers(level: float, batch_size: int) -> None:
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise UsageError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise UsageError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")


def ask(model: Callable[[Tensor], Any], images: Tensor) -> Tensor:
    """The logits of ``model`` on the CPU, # (batch, classes), (batch, 1) or (batch,), all of them finite.

    >>> ask(lambda images: {"logits": images.mean(dim=(2, 3))}, torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3])
    """
    if not callable(model):
        raise UsageError(f"model of type {type(model).__name__} cannot be called; give an nn.Module or a function")
    try:
        with torch.no_grad():
            answer = model(images)
    except JostleError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) + _dtype_hint(model, images)
        raise FailureError(
            f"the model raised {type(error).__name__} on images of shape {tuple(images.shape)}: {reason}"
        ) from error
    logits = _found(answer)
    if logits.ndim not in (1, 2) or len(logits) != len(images) or logits.numel() == 0:
        raise UsageError(
            f"the model answered {len(images)} images with shape {tuple(logits.shape)}; expected logits of shape "
            f"({len(images)}, classes)"
        )
    if not logits.is_floating_point():
        raise UsageError(f"the model answered with {logits.dtype}; expected real-valued logits, not numbers of classes")
    if not logits.isfinite().all():
        raise UsageError("the model answered with values that are not finite, which have no largest one")
    return logits


def _found(answer: Any) -> Tensor:
    """The logits in an answer: a tensor or an array, the first of several, or what the answer calls logits."""
    if isinstance(answer, Mapping) and "logits" in answer:
        answer = answer["logits"]
    elif hasattr(answer, "logits"):
        answer = answer.logits
    elif isinstance(answer, tuple) and answer:
        answer = answer[0]
    if not isinstance(answer, Tensor | np.ndarray | list):
        raise UsageError(f"the model must answer with a tensor of logits, not {type(answer).__name__}")
    try:
        return torch.as_tensor(answer).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(f"the model answered with a {type(answer).__name__} that holds no logits") from None


def _dtype_hint(model: Callable[[Tensor], Any], images: Tensor) -> str:
    """What to do if the images are of another type than the weights."""
    weights = model.parameters() if isinstance(model, nn.Module) else iter(())
    held = next((weight.dtype for weight in weights if weight.is_floating_point()), images.dtype)
    if held == images.dtype:
        return ""
    scale = ", scaled as in training," if images.dtype == torch.uint8 else ""
    return f" (the images are {images.dtype}, the model is {held}: give images{scale} of {held})"
