"""What cutting a measurement into units costs in one process, and what two processes gain, both as ratios in one run.

The seam: the blocks of trials of a measurement are evaluated in units through the engine, and once more without: each
block as a whole, with as many batches in memory as before there were units. CPU time of the first over the second, the
median of interleaved rounds. Two processes: wall time of a grid that takes this process some ten seconds, the start of
the processes included and not, the median of interleaved rounds.
"""

import statistics
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

import jostle
from benchmarks.records import record
from jostle.engines import Processes, Serial
from jostle.estimates.measure import make_run
from jostle.estimates.request import Request
from jostle.sampling import Trials
from jostle.sampling.evaluation import TrialEvaluation

ROUNDS = 7
WITHOUT = 32  # batches in memory at once before there were units
GOAL = 1.03

pytestmark = pytest.mark.usefixtures("one_thread")


def vit() -> torch.nn.Module:
    return jostle.models.create("vit-simple", depth=2, heads=4, dim_head=16, mlp_dim=128, seed=0).eval()


def resnet() -> torch.nn.Module:
    return jostle.models.create("resnet-18", width=8, seed=0).eval()


CASES = {"vit": vit, "resnet": resnet}


def prepared(model: torch.nn.Module, plan: str) -> tuple[Request, TrialEvaluation]:
    images = torch.randn(512, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    request = Request.build(tokens="patches:4", perturbation="gaussian-noise:1", plan=plan)
    return request, request.prepare({"model": model}, images)


def blocks_of(model: torch.nn.Module, plan: str) -> list[Trials]:
    """The blocks of trials that a measurement evaluates, in their order."""
    seen: list[Trials] = []
    request, evaluation = prepared(model, plan)
    plain = evaluation.changes_of

    def watched(blocks: Iterable[Trials], tell: Any = None) -> Any:
        seen.extend(blocks)
        return plain(blocks, tell)

    evaluation.changes_of = watched  # type: ignore[method-assign]
    make_run(request, evaluation, lambda _: None).go()  # type: ignore[arg-type]
    return seen


@pytest.mark.parametrize("name", CASES)
def test_the_seam_in_one_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean passes are made before either clock starts."""
    model = CASES[name]()
    blocks = blocks_of(model, "until:half_width=0.012")
    request, evaluation = prepared(model, "until:half_width=0.012")
    function, ratios = evaluation.functions[0], list[float]()
    with function.evaluating(), evaluation.staff.working(Serial()):
        function.check_steady(request.response)
        evaluation.choose_batches()
        evaluation.staff.open()
        evaluation.prepare(np.arange(len(evaluation.inputs)))
        for _ in range(ROUNDS):
            began = time.process_time()
            for _ in evaluation.changes_of(blocks):
                pass
            with_seam = time.process_time() - began
            with monkeypatch.context() as patch:
                patch.setattr("jostle.sampling.evaluation._UNIT", WITHOUT)
                began = time.process_time()
                for trials in blocks:
                    evaluation.unit_changes(trials)
                ratios.append(with_seam / (time.process_time() - began))
    found = statistics.median(ratios)
    record(f"engine-seam-{name}", {"ratio": found, "goal": GOAL, "trials": sum(map(len, blocks))})
    print(f"{name}: {found:.3f} times the CPU time without units (goal: at most {GOAL})")


def test_two_processes() -> None:
    model, plan = vit(), "grid:2"

    def seconds(engine: Processes | None) -> tuple[float, float]:
        """Wall time of all, and of the loop alone."""
        began = time.perf_counter()
        request, evaluation = prepared(model, plan)
        marks: list[float] = []
        with evaluation.staff.working(engine):
            run = make_run(request, evaluation, lambda _: marks.append(time.perf_counter()))  # type: ignore[arg-type]
            run.go()
        ended = time.perf_counter()
        share = 1 - 1 / max(len(marks), 1)  # what was done after the first report
        return ended - began, (ended - marks[0]) / share

    rounds = [(seconds(None), seconds(Processes(2))) for _ in range(3)]
    all_of_it, started = (statistics.median(one[part] / two[part] for one, two in rounds) for part in (0, 1))
    start = statistics.median(two[0] - two[1] for _, two in rounds)
    # This process goes on while the others start: they pay if what is left by then takes longer here than there.
    even = start * started / (started - 1) if started > 1 else float("inf")
    numbers = {"with_start": all_of_it, "once_started": started, "start_seconds": start, "break_even_seconds": even}
    record("engine-two-processes-vit", numbers)
    print(f"two processes: {all_of_it:.2f} times as fast with their start, {started:.2f} without; even at {even:.0f} s")
