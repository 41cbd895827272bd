"""``accuracy_under``: how often a classifier is right on corrupted images."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from jostle.corruptions.asking import ask
from jostle.corruptions.checking import (
    Range,
    as_array,
    check_images,
    checked_names,
    checked_seed,
    checked_severities,
)
from jostle.corruptions.corrupting import corrupted
from jostle.corruptions.outcome import CorruptionAccuracy
from jostle.errors import UsageError
from jostle.progress import Progress, State, reporter


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
