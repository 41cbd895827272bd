"""Recompute findings of committed studies from their raw records, with numpy and scipy alone: nothing of jostle.

Prints what the summary says beside what comes out here, and ends with 1 if one of them differs.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

STUDIES = Path(__file__).resolve().parent.parent / "docs" / "results" / "studies"
PRIOR_STD, PRIOR_FREEDOM = 0.14, 2.8  # docs/verdicts.md
Three = tuple[float, float, float]  # value, low, high
Cells = list[tuple[dict[str, Any], dict[str, Any]]]


def cells(study: str) -> Cells:
    """Values and record of every cell at small scale."""
    lines = (STUDIES / study / "small" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [(e["record"]["values"], e["record"]["record"]) for e in entries if e["key"].startswith("cell/")]


def said(study: str, statement: str) -> dict[str, Any]:
    """The finding in the summary."""
    summary = json.loads((STUDIES / study / "small" / "summary.json").read_text(encoding="utf-8"))
    [finding] = [each for each in summary["findings"] if each["statement"] == statement]
    return dict(finding)


def ratio(first: list[float], second: list[float], level: float) -> Three:
    """The wider of Welch's interval and the moderated one, of logarithms; shown as ratios."""
    a, b = np.log(first), np.log(second)
    n, m, v, w = len(a), len(b), a.var(ddof=1), b.var(ddof=1)
    satterthwaite = (v / n + w / m) ** 2 / ((v / n) ** 2 / (n - 1) + (w / m) ** 2 / (m - 1))
    welch = stats.t.ppf((1 + level) / 2, (satterthwaite + min(n, m) - 1) / 2) * np.sqrt(v / n + w / m)
    d, s = PRIOR_FREEDOM, PRIOR_STD**2
    shrunk = (d * s + (n - 1) * v) / (d + n - 1) / n + (d * s + (m - 1) * w) / (d + m - 1) / m
    reach = max(welch, stats.t.ppf((1 + level) / 2, d + min(n, m) - 1) * np.sqrt(shrunk))
    middle = a.mean() - b.mean()
    return float(np.exp(middle)), float(np.exp(middle - reach)), float(np.exp(middle + reach))


def student(values: list[float], level: float) -> Three:
    """Mean with Student's interval."""
    low, high = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
    return float(np.mean(values)), float(low), float(high)


def slope(x: list[float], y: list[float], level: float) -> Three:
    """Slope of the least-squares line."""
    found = stats.linregress(x, y)
    reach = stats.t.ppf((1 + level) / 2, len(x) - 2) * found.stderr
    return float(found.slope), float(found.slope - reach), float(found.slope + reach)


def welch(first: list[float], second: list[float], level: float) -> Three:
    """Difference of means with the careful degrees of freedom."""
    a, b = np.asarray(first), np.asarray(second)
    n, m, v, w = len(a), len(b), a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    freedom = ((v + w) ** 2 / (v**2 / (n - 1) + w**2 / (m - 1)) + min(n, m) - 1) / 2
    reach, middle = stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(v + w), a.mean() - b.mean()
    return float(middle), float(middle - reach), float(middle + reach)


def correlation(x: list[float], y: list[float], level: float) -> Three:
    """Spearman's, with the interval of Bonett and Wright."""
    r = float(stats.spearmanr(x, y).statistic)
    reach = stats.norm.ppf((1 + level) / 2) * np.sqrt((1 + r**2 / 2) / (len(x) - 3))
    return r, float(np.tanh(np.arctanh(r) - reach)), float(np.tanh(np.arctanh(r) + reach))


def ends(study: str, network: str, least: float = 0.0) -> list[float]:
    """Sensitivity at the end of training by seed, as (flips + 1/2) / (passes + 1), of networks that learnt."""
    last = [
        record["epochs"][-1]["sensitivity"]
        for values, record in cells(study)
        if values["network"] == network and record["train_accuracy"] >= least
    ]
    return [(each["value"] * each["passes"] + 0.5) / (each["passes"] + 1) for each in last]


def unseen(study: str, network: str) -> dict[int, float]:
    """Accuracy on unseen images by seed."""
    return {values["seed"]: record["test_accuracy"] for values, record in cells(study) if values["network"] == network}


def mean_change(name: str, rung: str) -> list[float]:
    """Of a random map: the average or the worst change at radius 1, by seed."""
    found = [record["change"] for values, record in cells("jostle/average-to-worst-maps") if values["map"] == name]
    return [float(one[rung][one["radii"].index(1.0)]) for one in found]


def initial(network: str) -> list[float]:
    """Sensitivity before training, of every network."""
    return [r["sensitivity"] for values, r in cells("2403.06925/language-init") if values["network"] == network]


def mean_over_networks(read: Callable[[dict[str, Any]], float]) -> list[float]:
    """The mean over seeds, for each network."""
    found: dict[str, list[float]] = {}
    for values, record in cells("jostle/correlations"):
        found.setdefault(values["network"], []).append(read(record))
    return [float(np.mean(numbers)) for numbers in found.values()]


def parity() -> Cells:
    """The runs on PARITY that converged."""
    return [(v, r) for v, r in cells("2402.09963/figure-1") if v["target"] == "parity" and r["has_converged"]]


def findings() -> Iterator[tuple[str, str, Callable[[float], Three]]]:
    """Study, statement, and the same number again at a level."""
    small, wide = "2403.06925/figure-4", "densenet, 3 blocks of 4"
    for other in (wide, "resnet-18, 8 channels", "convmixer"):
        yield (
            small,
            f"sensitivity of vit-small / of {other}",
            lambda level, other=other: ratio(  # type: ignore[misc]
                ends(small, "vit-small", 0.99), ends(small, other, 0.99), level
            ),
        )
    depth = "2403.06925/depth-heads"
    yield (
        depth,
        "sensitivity at depth 1, heads 4 / at depth 2, heads 4",
        lambda level: ratio(ends(depth, "depth 1, heads 4", 0.99), ends(depth, "depth 2, heads 4", 0.99), level),
    )
    texts = "2403.06925/language-sensitivity"
    yield (
        texts,
        "sensitivity of encoder / of lstm",
        lambda level: ratio(ends(texts, "encoder", 0.98), ends(texts, "lstm", 0.98), level),
    )
    dose = "jostle/dose-response"
    yield (
        dose,
        "sensitivity at strength 0.5 / without penalty",
        lambda level: ratio(ends(dose, "strength 0.5", 0.99), ends(dose, "strength 0", 0.99), level),
    )
    after, before = unseen(dose, "strength 0.5"), unseen(dose, "strength 0")
    yield (
        dose,
        "accuracy on unseen images at strength 0.5 - without penalty",
        lambda level: student([after[seed] - before[seed] for seed in after], level),
    )
    maps = "average relative change of features, r = 1: softmax attention / ReLU attention"
    yield (
        "jostle/average-to-worst-maps",
        maps,
        lambda level: ratio(mean_change("raf", "mean"), mean_change("raf-relu", "mean"), level),
    )
    start = "sensitivity at initialisation: lstm (20 of 20 constant) - encoder (19 of 20 constant)"
    yield "2403.06925/language-init", start, lambda level: welch(initial("lstm"), initial("encoder"), level)
    yield (
        "2402.09963/figure-1",
        "parity: slope of sharpness over the number of bits",
        lambda level: slope(
            [float(values["n"]) for values, _ in parity()], [record["sharpness"] for _, record in parity()], level
        ),
    )
    flat = "rank correlation of sensitivity and share of predictions changed by noise on the weights, over 10 networks"
    yield (
        "jostle/correlations",
        flat,
        lambda level: correlation(
            mean_over_networks(lambda record: record["sensitivity"]),
            mean_over_networks(lambda record: record["sharpness"]),
            level,
        ),
    )


def main() -> int:
    """Print all, and tell whether one differs."""
    differing = 0
    for study, statement, again in findings():
        finding = said(study, statement)
        found, summary = again(finding["level"]), [finding[key] for key in ("value", "low", "high")]
        is_same = np.allclose(found, summary, rtol=1e-6, atol=1e-9)
        differing += not is_same
        shown = "{:.5g} [{:.5g}, {:.5g}]".format(*found)
        print(f"{'same' if is_same else 'DIFFERS'}: {study}: {statement}: {shown} at {finding['level']:.4g}")  # noqa: T201
        if not is_same:
            print("   the summary has", *summary)  # noqa: T201
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
