import dataclasses
import itertools
import json

import pytest
import torch
from torch.nn import functional

from jostle.base.errors import FailureError, UsageError
from jostle.studies import from_plain, to_plain
from jostle.training.randomness import order
from jostle_papers.p2403_06925.parity import (
    DESIGNS,
    ParityCourse,
    ParityDesign,
    ParityPlan,
    SparseParity,
    enumerate_measures,
    learning_step,
    train,
)
from jostle_papers.stacked.adamw import StackedAdamW

TASK = SparseParity(8, (1, 5))
TINY = ParityDesign(sizes={"dim": 8, "heads": 2, "mlp_dim": 12}, samples=70, batch_size=20, lr=0.01)
PLAN = ParityPlan(steps=30, every=4, further=None, tests=40, points=10)


class Stop(BaseException):
    pass


def test_it_is_a_plain_loop():
    trained = train(TASK, TINY, PLAN, seed=3)
    network = TINY.create(TASK, 3)
    data = TASK.sample(70, seed=3)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    batches = [part for epoch in range(1, 9) for part in torch.split(order(70, 3, epoch), 20)][:30]
    assert len(batches[3]) == 10  # the last of an epoch
    for rows in batches:
        optimizer.zero_grad()
        targets = data.labels[rows].double()
        functional.binary_cross_entropy_with_logits(network(data.inputs[rows])[:, 0], targets).backward()
        optimizer.step()
    for mine, theirs in zip(trained.network.parameters(), network.parameters(), strict=True):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-9)
    seen = trained.course.trajectory
    assert seen.epochs == (0, 4, 8, 12, 16, 20, 24, 28, 30)
    right = (network(data.inputs[:40])[:, 0] > 0) == (data.labels[:40] > 0)
    assert seen.curve("train_accuracy")[-1] == float(right.double().mean())


@pytest.mark.parametrize("clip", [None, 0.001])
def test_gradients_are_cut_to_the_norm_that_is_asked_for(clip):
    moved = train(TASK, dataclasses.replace(TINY, clip=clip), dataclasses.replace(PLAN, steps=2), seed=0).network
    plain = train(TASK, TINY, dataclasses.replace(PLAN, steps=2), seed=0).network
    same = all(torch.equal(a, b) for a, b in zip(moved.parameters(), plain.parameters(), strict=True))
    assert same == (clip is None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("stop_at", [1, 13, 29])
def test_a_run_that_was_stopped_ends_with_the_same_course(stop_at, dtype, tmp_path, monkeypatch):
    torch.set_default_dtype(dtype)
    whole = train(TASK, TINY, PLAN, seed=1, folder=tmp_path / "whole")
    step, done = StackedAdamW.step, []

    def stopping(self, *arguments):
        if len(done) == stop_at:
            raise Stop
        done.append(1)
        step(self, *arguments)

    monkeypatch.setattr(StackedAdamW, "step", stopping)
    with pytest.raises(Stop):
        train(TASK, TINY, PLAN, seed=1, folder=tmp_path / "stopped", checkpoint_every=12)
    monkeypatch.undo()
    again = train(TASK, TINY, PLAN, seed=1, folder=tmp_path / "stopped", checkpoint_every=12)
    assert again.course == whole.course
    for mine, theirs in zip(again.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", ["mlp", "lstm", "state-space"])
def test_other_networks_go_on_too(name, tmp_path):
    design = dataclasses.replace(DESIGNS.get(name), samples=70, batch_size=20)
    plan = dataclasses.replace(PLAN, steps=10)
    whole = train(TASK, design, plan, seed=1, folder=tmp_path / name)
    (tmp_path / name / "looks.jsonl").rename(tmp_path / "kept")
    (tmp_path / name / "looks.jsonl").write_bytes((tmp_path / "kept").read_bytes())
    assert train(TASK, design, plan, seed=1, folder=tmp_path / name).course == whole.course


def test_training_ends_after_it_has_learnt():
    design = ParityDesign(network="mlp", sizes={"width": 64}, samples=2000, batch_size=50, lr=0.01)
    task = SparseParity(6, (1, 4))
    plan = ParityPlan(steps=3000, every=10, further=0.5, tests=300, points=20)
    network, course = (trained := train(task, design, plan, seed=0)).network, trained.course
    when, seen = learning_step(course.trajectory), course.trajectory
    assert when is not None
    assert seen.epochs[-1] == when + when // 2 < 3000
    assert enumerate_measures(network, task)["sensitivity"] == pytest.approx(1 / 3, abs=0.02)
    last = course.last.estimates["sensitivity"]
    assert last.low <= enumerate_measures(network, task)["sensitivity"] <= last.high
    assert sum(course.last.flips) == 200  # ten times as many points
    until = train(task, design, dataclasses.replace(plan, further=None, steps=when + 50), seed=0).course.trajectory
    assert until.epochs[-1] == when + 50
    both = [step for step in seen.epochs if step <= when]
    assert [until.at("sensitivity", step) for step in both] == [seen.at("sensitivity", step) for step in both]


def test_a_course_survives_json():
    trained = train(TASK, TINY, dataclasses.replace(PLAN, steps=4), seed=0)
    course = trained.course
    assert from_plain(ParityCourse, json.loads(json.dumps(to_plain(course))), "course") == course
    assert course.epoch == 4
    assert course.parameters == sum(weight.numel() for weight in trained.network.parameters())


def test_progress_is_told():
    states = []
    train(TASK, TINY, PLAN, seed=0, progress=states.append)
    assert [state.passes for state in states] == [4, 8, 12, 16, 20, 24, 28, 30]
    assert states[-1].share == 1.0


def test_looks_are_two_percent_apart_in_the_long_run():
    plan, steps = ParityPlan(steps=20_000), [0]
    while steps[-1] < 20_000:
        steps.append(plan.next_look(steps[-1]))
    assert steps[-1] == 20_000
    gaps = [(later - step) / max(step, 100) for step, later in itertools.pairwise(steps)]
    assert max(gaps) <= 0.02
    assert len(steps) < 350


def test_divergence_is_one_clear_line():
    with pytest.raises(FailureError, match="training diverged before step 4; a smaller lr"):
        train(TASK, dataclasses.replace(TINY, lr=1e300), PLAN, seed=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train("parity", TINY, PLAN, seed=0), "task='parity' must be a SparseParity"),
        (lambda: train(TASK, "transformer-50", PLAN, seed=0), "did you mean transformer-50k"),
        (lambda: train(TASK, 3, PLAN, seed=0), "design=3 must be a ParityDesign or one of"),
        (lambda: train(TASK, TINY, PLAN, seed=-1), "seed=-1 must be a whole number, at least 0"),
        (lambda: train(TASK, TINY, PLAN, seed=0, device="cuda:77"), "device='cuda:77' cannot be used"),
        (lambda: ParityPlan(steps=0), "steps=.* must be a whole number"),
        (lambda: ParityPlan(steps=5, further=-1), "further=-1 must be a finite number, at least 0, or None"),
    ],
)
def test_wrong_use_is_one_clear_line(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_a_folder_of_another_run_is_refused(tmp_path):
    train(TASK, TINY, PLAN, seed=0, folder=tmp_path)
    with pytest.raises(UsageError, match=r"is from another run: seed was 0, is 1"):
        train(TASK, TINY, PLAN, seed=1, folder=tmp_path)
    with pytest.raises(UsageError, match=r"points was 10, is 12"):
        train(TASK, TINY, dataclasses.replace(PLAN, points=12), seed=0, folder=tmp_path)
