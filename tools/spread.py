"""How much log sensitivity differs over training seeds, in all trained networks under docs/results/studies.

Prints what ``jostle.intervals.seeds.PRIOR`` was taken from. The constant itself stays as it is: verdicts that shift
whenever a record is added could not be compared.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jostle.intervals.seeds import PRIOR, fitted_spread
from jostle.studies.evidence import LEAST_SEEDS

STUDIES = Path(__file__).resolve().parent.parent / "docs" / "results" / "studies"
LEARNT = 0.97  # training accuracy below which a network has not learnt: a failure to learn is no spread
NetworkLogs = dict[tuple[str, str], dict[int, float]]  # by study and network, by seed


def main() -> None:
    """Print the spread."""
    logs = distinct(learnt_networks(STUDIES))
    spreads = {name: float(np.std(list(by_seed.values()), ddof=1)) for name, by_seed in logs.items()}
    found = fitted_spread([spread**2 for spread in spreads.values()], [len(by_seed) for by_seed in logs.values()])
    shares = np.quantile(list(spreads.values()), [0.1, 0.25, 0.5, 0.75, 0.9])
    print(f"networks that learnt, with {LEAST_SEEDS} seeds and more: {len(logs)}")  # noqa: T201
    print("std of log sensitivity over seeds, quantiles .1 .25 .5 .75 .9:", *(f"{x:.3f}" for x in shares))  # noqa: T201
    print(f"prior by Smyth's moments: std {found.std:.3f}, freedom {found.freedom:.2f}")  # noqa: T201
    print(f"in use: std {PRIOR.std:.3f}, freedom {PRIOR.freedom:.2f}")  # noqa: T201


def learnt_networks(folder: Path) -> NetworkLogs:
    """Log sensitivity at the end of training of every network that learnt."""
    found: NetworkLogs = defaultdict(dict)
    for path in sorted(folder.rglob("records.jsonl")):
        for values, record in _cells(path):
            looks = [epoch["sensitivity"] for epoch in record.get("epochs", ()) if epoch.get("sensitivity")]
            if "seed" in values and looks and record.get("train_accuracy", 0) >= LEARNT:
                name = "/".join(str(value) for key, value in values.items() if key != "seed")
                last = looks[-1]
                share = (last["value"] * last["passes"] + 0.5) / (last["passes"] + 1)
                found[str(path.parent.relative_to(folder)), name][values["seed"]] = math.log(share)
    return dict(found)


def distinct(logs: NetworkLogs) -> NetworkLogs:
    """Every network once: studies share networks, and one with more seeds stands for the same with fewer."""
    kept: NetworkLogs = {}
    for name, by_seed in sorted(logs.items(), key=lambda item: (-len(item[1]), item[0])):
        seen = any(set(by_seed.items()) <= set(other.items()) for other in kept.values())
        if len(by_seed) >= LEAST_SEEDS and not seen:
            kept[name] = by_seed
    return kept


def _cells(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["key"].startswith("cell/"):
            yield entry["record"]["values"], entry["record"]["record"]


if __name__ == "__main__":
    main()
