"""Write docs/benchmarks.md from docs/results/benchmarks.json, which ``make benchmark`` fills. Nothing is timed here."""

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jostle.base.files import write_text

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "docs" / "results" / "benchmarks.json"
PAGE = ROOT / "docs" / "benchmarks.md"
NETWORKS = ("mlp", "cnn", "vit", "resnet", "encoder", "lstm", "decoder")
Records = dict[str, dict[str, Any]]

HEAD = """# Benchmarks

Written by `make benchmark` from [results/benchmarks.json](results/benchmarks.json). Every case that is run is here,
also where jostle is not faster. All numbers are CPU times on one thread, as ratios within one run, medians where a
case is repeated; on a busy machine a single ratio is good to about a tenth. The load of the machine at the time is in
the last section. Records of another day than the rest are of an older state of the code: the next `make benchmark`
makes them anew.

Networks are small ones, trained on real data (`benchmarks/networks.py`): MLP 784-512-128-10, CNN of width 16 and a
ViT-small of depth 2 on 2,000 digits; a ResNet-18 of width 12 on 600 images of CIFAR-10; an encoder, an LSTM and a
decoder of width 64 and depth 2 on 1,200 pairs of questions.
"""

REASONS = """Where a goal is missed, and why:

* *Papers' grid*. It makes 4.4 or 4.8 million passes, so 300 times less is 14,800 or 16,000 passes as dear as its own,
  with the clean ones, the first 1,024 uniform draws, the pilot and, if they are asked for, slopes. Three steps say what
  is possible. A sample of known size takes 76,000 draws for ±10 % at S = 0.005. The best proposal over the strata that
  jostle knows is predicted to take {mlp} (MLP), {vit} (ViT) and {resnet} (ResNet) with its interval, even if the rates
  of all strata were known, see [below](#what-strata-could-save): more than 14,800 or 16,000. Jostle took {least} to
  {most} passes, pilots and all. So 300 takes passes that are cheaper than those of the grid. They are, because readers
  remember what one token cannot change: enough for the MLP and the CNN, where that is nearly all, and not for the
  others. Behind its first maps a ResNet changes everywhere, and so does a ViT behind its first attention.
* *What no strata of jostle's know*. This is no proof that nothing could do it. If the true rate of every pair of an
  image and a token were known, which no pilot of some thousand draws can tell of some 40,000 or 100,000 pairs, it would
  take {resnet_cells} (ResNet) and {vit_cells} (ViT); and if it were known of each draw whether it flips, {resnet_flips}
  and {vit_flips}: so many the interval needs to exclude flips elsewhere. What can be known beforehand is less.
  Gradients predict the margin of each single draw: for the ResNet that would take {resnet_noise} draws instead of
  {resnet_slopes}, still too many; for the ViT {vit_noise} instead of {vit_slopes}, more than without, since its flips
  are not linear in the noise. So it was not built.
* *The LSTM and the decoder at S near 0.05*. Few draws are enough there, so the clean passes of all texts and jostle's
  own work for a draw weigh most. In units of plain inference and asked about whole texts, the decoder itself took
  {model} on the batches of jostle, the change of a token inside of it {change} (a copy of the embedded text, random
  numbers), checks before the first draw {checks}, and everything else {rest}: cutting batches, comparing, looks, an
  interval a position (`parts-decoder` below).
* Overheads are judged as a user has them. An MLP that no reader serves misses 20 %: see the columns on the right below.
"""


def main() -> None:
    """Write the page."""
    write_text(PAGE, page(json.loads(RECORDS.read_text(encoding="utf-8"))))


def page(records: Records) -> str:
    """The whole page."""
    first = (goals, precision, strata, draws, ideal, batches, processes, boolean)
    parts = (*first, worst, scaling, start, others, machine)
    return HEAD + "".join(f"\n{part(records)}" for part in parts)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a note instead if there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return "Not run yet.\n"
    return "\n".join([f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *lines]) + "\n"


def number(value: float | None) -> str:
    """Three digits, thousands with commas."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def goals(records: Records) -> str:
    """What the project wants, and whether the records meet it."""
    found = list(_goals(records))
    rows = [
        [what, ("at least " if least else "at most ") + number(limit), number(value), "yes" if met else "**no**"]
        for what, limit, value, least, met in (
            (*goal, goal[2] >= goal[1] if goal[3] else goal[2] <= goal[1]) for goal in found
        )
    ]
    return "## Goals\n\n" + table(["what", "goal", "measured", "met"], rows) + "\n" + _reasons(records)


def _reasons(records: Records) -> str:
    """Why goals are missed, with what strata could save."""
    best = {name: _best_of_strata(records.get(f"strata-{name}-0.005", {})) for name in ("mlp", "vit", "resnet")}
    images = [records.get(f"precision-{name}-0.005", {}).get("passes") for name in ("mlp", "cnn", "vit", "resnet")]
    known = sorted(passes for passes in images if passes is not None)
    parts = records.get("parts-decoder", {})
    rest = parts["all"] - parts["model"] - parts["change"] - parts["checks"] if parts else None
    numbers = {**best, "rest": rest} | {key: parts.get(key) for key in ("model", "change", "checks")}
    numbers |= {"least": known[0] if known else None, "most": known[-1] if known else None}
    for name, way in itertools.product(("vit", "resnet"), ("slopes", "noise", "cells", "flips")):
        numbers[f"{name}_{way}"] = records.get(f"strata-{name}-0.005", {}).get(f"by_{way}_draws")
    return REASONS.format(**{name: number(value) or "?" for name, value in numbers.items()})


def _best_of_strata(found: dict[str, Any]) -> float | None:
    """The fewest draws that a proposal by strata of jostle's is predicted to take."""
    ways = (found.get(f"by_{way}_draws") for way in ("positions", "slopes"))
    return min((draws for draws in ways if draws is not None), default=None)


Goal = tuple[str, float, float, bool]  # what, limit, measured, whether at least


def _goals(records: Records) -> Iterable[Goal]:
    """All goals whose records are there."""
    yield from _goals_of_precision(records)
    for name in NETWORKS:
        if found := records.get(f"ideal-{name}"):
            limit = 0.05 if found["microseconds_a_plain_pass"] >= 100 else 0.2
            for plan in ("until", "grid"):
                yield f"{name}: overhead of {plan.capitalize()}", limit, found[plan], False
    least = [(each["numpy_over_ours"], name) for name, each in records.items() if name.startswith("boolean-numpy-")]
    if least:
        yield f"functions of bits: numpy over ours, least (n = {int(min(least)[1][-2:])})", 1, min(least)[0], True
    key = "passes_over_measuring_both"
    single = [(f"decided-{pair}", key, 0.25) for pair in ("0.01-0.005", "0.05-0.025")]  # one flips half as often
    for name, entry, limit in [*single, ("start-finished-run", "seconds", 2), ("start-report", "seconds", 2)]:
        if found := records.get(name):
            yield f"`{name}`: {entry.replace('_', ' ')}", limit, found[entry], False


def _goals_of_precision(records: Records) -> Iterable[Goal]:
    """Against a fixed sample, and against the papers' grid."""
    middle = {"vit": 0.6} | dict.fromkeys(("encoder", "lstm", "decoder"), 0.8)
    for name in NETWORKS:
        for target, limit in {"0.0005": 0.25, "0.005": middle.get(name, 0.5), "0.05": 1.35}.items():
            if found := records.get(f"precision-{name}-{target}"):
                ratio = math.inf if found["stopped"] else found["ours_over_fixed"]  # it was not done by then
                yield f"{name}, S near {target}: time over a fixed sample", limit, ratio, False
    for name in NETWORKS:
        if (found := records.get(f"precision-{name}-0.005")) and "paper_grid_over_ours" in found:
            yield f"{name}, S near 0.005: papers' grid over ours", 300, found["paper_grid_over_ours"], True


def precision(records: Records) -> str:
    """To +-10 %."""
    rows = []
    for name in NETWORKS:
        for target in ("0.0005", "0.005", "0.05"):
            found = records.get(f"precision-{name}-{target}")
            if found is not None:
                seconds = number(found["seconds"]) + ("*" if found["stopped"] else "")
                ratios = [number(found[f"{key}_over_ours"]) for key in ("fixed", "grid")]
                ratios += [number(found.get(f"paper_grid_over_ours{more}")) for more in ("", "_and_clean")]
                released = f"{number(found['released_over_ours'])} (±{100 * found['released_half_width']:.0f} %)"
                value = [name, number(found["std"]), f"{found['sensitivity']:.2g}", seconds, number(found["passes"])]
                rows.append([*value, number(found["microseconds_a_pass"]), *ratios, released])
    columns = ["network", "std", "S", "seconds", "passes", "µs a pass", "fixed sample", "grid"]
    columns += ["papers' grid", "papers' grid, clean passes"]
    return (
        "## To ±10 % at 95 %\n\n"
        "`measure(plan=Until(relative=0.1))` from end to end, against three scripts in plain torch without intervals "
        "(`benchmarks/rivals.py`). Their columns are their CPU time over jostle's: above 1, jostle is faster. *Fixed "
        "sample*: a researcher who knew the sample size in advance. *Grid*: the papers' protocol, all tokens of all "
        "inputs here, five draws. *Papers' grid*: the same at the size of paper 1, 18,000 images of 49 patches (its "
        "Fashion-MNIST) or 15,000 of 64 (its CIFAR-10), that is 4.4 and 4.8 million passes at the rate of the grid "
        "measured here, over jostle's time as measured; *clean passes*: over that time with the clean passes of all "
        "those images added, as if jostle had been given as many. *Released*: the protocol of paper 1's code, of a "
        "fixed size, with the precision that it has in brackets. Rates of the three are measured before and after "
        "jostle and extrapolated. A star: jostle was stopped before it was that precise, so that it needs more time "
        "than shown."
        "\n\n" + table([*columns, "released"], rows)
    )


def strata(records: Records) -> str:
    """Proposals over strata whose rates are known."""
    rows = []
    for name in NETWORKS:
        found = records.get(f"strata-{name}-0.005")
        if found is not None:
            ways = [
                f"{number(found[f'by_{way}_draws'])} ({found[f'by_{way}']:.2f})" if f"by_{way}" in found else ""
                for way in ("positions", "slopes", "noise", "cells", "flips")
            ]
            rows.append([name, number(found["flips"]), *ways[:2], number(found["price_of_slopes"]), *ways[2:]])
    columns = ["network", "flips seen", "margins, positions", "margins, slopes", "price of slopes"]
    return (
        "### What strata could save\n\n"
        "At S near 0.005: the draws that the best proposals are predicted to take to ±10 %, by the rates that their "
        "strata have in 32,768 (images) or 65,536 (texts, MLP) uniform draws, which a pilot of some thousand draws "
        "knows less well; in brackets, over a sample of known size. By margins and positions, which cost the clean "
        "passes alone, and by margins and their slopes, whose price in passes is beside them. Of images also what "
        "jostle does not do. *Each draw*: strata of single draws, by the margin that gradients predict for their "
        "noise, at the price of slopes. *Cells known*: the true rate of each pair of an image and a token, here by "
        "24 more draws of those that flipped. *Flips known*: which draws flip; what is left is what the interval takes "
        "to exclude flips elsewhere.\n\n" + table([*columns, "each draw", "cells known", "flips known"], rows)
    )


def draws(records: Records) -> str:
    """Draws of stopping rules, and decisions."""
    rows = []
    for name, found in records.items():
        if name.startswith(("until-", "decided-")):
            over = found.get("passes_over_measuring_both")
            rows.append([f"`{name}`", number(found.get("passes")), number(found["draws_over_fixed"]), number(over)])
    return (
        "## Draws of a stopping rule\n\n"
        "Functions that flip at a known rate (`benchmarks/test_passes.py`). *until-0.005-0.002*: a rate of 0.005 to "
        "±0.002. *decided-0.01-0.005*: which of two models with these rates flips more often. *Over fixed*: draws over "
        "those of a sample whose size was known, for a decision with 90 % power and a known difference. *Over "
        "measuring*: passes over those of measuring both models to ±10 %.\n\n"
        + table(["record", "passes", "over fixed", "over measuring"], rows)
    )


def ideal(records: Records) -> str:
    """Overhead."""
    keys = ("until", "grid", "until_without_short_cuts", "grid_without_short_cuts")
    rows = []
    for name in NETWORKS:
        found = records.get(f"ideal-{name}")
        if found is not None:
            rows.append(
                [name, number(found["microseconds_a_plain_pass"]), *(f"{100 * found[key]:+.0f} %" for key in keys)]
            )
    columns = ["network", "plain µs", "Until", "Grid(1)", "Until, no short cuts", "Grid(1), no short cuts"]
    return (
        "## Over plain inference in ideal batches\n\n"
        "CPU time a pass over that of the bare model in batches of 128, texts sorted by length, for 2,000 to 12,000 "
        "passes; checks, clean passes, "
        "noise, intervals and profiles included. Below 0, jostle is cheaper than the bare model, because it leaves out "
        "what one token cannot change, and multiplies matrices by oneDNN where torch's usual library is slower; the "
        "columns on the right are without both.\n\n" + table(columns, rows) + "\n" + quicker(records)
    )


def quicker(records: Records) -> str:
    """What other products of matrices save."""
    found = {name: records.get(f"products-{name}") for name in NETWORKS}
    rows = [[name, f"{each['times_as_fast']:.2f}"] for name, each in found.items() if each is not None]
    return (
        "CPU time of a measurement with torch's usual products of matrices over that with the quicker ones, which are "
        "used on AMD processors with AVX-512 only (`jostle/base/products.py`). Convolutions and LSTMs use oneDNN "
        "always. Batch norms folded into the convolutions before them were tried too: 1.02 to 1.06 times as fast for a "
        "ResNet-18 of width 12 or 64, so that was not built.\n\n" + table(["network", "times as fast"], rows)
    )


def batches(records: Records) -> str:
    """The rule for the size of batches."""
    rows = []
    for name in NETWORKS:
        found = records.get(f"batches-{name}")
        if found is not None:
            sizes = [f"{found[f'at_{size}']:.2f}" for size in (32, 64, 128, 256, 512)]
            rows.append([name, f"{found['rule_over_best']:.2f}", *sizes])
    return (
        "## Size of batches\n\n"
        "CPU time of a measurement over that at the best of five sizes. The size is chosen by a rule from the widths "
        "of a model, and not by a clock: a trial by the clock would give the same call other batches, and so other "
        "rounding, from one day to the next. The column *rule* is what such a trial could gain.\n\n"
        + table(["network", "rule", *(f"{size}" for size in (32, 64, 128, 256, 512))], rows)
    )


def processes(records: Records) -> str:
    """Two processes."""
    found = records.get("engine-two-processes-vit")
    rows = []
    if found is not None:
        keys = ("with_start", "once_started", "start_seconds", "break_even_seconds")
        rows = [["a ViT, 512 images, `Grid(2)`", *(number(found.get(key)) for key in keys)]]
    return (
        "## Two processes\n\n"
        "Wall time in one process over that in two, on a machine of two cores with other work. *Break-even*: how many "
        "seconds must be left in one process for two to be done sooner, their start included. Both cores were busy "
        "with other work here, so a second process gained little; what it gains on an idle machine was not "
        "measured, and the 20 s from which the automatic engine starts processes are a judgement.\n\n"
        + table(["what", "with their start", "once started", "start, s", "break-even, s"], rows)
    )


def boolean(records: Records) -> str:
    """Functions of bits."""
    rows = []
    for n in range(2, 25):
        found, other = records.get(f"boolean-numpy-{n:02d}"), records.get(f"boolean-{n}-boofun")
        if found or other:
            mine = (found or other or {})["milliseconds"]
            plain = number(found["numpy_over_ours"]) if found else ""
            rows.append([str(n), number(mine), plain, number(other["ratio"]) if other else ""])
    return (
        "## Functions of bits\n\n"
        "Full exact analysis of a random function into ±1: spectrum, weights, influences, sensitivities. *numpy* is "
        "fifteen lines of it (`benchmarks/test_boolean.py`); both columns are the other's time over jostle's.\n\n"
        + table(["n", "ms", "numpy", "boofun"], rows)
    )


def worst(records: Records) -> str:
    """Worst case."""
    rows = []
    for name, found in records.items():
        if name.startswith("worst-case-"):
            for kind in ("margin", "flip"):
                keys = (f"{kind}: time of ours over plain", f"{kind}: ours", f"{kind}: plain")
                rows.append([name.removeprefix("worst-case-"), kind, *(number(found[key]) for key in keys)])
    return (
        "## Worst case against plain projected gradient ascent\n\n"
        "The same starts and steps. Time is jostle's over the plain attack's; the last columns are what each found, in "
        "the mean.\n\n" + table(["network", "response", "time", "jostle finds", "plain attack finds"], rows)
    )


def scaling(records: Records) -> str:
    """Exponents."""
    rows = []
    for name, found in records.items():
        if name.startswith("scaling-"):
            sizes = [
                f"{key.removeprefix('microseconds_at_')}: {number(value)}"
                for key, value in found.items()
                if "at_" in key
            ]
            rows.append([name.removeprefix("scaling-"), f"{found['exponent']:.2f}", ", ".join(sizes)])
    return (
        "## What the time grows with\n\n"
        "12,000 passes of a linear model (for *hidden*, of an MLP with two hidden layers of this width), one size "
        "varied at a time; exponent b of time ~ size^b, and microseconds a pass at each size.\n\n"
        + table(["size", "exponent", "µs a pass"], rows)
    )


def start(records: Records) -> str:
    """Start-up."""
    found = {name.removeprefix("start-"): each for name, each in records.items() if name.startswith("start-")}
    rows = [[name, f"{each['seconds']:.2f}"] for name, each in found.items()]
    return "## Start\n\nCPU seconds of whole processes.\n\n" + table(["what", "seconds"], rows)


def others(records: Records) -> str:
    """Everything else, as it was recorded."""
    shown = ("precision-", "until-", "decided-", "ideal-", "boolean-numpy-", "worst-case-", "scaling-", "start-")
    shown += ("batches-", "engine-two-", "strata-", "products-")
    rows = [
        [f"`{name}`", "; ".join(f"{key} {number(value)}" for key, value in each.items() if key != "provenance")]
        for name, each in records.items()
        if not name.startswith(shown)
    ]
    return "## Other records\n\nExplained in the files of `benchmarks/`.\n\n" + table(["record", "numbers"], rows)


def machine(records: Records) -> str:
    """Where and when: a line for each day and machine, with the range of its loads."""
    loads: dict[str, list[str]] = {}
    for each in records.values():
        origin = each["provenance"]
        names = ("jostle", "torch", "python", "machine", "processor")
        parts = [f"{name} {origin[name]}" for name in names if name in origin]
        loads.setdefault(f"{origin['time'][:10]}: {', '.join(parts)}", []).append(origin.get("load", ""))
    lines = [f"* {day}{_range_of(found)}\n" for day, found in sorted(loads.items())]
    return "## Machine\n\nThe load is the number of processes that want a core.\n\n" + "".join(lines)


def _range_of(loads: Sequence[str]) -> str:
    """Loads as "12.3 on 2 cores", from the lowest to the highest."""
    known = sorted((float(load.split()[0]), load.partition(" ")[2]) for load in loads if load)
    return f", load {known[0][0]:g} to {known[-1][0]:g} {known[0][1]}" if known else ""


if __name__ == "__main__":
    main()
