"""Linear layers by the quicker of the two libraries that torch comes with.

On a processor that is not Intel's, torch's usual library of matrix products, MKL, uses vectors of 8 numbers. oneDNN, by
which torch computes convolutions, uses all 16 that AVX-512 has: on an AMD EPYC of 2025 it makes 240 instead of 105
billion multiplications and additions a second. It reads the same weights and gives the same numbers up to rounding.
"""

import contextlib
import functools
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

_LEAST_PRODUCTS = (
    2**21
)  # multiplications of a call; below, the 10 microseconds that oneDNN takes to begin are not won back
_PROCESSORS = Path("/proc/cpuinfo")
_is_on = True


@contextlib.contextmanager
def quick_products(*models: Any) -> Iterator[None]:
    """Inside, plain ``nn.Linear`` layers of these models use oneDNN where it is quicker; afterwards they are as before.

    Only layers in float32 on the CPU, and only calls without gradients and of some size; all else is computed as usual.
    """
    layers = [layer for model in models for layer in _layers_of(model)] if _is_on and _is_quicker() else []
    for layer in layers:
        vars(layer)["forward"] = functools.partial(_forward, layer)  # a partial: models may be pickled meanwhile
    try:
        yield
    finally:
        for layer in layers:
            vars(layer).pop("forward", None)


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Inside, new measurements use torch's usual products only: to compare, in tests and benchmarks."""
    global _is_on
    before, _is_on = _is_on, False
    try:
        yield
    finally:
        _is_on = before


def _layers_of(model: Any) -> Iterator[nn.Linear]:
    """The linear layers of a model that nobody has changed; none of a model that is compiled."""
    parts = list(model.modules()) if isinstance(model, nn.Module) else []
    if any(isinstance(part, torch.jit.ScriptModule) or hasattr(part, "_orig_mod") for part in parts):
        return
    for part in parts:
        if type(part) is nn.Linear and "forward" not in vars(part):
            yield part


def _forward(layer: nn.Linear, input: Tensor) -> Tensor:
    """W x + b, by oneDNN if that is quicker and there is nothing about the input that it does not know."""
    given = input  # named as in ``nn.Linear``, whose callers may give it by name
    weight = layer.weight
    is_known = (
        given.numel() * len(weight) >= _LEAST_PRODUCTS
        and type(given) is Tensor
        and given.dtype == weight.dtype == torch.float32
        and given.device.type == weight.device.type == "cpu"
        and weight.is_contiguous()
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and torch._C._functorch.peek_interpreter_stack() is None  # vmap and its like
    )
    if not is_known:
        return nn.functional.linear(given, weight, layer.bias)
    return _by_onednn(given, weight, layer.bias)


def _by_onednn(given: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(given, weight, bias, "none", [], "")
    return found


def _is_quicker() -> bool:
    """Whether oneDNN has wider vectors than MKL here, and nobody asked torch for rounder products or for no oneDNN."""
    return (
        _has_wider_vectors()
        and torch._C._has_mkldnn
        and torch._C._get_mkldnn_enabled()
        and torch.get_float32_matmul_precision() == "highest"
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


@functools.cache
def _has_wider_vectors() -> bool:
    return torch._C.has_mkl and torch.backends.cpu.get_cpu_capability() == "AVX512" and _is_amd()


def _is_amd() -> bool:
    if not _PROCESSORS.exists():
        return "AuthenticAMD" in platform.processor()  # on Windows
    return "AuthenticAMD" in _PROCESSORS.read_text(encoding="utf-8", errors="replace")
