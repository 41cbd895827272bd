"""The model of a training loop: without its wrappers, with a fingerprint of its weights, and protected from changes.

``protect_training`` puts back everything that a measurement could change.
"""

import contextlib
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from jostle.base.errors import UsageError
from jostle.base.model import device_of, eval_mode
from jostle.landscape import parameter_norm
from jostle.training.randomness import random_numbers

_SHARDED = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
_ENTRIES = 1024  # of each parameter, in a fingerprint

Place = tuple[dict[str, Any], str]  # a module's table of parameters or buffers, and a name in it


def unwrap(model: Callable[..., Any]) -> Callable[..., Any]:
    """The module inside ``DataParallel``, ``DistributedDataParallel`` and ``torch.compile``.

    One process measures while the others wait, so it must not communicate with them; and a compiled module would be
    compiled once more for eval mode.
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
    """Whether this is the process of a distributed run that measures and writes."""
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized() and distributed.get_rank() > 0)


def synchronize(model: Callable[..., Any]) -> None:
    """Wait until the model's device has finished the work of the loop, so that it counts as the loop's time."""
    device = device_of(model)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def weight_norm(model: Callable[..., Any]) -> float | None:
    """The Euclidean norm of all weights together; None if there are no weights or the norm is not finite."""
    if not isinstance(model, nn.Module) or not any(each.is_floating_point() for each in model.parameters()):
        return None
    norm = parameter_norm(model)
    return norm if math.isfinite(norm) else None


def fingerprint(model: Callable[..., Any]) -> int | None:
    """A checksum that identifies the weights, over the first 1024 entries of every parameter; None without parameters.

    A training step changes nearly all entries, so a few of them are enough, and quick to read.
    """
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    found = 0
    for parameter in parameters:
        found = tensor_checksum(parameter.detach().flatten()[:_ENTRIES].cpu(), found)
    return found if parameters else None


def tensor_checksum(tensor: Tensor, found: int = 0) -> int:
    """The crc32 of the bits of a tensor on the CPU, continued from ``found``."""
    return zlib.crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data, found)


@contextlib.contextmanager
def protect_training(model: Callable[..., Any], seed: int, *, guards_parameters: bool) -> Iterator[None]:
    """Inside: eval mode, no gradients, no autocast, random numbers from ``seed``. Afterwards all is as before.

    Put back bit for bit: the global generators of torch (CPU and CUDA), numpy and Python, the mode of every module,
    gradients (the same tensor objects), values of buffers, and autocast. Hooks on the modules see the passes inside.

    Arguments:
        model: a module; for any other callable only the generators and autocast can be put back.
        seed: of the global generators inside.
        guards_parameters: also put back the values of parameters, and which of them require gradients. This takes a
            copy of the parameters, so it is for functions that may change them.
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    with contextlib.ExitStack() as stack:
        stack.enter_context(random_numbers(seed))
        stack.enter_context(torch.inference_mode(False))  # tensors made in that mode cannot be used with gradients
        stack.enter_context(torch.no_grad())
        for kind in sorted({"cpu", device_of(model).type}):
            # The model answers in the type of its weights, and no cast of a weight without gradients is cached.
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        stack.enter_context(_keep_values([(module._buffers, name) for module in modules for name in module._buffers]))
        if guards_parameters:
            parameters = [(module._parameters, name) for module in modules for name in module._parameters]
            stack.enter_context(_keep_values(parameters))
        stack.enter_context(
            _keep_gradients([parameter for module in modules for parameter in module.parameters(False)])
        )
        stack.enter_context(eval_mode(model))
        yield


@contextlib.contextmanager
def _keep_gradients(parameters: list[nn.Parameter]) -> Iterator[None]:
    """Inside, parameters have no gradients; afterwards they have the same tensors as before."""
    kept = [(parameter, parameter.grad, parameter.requires_grad) for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        yield
    finally:
        for parameter, gradient, requires_grad in kept:
            parameter.grad = gradient
            if parameter.requires_grad != requires_grad:
                parameter.requires_grad_(requires_grad)


@contextlib.contextmanager
def _keep_values(places: list[Place]) -> Iterator[None]:
    """Afterwards the tensors at these places have the values that they had before."""
    kept = [
        (table, name, table[name], table[name].detach().clone()) for table, name in places if table[name] is not None
    ]
    try:
        yield
    finally:
        for table, name, tensor, before in kept:
            _put_back(table, name, tensor, before)


def _put_back(table: dict[str, Any], name: str, tensor: Tensor, before: Tensor) -> None:
    now = table.get(name)
    # A tensor of another shape is a cache that grew. The model may have noted its size elsewhere, so it stays.
    if now is not tensor and isinstance(now, Tensor) and now.shape == tensor.shape:
        table[name] = tensor
    if not torch.equal(tensor, before):  # Only then: a write invalidates what autograd saved for a backward pass.
        with torch.no_grad():
            tensor.copy_(before)
