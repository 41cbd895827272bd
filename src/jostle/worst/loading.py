"""Reading results back, of whatever kind."""

import json
from pathlib import Path
from typing import Any

from jostle import estimates
from jostle.estimates import Comparison, Measurement, Sweep
from jostle.files import read_text
from jostle.worst.result import WorstCase


def load(path: str | Path) -> Measurement | Comparison | Sweep | WorstCase:
    """The measurement, comparison, sweep or worst case that ``save`` wrote to ``path``; the file says which.

    A file that is none of these, is cut off or was edited is one clear line.
    """
    return WorstCase.load(path) if _kind(path) == WorstCase.kind else estimates.load(path)


def _kind(path: str | Path) -> Any:
    """What a file says that it is; None if it is no JSON object, which ``estimates.load`` has words for."""
    try:
        record = json.loads(read_text(path, "result"))
    except json.JSONDecodeError:
        return None
    return record.get("kind") if isinstance(record, dict) else None
