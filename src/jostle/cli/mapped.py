"""Tensors that are larger than memory: they live in a file that has no name and is gone when the process is."""

import shutil
import tempfile
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from jostle.base.errors import UsageError

LARGE = 2**27  # bytes of a tensor that is not copied in memory
_AT_ONCE = 2**24  # bytes that are copied at a time


def mapped(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A new tensor in a file of its own; the system keeps in memory what there is room for."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UsageError(
            f"the inputs need {size / 1e9:,.1f} GB on disk, and {folder} has {free / 1e9:,.1f}: give --limit, or set "
            "TMPDIR to a folder with more room"
        )
    with tempfile.TemporaryFile(prefix="jostle-") as file:
        file.truncate(max(size, 1))
        flat = np.memmap(file, dtype=np.uint8, mode="r+", shape=(size,))
    return torch.from_numpy(flat).view(dtype).view(tuple(shape))


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in another type; a large one outside of memory, where a copy might not fit."""
    if tensor.dtype == dtype or tensor.nbytes <= LARGE or not len(tensor):
        return tensor.to(dtype)
    made = mapped(tensor.shape, dtype)
    step = max(1, _AT_ONCE * len(tensor) // tensor.nbytes)
    for start in range(0, len(tensor), step):
        made[start : start + step] = tensor[start : start + step]
    return made
