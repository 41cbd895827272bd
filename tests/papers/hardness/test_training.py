from typing import ClassVar

import numpy as np
import pytest
import torch

from jostle.base.errors import FailureError, UsageError
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan, HardnessTask, named_task, table_task, train
from jostle_papers.p2402_09963.hardness.architectures import ARCHITECTURES
from jostle_papers.stacked.adamw import StackedAdamW
from tests.papers.hardness.tied import Tied

SMALL, SHORT = HardnessDesign(dim=8), HardnessPlan(batch_size=64, lr=3e-3, steps=40, fit_loss=0.0)


def weights(network):
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def moved(network):
    """The weights that have a gradient: softmax does not see a bias of the keys, and Adam makes steps of rounding."""
    return torch.cat(
        [part.detach().flatten() for name, part in network.named_parameters() if "to_key.bias" not in name]
    )


def test_a_step_is_that_of_torch_on_the_same_batch():
    """Three steps of the module with torch's AdamW on the mean squared error, from the same strings."""
    task, plan = named_task("parity", 5), HardnessPlan(batch_size=16, lr=1e-3, steps=3, fit_loss=0.0)
    found = train(task, SMALL, plan, seeds=[4])
    network = SMALL.create(5, 4)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
    losses = []
    for step in range(3):
        bits, labels, _ = task.batch(16, 4, step)  # fewer than the 32 strings there are, so all of equal share
        optimizer.zero_grad()
        loss = (network(bits) - labels).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    smoothed = 0.95 * (0.95 * losses[0] + 0.05 * losses[1]) + 0.05 * losses[2]
    assert found.losses[0] == pytest.approx(smoothed, rel=1e-4)
    assert torch.allclose(moved(found.networks[0]), moved(network), rtol=0, atol=1e-4)
    assert not torch.allclose(moved(network), moved(SMALL.create(5, 4)), rtol=0, atol=2e-3)
    assert found.steps == 3


def test_networks_do_not_know_of_each_other():
    tasks = [named_task("parity", 4), named_task("first", 4), table_task(np.arange(16) % 2, train_size=5)]
    plan = HardnessPlan(batch_size=64, lr=3e-3, steps=8, fit_loss=0.0)
    together = train(tasks, SMALL, plan, seeds=[0, 1, 2])
    for place, task in enumerate(tasks):
        alone = train(task, SMALL, plan, seeds=[place])
        assert torch.allclose(moved(together.networks[place]), moved(alone.networks[0]), rtol=0, atol=1e-3)
        assert together.losses[place] == pytest.approx(alone.losses[0], abs=1e-4)


def test_a_network_that_fits_is_settled_and_left_alone():
    plan = HardnessPlan(batch_size=32, lr=1e-2, steps=600, fit_loss=0.05, settle=12)
    found = train([named_task("first", 3), named_task("majority", 3)], SMALL, plan, seeds=[0, 0])
    assert None not in found.fitted
    assert found.fitted[0] != found.fitted[1]
    assert found.steps == max(found.fitted) + 12
    assert max(found.losses) < 0.06
    place = int(np.argmin(found.fitted))  # the one that was done first waited for the other, unchanged
    alone = train([named_task("first", 3), named_task("majority", 3)][place], SMALL, plan, seeds=[0])
    assert alone.steps == alone.fitted[0] + 12
    assert found.fitted[place] == alone.fitted[0]
    assert found.losses[place] == pytest.approx(alone.losses[0], abs=5e-3)


def test_labels_that_vary_little_are_not_fitted_by_a_constant():
    """Labels of MEAN have variance 1 / 24 at six bits, so what counts as fitted is a sixth of ``fit_loss``."""
    network, task = SMALL.create(6, 0), named_task("mean", 6)
    bits, labels, _ = task.batch(32, 0, 0)
    loss = float((network(bits) - labels).square().mean().detach())
    for fit_loss, fitted in ((5.9 * loss, None), (6.1 * loss, 1)):
        assert train(task, SMALL, HardnessPlan(steps=1, batch_size=32, fit_loss=fit_loss), seeds=[0]).fitted == (
            fitted,
        )


def test_what_does_not_fit_says_so():
    """Fair coins for more strings than a few steps can learn."""
    table = np.random.default_rng(0).integers(2, size=64)
    found = train(table_task(table), SMALL, HardnessPlan(batch_size=32, steps=30), seeds=[0])
    assert found.fitted == (None,)
    assert found.steps == 30
    assert found.losses[0] > 0.05


class Watched(HardnessTask):
    """Notes the lengths that are asked for."""

    lengths: ClassVar[list[int]] = []

    def batch(self, size, seed, step, length=None):
        self.lengths.append(length)
        return super().batch(size, seed, step, length)


def test_a_curriculum_goes_through_its_lengths():
    plan = HardnessPlan(batch_size=32, lr=1e-2, steps=600, fit_loss=0.05, settle=5, curriculum=(1, 2, 7))
    found = train(Watched("first", 3), SMALL, plan, seeds=[0])
    assert list(dict.fromkeys(Watched.lengths)) == [1, 2, 3]
    assert Watched.lengths == sorted(Watched.lengths)
    assert found.fitted[0] is not None
    assert found.steps == found.fitted[0] + 5 == len(Watched.lengths)


def test_an_interrupted_training_goes_on_bit_for_bit(tmp_path, monkeypatch):
    tasks, seeds = [named_task("parity", 4), named_task("majority", 4)], [3, 5]
    plan = HardnessPlan(
        batch_size=16, lr=1e-2, steps=24, fit_loss=10.0, settle=30, curriculum=(2, 3)
    )  # stopped at 4 bits
    whole = train(tasks, SMALL, plan, seeds=seeds, folder=tmp_path / "whole")

    class Stop(BaseException):
        pass

    step = StackedAdamW.step

    def stopping(self, *arguments):
        if self.steps == 13:
            raise Stop
        step(self, *arguments)

    monkeypatch.setattr(StackedAdamW, "step", stopping)
    with pytest.raises(Stop):
        train(tasks, SMALL, plan, seeds=seeds, folder=tmp_path / "stopped", checkpoint_every=5)
    monkeypatch.undo()
    again = train(tasks, SMALL, plan, seeds=seeds, folder=tmp_path / "stopped")
    for one, other in zip(whole.networks, again.networks, strict=True):
        assert torch.equal(weights(one), weights(other))
    assert (whole.losses, whole.fitted, whole.steps) == (again.losses, again.fitted, again.steps)
    with pytest.raises(UsageError, match="lr"):
        train(tasks, SMALL, HardnessPlan(batch_size=16, lr=0.1, steps=24), seeds=seeds, folder=tmp_path / "stopped")


@pytest.mark.parametrize("seeds", [[4], [4, 6]])
def test_a_network_with_tied_weights_and_a_buffer_is_trained_as_torch_does(monkeypatch, seeds):
    """As ``register`` would add it; alone it is called, with others it is mapped."""
    monkeypatch.setitem(ARCHITECTURES._things, "tied", lambda n, *, dim, depth, heads: Tied(n, dim))
    design, task = HardnessDesign(dim=6, architecture="tied"), named_task("majority", 4)
    found = train(task, design, HardnessPlan(batch_size=8, lr=1e-2, steps=3, fit_loss=0.0), seeds=seeds)
    for seed, network in zip(seeds, found.networks, strict=True):
        twin = design.create(4, seed)
        optimizer = torch.optim.AdamW(twin.parameters(), lr=1e-2, weight_decay=0.1)
        for step in range(3):
            bits, labels, _ = task.batch(8, seed, step)
            optimizer.zero_grad()
            (twin(bits) - labels).square().mean().backward()
            optimizer.step()
        assert network.second.weight is network.first.weight
        assert set(network.state_dict()) == set(twin.state_dict()) >= {"gains", "second.weight"}
        for name, weight in network.state_dict().items():
            assert torch.allclose(weight, twin.state_dict()[name], rtol=0, atol=1e-5), name
        assert not torch.allclose(weights(network), weights(design.create(4, seed)), rtol=0, atol=5e-3)


def test_seeds_of_numpy_are_those_seeds(tmp_path):
    plain = train(named_task("parity", 3), SMALL, SHORT, seeds=[0, 1])
    found = train(named_task("parity", 3), SMALL, SHORT, seeds=np.arange(2), folder=tmp_path)  # written as JSON
    again = train(named_task("parity", 3), SMALL, SHORT, seeds=range(2), folder=tmp_path)  # and the same run
    for ours, theirs, last in zip(plain.networks, found.networks, again.networks, strict=True):
        assert torch.equal(weights(ours), weights(theirs))
        assert torch.equal(weights(ours), weights(last))


def test_a_folder_that_cannot_be_is_found_before_the_first_step(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setattr(StackedAdamW, "step", None)  # a step would fail in another way
    for folder, message in (
        (tmp_path / "taken", "folder='.*taken' is a file; expected a folder"),
        (str(tmp_path / "taken"), "folder='.*taken' is a file; expected a folder"),
        (tmp_path / "taken" / "below", "below.* cannot be written: "),
        (3, "folder=3 must be the path of a folder"),
        (b"folder", "folder=b'folder' must be the path of a folder"),
    ):
        with pytest.raises(UsageError, match=message):
            train(named_task("parity", 4), SMALL, SHORT, seeds=[0], folder=folder)
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_folder_that_is_missing_is_made(tmp_path):
    train(
        named_task("parity", 2), SMALL, HardnessPlan(steps=1, batch_size=4), seeds=[0], folder=str(tmp_path / "a" / "b")
    )
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["training.safetensors"]


def test_a_damaged_state_is_one_clear_line(tmp_path):
    (tmp_path / "training.safetensors").write_bytes(b"nothing")
    with pytest.raises(UsageError, match="delete it to start again"):
        train(named_task("parity", 4), SMALL, SHORT, seeds=[0], folder=tmp_path)


def test_training_that_diverges_says_so():
    plan = HardnessPlan(batch_size=16, lr=1e30, steps=20)
    with pytest.raises(FailureError, match="training diverged"):
        train(named_task("parity", 4), SMALL, plan, seeds=[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train(named_task("parity", 4), SMALL, SHORT, seeds=[]), "seeds=.* must be whole numbers"),
        (lambda: train(named_task("parity", 4), SMALL, SHORT, seeds=0), "seeds=0 must be whole numbers"),
        (
            lambda: train(named_task("parity", 4), SMALL, SHORT, seeds=[2**70]),
            rf"seeds=\[{2**70}\] must be whole numbers",
        ),
        (lambda: train(named_task("parity", 4), SMALL, SHORT, seeds=[-1]), r"seeds=\[-1\] must be whole numbers"),
        (lambda: train(named_task("parity", 4), SMALL, SHORT, seeds=[True]), r"seeds=\[True\] must be whole numbers"),
        (lambda: train(named_task("parity", 4), SMALL, SHORT, seeds="ab"), "seeds='ab' must be whole numbers"),
        (lambda: train(named_task("parity", 4), SMALL, SHORT, seeds=np.ones(2)), "seeds=array.* must be whole numbers"),
        (lambda: train([named_task("parity", 4)] * 2, SMALL, SHORT, seeds=[0]), "2 tasks for 1 seeds"),
        (
            lambda: train([named_task("parity", 4), named_task("parity", 5)], SMALL, SHORT, seeds=[0, 1]),
            "all of the same number of bits",
        ),
        (lambda: train(table_task([0, 1]), SMALL, HardnessPlan(curriculum=(1,)), seeds=[0]), "leave curriculum out"),
        (lambda: HardnessDesign(depth=1), "depth=1 must be at least 2"),
        (lambda: HardnessPlan(curriculum=(4, 4)), r"curriculum=\(4, 4\) must be growing"),
        (lambda: HardnessPlan(lr=0.0), "lr=.* must be a finite number above 0"),
        (lambda: HardnessPlan(fit_loss=-1.0), "fit_loss=-1.0 must be a finite number, at least 0"),
    ],
)
def test_wrong_use_is_one_clear_line(make, message):
    with pytest.raises(UsageError, match=message):
        make()
