"""The record of all attacks, in one file: counts that add up over sessions, and every fault."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle.base.estimate import provenance
from jostle.base.files import write_text

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "results" / "chaos.json"


@dataclass
class Count:
    """What one attack tried and found.

    Arguments:
        tried: how many, by kind.
        where: how many, by what was attacked.
        ended: how many ended in which way.
        faults: what must not be: ``kind`` and ``what``.

    ``mend`` moves a fault that was mended, with a test, from ``faults`` to ``mended``.
    """

    tried: Counter[str] = field(default_factory=Counter)
    where: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, str]] = field(default_factory=list)

    def fault(self, kind: str, what: str) -> None:
        """Note what must not be."""
        self.faults.append({"kind": kind, "what": without_folders(what)[-4000:]})


def without_folders(text: str) -> str:
    """A text in which files are named without the folders of this machine."""
    return re.sub(r"/[^\s\"':]*/", "", text)


def read(path: Path = RECORD) -> dict[str, Any]:
    """The record so far."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def add(path: Path, attack: str, count: Count) -> None:
    """Add the counts of one attack to the record, and empty them."""
    record = read(path)
    before = record.setdefault(
        attack, {"tried": {}, "where": {}, "ended": {}, "faults": [], "mended": [], "sessions": []}
    )
    for name in ("tried", "where", "ended"):
        before[name] = _sum(before[name], getattr(count, name))
    before["faults"] += count.faults
    session = _session()
    if session not in before["sessions"]:
        before["sessions"].append(session)
    write_text(path, json.dumps(record, indent=1, sort_keys=True) + "\n")
    for part in (count.tried, count.where, count.ended, count.faults):
        part.clear()


def start_again(path: Path, attacks: list[str]) -> None:
    """Forget what is known of these attacks."""
    kept = {name: found for name, found in read(path).items() if name not in attacks}
    write_text(path, json.dumps(kept, indent=1, sort_keys=True) + "\n")


def mend(path: Path, attack: str, words: str, test: str) -> int:
    """Move the faults of an attack in which these words occur to those that were mended.

    Arguments:
        path: of the record.
        attack: its name.
        words: a part of what the record says about the faults.
        test: the test that fails without the mend, as pytest calls it.

    Returns how many there were.
    """
    record = read(path)
    found = record[attack]
    chosen = [fault for fault in found["faults"] if words in fault["what"]]
    found["faults"] = [fault for fault in found["faults"] if fault not in chosen]
    found["mended"] += [{**fault, "what": without_folders(fault["what"]), "test": test} for fault in chosen]
    write_text(path, json.dumps(record, indent=1, sort_keys=True) + "\n")
    return len(chosen)


def note_unreached(path: Path, names: list[str]) -> None:
    """Keep which of these commands were never killed."""
    record = read(path)
    if "kills" in record:
        record["kills"]["unreached"] = [name for name in names if name not in record["kills"]["where"]]
        write_text(path, json.dumps(record, indent=1, sort_keys=True) + "\n")


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _session() -> dict[str, str]:
    """Versions, and git's name of the contents of ``src``: commits get other names when a history is rebased."""
    about = provenance()
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD:src"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    kept = {name: about[name] for name in ("jostle", "torch", "numpy", "python", "machine")}
    return kept | {"source": asked.stdout.strip() or "unknown"}
