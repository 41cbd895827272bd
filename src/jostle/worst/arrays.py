"""Arrays of any shape in JSON: as readable numbers, or packed where there are many."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray


def pack(array: NDArray[Any] | None, *, is_compact: bool = False) -> dict[str, Any] | None:
    """An array as a shape and a flat list, or, compact, as the base64 text of single-precision numbers.

    >>> pack(np.array([[1.0, np.nan]]))
    {'shape': [1, 2], 'kind': 'f', 'values': [1.0, None]}
    """
    if array is None:
        return None
    if is_compact:
        content = base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")
        return {"shape": list(array.shape), "float32": content}
    if array.dtype.kind != "f":
        return {"shape": list(array.shape), "kind": "i", "values": array.ravel().tolist()}
    values = [value if np.isfinite(value) else None for value in array.ravel().tolist()]
    return {"shape": list(array.shape), "kind": "f", "values": values}


def unpack(record: dict[str, Any] | None) -> Any:
    """The array that ``pack`` wrote; whatever could not be written is NaN."""
    if record is None:
        return None
    shape = tuple(record["shape"])
    if "float32" in record:
        return np.frombuffer(base64.b64decode(record["float32"], validate=True), dtype="<f4").reshape(shape).copy()
    if record["kind"] == "i":
        return np.asarray(record["values"], dtype=np.int64).reshape(shape)
    values = [np.nan if value is None else value for value in record["values"]]
    return np.asarray(values, dtype=np.float64).reshape(shape)
