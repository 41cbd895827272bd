"""``accuracy_under``: how often a classifier is right on corrupted images."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from jostle.corruptions.corrupting import Range, check_images, check_severity, corrupt
from jostle.corruptions.corruption import CORRUPTIONS, names
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
            or (batch, 1) for two classes, where above 0 is class 1. An ``nn.Module`` is put in eval mode and back.
        images: as ``corrupt`` takes them; the model sees tensors of the same dtype, device and range.
        labels: whole numbers, # (images,).
        corruptions: names, or a family as ``names`` takes it, e.g. ``common`` for the fifteen of the benchmark.
        severities: from 1 to 5.
        seed: of the corruptions.
        value_range: of the images, as ``corrupt`` takes it.
        level: coverage of the intervals.
        batch_size: how many images the model sees at once; no influence on the corruptions.
        progress: a bar on a terminal and plain lines elsewhere, nothing, or your own function.
    """
    chosen, strengths = _checked_names(corruptions), _checked_severities(severities)
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
    return torch.as_tensor(corrupt(images[part], name, severity, seed, value_range=value_range, indices=indices))


def _hits(model: Callable[[Tensor], Any], inputs: Tensor, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which images of a batch the model classifies correctly."""
    with torch.no_grad():
        logits = torch.as_tensor(model(inputs)).detach().cpu()
    if logits.ndim not in (1, 2) or len(logits) != len(inputs):
        raise UsageError(
            f"the model answered {len(inputs)} images with shape {tuple(logits.shape)}; expected logits of shape "
            f"({len(inputs)}, classes)"
        )
    if not logits.isfinite().all():
        raise UsageError("the model answered with values that are not finite, which have no largest one")
    is_single = logits.ndim == 1 or logits.shape[1] == 1
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


def _checked_names(corruptions: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(corruptions, str):
        return (corruptions,) if corruptions in CORRUPTIONS.names() else tuple(names(corruptions))
    chosen = tuple(dict.fromkeys(corruptions))
    for name in chosen:
        CORRUPTIONS.get(name)
    if not chosen:
        raise UsageError("corruptions is empty; name at least one, or a family, for example 'common'")
    return chosen


def _checked_severities(severities: Sequence[int]) -> tuple[int, ...]:
    if isinstance(severities, int):
        raise UsageError(f"severities must be a list, got {severities!r}; write [{severities}]")
    for severity in severities:
        check_severity(severity)
    if not len(severities) or 0 in severities:
        raise UsageError(
            f"severities={list(severities)} must be from 1 to 5, at least one; clean images are always in the result"
        )
    return tuple(dict.fromkeys(int(severity) for severity in severities))


def _checked_labels(labels: ArrayLike | Tensor, count: int) -> NDArray[np.int64]:
    found = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if count == 0:
        raise UsageError("images are empty; give at least one")
    if found.shape != (count,) or not np.issubdtype(found.dtype, np.integer):
        raise UsageError(f"labels must be {count} whole numbers, one for each image, got {found.dtype} {found.shape}")
    return found.astype(np.int64)


def _check_numbers(level: float, batch_size: int) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise UsageError(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
