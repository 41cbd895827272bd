"""What the study of sparse parities asks of its records, on made-up courses; and that a killed cell goes on."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from jostle import studies
from jostle.base.errors import UsageError
from jostle.studies import Context, Records, Verdict, decide, from_plain, to_plain
from jostle.studies.study import make_cells
from jostle_papers.p2403_06925 import parity
from jostle_papers.p2403_06925.figure_26 import (
    OF_THE_PAPER,
    SEEDS,
    Figure26Cell,
    Figure26Record,
    Figure26Settings,
    task_of,
)
from jostle_papers.p2403_06925.parity import ParityCourse
from jostle_papers.p2403_06925.parity.measures import EstimateRecord, ParityLookRecord
from jostle_papers.stacked.adamw import StackedAdamW
from jostle_papers.stacked.trajectory import Trajectory

NAME = "2403.06925/figure-26"
ENDS = "sensitivity at the end is p / d within a tenth of it, of every network that learnt ({})"
STEPS = np.array([0, *range(10, 2001, 10)])
TASKS = {"40/4": (*OF_THE_PAPER, "mlp"), "20/3": ("transformer-50k",)}


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def course(task, seed, rise=800, learnt=1000, end=None, to_relevant=True):
    """Sensitivity rises at ``rise`` to p / d, or to ``end``, and test accuracy at ``learnt``."""
    rise, learnt = rise + seed, learnt + 3 * seed
    goal = task.sensitivity
    reached = goal if end is None else end
    share = np.clip((STEPS - rise + 50) / 100, 0, 1)
    accuracy = np.interp(STEPS, [0, learnt - 20, learnt + 20, 2000], [0.5, 0.5, 1, 1])
    relevant = share if to_relevant else (accuracy - 0.5) * 2
    seen = {
        "train_accuracy": accuracy,
        "train_loss": 1 - accuracy,
        "test_accuracy": accuracy,
        "sensitivity": reached * share * (1 - 0.01 * seed),
        "relevant_sensitivity": relevant,
        "irrelevant_sensitivity": (reached * share - goal * relevant) / (1 - goal),
        "output_sensitivity": goal * share + 0.001,
        "output_correlation": (accuracy - 0.5) * 2,
    }
    flips = [0] * (task.num_bits + 1)
    flips[round(reached * task.num_bits)] = 1000
    last = ParityLookRecord(estimates={"sensitivity": EstimateRecord(value=reached)}, influences=(), flips=tuple(flips))
    curves = {key: tuple(map(float, values)) for key, values in seen.items()}
    trajectory = Trajectory(seed, tuple(map(int, STEPS)), curves)
    return ParityCourse(trajectory=trajectory, last=last, epoch=200, parameters=18_593)


def records_of(**options):
    settings = Figure26Settings(tasks=TASKS)
    cells = studies.get(NAME).cells(settings, range(3))
    records = {}
    for cell in cells:
        task = task_of(cell.task)
        made = course(task, cell.seed, **options)
        records[cell.key] = Figure26Record(
            learnt=parity.learning_step(made.trajectory), risen={}, goal=task.sensitivity, **vars(made)
        )
    return Records(cells, records, settings, "small")


def findings(**options):
    asked = studies.get(NAME).expectations(records_of(**options))
    return {finding.statement: finding for finding in decide(asked, scale="small")}


def said(found):
    return [finding for finding in found.values() if not finding.is_beyond]


def test_networks_as_the_paper_says_agree():
    found = findings()
    assert [finding.verdict for finding in said(found)] == [Verdict.AGREES] * 3
    ends = found[ENDS.format("transformers, d=40,p=4")]
    assert (ends.value, ends.reason) == (0, "0 violations among all 12 cases")
    way = "steps from half of the rise of {} to half of that of accuracy, share of the latter (transformers, d=40,p=4)"
    assert found[way.format("sensitivity")].value == pytest.approx(0.2, abs=0.02)
    assert found[way.format("relevant sensitivity")].verdict == Verdict.AGREES
    assert found[way.format("output correlation")].verdict != Verdict.AGREES  # together with accuracy
    apart = found["sensitivity to the product's bits - to the others, at that look (transformers, d=40,p=4)"]
    assert apart.value > 0.9
    for design in TASKS["40/4"]:
        asked = f"every network has 99 % test accuracy within its steps ({design}, d=40,p=4)"
        assert found[asked].verdict == Verdict.AGREES
    assert any("mlp, d=40,p=4" in statement for statement in found)
    assert any("transformer-50k, d=20,p=3" in statement for statement in found)


def test_sensitivity_that_rises_later_disagrees():
    found = findings(rise=1200)
    early, lead, end = (finding.verdict for finding in said(found))
    assert early != Verdict.AGREES
    assert lead != Verdict.AGREES  # below half of its way when accuracy is there: it has not risen
    assert end == Verdict.AGREES
    later = findings(rise=1020)
    assert said(later)[1].verdict == Verdict.DISAGREES


def test_sensitivity_that_ends_elsewhere_disagrees():
    found = findings(end=0.2)[ENDS.format("transformers, d=40,p=4")]
    assert (found.verdict, found.value) == (Verdict.DISAGREES, 12)


def test_seeds_are_the_unit_and_designs_are_averaged_within_one():
    records = records_of()
    few = Records(  # the same seeds with one design of four: as many numbers, so the same degrees of freedom
        [cell for cell in records.cells if cell.design == OF_THE_PAPER[0] or cell.task != "d=40,p=4"],
        {cell.key: record for cell, record in records}, records.settings, "small",
    )  # fmt: skip
    way = "steps from half of the rise of sensitivity to half of that of accuracy, share of the latter ({})"
    widths = []
    for held in (records, few):
        found = {one.statement: one for one in decide(studies.get(NAME).expectations(held), scale="small")}
        lead = found[way.format("transformers, d=40,p=4")]
        assert "over 3 seeds" in lead.reason
        widths.append(lead.high - lead.low)
    assert widths[0] == pytest.approx(widths[1], rel=1e-9)  # twelve networks would give a narrower one


def test_the_paper_s_own_task_asks_the_same():
    study = studies.get("2403.06925/figure-26-own-task")
    settings = study.scales["small"]
    assert set(settings.tasks) == {"40/4"}
    cells, records = study.cells(settings, range(3)), records_of()
    assert len(cells) == 12
    found = decide(study.expectations(Records(cells, {c.key: r for c, r in records}, settings, "small")), scale="small")
    assert [finding.verdict for finding in found if not finding.is_beyond] == [Verdict.AGREES] * 3


def test_sensitivity_to_the_wrong_bits_is_noticed():
    found = findings(to_relevant=False)
    assert [finding.verdict for finding in said(found)] == [Verdict.AGREES] * 3  # the paper does not look which
    apart = found["sensitivity to the product's bits - to the others, at that look (transformers, d=40,p=4)"]
    assert apart.verdict != Verdict.AGREES
    assert apart.value < 0


def test_networks_that_do_not_learn_are_counted_and_decide_nothing():
    found = findings(learnt=10**6)
    assert {finding.verdict for finding in said(found)} == {Verdict.UNDECIDED}
    asked = "every network has 99 % test accuracy within its steps (transformer-50k, d=40,p=4)"
    assert found[asked].verdict == Verdict.DISAGREES
    assert found[asked].value == 3


def test_figures_with_and_without_networks_that_learnt():
    study = studies.get(NAME)
    drawings = study.figures(records_of())
    courses = [*(f"course-{design}-40-4" for design in TASKS["40/4"]), "course-transformer-50k-20-3"]
    assert [drawing.stem for drawing in drawings] == [*courses, "end", "leads"]
    stuck = study.figures(records_of(learnt=10**6))
    assert [drawing.stem for drawing in stuck] == [*courses, "end"]
    assert "not reached (seed 0), not reached (seed 1), not reached (seed 2)" in stuck[0].caption


def test_scales_have_the_settings_of_the_paper():
    study = studies.get(NAME)
    paper, small = study.scales["paper"], study.scales["small"]
    assert set(OF_THE_PAPER) < set(paper.tasks["40/4"])
    assert task_of("40/4").coordinates == (2, 9, 23, 36)
    assert [paper.plan(design).steps for design in OF_THE_PAPER] == [200_000, 100_000, 200_000, 100_000]
    assert paper.plan("mlp").further is None
    assert paper.points * 40 == 10**5
    assert SEEDS == (123, 42, 0)
    assert len(set(small.tasks["20/3"])) == 7
    assert small.seeds >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": {}}, "must name a task"),
        ({"tasks": {"40/4": ()}}, "and a design for each"),
        ({"tasks": {"40-4": ("mlp",)}}, "task '40-4' must be d/p, two whole numbers"),
        ({"tasks": {"4/5": ("mlp",)}}, "degree=5 must be at most num_bits=4"),
        ({"tasks": {"40/4": ("mpl",)}}, "did you mean mlp"),
        ({"tasks": {"40/4": ("mlp",)}, "epochs": 0}, "epochs=.* must be a whole number"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Figure26Settings(**options)


def test_cells_have_keys_of_their_own():
    study = studies.get(NAME)
    cells = make_cells(study, study.scales["small"], range(3))
    assert cells[0].key == "transformer-50k/d=20,p=3/seed=0"
    assert len(cells) == 3 * sum(map(len, study.scales["small"].tasks.values()))


def test_a_cell_that_was_stopped_ends_with_the_same_record(tmp_path, monkeypatch):
    study = studies.get(NAME)
    settings = dataclasses.replace(study.scales["smoke"], epochs=10)  # 60 steps
    cell = Figure26Cell("transformer-50k", "d=6,p=2", 0)
    shares = []
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: shares.append(state.share)))
    assert from_plain(Figure26Record, json.loads(json.dumps(to_plain(whole))), "record") == whole
    assert shares[-1] == 1.0
    assert whole.trajectory.seed == 123
    assert whole.goal == pytest.approx(1 / 3)

    class Stop(BaseException):
        pass

    step, done = StackedAdamW.step, []

    def stopping(self, *arguments):
        if len(done) == 35:
            raise Stop
        done.append(1)
        step(self, *arguments)

    monkeypatch.setattr(StackedAdamW, "step", stopping)
    with pytest.raises(Stop):
        study.measure(cell, settings, Context(tmp_path / "stopped", lambda state: None))
    monkeypatch.undo()
    assert study.measure(cell, settings, Context(tmp_path / "stopped", lambda state: None)) == whole
