"""Reading inputs in the many ways people have them: tensors, mappings, datasets, loaders."""

from collections import OrderedDict
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, default_collate

from jostle.base.errors import UsageError

Batch = dict[str, Tensor]

ONLY = ""  # the key under which a plain tensor is filed
CACHE_BYTES = 2**29  # of items that are kept: about 900 images of 3 x 224 x 224 in float32
_ROWS_AT_ONCE = 1024
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


class Items:
    """The inputs of a dataset by index. An item is read when it is needed, and once while there is room to keep it.

    Decoding a photograph takes longer than many a model's answer, and an input is in many trials. Kept are the items
    that were used last, up to ``CACHE_BYTES``.

    Arguments:
        dataset: map-style, of tensors, mappings of tensors, or pairs whose first part is the input.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._kept: OrderedDict[int, Batch] = OrderedDict()  # (1, ...) each, the one used last at the end
        self.bytes_kept = 0

    def __len__(self) -> int:
        return len(self._dataset)

    def batch(self, indices: NDArray[np.int64]) -> Batch:
        """The inputs of these indices, repeated where an index is, in new memory."""
        distinct, back = np.unique(indices, return_inverse=True)
        items = [self._item(index) for index in distinct.tolist()]
        try:
            joined = {key: torch.cat([item[key] for item in items]) for key in items[0]}
        except RuntimeError:
            raise UsageError(_RAGGED) from None
        except KeyError as error:
            raise UsageError(f"inputs as mappings must have the same entries; some have no {error}") from None
        rows = torch.from_numpy(back)
        return {key: tensor.index_select(0, rows) for key, tensor in joined.items()}

    def _item(self, index: int) -> Batch:
        """One item, (1, ...), from memory or from the dataset; NaN and infinity are refused."""
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        with torch.inference_mode(False):  # it may be used where gradients are needed
            item = collated([self._dataset[index]])
        if not all(bool(rows_finite(tensor).all()) for tensor in item.values()):
            raise UsageError(f"input {index} holds NaN or infinity; clean the inputs first")
        self._kept[index] = item
        self.bytes_kept += _size(item)
        while self.bytes_kept > CACHE_BYTES:
            self.bytes_kept -= _size(self._kept.popitem(last=False)[1])
        return item


def rows_finite(tensor: Tensor) -> Tensor:
    """(len(tensor),): true for rows without NaN and infinity; whole numbers have neither."""
    if not tensor.is_floating_point():
        return torch.ones(len(tensor), dtype=torch.bool)
    parts = torch.split(tensor, _ROWS_AT_ONCE)  # a few rows at a time: what is finite takes memory too
    return torch.cat([part.isfinite().reshape(len(part), -1).all(dim=1) for part in parts])


def _size(item: Batch) -> int:
    return sum(tensor.nbytes for tensor in item.values())


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
