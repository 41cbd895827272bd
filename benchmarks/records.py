"""What the benchmarks found, kept where README and docs can point to it."""

import json
import os
from pathlib import Path

from filelock import FileLock

from jostle.base.estimate import provenance
from jostle.base.files import write_text

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "docs" / "results" / "benchmarks.json"
LOCK = ROOT / ".benchmarks" / "lock"  # several runs may write at the same time


def record(name: str, numbers: dict[str, float]) -> None:
    """Write or replace one entry of docs/results/benchmarks.json."""
    origin = {**provenance(), "load": f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"}
    LOCK.parent.mkdir(exist_ok=True)
    with FileLock(LOCK):
        entries = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
        entries[name] = {**{key: float(f"{value:.5g}") for key, value in numbers.items()}, "provenance": origin}
        write_text(PATH, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
