import dataclasses
import gc

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from jostle.base.errors import FailureError, UsageError
from jostle_papers.p2403_06925.grokking import Addition, follow, initial_network, load_run, split, train
from jostle_papers.p2403_06925.grokking.plain import layout_of
from jostle_papers.p2403_06925.grokking.training import kept_epochs
from jostle_papers.stacked.adamw import StackedAdamW
from tests.papers.grokking import toys

TASK = "addition:modulus=5"
EPOCHS = 12


def trained(folder=None, seeds=toys.SEEDS, epochs=EPOCHS, design="nanda", **options):
    settings = {"every": 3, "checkpoint_every": 5, "dtype": torch.float64} | options
    return train(TASK, toys.DESIGNS[design], seeds=seeds, epochs=epochs, folder=folder, **settings)


@pytest.mark.parametrize("design", list(toys.DESIGNS))
def test_networks_trained_together_are_those_of_a_plain_loop(design):
    run = trained(design=design)
    task, chosen = Addition(5), toys.DESIGNS[design]
    settings = {"lr": chosen.lr, "weight_decay": chosen.weight_decay, "betas": chosen.betas, "eps": chosen.eps}
    for seed in toys.SEEDS:
        network = initial_network(task, chosen, seed).double()
        rows, _ = split(task, chosen.train_fraction, seed)
        optimizer = torch.optim.AdamW(network.parameters(), **settings)
        for epoch in range(1, EPOCHS + 1):
            optimizer.zero_grad()
            functional.cross_entropy(network(task.pairs()[rows]), task.answers()[rows]).backward()
            if network.attention.in_proj_bias is not None:  # of the keys: 0 but for rounding, which AdamW enlarges
                network.attention.in_proj_bias.grad[chosen.dim : 2 * chosen.dim] = 0
            optimizer.step()
            if epoch in run.epochs:
                found = run.network(seed, epoch)
                for mine, theirs in zip(found.parameters(), network.parameters(), strict=True):
                    assert torch.allclose(mine, theirs, rtol=0, atol=1e-9)


def test_a_network_does_not_depend_on_its_company():
    together = trained()
    for index, seed in enumerate(toys.SEEDS):
        alone = trained(seeds=(seed,))
        for epoch in together.epochs:
            assert torch.allclose(together.weights(epoch)[index], alone.weights(epoch)[0], rtol=0, atol=1e-12)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("stop_at", [1, 3, 5, 7, 10, 12])
def test_a_run_that_was_stopped_ends_with_the_same_weights(stop_at, dtype, tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole", dtype=dtype)
    steps, step = [], StackedAdamW.step

    def stopping(self, *arguments):
        if len(steps) == stop_at:
            raise Stop
        steps.append(1)
        step(self, *arguments)

    monkeypatch.setattr(StackedAdamW, "step", stopping)
    if stop_at < EPOCHS:
        with pytest.raises(Stop):
            trained(tmp_path / "stopped", dtype=dtype)
    monkeypatch.undo()
    again = trained(tmp_path / "stopped", dtype=dtype)
    for epoch in whole.epochs:
        assert torch.equal(whole.weights(epoch), again.weights(epoch))
    states = [load_file(tmp_path / name / "training.safetensors") for name in ("whole", "stopped")]
    assert set(states[0]) == {"weights", "mean", "square"}
    assert all(torch.equal(tensor, states[1][key]) for key, tensor in states[0].items())


def test_a_finished_run_is_not_trained_again_and_can_go_on(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole", epochs=18)
    trained(tmp_path / "longer")
    monkeypatch.setattr("jostle_papers.p2403_06925.grokking.training.loss_and_gradient", None)
    assert trained(tmp_path / "longer").epochs == kept_epochs(EPOCHS, 3)
    monkeypatch.undo()
    longer = trained(tmp_path / "longer", epochs=18)
    for epoch in whole.epochs:
        assert torch.equal(whole.weights(epoch), longer.weights(epoch))


def test_epoch_0_is_before_training_and_the_last_is_there(tmp_path):
    run = trained(tmp_path, epochs=7)
    assert run.epochs == (0, 1, 2, 3, 6, 7)
    first = layout_of(run.task, run.design).stack([initial_network(run.task, run.design, s) for s in toys.SEEDS])
    assert torch.equal(run.weights(0), first.double())
    assert run.network(4).embedding.weight.dtype == torch.float64
    assert not torch.equal(run.weights(6), run.weights(7))


def test_a_temporary_folder_goes_with_the_run():
    run = trained(epochs=1)
    folder = run.folder
    assert folder.exists()
    del run
    gc.collect()
    assert not folder.exists()


def test_progress_is_told():
    states = []
    trained(progress=states.append)
    assert states[-1].share == 1.0
    assert [state.passes for state in states] == [1, 2, 3, 5, 6, 9, 10, 12]


def test_divergence_is_one_clear_line():
    design = dataclasses.replace(toys.DESIGNS["nanda"], lr=1e200, weight_decay=0.0)
    with pytest.raises(FailureError, match="training diverged before epoch"):
        train(TASK, design, seeds=(0,), epochs=50, dtype=torch.float64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": ()}, r"seeds=\(\) must be whole numbers from 0 to 2\^32 - 1, one for each network"),
        ({"seeds": (1, 1)}, r"seeds=\[1, 1\] must be different"),
        ({"seeds": (-1,)}, r"seeds=\(-1,\) must be whole numbers from 0"),
        ({"epochs": 0}, "epochs=0 must be a whole number, at least 1"),
        ({"every": 0}, "every=.* must be a whole number"),
        ({"device": "cuda:77"}, "device='cuda:77' cannot be used"),
    ],
)
def test_wrong_use_is_one_clear_line(options, message):
    with pytest.raises(UsageError, match=message):
        trained(**{"epochs": 1} | options)


def test_a_folder_of_another_run_is_refused(tmp_path):
    trained(tmp_path, epochs=4)
    with pytest.raises(UsageError, match=r"is from another run: seeds was \[3, 4, 5\], is \[9\]"):
        trained(tmp_path, epochs=4, seeds=(9,))
    with pytest.raises(UsageError, match="is already at epoch 4; give at least that"):
        trained(tmp_path, epochs=2)
    with pytest.raises(UsageError, match="there are no weights of step 77"):
        trained(tmp_path, epochs=4).weights(77)
    with pytest.raises(UsageError, match="seed=77 is not one of 3, 4, 5"):
        trained(tmp_path, epochs=4).network(77)
    state = tmp_path / "training.safetensors"
    state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(UsageError, match="cannot be read"):
        trained(tmp_path, epochs=4)
    save_file({"weights": torch.zeros(1)}, state)
    with pytest.raises(UsageError, match="has format None"):
        trained(tmp_path, epochs=4)
    save_file({"weights": torch.zeros(1)}, state, metadata={"format": "jostle-stacked-1", "training": "{}"})
    with pytest.raises(UsageError, match="is damaged"):
        trained(tmp_path, epochs=4)


@pytest.mark.parametrize("biases", [False, True])
def test_without_attention_queries_and_keys_stay_at_zero_and_shares_equal(biases):
    design = dataclasses.replace(toys.DESIGNS["mlp"], biases=biases)
    run = train(TASK, design, seeds=(3,), epochs=EPOCHS, dtype=torch.float64)
    network, first = run.network(3), run.network(3, 0)
    assert not network.attention.in_proj_weight[: 2 * design.dim].any()
    assert not torch.equal(network.attention.in_proj_weight, first.attention.in_proj_weight)
    pairs = Addition(5).pairs()
    mean = network.embed(pairs).mean(dim=1)
    value = network.attention.in_proj_weight[2 * design.dim :]
    mixed = network.attention.out_proj(
        mean @ value.T + (network.attention.in_proj_bias[2 * design.dim :] if biases else 0)
    )
    mixed = mixed + network.embed(pairs)[:, -1]
    expected = network.unembedding(network.outer(torch.relu(network.inner(mixed))) + mixed)
    assert torch.allclose(network(pairs), expected, atol=1e-12)


def test_a_run_can_be_looked_at_while_it_goes_on(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole")
    seen, step = [], StackedAdamW.step

    def looking(self, *arguments):
        step(self, *arguments)
        if self.steps == 8:
            seen.append(load_run(tmp_path / "watched"))

    monkeypatch.setattr(StackedAdamW, "step", looking)
    trained(tmp_path / "watched")
    [run] = seen
    assert run.epochs == (0, 1, 2, 3, 6)
    assert (run.task, run.design, run.seeds) == (whole.task, whole.design, whole.seeds)
    for mine, theirs in zip(follow(run), follow(whole), strict=True):
        assert mine.curve("test_loss") == theirs.curve("test_loss")[:5]
    assert load_run(tmp_path / "watched").epochs == whole.epochs


def test_a_folder_without_training_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="there is no training in"):
        load_run(tmp_path)
