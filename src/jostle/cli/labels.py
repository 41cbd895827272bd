"""The right classes of inputs: by the folders of images, and beside the inputs that a function returns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle import integrations
from jostle.base.errors import UsageError
from jostle.data import Dataset
from jostle.data.image_folder import ImageFiles

_SHOWN = 5  # names of classes in a note, at most


def folder_labels(files: ImageFiles, models: Mapping[str, Any], notes: list[str]) -> Tensor | None:
    """The class of each image, # (images,), by the name of its folder; None if a model has no class of that name.

    Case, hyphens and underscores do not count; of a name such as "tench, Tinca tinca" each part is one.

    Arguments:
        files: images in folders.
        models: by name; all must name their classes alike.
        notes: gets a line that says why folders are no classes.
    """
    if len(files.classes) == 1:
        return None  # a folder without classes
    lists = {name: integrations.class_names(model) for name, model in models.items()}
    unnamed = [name for name, names in lists.items() if not names]
    if unnamed:
        notes.append(f"no accuracy: {unnamed[0]} does not name its classes, so folders cannot be compared with them")
        return None
    name, names = next(iter(lists.items()))
    numbers = {word: number for number, text in enumerate(names) for word in _words(text)}
    missing = [folder for folder in files.classes if _word(folder) not in numbers]
    if missing:
        known = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        notes.append(f"no accuracy: the folder {missing[0]} is no class of {name}; its classes are {known}")
        return None
    if any([*map(_words, other)] != [*map(_words, names)] for other in lists.values()):
        notes.append("no accuracy: the models have different classes")
        return None
    return torch.tensor([numbers[_word(folder)] for folder in files.classes])[files.labels]


def _words(name: str) -> list[str]:
    return [_word(part) for part in (name, *name.split(","))]


def _word(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def with_labels(found: Any, spec: str, notes: list[str]) -> tuple[Any, Tensor | None]:
    """Inputs, and the class of each if a factory returned a pair of them or a ``Dataset``.

    Arguments:
        found: what it returned.
        spec: of the factory, for the note.
        notes: gets a line about labels that cannot be used.
    """
    if found is None:
        raise UsageError(f"--data {spec}: the function returned None; it must return inputs, or inputs and labels")
    if isinstance(found, Dataset):
        return found.inputs, found.labels
    if not isinstance(found, tuple) or len(found) != 2:
        return found, None
    inputs, labels = found
    try:
        return inputs, as_labels(labels, _length(inputs))
    except ValueError as reason:
        notes.append(f"no accuracy: the labels that {spec} returned cannot be used, {reason}")
        return inputs, None


def _length(inputs: Any) -> int:
    first = next(iter(inputs.values()), ()) if isinstance(inputs, dict) else inputs
    try:
        return len(first)
    except TypeError:
        raise ValueError(f"because inputs of type {type(first).__name__} have no length") from None


def as_labels(given: Any, count: int) -> Tensor:
    """The class of each input, # (count,); raises ``ValueError`` with the reason if these are no such numbers."""
    try:
        array = np.asarray(given)
    except Exception as error:  # each library has its own errors for what is no array
        raise ValueError(f"they are no array: {' '.join(str(error).split())}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"they are {'text' if array.dtype.kind in 'SUT' else array.dtype}; expected numbers from 0 on")
    if array.shape != (count,):
        raise ValueError(f"they have shape {array.shape}; expected ({count},), the number of the class of each input")
    if not np.isfinite(array).all() or (array != np.round(array)).any():
        raise ValueError("not all of them are whole numbers")
    return torch.from_numpy(array.astype(np.int64))
