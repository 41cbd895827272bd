"""``load``: read a saved result of any kind; the file says which kind it is."""

import json
from pathlib import Path

from jostle.base.errors import UsageError
from jostle.base.files import parse_json, read_text
from jostle.base.typed import check_fields, check_written
from jostle.estimates import Certificates, Comparison, Depth, Influence, Measurement, Stability, Sweep, TextChanges
from jostle.worst.result import WorstCase

Result = Measurement | Comparison | Sweep | Stability | Certificates | WorstCase | Influence | Depth | TextChanges
KINDS: dict[str, type[Result]] = {
    kind.kind: kind
    for kind in (Measurement, Comparison, Sweep, Stability, Certificates, WorstCase, Influence, Depth, TextChanges)
}


def load(path: str | Path) -> Result:
    """The result of any kind that ``save`` wrote to ``path``: a measurement, a comparison, an influence, ...

    A file that holds none of these, is cut off or was edited raises an error of one line.
    """
    text = read_text(path, "result")
    try:
        record = parse_json(text, strict=True)  # as save writes it
    except json.JSONDecodeError as error:
        raise UsageError(
            f"result file {path} is not whole JSON (line {error.lineno}: {error.msg}); was it cut off?"
        ) from None
    named = record.get("kind") if isinstance(record, dict) else None
    kind = KINDS.get(named) if isinstance(named, str) else None
    if kind is None:
        raise UsageError(f"result file {path} is JSON, but not a jostle result: it has no known 'kind'")
    if record.get("version") != kind.version:
        raise UsageError(f"result file {path} has version {record.get('version')!r}; this jostle reads {kind.version}")
    try:
        found = kind.from_dict(record)
        check_fields(found)
        check_written(record, found.to_dict())
        str(found)  # a number that has become a text or a list shows here, and not when somebody prints the result
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"result file {path} lacks or garbles {reason}; was it edited?") from None
    return found
