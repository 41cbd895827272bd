"""Train the network of examples/lower_sensitivity.py at several strengths and seeds, and record what comes of it.

Records go to docs/results/lowering.jsonl, the tables between the markers of docs/lowering.md. An interrupted run
continues: trained networks are kept in runs/lowering. Delete both to start anew.
"""

import json
import math
import re
import runpy
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import jostle
from jostle.base.estimate import provenance
from jostle.base.files import replacing, write_text
from jostle.base.store import Store
from jostle.intervals.fixed import student

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "lower_sensitivity.py"
RECORDS = ROOT / "docs" / "results" / "lowering.jsonl"
PAGE = ROOT / "docs" / "lowering.md"
NETWORKS = ROOT / "runs" / "lowering"
MARKED = re.compile(r"(<!-- written by tools/record_lowering.py -->\n).*?(<!-- end of the record -->)", re.DOTALL)

STRENGTHS = (0.0, 1.0, 3.0)
SEEDS = (0, 1, 2, 3, 4)
OTHER_STDS = (0.5, 8.0)  # noise that the networks were not trained with
HALF_WIDTH, LEVEL = 0.005, 0.95
_PASSES = 3  # for one input in a step of training: a backward pass counts as two


def main() -> None:
    """Train and measure what is missing, then write the tables."""
    torch.set_num_threads(1)
    example, store = runpy.run_path(str(EXAMPLE)), Store(RECORDS)
    if "settings" not in store:
        store.append("settings", settings(example))
        store.append("provenance", provenance())
    if store["settings"] != settings(example):
        raise SystemExit(f"{RECORDS} was made with other settings; delete it to start anew")
    for seed in SEEDS:
        if f"seed-{seed}" not in store:
            store.append(f"seed-{seed}", measured(example, seed))
    text = PAGE.read_text(encoding="utf-8")
    if not MARKED.search(text):
        raise SystemExit(f"{PAGE} has lost its markers")
    write_text(PAGE, MARKED.sub(lambda found: found[1] + tables(store) + found[2], text))


def settings(example: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides the numbers."""
    plan = {"unseen": len(example["UNSEEN"]), "other_stds": list(OTHER_STDS), "half_width": HALF_WIDTH, "level": LEVEL}
    return {**_training(example), **plan, "strengths": list(STRENGTHS), "seeds": list(SEEDS)}


def _training(example: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides what a network of one strength and seed becomes."""
    noise = {name: choice.describe() for name, choice in example["NOISE"].items()}
    data = {"dataset": "mnist-5000", "digits": len(example["DIGITS"]), "epochs": example["EPOCHS"]}
    return {"model": "vit-simple", **example["SIZES"], **data, **noise}


def trained(example: dict[str, Any], strength: float, seed: int) -> tuple[torch.nn.Module, dict[str, float]]:
    """The network at one strength, trained now or in an earlier run, and what its training took."""
    path, kept = NETWORKS / f"strength-{strength:g}-seed-{seed}.safetensors", json.dumps(_training(example))
    if not path.exists() or _metadata(path)["settings"] != kept:
        started, penalty = time.process_time(), jostle.SensitivityPenalty(strength=strength, **example["NOISE"])
        weights = example["train"](penalty, seed).state_dict()
        passes = _PASSES * len(example["DIGITS"]) * example["EPOCHS"] + penalty.passes
        spent = json.dumps({"passes": passes, "cpu_seconds": round(time.process_time() - started, 1)})
        NETWORKS.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            save_file(weights, temporary, metadata={"settings": kept, "spent": spent})
    model = jostle.models.create("vit-simple", image_size=28, channels=1, **example["SIZES"]).eval()
    model.load_state_dict(load_file(path))
    return model, json.loads(_metadata(path)["spent"])


def _metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def measured(example: dict[str, Any], seed: int) -> dict[str, Any]:
    """The networks of one seed on the unseen digits, by strength; differences are to strength 0, paired."""
    found = {f"{strength:g}": trained(example, strength, seed) for strength in STRENGTHS}
    networks, unseen, view = {name: model for name, (model, _) in found.items()}, example["UNSEEN"], example["NOISE"]
    plan = jostle.Until(half_width=HALF_WIDTH)
    result = jostle.compare(networks, unseen, **view, plan=plan, level=LEVEL)
    noises = {std: jostle.GaussianNoise(std) for std in OTHER_STDS}
    others = {
        f"{std:g}": jostle.compare(networks, unseen, **{**view, "perturbation": noise}, plan=plan, level=LEVEL)
        for std, noise in noises.items()
    }
    with torch.no_grad():
        right = {name: model(unseen.inputs).argmax(dim=1) == unseen.labels for name, model in networks.items()}
    return {
        name: {
            "sensitivity": _ends(result[name]),
            "passes": result[name].passes,
            "drop": _ends(result.difference("0", name)) if name != "0" else None,
            "other_stds": {std: _ends(other[name]) for std, other in others.items()},
            "accuracy": float(right[name].double().mean()),
            "gain": _paired((right[name].double() - right["0"].double()).numpy()),
            "training": found[name][1],
        }
        for name in networks
    }


def _ends(answer: Any) -> list[float]:
    return [answer.value, answer.low, answer.high]


def _paired(differences: Any) -> list[float]:
    """A mean with Student's t interval over the digits, or over the seeds: value, low, high."""
    mean, variance = np.mean(differences), np.var(differences, ddof=1)
    return [float(mean), *(float(end) for end in student(mean, variance, len(differences), LEVEL))]


def tables(store: Store) -> str:
    """One line for each strength and seed, and one for each strength over the seeds."""
    strengths = [f"{strength:g}" for strength in store["settings"]["strengths"]]
    seeds = [store[f"seed-{seed}"] for seed in store["settings"]["seeds"]]
    lines = ["| strength | seed | sensitivity | below strength 0 by | unseen digits right | points gained | passes |"]
    lines.append("|---" * 7 + "|")
    for strength in strengths:
        for number, seed in enumerate(seeds):
            cell = seed[strength]
            cells = [strength, str(number), _text(cell["sensitivity"], "{:.3f}"), _text(cell["drop"], "{:.3f}")]
            cells += [f"{cell['accuracy']:.1%}", _text(cell["gain"] if strength != "0" else None, "{:+.1f}", 100)]
            lines.append("| " + " | ".join([*cells, f"{cell['training']['passes'] / 1e6:.2f} M"]) + " |")
    stds = [f"times lower at std {std:g}" for std in store["settings"]["other_stds"]]
    lines += ["", "| strength | times lower | points gained | " + " | ".join(stds) + " |", "|---" * 5 + "|"]
    for strength in strengths[1:]:
        gained = _paired([seed[strength]["accuracy"] - seed["0"]["accuracy"] for seed in seeds])
        cells = [strength, _text(_ratio(seeds, strength), "{:.2f}"), _text(gained, "{:+.1f}", 100)]
        cells += [_text(_ratio(seeds, strength, std), "{:.2f}") for std in seeds[0][strength]["other_stds"]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _ratio(seeds: list[dict[str, Any]], strength: str, std: str | None = None) -> list[float]:
    """How many times lower than at strength 0 the sensitivity is: geometric mean over the seeds, low, high."""

    def sensitivity(cell: dict[str, Any]) -> float:
        return float((cell["sensitivity"] if std is None else cell["other_stds"][std])[0])

    logarithms = [math.log(sensitivity(seed["0"]) / sensitivity(seed[strength])) for seed in seeds]
    return [math.exp(number) for number in _paired(logarithms)]


def _text(numbers: list[float] | None, form: str, scale: float = 1.0) -> str:
    if numbers is None:
        return ""
    value, low, high = (form.format(scale * number) for number in numbers)
    return f"{value} [{low}, {high}]"


if __name__ == "__main__":
    main()
