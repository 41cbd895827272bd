"""The model of a training loop: out of its wrappers, where it is, and what its weights are known by."""

import math
import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from jostle.errors import UsageError
from jostle.landscape import parameter_norm

_SHARDED = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
_LOOKED_AT = 1024


def unwrapped(model: Callable[..., Any]) -> Callable[..., Any]:
    """The module within ``DataParallel``, ``DistributedDataParallel`` and ``torch.compile``.

    One process measures while others wait, so it must not talk to them; and a compiled module would be compiled once
    more for eval mode.
    """
    while True:
        inner = model.module if isinstance(model, DataParallel | DistributedDataParallel) else None
        inner = getattr(model, "_orig_mod", None) if inner is None else inner
        if not isinstance(inner, nn.Module):
            break
        model = inner
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if kinds.intersection(_SHARDED):
        raise UsageError(
            f"model of type {type(model).__name__} has its weights spread over processes, and a probe measures in one; "
            "measure a gathered copy"
        )
    return model


def is_main_process() -> bool:
    """Whether this is the one process of a distributed run that measures and writes."""
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized() and distributed.get_rank() > 0)


def device_of(model: Callable[..., Any]) -> torch.device:
    """Where a module's first parameter is; the CPU for anything else."""
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    return torch.device("cpu") if parameter is None else parameter.device


def wait_for(model: Callable[..., Any]) -> None:
    """Let a device end what the loop gave it to do, so that this is the loop's time."""
    device = device_of(model)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def weight_norm(model: Callable[..., Any]) -> float | None:
    """The Euclidean norm of all weights together; None where there are none, or it is not finite."""
    if not isinstance(model, nn.Module) or not any(each.is_floating_point() for each in model.parameters()):
        return None
    norm = parameter_norm(model)
    return norm if math.isfinite(norm) else None


def fingerprint(model: Callable[..., Any]) -> int | None:
    """A number by which weights are known again: of the first 1024 entries of every parameter; None without any.

    A step of training changes nearly all entries, so that looking at a few of them is enough, and quick.
    """
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    found = 0
    for parameter in parameters:
        found = checksum(parameter.detach().flatten()[:_LOOKED_AT].cpu(), found)
    return found if parameters else None


def checksum(tensor: Tensor, found: int = 0) -> int:
    """crc32 of the bits of a tensor on the CPU, going on from ``found``."""
    return zlib.crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data, found)
