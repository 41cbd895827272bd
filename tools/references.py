"""Write src/jostle/cli/references.json: sensitivities of trained networks, from the records in docs/results."""

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "src" / "jostle" / "cli" / "references.json"
DEMO = ROOT / "docs" / "results" / "demo.jsonl"
STUDIES = ("2403.06925/figure-17", "2403.06925/figure-18")


def of_demo() -> list[dict[str, Any]]:
    """The four networks of the demo: one training run each, with the interval for its digits."""
    lines = [json.loads(line) for line in DEMO.read_text().splitlines()]
    settings = next(line["record"] for line in lines if line["key"] == "settings")
    found = []
    for line in lines:
        if line["key"].startswith("sweep/"):
            networks = {m["name"]: _numbers(m["value"], m["low"], m["high"]) for m in line["record"]["measurements"]}
            found.append(
                {
                    "data": settings["dataset"],
                    "tokens": f"patches:{settings['patch']}",
                    "std": float(line["key"].removeprefix("sweep/")),
                    "networks": networks,
                    "source": "jostle demo, one seed, 95 % intervals",
                }
            )
    return found


def of_study(name: str) -> list[dict[str, Any]]:
    """The networks of a study at small scale: mean and range over training seeds."""
    folder = ROOT / "docs" / "results" / "studies" / name / "small"
    settings = json.loads((folder / "summary.json").read_text())["settings"]
    values: dict[str, dict[str, list[float]]] = {}
    for line in map(json.loads, (folder / "records.jsonl").read_text().splitlines()):
        if line["key"].startswith("cell/"):
            cell = line["record"]
            for label, measured in cell["record"]["final"].items():
                values.setdefault(label, {}).setdefault(cell["values"]["network"], []).append(measured["value"])
    return [
        {
            "data": settings["dataset"],
            "tokens": f"patches:{settings['patch']}",
            "std": _rounded(settings["final"][label]["std"]),
            "networks": {
                network: _numbers(sum(found) / len(found), min(found), max(found)) for network, found in each.items()
            },
            "source": f"{name}, small, mean and range over {max(map(len, each.values()))} seeds",
        }
        for label, each in values.items()
    ]


def _numbers(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": _rounded(value), "low": _rounded(low), "high": _rounded(high)}


def _rounded(value: float) -> float:
    return 0.0 if value == 0 else round(value, 3 - math.floor(math.log10(abs(value))))


def text() -> str:
    """The file."""
    found = [*of_demo(), *(one for name in STUDIES for one in of_study(name))]
    lines = ",\n".join(f" {json.dumps(one)}" for one in found)
    return f'{{"written_by": "tools/references.py", "references": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
