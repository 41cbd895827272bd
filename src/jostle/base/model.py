"""The one place that calls a model: eval mode, device, arguments, and the logits in its answer.

A model is an ``nn.Module`` or any callable from a batch to outputs. Everything that asks a model uses these functions.
So every package takes the same models, gives the same error for a wrong one, and leaves a module as it was.
"""

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base.errors import FailureError, JostleError, UsageError, shown
from jostle.base.origin import origin

_NAMED = 5  # entries of a mapping that a message names


@contextlib.contextmanager
def eval_mode(*models: Any) -> Iterator[bool]:
    """Inside, every part of the models is in eval mode; afterwards each part has its former mode.

    ``training`` is set on every part and not by ``eval()``, which a module may override to keep a part in train mode.
    Callables that are not modules have no mode. Yields whether any part was in train mode.

    >>> model = nn.Dropout()
    >>> with eval_mode(model) as was_training:
    ...     was_training, model.training
    (True, False)
    >>> model.training
    True
    """
    modules = [part for model in models if isinstance(model, nn.Module) for part in model.modules()]
    modes = [part.training for part in modules]
    try:
        for part in modules:
            part.training = False
        yield any(modes)
    finally:
        for part, mode in zip(modules, modes, strict=True):
            part.training = mode


def has_hooks(model: Any) -> bool:
    """Whether somebody looks at a part of this model, or changes what it gives out, each time it is called."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return any(part._forward_hooks or part._forward_pre_hooks for part in modules)


def device_of(model: Any) -> torch.device:
    """The device of a model: that of its first parameter, or else of its first buffer; the CPU for a function."""
    if not isinstance(model, nn.Module):
        return torch.device("cpu")
    held: Tensor | None = next(model.parameters(), None)
    held = next(model.buffers(), None) if held is None else held
    return torch.device("cpu") if held is None else held.device


def on_device(device: str | torch.device, *movable: Any) -> torch.device:
    """Move modules in place to ``device`` and return it; a device that cannot be used raises an error of one line.

    >>> on_device("cpu", nn.Linear(2, 1))
    device(type='cpu')
    """
    try:
        place = torch.device(device)
        for module in movable:
            if isinstance(module, nn.Module):
                module.to(place)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = " ".join(str(error).splitlines()[0].split())
        raise UsageError(f"device={shown(device)} cannot be used: {reason}") from None
    return place


def call(
    model: Callable[..., Any],
    *positional: Any,
    named: Mapping[str, Any] | None = None,
    name: str = "model",
    hint: str | Callable[[BaseException], str] = "",
) -> Any:
    """What ``model`` answers; whatever it raises becomes an error of one line that names the model and the batch.

    Arguments:
        model: any callable.
        positional, named: what it is given; ``named`` by keyword.
        name: how messages call it.
        hint: what to look at, appended to its own message, or a function from the error to that; by default a type of
            the inputs that is not the model's.
    """
    named = named or {}
    try:
        return model(*positional, **named)
    except JostleError:
        raise
    except (Exception, SystemExit) as error:
        given = [("input", value) for value in positional] + list(named.items())
        shapes = ", ".join(f"{key} {tuple(value.shape)}" for key, value in given if isinstance(value, Tensor))
        told = hint(error) if callable(hint) else hint or dtype_hint(model, [value for _, value in given])
        reason = " ".join(str(error).split()) + told + origin(error)
        raise FailureError(f"{name} raised {type(error).__name__} on a batch of {shapes}: {reason}") from error


def parameter_type(models: Iterable[Any]) -> torch.dtype | None:
    """The type of the first real-valued parameter of these models; None if they are no modules or have none."""
    parameters = (parameter for model in models if isinstance(model, nn.Module) for parameter in model.parameters())
    return next((parameter.dtype for parameter in parameters if parameter.is_floating_point()), None)


def dtype_hint(model: Any, given: Iterable[Any], *, whole_numbers: bool = False) -> str:
    """What to do if inputs are of another type than the model's parameters; empty if they are not.

    Arguments:
        model: whose parameters are looked at.
        given: what it was given; only tensors count.
        whole_numbers: whether tensors of whole numbers count too; they do not where they may be token ids.
    """
    tensors = [value for value in given if isinstance(value, Tensor)]
    types = [value.dtype for value in tensors if whole_numbers or value.is_floating_point()]
    parameters = model.parameters() if isinstance(model, nn.Module) else iter(())
    held = next((parameter.dtype for parameter in parameters if parameter.is_floating_point()), None)
    if held is None or not types or held in types:
        return ""
    return f" (the inputs are {types[0]}, the model is {held}: convert the inputs with .to({held}))"


def logits_of(answer: Any, *, name: str = "model") -> Tensor:
    """The outputs in a model's answer: a tensor, array or list, the ``logits`` of a mapping or object, or the first of several.

    Arrays may be of any library that numpy can read. Names of classes become numbers, the same for the same name.

    >>> logits_of({"loss": 0.3, "logits": torch.zeros(2, 5)}).shape
    torch.Size([2, 5])
    >>> logits_of({"scores": torch.zeros(2, 5)})
    Traceback (most recent call last):
    jostle.base.errors.UsageError: model must answer with a tensor of outputs, not a dict with 'scores'; expected 'logits': return that entry alone, or name it so

    Arguments:
        answer: what the model returned.
        name: how messages call the model.
    """  # noqa: E501 - an error is one line
    if isinstance(answer, Mapping) and "logits" in answer:
        answer = answer["logits"]
    elif hasattr(answer, "logits"):
        answer = answer.logits
    elif isinstance(answer, tuple | list) and answer:
        answer = answer[0] if isinstance(answer[0], Tensor | np.ndarray) else _as_numbers(answer)
    if isinstance(answer, np.ndarray | np.generic) or (hasattr(answer, "__array__") and not isinstance(answer, Tensor)):
        answer = _as_tensor(np.asarray(answer))
    if not isinstance(answer, Tensor):
        raise UsageError(f"{name} must answer with a tensor of outputs, not {_described(answer)}")
    return _plain(answer, name)


def _plain(outputs: Tensor, name: str) -> Tensor:
    """Outputs as real numbers in dense memory; what cannot be that is refused."""
    if outputs.is_meta:
        raise UsageError(
            f"{name} answers with a tensor without data: its weights are on the device meta, load them first"
        )
    if outputs.is_complex():
        raise UsageError(
            f"{name} answers with complex numbers ({outputs.dtype}); expected real ones, such as their sizes"
        )
    if outputs.layout != torch.strided:
        outputs = outputs.to_dense()
    return outputs.float() if outputs.dtype == torch.bool and outputs.dim() > 1 else outputs


def _as_tensor(array: np.ndarray[Any, Any]) -> Any:
    """An array as a tensor in memory of its own; anything that is neither numbers nor names as it is."""
    if array.dtype.name == "bfloat16":  # of JAX; numpy itself does not know it as a number
        array = array.astype(np.float32)
    if array.dtype.kind in "biuf":
        native = array.astype(array.dtype.newbyteorder("="))  # a copy: JAX gives arrays that must not be written to
        return torch.from_numpy(native)
    names = array.astype(object).ravel().tolist()
    if not names or not all(isinstance(name, str) for name in names):
        return array
    numbers = {name: zlib.crc32(name.encode()) for name in set(names)}
    return torch.tensor([numbers[name] for name in names]).reshape(array.shape)


def _as_numbers(answer: Any) -> Any:
    """A list of numbers, names, or lists of numbers as an array; anything else as it is."""
    if all(isinstance(one, str) for one in answer):
        return np.asarray(answer)
    try:
        return np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        return answer


def check_outputs(outputs: Tensor, size: int, *, name: str = "model", real: bool = False) -> None:
    """Raise unless ``outputs`` has a row for each of ``size`` inputs, (size, classes), (size, 1) or (size,).

    Arguments:
        outputs: of ``logits_of``.
        size: how many inputs the model was asked about.
        name: how messages call the model.
        real: whether they must be real-valued, as numbers of classes are not.
    """
    if outputs.dim() == 0 or len(outputs) != size or (size and not outputs.numel()):
        raise UsageError(
            f"{name} answered {size} inputs with outputs of shape {tuple(outputs.shape)}; "
            f"expected ({size}, classes), ({size}, 1) or ({size},)"
        )
    if real and not outputs.is_floating_point():
        raise UsageError(f"{name} answered with {outputs.dtype}; expected real-valued logits, not numbers of classes")


def _described(answer: Any) -> str:
    """A model's answer in a few words; for a mapping, the entries that it has instead of logits."""
    if isinstance(answer, np.ndarray):
        return f"an array of {answer.dtype}"
    if not isinstance(answer, Mapping):
        return type(answer).__name__
    held = ", ".join(repr(key) for key in list(answer)[:_NAMED]) or "nothing"
    more = f" and {len(answer) - _NAMED} more" if len(answer) > _NAMED else ""
    return f"a {type(answer).__name__} with {held}{more}; expected 'logits': return that entry alone, or name it so"
