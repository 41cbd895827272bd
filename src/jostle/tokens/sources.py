"""Reading inputs in the many ways people have them: tensors, mappings, datasets, loaders."""

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, default_collate

from jostle.base.errors import UsageError

Batch = dict[str, Tensor]

ONLY = ""  # the key under which a plain tensor is filed
_RAGGED = "inputs differ in shape, so they cannot be put together: pad all to one length and give a mask"


def as_tensors(source: Any) -> dict[str, Tensor] | None:
    """The source as named tensors, or None if it is fetched item by item."""
    if isinstance(source, Tensor | np.ndarray):
        return {ONLY: torch.as_tensor(source).cpu().contiguous()}
    if isinstance(source, Mapping):
        wrong = [key for key, value in source.items() if not isinstance(value, Tensor | np.ndarray)]
        if wrong or not source:
            listed = ", ".join(repr(key) for key in wrong) or "it is empty"
            raise UsageError(f"inputs as a mapping must hold tensors; not so: {listed}")
        return {str(key): torch.as_tensor(value).cpu().contiguous() for key, value in source.items()}
    held = getattr(source, "inputs", None)
    return as_tensors(held) if isinstance(held, Tensor | np.ndarray | Mapping) else None


def as_dataset(source: Any) -> tuple[Any, dict[str, Tensor] | None]:
    """A map-style dataset to fetch from, or the stacked contents of a stream of batches."""
    _check_pair(source)
    dataset = source.dataset if isinstance(source, DataLoader) and _is_plain(source) else source
    if hasattr(dataset, "__getitem__") and isinstance(dataset, Sized):
        return dataset, None
    if not hasattr(source, "__iter__"):
        raise UsageError(
            f"inputs of type {type(source).__name__} cannot be read: give a tensor, a mapping of tensors, a Dataset or "
            "a DataLoader"
        )
    batches = [as_batch(_input_of(batch)) for batch in source]
    if not batches:
        return None, {ONLY: torch.empty(0)}
    try:
        return None, {key: torch.cat([batch[key] for batch in batches]) for key in batches[0]}
    except RuntimeError:
        raise UsageError(_RAGGED) from None


def _check_pair(source: Any) -> None:
    """Raise if the source looks like (inputs, labels); as two inputs, tensors of two shapes cannot go together."""
    if not isinstance(source, tuple | list) or len(source) != 2:
        return
    if not all(isinstance(part, Tensor | np.ndarray) and part.ndim for part in source):
        return
    first, second = (tuple(part.shape) for part in source)
    if first != second and first[0] == second[0]:
        raise UsageError(
            f"inputs are two tensors of {first[0]} each, of shapes {first} and {second}: if the second are labels, "
            "give the first alone"
        )


def _is_plain(loader: DataLoader[Any]) -> bool:
    """Whether a loader only shuffles and stacks, so that its dataset can be read by index instead."""
    shuffles = type(loader.sampler) in (SequentialSampler, RandomSampler) and type(loader.batch_sampler) is BatchSampler
    dataset, sampler = loader.dataset, loader.sampler
    is_whole = isinstance(dataset, Sized) and isinstance(sampler, Sized) and len(sampler) == len(dataset)
    return shuffles and is_whole and loader.collate_fn is default_collate


def collated(items: list[Any]) -> Batch:
    """Items of a dataset as one batch."""
    try:
        return as_batch(default_collate([_input_of(item) for item in items]))
    except RuntimeError:
        raise UsageError(_RAGGED) from None


def _input_of(item: Any) -> Any:
    """The input of a dataset's item: items are often (input, label)."""
    return item[0] if isinstance(item, tuple | list) else item


def as_batch(collated: Any) -> Batch:
    """A collated batch as named, contiguous tensors."""
    if isinstance(collated, Mapping):
        return {str(key): torch.as_tensor(value).contiguous() for key, value in collated.items()}
    return {ONLY: torch.as_tensor(collated).contiguous()}
