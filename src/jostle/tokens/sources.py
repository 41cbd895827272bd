"""What people have as inputs, read as named tensors: arrays, mappings, lists, datasets, loaders and frames.

``as_tensors`` reads what is held in memory or mapped from a file, ``as_dataset`` what is read item by item, and
``padded`` puts rows of different lengths together. What cannot be read raises an error of one line.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, default_collate

from jostle.base.errors import UsageError
from jostle.data.table import DataTable, is_frame
from jostle.tokens.text_views import SPECIAL_KEY

Batch = dict[str, Tensor]

ONLY = ""  # the key of a plain tensor
MASK_KEY = "attention_mask"

EMPTY = "inputs are empty: there is nothing to measure"
RAGGED = "inputs differ in shape, so they cannot be put together: pad all to one length and give a mask"
_MOST_MAPPED = 2**27  # bytes of a memory-mapped array that are read as a whole
_LABELS = ("label", "labels", "label_ids", "idx")  # entries of items that are no inputs
_TAKEN = "a tensor, an array, a mapping of tensors, a frame, a Dataset or a DataLoader"
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def as_tensors(source: Any) -> Batch | None:
    """The source as named tensors, or None if it is read item by item, as large memory-mapped arrays are."""
    if isinstance(source, np.memmap) and source.ndim > 1 and source.nbytes > _MOST_MAPPED:
        return None
    if isinstance(source, Tensor | np.ndarray) or _is_foreign_array(source):
        return {ONLY: tensor_of(source)}
    if isinstance(source, Mapping):
        return _of_mapping(source)
    if is_frame(source):
        return {ONLY: DataTable.of(source).inputs}
    held = getattr(source, "inputs", None)
    return as_tensors(held) if isinstance(held, Tensor | np.ndarray | Mapping) else None


def tensor_of(value: Any, name: str = "inputs") -> Tensor:
    """An array of any library as a tensor on the CPU; that of a memory map reads its file when it is asked for rows."""
    if isinstance(value, Tensor):
        tensor = value.detach().cpu().contiguous()
        return tensor if tensor.dtype not in _UNSIGNED else tensor_of(tensor.numpy(), name)
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":  # of JAX; numpy itself does not know it as a number
        array = array.astype(np.float32)
    if array.dtype.kind not in "biufc":
        kind = "texts" if array.dtype.kind in "UST" else f"of type {array.dtype}"
        hint = ": use tokens=words or tokens=embeddings" if kind == "texts" else "; expected numbers"
        raise UsageError(f"{name} are {kind}{hint}")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:  # torch can hold these, and do next to nothing with them
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise UsageError(
                f"{name} of type {array.dtype} hold {array.max()}, which is more than a signed integer can"
            )
        array = array.astype(np.int64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride < 0 for stride in array.strides):  # as x[::-1] has, which torch cannot read
        array = array.copy()
    with warnings.catch_warnings():  # nothing is written into it
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.as_tensor(array).contiguous()


def as_dataset(source: Any) -> tuple[Any, Batch | None]:
    """A map-style dataset to read from, or the contents of a stream of batches as tensors; the other is None."""
    _check_pair(source)
    if isinstance(source, str) or (isinstance(source, list | tuple) and source and isinstance(source[0], str)):
        raise UsageError("inputs are texts: use tokens=words or tokens=embeddings")
    dataset = source.dataset if isinstance(source, DataLoader) and _is_plain(source) else source
    if hasattr(dataset, "__getitem__") and isinstance(dataset, Sized):
        return dataset, None
    if not hasattr(source, "__iter__"):
        raise UsageError(f"inputs of type {type(source).__name__} cannot be read: give {_TAKEN}")
    batches = [_as_batch(_input_of(batch)) for batch in _in_order(source)]
    return None, _joined(batches) if batches else {ONLY: torch.empty(0)}


def collate_items(items: list[Any]) -> Batch:
    """Items of a dataset as one batch, without their labels."""
    inputs = [_input_of(item) for item in items]
    try:
        if isinstance(inputs[0], Mapping):
            return _as_batch(default_collate([_numbers(one) for one in inputs]))
        return _as_batch(default_collate([tensor_of(one) if _is_array(one) else one for one in inputs]))
    except UsageError:
        raise
    except (RuntimeError, ValueError):
        raise UsageError(RAGGED) from None
    except (TypeError, KeyError):
        held = type(inputs[0]).__name__
        raise UsageError(f"items of the inputs are {held}, which is no tensor: give {_TAKEN}") from None


def read_rows(dataset: Any) -> Batch:
    """All items of a dataset of texts, padded to the longest."""
    rows = [_input_of(dataset[index]) for index in range(len(dataset))]
    if not rows:
        raise UsageError(EMPTY)
    return padded([_numbers(row) if isinstance(row, Mapping) else {"input_ids": tensor_of(row)} for row in rows])


def padded(rows: Sequence[Mapping[str, Tensor]]) -> Batch:
    """Texts of different lengths as tensors, (rows, longest), with a mask; entries without a token axis are stacked.

    >>> made = padded([{"input_ids": torch.tensor([5, 6])}, {"input_ids": torch.tensor([7])}])
    >>> made["input_ids"].tolist(), made["attention_mask"].tolist()
    ([[5, 6], [7, 0]], [[1, 1], [1, 0]])
    """
    return _joined([{key: tensor[None] for key, tensor in row.items()} for row in rows])


def _joined(batches: Sequence[Batch]) -> Batch:
    """Batches one below the other. Texts of batches of different widths are padded, on the side where they are."""
    keys = [key for key in batches[0] if key not in _LABELS or len(batches[0]) == 1]
    lacking = next((key for key in keys for batch in batches if key not in batch), None)
    if lacking is not None:
        raise UsageError(f"inputs as mappings must have the same entries; some have no {lacking!r}")
    batches = [{key: batch[key] for key in keys} for batch in batches]
    widths = {batch["input_ids"].shape[1] for batch in batches if "input_ids" in keys and batch["input_ids"].dim() == 2}
    if len(widths) > 1:
        batches = _widened(batches, max(widths))
    try:
        return {key: torch.cat([batch[key] for batch in batches]) for key in batches[0]}
    except RuntimeError:
        raise UsageError(RAGGED) from None


def _widened(batches: Sequence[Batch], width: int) -> list[Batch]:
    """Batches of texts, each padded to ``width``, with masks."""
    real = [batch.get(MASK_KEY, torch.ones_like(batch["input_ids"])) for batch in batches]
    hidden = [batch["input_ids"][mask == 0] for batch, mask in zip(batches, real, strict=True)]
    pad = next((int(ids[0]) for ids in hidden if len(ids)), 0)  # what the texts are padded with already
    is_left = any(bool((mask[:, 0] == 0).any()) for mask in real)
    made = []
    for batch, mask in zip(batches, real, strict=True):
        own = batch["input_ids"].shape[1]
        more = (width - own, 0) if is_left else (0, width - own)
        fills = {"input_ids": pad, SPECIAL_KEY: 1}
        wide = {
            key: torch.nn.functional.pad(tensor, more, value=fills.get(key, 0))
            if tensor.dim() == 2 and tensor.shape[1] == own
            else tensor
            for key, tensor in {**batch, MASK_KEY: mask}.items()
        }
        made.append(wide)
    return made


def _of_mapping(source: Mapping[Any, Any]) -> Batch:
    if not source:
        raise UsageError("inputs as a mapping must hold tensors; it is empty")
    rows = source.get("input_ids")
    if isinstance(rows, list) and rows and isinstance(rows[0], list):  # what a tokenizer makes by default
        count = len(rows)
        return padded([_numbers({key: source[key][row] for key in source}) for row in range(count)])
    wrong = [key for key, value in source.items() if not isinstance(value, Tensor | np.ndarray | list | tuple)]
    wrong = [key for key in wrong if not _is_foreign_array(source[key])]
    if wrong:
        raise UsageError(f"inputs as a mapping must hold tensors; not so: {', '.join(map(repr, wrong))}")
    return {str(key): _column(key, value) for key, value in source.items()}


def _column(key: Any, value: Any) -> Tensor:
    try:
        return tensor_of(value, f"inputs[{key!r}]")
    except UsageError:
        raise
    except ValueError:
        raise UsageError(f"inputs[{key!r}] is ragged: {RAGGED.partition(': ')[2]}") from None


def _numbers(item: Mapping[Any, Any]) -> Batch:
    """The entries of an item that are numbers, without its labels."""
    found = {}
    for key, value in item.items():
        if isinstance(value, str) or value is None or (key in _LABELS and len(item) > 1):
            continue
        try:
            found[str(key)] = tensor_of(value)
        except (TypeError, ValueError, UsageError):
            raise UsageError(f"entry {key!r} of the inputs is {type(value).__name__}; expected numbers") from None
    if not found:
        raise UsageError(f"items of the inputs hold no numbers, only {', '.join(map(repr, item)) or 'nothing'}")
    return found


def _is_array(item: Any) -> bool:
    """Whether an item is an array or a list of numbers, which ``default_collate`` does not read as one or warns of."""
    return isinstance(item, list | np.ndarray) or _is_foreign_array(item)


def _is_foreign_array(source: Any) -> bool:
    """Whether this is an array of another library, such as JAX, that numpy can read."""
    if isinstance(source, Tensor | np.ndarray | type):
        return False
    return hasattr(source, "__array__") and hasattr(source, "shape") and hasattr(source, "dtype")


def _as_batch(collated: Any) -> Batch:
    if isinstance(collated, Mapping):
        return {str(key): torch.as_tensor(value).contiguous() for key, value in collated.items()}
    return {ONLY: torch.as_tensor(collated).contiguous()}


def _input_of(item: Any) -> Any:
    """The input of a dataset's item: items are often (input, label); a list of numbers is an input."""
    is_numbers = isinstance(item, list) and bool(item) and isinstance(item[0], int | float)
    return item[0] if isinstance(item, tuple | list) and not is_numbers else item


def _check_pair(source: Any) -> None:
    """Raise if the source looks like (inputs, labels): as two inputs, tensors of two shapes cannot go together."""
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


def _in_order(source: Any) -> Iterable[Any]:
    """The batches of a stream; those of a loader that shuffles in the order of its dataset, so that runs repeat."""
    if isinstance(source, DataLoader) and _reads_all(source):
        dataset, size = source.dataset, source.batch_size or 1
        rows = range(len(dataset))  # type: ignore[arg-type]
        return (source.collate_fn([dataset[row] for row in rows[at : at + size]]) for at in rows[::size])
    return source  # type: ignore[no-any-return]


def _is_plain(loader: DataLoader[Any]) -> bool:
    """Whether a loader only shuffles and stacks, so that its dataset can be read by index instead."""
    return _reads_all(loader) and loader.collate_fn is default_collate


def _reads_all(loader: DataLoader[Any]) -> bool:
    """Whether a loader gives out the whole of its dataset, shuffled or not, and nothing else."""
    shuffles = type(loader.sampler) in (SequentialSampler, RandomSampler) and type(loader.batch_sampler) is BatchSampler
    dataset, sampler = loader.dataset, loader.sampler
    is_whole = isinstance(dataset, Sized) and isinstance(sampler, Sized) and len(sampler) == len(dataset)
    return shuffles and is_whole
