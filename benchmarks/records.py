"""What the benchmarks found, kept where README and docs can point to it."""

import json
from pathlib import Path

from jostle.base.estimate import provenance
from jostle.base.files import write_text

PATH = Path(__file__).resolve().parent.parent / "docs" / "results" / "benchmarks.json"


def record(name: str, numbers: dict[str, float]) -> None:
    """Write or replace one entry of docs/results/benchmarks.json."""
    entries = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    entries[name] = {**{key: round(value, 4) for key, value in numbers.items()}, "provenance": provenance()}
    write_text(PATH, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
