"""The model of a training loop: out of its wrappers, where it is, and what its weights are known by.

What keeps training as it was: everything a measurement could change is put back, whatever it does.
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
from jostle.landscape import parameter_norm
from jostle.training.randomness import random_numbers

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


Place = tuple[dict[str, Any], str]  # a module's table of parameters or buffers, and a name in it


@contextlib.contextmanager
def untouched(model: Callable[..., Any], seed: int, *, guards_parameters: bool) -> Iterator[None]:
    """Inside: eval mode, no gradients, no autocast, random numbers that are functions of ``seed``. Then all is back.

    Put back bit for bit: the global generators of torch (CPU and CUDA), numpy and Python, the mode of every module,
    gradients (the very tensors), values of buffers, and autocast. Hooks on the modules see the passes inside.

    Arguments:
        model: a module, or any callable, of which nothing is known.
        seed: of the global generators inside.
        guards_parameters: also put back the values of parameters and what requires gradients. It takes a copy of
            them, so it is for functions that are not known to leave them alone.
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    with contextlib.ExitStack() as stack:
        stack.enter_context(random_numbers(seed))
        stack.enter_context(torch.inference_mode(False))  # what it makes could not be used with gradients
        stack.enter_context(torch.no_grad())
        for kind in sorted({"cpu", _device_type(modules)}):
            # In the type of the weights; and no cast of a weight, made here without gradients, is kept for training.
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        stack.enter_context(_values([(module._buffers, name) for module in modules for name in module._buffers]))
        if guards_parameters:
            stack.enter_context(_values([(each._parameters, name) for each in modules for name in each._parameters]))
        stack.enter_context(_gradients([parameter for module in modules for parameter in module.parameters(False)]))
        stack.enter_context(_eval_mode(modules))
        yield


@contextlib.contextmanager
def _eval_mode(modules: list[nn.Module]) -> Iterator[None]:
    modes = [module.training for module in modules]
    try:
        for module in modules:
            module.training = False  # not .eval(), which a module may override to keep a part in train mode
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


@contextlib.contextmanager
def _gradients(parameters: list[nn.Parameter]) -> Iterator[None]:
    """Gradients are taken away and the same tensors put back, so that nothing inside can add to them."""
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
def _values(places: list[Place]) -> Iterator[None]:
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
    # A tensor of another shape is a cache that grew; the model may remember elsewhere that it did, so it stays.
    if now is not tensor and isinstance(now, Tensor) and now.shape == tensor.shape:
        table[name] = tensor
    if not torch.equal(tensor, before):  # Only then: a write would void what autograd saved for a backward pass.
        with torch.no_grad():
            tensor.copy_(before)


def _device_type(modules: list[nn.Module]) -> str:
    parameter = next(modules[0].parameters(), None) if modules else None
    return "cpu" if parameter is None else parameter.device.type
