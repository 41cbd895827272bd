import json
import random

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from jostle.base import weights
from jostle.base.errors import FailureError, KeptFileError, UsageError
from jostle.training import checkpoints, load_weights, save_weights
from jostle.training.evaluation import Evaluation
from tests.training.toys import network, random_points, same_weights

RECORD = {0: Evaluation(1.1, 0.3), 5: Evaluation(0.1 + 0.2, 1 / 3)}
EMPTY = '{"epochs": 0, "record": [], "settings": {}, "scaler": {}}'
SETTINGS = {"lr": 0.1, "model": "Sequential"}


def scaler(enabled=False):
    return torch.amp.GradScaler("cpu", enabled=enabled)


def save(path, model, optimizer, scaling=None):
    standing = {"epochs": 7, "record": RECORD, "settings": SETTINGS}
    checkpoints.save(path, model, optimizer, scaling or scaler(), **standing)


def trained(kind=torch.optim.Adam, **options):
    """A model and its optimiser after two steps."""
    model = network()
    optimizer = kind(model.parameters(), lr=0.01, **options)
    for _ in range(2):
        step(model, optimizer)
    return model, optimizer


def step(model, optimizer):
    optimizer.zero_grad()
    model.eval()(random_points().inputs).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {"weight_decay": 0.1}),
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": 0.9}),
    ],
)
def test_the_next_step_is_the_same_after_a_round_trip(tmp_path, kind, options):
    model, optimizer = trained(kind, **options)
    save(tmp_path / "c", model, optimizer)
    loaded = checkpoints.load(tmp_path / "c")
    other = network(seed=5)
    other_optimizer = kind(other.parameters(), lr=0.01, **options)
    checkpoints.restore(loaded, other, other_optimizer, scaler(), "c")
    assert (loaded.epochs, loaded.record, loaded.settings) == (7, RECORD, SETTINGS)
    assert same_weights(model, other)
    step(model, optimizer)
    step(other, other_optimizer)
    assert same_weights(model, other)


def test_the_scaler_keeps_its_state(tmp_path):
    model, optimizer = trained()
    before, after = scaler(enabled=True), scaler(enabled=True)
    before.load_state_dict(before.state_dict() | {"scale": 2.0**11, "_growth_tracker": 5})
    save(tmp_path / "c", model, optimizer, before)
    checkpoints.restore(checkpoints.load(tmp_path / "c"), model, optimizer, after, "c")
    assert after.state_dict() == before.state_dict() != scaler(enabled=True).state_dict()


def test_no_pickle_and_plain_names_inside(tmp_path):
    model, optimizer = trained()
    save(tmp_path / "c", model, optimizer)
    with safe_open(tmp_path / "c", framework="pt") as file:
        names, metadata = set(file.keys()), file.metadata()
    assert names >= set(model.state_dict())
    assert all(name.startswith("optimizer/") for name in names - set(model.state_dict()))
    assert json.loads(metadata["training"])["settings"] == SETTINGS
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_tied_weights(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    save_weights(model, tmp_path / "w")
    other = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    other[1].weight = other[0].weight
    load_weights(other, tmp_path / "w")
    assert same_weights(model, other)


def test_weights_from_a_plain_file_and_from_a_checkpoint(tmp_path):
    model, optimizer = trained()
    save_weights(model, tmp_path / "plain")
    save(tmp_path / "training", model, optimizer)
    for name in ("plain", "training"):
        other = network(seed=5)
        load_weights(other, tmp_path / name)
        assert same_weights(model, other)
    assert load_file(tmp_path / "plain").keys() == model.state_dict().keys()


def test_weights_take_the_type_of_the_model(tmp_path):
    save_weights(network(), tmp_path / "w")
    double = network(seed=5).double()
    load_weights(double, tmp_path / "w")
    assert double[0].weight.dtype == torch.float64
    assert torch.equal(double[0].weight, network()[0].weight.double())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("0.weight"), r"does not fit Sequential: it lacks 0.weight$"),
        (lambda weights: weights.update(extra=torch.zeros(1)), r"it has unexpected extra$"),
        (
            lambda weights: weights.update({"4.bias": torch.zeros(9)}),
            r"it has 4.bias of shape \(9,\) where the model has \(3,\)$",
        ),
        (lambda weights: weights.clear() or weights.update(a=torch.zeros(1)), r"lacks 0.weight; .* \(and 7 more\)$"),
    ],
)
def test_weights_that_do_not_fit(tmp_path, change, message):
    weights = dict(network().state_dict())
    change(weights)
    save_file(weights, tmp_path / "w")
    model = network(seed=5)
    with pytest.raises(UsageError, match=message):
        load_weights(model, tmp_path / "w")
    assert same_weights(model, network(seed=5))


def broken(path, kind):
    """Turn a good checkpoint into a bad file."""
    whole = path.read_bytes()
    if kind == "missing":
        path.unlink()
    elif kind == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"empty": b"", "garbage": b"not a checkpoint" * 9, "truncated": whole[:-1]}[kind])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "does not exist"),
        ("folder", "cannot be read|not the whole of one"),
        ("empty", "not the whole of one"),
        ("garbage", "not the whole of one"),
        ("truncated", "not the whole of one"),
    ],
)
@pytest.mark.parametrize("read", [checkpoints.load, lambda path: load_weights(network(), path)])
def test_broken_files(tmp_path, kind, message, read):
    model, optimizer = trained()
    save(tmp_path / "c", model, optimizer)
    broken(tmp_path / "c", kind)
    with pytest.raises(UsageError, match=message) as caught:
        read(tmp_path / "c")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": "pt"}, "holds weights but no training state"),
        (
            {"format": "jostle-training-1", "training": "{}"},
            "has format 'jostle-training-1', this version reads 'jostle-training-3'; delete it to start again$",
        ),
        ({"format": "jostle-training-2", "training": "{"}, "is damaged .*; delete it to start again"),
        ({"format": "jostle-training-2", "training": "{}"}, "is damaged"),
        ({"format": "jostle-training-2", "training": EMPTY}, "is damaged .no epoch in it"),
    ],
)
def test_files_that_are_no_checkpoint(tmp_path, metadata, message):
    save_file(network().state_dict(), tmp_path / "c", metadata=metadata)
    with pytest.raises(UsageError, match=message):
        checkpoints.load(tmp_path / "c")


def test_every_flipped_bit_is_noticed(tmp_path):
    model, optimizer = trained()
    save(tmp_path / "c", model, optimizer)
    content = (tmp_path / "c").read_bytes()
    before = checkpoints.load(tmp_path / "c")
    rng = random.Random(0)
    for _ in range(400):
        place, bit = rng.randrange(len(content)), rng.randrange(8)
        (tmp_path / "c").write_bytes(content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :])
        try:
            after = checkpoints.load(tmp_path / "c")
        except KeptFileError:
            continue
        assert str(after) == str(before)  # a bit of what nobody reads, such as a space


def test_a_checkpoint_of_the_format_before_is_read(tmp_path):
    model, optimizer = trained()
    save(tmp_path / "c", model, optimizer)
    with safe_open(tmp_path / "c", framework="pt") as file:
        metadata = dict(file.metadata())
    tensors = load_file(tmp_path / "c")
    for crc, is_good in ((checkpoints._checksum_before(tensors, metadata["training"]), True), ("00000000", False)):
        save_file(tensors, tmp_path / "c", metadata={**metadata, "format": "jostle-training-2", "crc32": crc})
        if is_good:
            assert checkpoints.load(tmp_path / "c").epochs == 7
        else:
            with pytest.raises(KeptFileError, match="its checksum does not fit"):
                checkpoints.load(tmp_path / "c")


def test_equal_contents_are_equal_bytes(tmp_path):
    about = {f"key {number}": "ä\n" for number in range(20)}
    tensors = {"b": torch.ones(3), "a": torch.zeros(2)}
    weights.write_weights(tmp_path / "w", tensors, about)
    weights.write_weights(tmp_path / "v", dict(reversed(tensors.items())), dict(reversed(about.items())))
    assert (tmp_path / "w").read_bytes() == (tmp_path / "v").read_bytes()
    with safe_open(tmp_path / "w", "pt") as file:
        assert file.metadata() == about
        assert file.get_tensor("b").tolist() == [1, 1, 1]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    save_weights(network(), tmp_path / "w")

    def fail(tensors, path, metadata):
        path.write_bytes(b"half")
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(weights, "save_file", fail)
    with pytest.raises(FailureError, match=r"could not write .*: No space left on device; nothing was left behind"):
        save_weights(network(seed=5), tmp_path / "w")
    model = network(seed=9)
    load_weights(model, tmp_path / "w")
    assert same_weights(model, network())
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
