"""What the benchmarks found, kept where README and docs can point to it."""

import json
import os
import platform
from pathlib import Path

import torch
from filelock import FileLock

from jostle.base.estimate import provenance
from jostle.base.files import write_text

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "docs" / "results" / "benchmarks.json"
CPUINFO = Path("/proc/cpuinfo")
LOCK = ROOT / ".benchmarks" / "lock"  # several runs may write at the same time


def record(name: str, numbers: dict[str, float]) -> None:
    """Write or replace one entry of docs/results/benchmarks.json."""
    origin = {**provenance(), "processor": _processor(), "load": f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"}
    LOCK.parent.mkdir(exist_ok=True)
    with FileLock(LOCK):
        entries = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
        entries[name] = {**{key: float(f"{value:.5g}") for key, value in numbers.items()}, "provenance": origin}
        write_text(PATH, json.dumps(dict(sorted(entries.items())), indent=1) + "\n")


def _processor() -> str:
    """The maker's name of the processor, where the system tells it, and its vectors."""
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()} with {torch.backends.cpu.get_cpu_capability()}"
