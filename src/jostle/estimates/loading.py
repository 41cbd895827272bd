"""Reading results back."""

import json
from pathlib import Path

from jostle.errors import UsageError
from jostle.estimates.comparison import Comparison
from jostle.estimates.measurement import Measurement
from jostle.estimates.sweep_result import Sweep
from jostle.files import read_text

KINDS: dict[str, type[Measurement] | type[Comparison] | type[Sweep]] = {
    kind.kind: kind for kind in (Measurement, Comparison, Sweep)
}


def load(path: str | Path) -> Measurement | Comparison | Sweep:
    """The measurement, comparison or sweep that ``save`` wrote to ``path``."""
    text = read_text(path, "result")
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"result file {path} is not whole JSON (line {error.lineno}: {error.msg}); was it cut off?"
        ) from None
    kind = KINDS.get(record.get("kind", "")) if isinstance(record, dict) else None
    if kind is None:
        raise UsageError(f"result file {path} is JSON, but not a jostle result: it has no known 'kind'")
    if record.get("version") != kind.version:
        raise UsageError(f"result file {path} has version {record.get('version')!r}; this jostle reads {kind.version}")
    try:
        return kind.from_dict(record)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"result file {path} lacks or garbles {error}; was it edited?") from None
