"""The metric of torchmetrics: sums over batches and processes are the measurement of all inputs together."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.estimates.measure import measure

pytest.importorskip("torchmetrics", reason="the metric is one of torchmetrics")
BITS = {"tokens": "coordinates", "perturbation": "sign-flip"}
NOISE = {"tokens": "coordinates", "perturbation": "gaussian-noise:std=1"}


def majority(x):
    return x.sum(dim=1)


def two_columns(x):
    return torch.stack([x.sum(dim=1), torch.zeros(len(x))], dim=1)


def bits(count, seed=0):
    return torch.randint(2, (count, 5), generator=torch.Generator().manual_seed(seed)) * 2.0 - 1.0


def metric(**options):
    return jostle.probe.SensitivityMetric(**BITS | options)


@pytest.mark.parametrize("sizes", [(20,), (7, 13), (1, 2, 17)])
def test_batches_of_any_size_give_the_measurement_of_all(sizes):
    x, found = bits(20), metric()
    for part in x.split(sizes):
        found.update(majority, part)
    m = measure(majority, x, **BITS, plan=jostle.Grid(1))
    assert float(found.compute()) == pytest.approx(m.value, abs=1e-7)
    one = found.estimate()
    assert one.value == pytest.approx(m.value)
    assert one.low < m.value < one.high
    found.reset()
    assert float(found.count) == 0


def test_two_processes_with_uneven_shards_as_torchmetrics_sums_them():
    """Its own reduction over gathered states, with the states of the other process given."""
    x = bits(20)
    first, second = metric(), metric()
    first.update(majority, x[:7])
    second.update(majority, x[7:])
    shared = copy.deepcopy(first)
    shared.process_group = "both"
    others = iter([second.total, second.squares, second.count])
    shared.sync(lambda mine, group=None: [mine, next(others)], distributed_available=lambda: True)
    assert float(shared.total / shared.count) == pytest.approx(measure(majority, x, **BITS, plan="grid:1").value)
    shared.unsync()
    assert float(shared.count) == 7


@pytest.mark.slow
def test_two_real_processes_with_uneven_shards(tmp_path):
    """gloo, 7 and 13 inputs: both processes know the value of all 20."""
    script = tmp_path / "both.py"
    script.write_text(
        """
import sys, torch, jostle
from torch import distributed, multiprocessing

def majority(x):
    return x.sum(dim=1)

def work(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    bits = torch.randint(2, (20, 5), generator=torch.Generator().manual_seed(0)) * 2.0 - 1.0
    metric = jostle.probe.SensitivityMetric(tokens="coordinates", perturbation="sign-flip")
    for part in (bits[:7] if rank == 0 else bits[7:]).split(4):
        metric.update(majority, part)
    one = metric.estimate()
    value, mine = float(metric.compute()), float(metric.count)
    with open(f"{folder}/{rank}", "w") as file:
        file.write(f"{value} {one.value} {one.low} {one.high} {mine}")
    distributed.destroy_process_group()

if __name__ == "__main__":
    multiprocessing.spawn(work, (sys.argv[1],), nprocs=2)
"""
    )
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True, timeout=300)
    m = measure(majority, bits(20), **BITS, plan="grid:1")
    alone = metric()
    alone.update(majority, bits(20))
    one = alone.estimate()
    for rank, count in ((0, 7), (1, 13)):
        value, same, low, high, mine = map(float, (tmp_path / str(rank)).read_text().split())
        assert value == pytest.approx(m.value, abs=1e-7)
        assert (same, low, high) == pytest.approx((one.value, one.low, one.high))
        assert mine == count  # after the sums every process goes on with its own


def test_noise_differs_from_batch_to_batch_and_repeats_with_the_seed():
    x = torch.zeros(50, 4)

    def run(seed):
        found = metric(**NOISE, response="absolute-change", seed=seed)
        values = []
        for _ in range(3):
            before = float(found.total)
            found.update(lambda x: x.sum(dim=1, keepdim=True), x)
            values.append(float(found.total) - before)
        return values

    assert len(set(run(0))) == 3
    assert run(0) == run(0) != run(1)


def test_intervals_cover_as_often_as_stated():
    truth = measure(two_columns, torch.randn(20_000, 4), **NOISE, plan="grid:1").value
    covered = []
    for seed in range(100):
        found = metric(**NOISE, seed=seed)
        x = torch.randn(60, 4, generator=torch.Generator().manual_seed(seed))
        for part in x.split(25):
            found.update(two_columns, part)
        one = found.estimate()
        covered.append(one.low <= truth <= one.high)
    assert np.mean(covered) >= 0.88  # of 100; asymptotic


def test_no_flip_at_all_is_not_certainty():
    found = metric()
    found.update(lambda x: torch.ones(len(x), 2), bits(30))
    one = found.estimate()
    assert (one.value, one.low) == (0, 0)
    assert one.high == pytest.approx(1 - 0.025 ** (1 / 30))


def test_it_is_a_module_that_is_copied_saved_and_moved():
    found = metric()
    found.update(majority, bits(5))
    again = pickle.loads(pickle.dumps(found))
    assert float(again.compute()) == float(found.compute()) == float(copy.deepcopy(found).compute())
    model = torch.nn.Linear(5, 2).train()
    found(model, bits(5))  # forward: the value of this batch
    assert model.training


def test_without_torchmetrics_there_is_one_line(monkeypatch):
    for name in ("torchmetrics", "jostle.probe.metric"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "jostle.probe.metric")
    with pytest.raises(UsageError, match=r'pip install "jostle\[metrics\]"'):
        _ = jostle.probe.SensitivityMetric
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = jostle.probe.Nothing
