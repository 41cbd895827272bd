"""Every architecture: its stacked pass against the module, its training against torch's, alone, resumed and again."""

import math

import pytest
import torch

from jostle import landscape
from jostle.base.errors import UsageError
from jostle.boolean import cube
from jostle.boolean.networks.mlp import BooleanMLP
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan, named_task, observe, train
from jostle_papers.p2402_09963.hardness.architectures import evaluation, names
from jostle_papers.p2402_09963.hardness.observation import moved_tables
from jostle_papers.stacked.adamw import StackedAdamW
from jostle_papers.stacked.layout import Layout

ALL = ["lstm", "mlp", "mlp-with-norm", "state-space", "transformer", "transformer-without-norm"]
SHORT = HardnessPlan(batch_size=64, lr=3e-3, steps=12, fit_loss=0.0)


def small(architecture):
    return HardnessDesign(dim=8, architecture=architecture)


def weights(network):
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


def shaken(design, count, n):
    """Networks in float64 whose biases and gains differ from those at the start."""
    torch.manual_seed(5)
    networks = [design.create(n, seed).double() for seed in range(count)]
    with torch.no_grad():
        for network in networks:
            for weight in network.parameters():
                weight += 0.2 * torch.randn_like(weight)
    return networks


def test_names():
    assert names() == ALL


@pytest.mark.parametrize("architecture", ALL)
@pytest.mark.parametrize("count", [1, 2])
def test_stacked_outputs_and_gradients_are_those_of_the_module(architecture, count):
    design = small(architecture)
    networks, layout = shaken(design, count, 5), Layout(design.create(5, 0))
    strings = torch.stack([torch.from_numpy(cube.points(5)).roll(place, dims=0) for place in range(count)])
    rows = layout.stack(networks).requires_grad_()
    found = evaluation(architecture, design.create(5, 0), design.heads)(layout.views(rows), strings)
    (gradient,) = torch.autograd.grad(found.square().sum(), rows)
    for place, network in enumerate(networks):
        plain = network(strings[place])
        assert torch.allclose(found[place], plain, rtol=0, atol=1e-11)
        plain.square().sum().backward()
        for name, weight in network.named_parameters():
            assert torch.allclose(layout.views(gradient)[name][place], weight.grad, rtol=1e-7, atol=1e-9), name


@pytest.mark.parametrize("architecture", ALL)
def test_it_trains_again_to_the_same_weights_and_not_knowing_of_others(architecture):
    tasks = [named_task("first", 4), named_task("parity", 4)]
    found = train(tasks, small(architecture), SHORT, seeds=[0, 1])
    again = train(tasks, small(architecture), SHORT, seeds=[0, 1])
    alone = train(tasks[1], small(architecture), SHORT, seeds=[1])
    assert torch.equal(weights(found.networks[1]), weights(again.networks[1]))
    assert found.losses == again.losses
    assert found.losses[1] == pytest.approx(alone.losses[0], abs=1e-4)
    assert not torch.allclose(weights(found.networks[1]), weights(small(architecture).create(4, 1)), atol=1e-3)


@pytest.mark.parametrize("architecture", ["lstm", "mlp-with-norm", "state-space", "transformer-without-norm"])
def test_an_interrupted_training_goes_on_bit_for_bit(architecture, tmp_path, monkeypatch):
    task, design = named_task("majority", 4), small(architecture)
    whole = train(task, design, SHORT, seeds=[3])

    class Stop(BaseException):
        pass

    step = StackedAdamW.step

    def stopping(self, *arguments):
        if self.steps == 7:
            raise Stop
        step(self, *arguments)

    monkeypatch.setattr(StackedAdamW, "step", stopping)
    with pytest.raises(Stop):
        train(task, design, SHORT, seeds=[3], folder=tmp_path, checkpoint_every=5)
    monkeypatch.undo()
    again = train(task, design, SHORT, seeds=[3], folder=tmp_path)
    assert torch.equal(weights(whole.networks[0]), weights(again.networks[0]))
    with pytest.raises(UsageError, match="architecture"):
        train(task, small("mlp"), SHORT, seeds=[3], folder=tmp_path)


def test_a_step_of_an_lstm_is_that_of_torch():
    task, design = named_task("parity", 5), small("lstm")
    found = train(task, design, HardnessPlan(batch_size=16, lr=1e-3, steps=2, fit_loss=0.0), seeds=[4])
    network = design.create(5, 4)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)
    for step in range(2):
        bits, labels, _ = task.batch(16, 4, step)
        optimizer.zero_grad()
        (network(bits) - labels).square().mean().backward()
        optimizer.step()
    assert torch.allclose(weights(found.networks[0]), weights(network), rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", ["lstm", "state-space"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_recurrence_reads_shorter_strings(architecture, count):
    """As the same weights do in a network made for that length."""
    design = small(architecture)
    networks, layout = shaken(design, count, 5), Layout(design.create(5, 0))
    strings = torch.from_numpy(cube.points(3)).expand(count, -1, -1)
    outputs = evaluation(architecture, design.create(5, 0), design.heads)
    found = outputs(layout.views(layout.stack(networks)), strings)
    for place, network in enumerate(networks):
        shorter = design.create(3, 0).double()
        shorter.load_state_dict(network.state_dict())
        assert torch.allclose(found[place], shorter(strings[place]), rtol=0, atol=1e-12)


def test_a_recurrence_has_a_curriculum():
    plan = HardnessPlan(batch_size=32, lr=1e-2, steps=400, fit_loss=0.05, settle=5, curriculum=(2, 3))
    found = train(named_task("first", 4), small("lstm"), plan, seeds=[0])
    assert found.fitted[0] is not None
    assert found.steps == found.fitted[0] + 5
    assert tuple(found.networks[0](torch.ones(2, 4)).shape) == (2,)


def test_easy_functions_are_learnt_by_all():
    """The network that counts as learnt is measured by ``observe`` as any other; without norms its blow-up is 1."""
    plan = HardnessPlan(batch_size=32, lr=1e-2, steps=400, fit_loss=0.01, settle=40)
    for architecture in ALL:
        trained = train(named_task("first", 3), small(architecture), plan, seeds=[0])
        found = observe(trained.networks[0], named_task("first", 3), directions=3)
        assert found.has_converged, architecture
        assert found.total_sensitivity == 1
        assert (found.blowup == 1) == (architecture in ("lstm", "mlp", "transformer-without-norm")), architecture
        assert found.mean_square_blowup >= found.blowup**2 * (1 - 1e-12)


def test_norms_are_the_only_difference():
    plain, normed = (small(name).create(6, 0).double() for name in ("mlp", "mlp-with-norm"))
    assert set(normed.state_dict()) - set(plain.state_dict())
    assert sum(isinstance(part, torch.nn.LayerNorm) for part in normed.modules()) == 2
    assert torch.equal(plain.layers[0].weight, normed.layers[0].weight)
    assert torch.equal(plain.readout.weight, normed.readout.weight)
    assert isinstance(plain, BooleanMLP)
    without, with_norms = (small(name).create(6, 0) for name in ("transformer-without-norm", "transformer"))
    assert not any(isinstance(part, torch.nn.LayerNorm) for part in without.modules())
    for name, weight in without.named_parameters():
        assert torch.equal(weight, with_norms.state_dict()[name])


def test_sizes_are_comparable():
    counts = {name: len(weights(HardnessDesign(dim=32, architecture=name).create(10, 0))) for name in ALL}
    assert max(counts.values()) < 1.5 * min(counts.values())


def test_copies_are_those_of_the_sharpness():
    network = shaken(small("transformer"), 1, 4)[0]
    table, copies = moved_tables(network, 4, rho=0.7, directions=6, seed=3)
    bits = torch.from_numpy(cube.points(4)).double()
    twin = landscape.average_direction_sharpness(network, bits, rho=0.7, directions=6, seed=3)
    assert copies.shape == (6, 16)
    assert ((copies - table) ** 2).mean(axis=1) == pytest.approx(twin.function.per_draw, rel=1e-10)
    assert table == pytest.approx(network(bits).detach().numpy(), abs=1e-12)
    alone, one = moved_tables(network, 4, rho=0.7, directions=1, seed=3)
    assert one[0] == pytest.approx(copies[0], abs=1e-12)
    assert (alone == table).all()


def copies_of(**choices):
    network = small("transformer").create(4, 0)
    return moved_tables(**{"network": network, "n": 4, "rho": 0.1, "directions": 2} | choices)


def test_without_a_step_copies_are_the_network():
    table, copies = copies_of(rho=0, directions=3)
    assert (copies == table).all()


def test_copies_of_a_linear_network_in_closed_form():
    """One linear layer on bits: inputs have norm sqrt(n + 1) with the bias, so E (T' - T)^2 = rho^2 exactly."""
    network = torch.nn.Sequential(torch.nn.Linear(5, 1), torch.nn.Flatten(0)).double()
    table, copies = moved_tables(network, 5, rho=0.3, directions=4000)
    squares = ((copies - table) ** 2).mean(axis=1)
    error = squares.std(ddof=1) / math.sqrt(len(squares))
    assert abs(squares.mean() - 0.3**2) < 4 * error
    assert error < 0.01 * 0.3**2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HardnessDesign(architecture="lstn"), "did you mean lstm"),
        (lambda: HardnessDesign(architecture="transformer-without-norm", depth=1), "depth=1 must be at least 2"),
        (
            lambda: train(named_task("parity", 4), small("mlp"), HardnessPlan(curriculum=(2,)), seeds=[0]),
            "curriculum needs a network for every length, and mlp has one",
        ),
        (lambda: copies_of(directions=0), "directions=0 must be a whole number, at least 1"),
        (lambda: copies_of(rho=-1), "rho=-1 must be a finite number, at least 0"),
        (lambda: copies_of(rho=math.nan), "rho=nan must be a finite number, at least 0"),
        (lambda: copies_of(rho="a"), "rho='a' must be a finite number, at least 0"),
        (lambda: copies_of(seed="a"), "seed='a' must be a whole number"),
        (lambda: copies_of(n="a"), "n='a' must be a whole number, at least 1"),
        (lambda: copies_of(n=5), "with 1 to 4 tokens"),
        (lambda: copies_of(network=torch.nn.Linear(4, 1)), r"network answers with \(16, 1\); expected one number"),
    ],
)
def test_wrong_use_is_one_clear_line(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_transformer_is_described_as_before():
    """So that a state on disk from before there were others goes on."""
    assert HardnessDesign(dim=8).describe() == {"dim": 8, "depth": 2, "heads": 2}
    assert small("mlp").describe()["architecture"] == "mlp"
