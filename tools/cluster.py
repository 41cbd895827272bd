"""Measure what units of work cost beside their passes, and write the tables of docs/cluster.md from that.

    python tools/cluster.py            measures here, writes docs/results/cluster.json and the page
    python tools/cluster.py --page     writes the page from the record alone

Rates are of this machine. What a million inputs, a model of 7 billion parameters and a hundred nodes cost is computed
from them; no cluster of that size was at hand.
"""

import json
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import jostle
from jostle.base.estimate import provenance
from jostle.base.files import write_text
from jostle.engines import Engine, Processes, Ray, payload
from jostle.estimates.measure import make_run
from jostle.estimates.request import Request
from jostle.sampling import Trials
from jostle.sampling.units import CleanUnit, TrialUnit, TrialWork

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "docs" / "results" / "benchmarks.json"
RECORD, PAGE = ROOT / "docs" / "results" / "cluster.json", ROOT / "docs" / "cluster.md"
MARKED = re.compile(r"(<!-- ([a-z]+): written by tools/cluster.py -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
UNITS, MEGABYTE = 200, 2**20


class Echo:
    """A work that takes no time."""

    def do(self, unit: bytes, report: Any) -> bytes:  # noqa: ARG002
        """What it was given."""
        return unit


def prepared(count: int, tokens: str = "patches:4", plan: str = "until:half_width=0.01") -> Any:
    """A request and its evaluation: a small ViT on images of 3 x 32 x 32 numbers."""
    model = jostle.models.create("vit-simple", depth=2, heads=4, dim_head=16, mlp_dim=128, seed=0).eval()
    images = torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    request = Request.build(tokens=tokens, perturbation="gaussian-noise:1", plan=plan)
    return request, request.prepare({"model": model}, images)


def bytes_of_units() -> dict[str, float]:
    """What travels with a unit of trials and with a unit of clean inputs, there and back, for one input of it."""
    request, evaluation = prepared(2048)
    function = evaluation.functions[0]
    work, found = TrialWork(evaluation), dict[str, float]()
    with function.evaluating():
        function.check_steady(request.response)
        evaluation.choose_batches()
        size = evaluation._unit
        chosen = np.arange(size)
        for name, unit in (
            ("clean", CleanUnit(0, [chosen[:128]])),
            ("trials", TrialUnit(request.plan_for(evaluation.inputs).trials(evaluation.inputs, 0, 0, size), [], None)),
        ):
            if isinstance(unit, TrialUnit):
                inputs = np.unique(unit.trials.inputs)
                evaluation.prepare(inputs)
                unit = TrialUnit(unit.trials, [evaluation.references[0].tell(inputs)], None)
            back = payload.dumps(work.do(unit, None), "outcome")
            each = size if isinstance(unit, TrialUnit) else 128
            found |= {f"{name} there": len(payload.dumps(unit, "unit")) / each, f"{name} back": len(back) / each}
    return found | {"trials in a unit": size}


def merging() -> float:
    """Seconds to count a trial and look at the interval, where models cost nothing and there are a million inputs."""
    inputs = torch.zeros(1_000_000, 4)
    request = Request.build(tokens="coordinates", perturbation="gaussian-noise:1", plan="until:half_width=0.001")
    evaluation = request.prepare({"model": lambda x: x.sum(dim=1)}, inputs)
    run = make_run(request, evaluation, lambda _: None)  # type: ignore[arg-type]
    chance, step, rounds = np.random.default_rng(0), 2**13, 30
    began = time.perf_counter()
    for number in range(rounds):
        trials: Trials = run.plan.trials(evaluation.inputs, 0, number * step, (number + 1) * step)  # type: ignore[union-attr]
        changes = (chance.random((1, step)) < 0.05).astype(float)
        run.singles[0].met(trials, changes[0], np.asarray([step]))  # type: ignore[union-attr]
        run.count(trials, changes)
    return (time.perf_counter() - began) / (rounds * step)


def travelling() -> dict[str, float]:
    """Megabytes a second of a work that is written to a file, and read by a worker."""
    thing = Carried(torch.randn(64, MEGABYTE))  # 256 MiB
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work"
        write = _seconds(lambda: payload.write(thing, path, "work"))
        read = _seconds(lambda: float(payload.read(path).tensor.sum()))
    return {"written, MB/s": 256 / write, "read and summed, MB/s": 256 / read}


class Carried:
    """A large tensor."""

    has_tensors = True

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def dispatching(engine: Engine) -> dict[str, float]:
    """Seconds until the first unit is done, and for each further unit that takes no time."""
    began = time.perf_counter()
    with engine.crew(Echo()) as crew:
        list(crew.results([b"0"] * 2))
        first = time.perf_counter() - began
        began = time.perf_counter()
        list(crew.results([b"0" * 20_000] * UNITS))
        return {"seconds to the first result": first, "seconds for a unit": (time.perf_counter() - began) / UNITS}


def passing() -> float:
    """Passes a second of the small ViT on one thread, in a measurement."""
    request, evaluation = prepared(512, plan="grid:1")
    run = make_run(request, evaluation, lambda _: None)  # type: ignore[arg-type]
    seconds = _seconds(run.go)
    return float(evaluation.passes / seconds)


def seam() -> dict[str, float]:
    """CPU time of one process with units over that without, as benchmarks/test_engines.py found it."""
    found = json.loads(BENCHMARKS.read_text(encoding="utf-8"))
    return {name: found[f"engine-seam-{name}"]["ratio"] for name in ("vit", "resnet")}


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def measure() -> dict[str, Any]:
    """All rates of this machine."""
    torch.set_num_threads(1)
    record: dict[str, Any] = {"bytes": bytes_of_units(), "travel": travelling(), "processes": dispatching(Processes(2))}
    try:
        record["ray"] = dispatching(Ray(workers=2))
    except jostle.base.errors.JostleError as error:
        record["ray"] = {"not measured": str(error)}
    record |= {"merge, seconds a trial": merging(), "passes a second": passing()}
    request, evaluation = prepared(1024)
    kept = sum(part.nbytes for part in vars(evaluation.references[0]).values() if isinstance(part, np.ndarray))
    run = make_run(request, evaluation, lambda _: None)  # type: ignore[arg-type]
    counts = [part for part in vars(run.singles[0]).values() if isinstance(part, np.ndarray) and part.size >= 1024]
    kept += sum(part.nbytes for part in counts)
    record["bytes kept of an input"] = kept / 1024 + 8  # and its remembered prediction
    record["model, bytes"] = len(pickle.dumps(evaluation.functions[0].model.state_dict()))
    return record | {"seam": seam(), "provenance": provenance()}


def rates(record: dict[str, Any]) -> str:
    """The table of what was measured."""
    moved = record["bytes"]
    rows = [
        ("a trial travels with", f"{moved['trials there']:.0f} bytes there, {moved['trials back']:.0f} back"),
        ("a clean input travels with", f"{moved['clean there']:.0f} bytes there, {moved['clean back']:.0f} back"),
        ("trials in a unit, at batches of 128", f"{moved['trials in a unit']:.0f}"),
        ("bytes that are kept of an input while it is measured", f"{record['bytes kept of an input']:.0f}"),
        ("counting a trial and looking at the interval", f"{record['merge, seconds a trial'] * 1e6:.2f} microseconds"),
        ("writing a model or data for workers", f"{record['travel']['written, MB/s']:,.0f} MB/s"),
        ("reading it in a worker", f"{record['travel']['read and summed, MB/s']:,.0f} MB/s"),
    ]
    of = record["seam"]
    rows.append(
        (
            "one process: CPU time with units over that without, of a ViT and of a ResNet",
            f"{of['vit']:.3f} and {of['resnet']:.3f}",
        )
    )
    for name, label in (("processes", "two processes"), ("ray", "two workers of Ray")):
        found = record[name]
        if "not measured" in found:
            rows.append((label, "not measured: " + found["not measured"]))
            continue
        rows.append((f"{label}: seconds to the first result", f"{found['seconds to the first result']:.1f}"))
        rows.append((f"{label}: handing over a unit", f"{found['seconds for a unit'] * 1e3:.2f} milliseconds"))
    rows.append(("a small ViT on one thread, for comparison", f"{record['passes a second']:,.0f} passes a second"))
    return _table(("measured", "here"), rows)


def sizes(record: dict[str, Any]) -> str:
    """The table of what larger things would cost."""
    moved, merge = record["bytes"], record["merge, seconds a trial"]
    unit, pace = moved["trials in a unit"], record["passes a second"]
    draws, write = 76_000, record["travel"]["written, MB/s"] * MEGABYTE
    hand = record["ray"].get("seconds for a unit", record["processes"]["seconds for a unit"])
    bytes_each = moved["trials there"] + moved["trials back"]
    million = 1_000_000 * 3 * 32 * 32 * 4
    grid = 1_000_000 * 64 * 5
    rows = [
        (
            "a million images of 3 x 32 x 32, `Until(relative=0.1)` at S = 0.005",
            f"{draws:,} draws whatever the number of inputs; {million / 1e9:.1f} GB of data to each node, "
            f"{million / write:.0f} s to write; {draws * bytes_each / 1e6:.0f} MB for units; "
            f"{1_000_000 * record['bytes kept of an input'] / 1e6:.0f} MB kept in the first process",
        ),
        (
            "the same as a grid with 5 draws",
            f"{grid / 1e6:.0f} million passes, {grid / pace / 3600:.0f} hours of one core at the pace of that ViT; "
            f"{grid * bytes_each / 1e9:.0f} GB for units; {grid * merge / 60:.0f} minutes to count",
        ),
        (
            "a model of 7 billion parameters in 16 bits",
            f"14 GB to each node, {14e9 / write:.0f} s to write once, and as much memory for each worker of Ray "
            f"(processes of one machine share it); at one second a pass {draws:,} draws are {draws / 3600:.0f} hours "
            f"of one worker, {draws / 3600 / 8 * 60:.0f} minutes of 8, and a killed worker costs a unit, at most 64 "
            "passes at batches of 16 and smaller",
        ),
        (
            "a hundred nodes with 8 workers each",
            f"one process hands over {1 / hand:,.0f} units a second, so 800 workers are busy if a unit takes more than "
            f"{800 * hand:.1f} s, {800 * hand / unit * 1e3:.1f} ms a pass; counting keeps up with "
            f"{1 / merge / 1e6:.2f} million trials a second, which move {bytes_each / merge / 1e6:.0f} MB/s",
        ),
    ]
    return _table(("what", "costs"), rows)


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    lines = [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)]
    return "\n".join(lines) + "\n"


def page(record: dict[str, Any], text: str) -> str:
    """The page with its tables written anew."""
    tables = {"rates": rates(record), "sizes": sizes(record)}
    return MARKED.sub(lambda found: found[1] + tables[found[2]] + found[3], text)


def main() -> None:
    """Measure, unless only the page is wanted, and write."""
    if "--page" not in sys.argv[1:]:
        write_text(RECORD, json.dumps(measure(), indent=1) + "\n")
    write_text(PAGE, page(json.loads(RECORD.read_text(encoding="utf-8")), PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
