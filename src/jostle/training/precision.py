"""The floating-point type in which a training step computes: that of the weights, or half precision by autocast."""

import contextlib

import torch
from torch import nn

from jostle.base import checks
from jostle.base.errors import UsageError

_AUTOCAST = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
PRECISIONS = tuple(_AUTOCAST)


def check_precision(precision: str, model: nn.Module, device: torch.device) -> None:
    """Raise if steps in ``precision`` are impossible for this model on this device."""
    checks.choice("precision", precision, PRECISIONS)
    if precision == "float16" and device.type != "cuda":
        raise UsageError(f"precision='float16' needs a cuda device, not {device.type}; use precision='bfloat16'")
    types = {parameter.dtype for parameter in model.parameters()}
    if precision != "float32" and types != {torch.float32}:
        found = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in types))
        # Autocast leaves weights of any other type as they are: nothing would change, and nobody would be told.
        raise UsageError(f"precision={precision!r} needs float32 weights, the model has {found}; call model.float()")


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """A context for a forward pass; it does nothing for ``float32``."""
    kind = _AUTOCAST[precision]
    return contextlib.nullcontext() if kind is None else torch.autocast(device.type, dtype=kind)


def gradient_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Scales the loss up for ``float16``, where small gradients would be rounded to 0; otherwise it does nothing."""
    return torch.amp.GradScaler(device.type, enabled=precision == "float16")
