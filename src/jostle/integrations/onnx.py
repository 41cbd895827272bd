"""``onnx:FILE[:output=NAME]``: a network in ONNX's format, run by ONNX Runtime on the CPU.

``OnnxModel`` takes a file or an ``onnxruntime.InferenceSession``. Names, types and sizes of inputs are read from the
network itself. It has no gradients: what needs them, as an ascent to the worst change, says so or goes without.
"""

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base import checks, specs
from jostle.base.errors import UsageError
from jostle.integrations import register

Array = NDArray[Any]

_TYPES: dict[str, Any] = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8,
    "tensor(uint64)": np.uint64, "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_, "tensor(string)": np.object_,
}  # fmt: skip
_REAL = ("tensor(float)", "tensor(double)", "tensor(float16)")
_SCORES = ("logits", "scores", "probabilities", "output_probability")  # of several outputs, the one with the classes
_FILLED = ("attention_mask", "token_type_ids", "position_ids")  # inputs of texts that can be made from the ids


@register("onnx")
def from_onnx(rest: str, seed: int) -> "OnnxModel":  # noqa: ARG001 - the file has the weights
    """The network in a file; ``output=`` names the output that is read."""
    head, colon, tail = rest.rpartition(":")
    file, options = (head, tail) if colon and "=" in tail else (rest, "")
    named = specs.arguments(options)[1]
    for key in named:
        checks.choice("option of onnx", key, ("output",))
    if not file:
        raise UsageError(
            "model 'onnx:' must read onnx:FILE, for example onnx:model.onnx or onnx:model.onnx:output=NAME"
        )
    return OnnxModel(file, output=named.get("output"))


class OnnxModel:
    """A network in ONNX's format as a callable from a batch to outputs.

    Inputs get the type that the network declares. A mapping is given by name. Without one, the batch goes to the only
    input, or to the only one that is not a mask or another companion of token ids, which are filled in. If the network
    was exported for a fixed number of inputs, larger batches are cut to it.

    Attributes:
        folder: that of the file if a tokenizer.json is beside it, so that texts can be read; otherwise None.
        classes: names of the classes, if a config.json beside the file tells them.

    Arguments:
        network: a file, or an ``onnxruntime.InferenceSession``.
        output: the name of the output that is read; by default ``logits``, or the first one with real numbers, and of
            a label and its probabilities the probabilities.
    """

    def __init__(self, network: Any, *, output: str | None = None) -> None:
        self.folder: Path | None = None
        self.classes: tuple[str, ...] = ()
        self.source = "an ONNX session"
        if isinstance(network, str | Path):
            path = Path(network).expanduser()
            self.source, network = f"onnx:{network}", _open(path)
            if (path.parent / "tokenizer.json").is_file():
                self.folder, self.classes = path.parent, _class_names(path.parent / "config.json")
        self.session = network
        self.inputs = {one.name: one for one in network.get_inputs()}
        known = [one.name for one in network.get_outputs()]
        self.output = _choose(network.get_outputs()) if output is None else checks.choice("output", output, known)

    def __reduce__(self) -> Any:
        """How it is sent to another process: by its file."""
        if not self.source.startswith("onnx:"):
            raise UsageError("a session of ONNX Runtime cannot be sent to other processes: give onnx:FILE")
        return _reopen, (self.source.removeprefix("onnx:"), self.output)

    def __repr__(self) -> str:
        taken = ", ".join(f"{name} {_written(one.shape)}" for name, one in self.inputs.items())
        return f"OnnxModel({self.source}: {taken} -> {self.output})"

    @property
    def reads_texts(self) -> bool:
        """Whether its only input is strings."""
        return [one.type for one in self.inputs.values()] == ["tensor(string)"]

    def __call__(self, *given: Any, **named: Any) -> Array:
        """The outputs (batch, ...) of a batch."""
        arrays = self._by_name(given, named)
        size = len(next(iter(arrays.values())))
        typed = {name: self._typed(name, array) for name, array in arrays.items()}
        fixed = {one.shape[0] for one in self.inputs.values() if one.shape and isinstance(one.shape[0], int)} - {-1, 0}
        step = min(fixed, default=size)
        if step == size:
            return self._run(typed)
        parts = [self._run(_part(typed, start, step)) for start in range(0, size, step)]
        return np.concatenate(parts)[:size]

    def _by_name(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Array]:
        """The batch by the names of the network's inputs."""
        found = {name: _array(value) for name, value in named.items() if name in self.inputs}
        wanted = [name for name in self.inputs if name not in found and name not in _FILLED]
        if given and len(given) == len(wanted):
            found |= {name: _array(value) for name, value in zip(wanted, given, strict=True)}
        elif len(given) == 1 and len(wanted) > 1 and getattr(given[0], "ndim", 0) == 2:
            columns = _array(given[0])
            if columns.shape[1] == len(wanted):  # a table whose columns are inputs of their own, as skl2onnx makes them
                found |= {name: columns[:, [number]] for number, name in enumerate(wanted)}
        lacking = [name for name in wanted if name not in found]
        if lacking or not found:
            has = ", ".join(named) or "one tensor"
            raise UsageError(
                f"{self.source} takes {', '.join(self.inputs)}, and the inputs are {has}: give a mapping with "
                f"{', '.join(lacking or self.inputs)}"
            )
        for name in (name for name in self.inputs if name not in found):
            found[name] = _filled(name, next(iter(found.values())))
        return found

    def _typed(self, name: str, array: Array) -> Array:
        """The array in the type that the network declares for this input; raises if the shape is another."""
        declared = self.inputs[name]
        kind = _TYPES.get(declared.type)
        if kind is None:
            raise UsageError(f"{self.source}: input {name} is of type {declared.type}, which jostle cannot make")
        shape = list(declared.shape)
        if kind is np.object_:
            array = array.reshape(-1, *[1] * (len(shape) - 1))  # texts, often wanted as a column
        sizes = [size if isinstance(size, int) and size > 0 else None for size in shape]
        fits = len(sizes) == array.ndim and all(
            size is None or size == own for size, own in zip(sizes[1:], array.shape[1:], strict=True)
        )
        if shape and not fits:
            raise UsageError(
                f"{self.source} takes {name} of shape {_written(shape)}, and the inputs have shape "
                f"{_written(['batch', *array.shape[1:]])}"
            )
        is_cut = np.issubdtype(array.dtype, np.floating) and np.dtype(kind).kind in "biu"
        if is_cut and not (array == np.round(array)).all():
            raise UsageError(
                f"{self.source} takes whole numbers ({declared.type}) as {name}, and the inputs or a perturbation have "
                "others: use uniform-token, replace-by or deletion"
            )
        return np.ascontiguousarray(array.astype(kind, copy=False))

    def _run(self, arrays: dict[str, Array]) -> Array:
        (answer,) = self.session.run([self.output], arrays)
        if isinstance(answer, list) and answer and isinstance(answer[0], Mapping):  # {class: probability} for each row
            keys = list(answer[0])
            return np.asarray([[row[key] for key in keys] for row in answer])
        return np.asarray(answer)


def _reopen(file: str, output: str) -> OnnxModel:
    return OnnxModel(file, output=output)


def is_session(model: Any) -> bool:
    """Whether this is a session of ONNX Runtime, which need not be imported for that."""
    return type(model).__module__.startswith("onnxruntime") and hasattr(model, "get_inputs") and hasattr(model, "run")


def _open(path: Path) -> Any:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise UsageError(f'model onnx:{path} needs onnxruntime: pip install "jostle[onnx]" ({error})') from None
    if not path.is_file():
        raise UsageError(f"model onnx:{path}: the file does not exist")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # one setting of threads for both
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has a class of errors for each kind of trouble
        reason = " ".join(str(error).split())[:300]
        raise UsageError(f"model onnx:{path} cannot be loaded by ONNX Runtime: {reason}") from None


def _choose(outputs: Sequence[Any]) -> str:
    """The output that holds the scores of classes."""
    named = {one.name: one for one in outputs}
    for name in _SCORES:
        if name in named:
            return name
    real = [one.name for one in outputs if one.type in _REAL or one.type.startswith("seq(map")]
    return str((real or list(named))[0])


def _class_names(config: Path) -> tuple[str, ...]:
    try:
        names = json.loads(config.read_text(encoding="utf-8")).get("id2label") or {}
        return tuple(str(names[key]) for key in sorted(names, key=int))
    except (OSError, ValueError, AttributeError):
        return ()


def _array(value: Any) -> Array:
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return np.asarray(value, dtype=object)
    return np.asarray(value)


def _part(arrays: Mapping[str, Array], start: int, step: int) -> dict[str, Array]:
    """``step`` rows from ``start`` on; the last row is repeated where there are fewer."""
    return {name: array[np.minimum(np.arange(start, start + step), len(array) - 1)] for name, array in arrays.items()}


def _filled(name: str, ids: Array) -> Array:
    """What stands beside token ids where the inputs do not say it: all tokens are real, of one text, in order."""
    if name == "attention_mask":
        return np.ones(ids.shape[:2], dtype=np.int64)
    if name == "position_ids":
        return np.broadcast_to(np.arange(ids.shape[1]), ids.shape[:2])
    return np.zeros(ids.shape[:2], dtype=np.int64)


def _written(shape: Sequence[Any]) -> str:
    """A shape with the names of its dynamic axes."""
    return f"({', '.join(str(size) if size not in (None, -1) else '?' for size in shape)})"
