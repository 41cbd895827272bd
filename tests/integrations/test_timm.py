"""``timm:`` against a small stand-in for timm, which needs torchvision and so is not installed here."""

import pickle
import sys
import types

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from jostle import integrations
from jostle.base.errors import UsageError
from jostle.data.preprocessing import Preprocessing

WANTED = {"input_size": (3, 8, 8), "mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2), "crop_pct": 0.8}


@pytest.fixture
def made(monkeypatch):
    """Puts the stand-in in place; what ``create_model`` was called with."""
    calls = []

    def create_model(name, pretrained=True, **options):
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        if options.keys() - {"num_classes", "img_size"}:
            raise TypeError("unexpected keyword argument")
        calls.append((name, pretrained, options))
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, options.get("num_classes", 4)))

    timm, data = types.ModuleType("timm"), types.ModuleType("timm.data")
    timm.create_model, timm.data = create_model, data
    data.resolve_model_data_config = lambda network: {**WANTED, "interpolation": "bilinear"}
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    return calls


def trained():
    torch.manual_seed(5)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4)).float()


def refused(spec):
    with pytest.raises(UsageError) as error:
        integrations.load(spec)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_network_without_a_checkpoint_is_a_function_of_the_seed_and_never_downloads(made):
    one, same, other = (integrations.load("timm:tiny:num_classes=7", seed=seed) for seed in (1, 1, 2))
    pixels = torch.randn(2, 3, 8, 8).float()
    assert made == [("tiny", False, {"num_classes": 7})] * 3
    assert one(pixels).shape == (2, 7)
    assert one(pixels).dtype == torch.float32
    assert torch.equal(one(pixels), same(pixels))
    assert not torch.equal(one(pixels), other(pixels))
    assert not one.training
    integrations.load("timm:tiny:num_classes=7", seed=10**30)


def test_it_knows_what_timm_would_give_it(made):
    expected = Preprocessing(size=8, resize=10, mean=(0.5,) * 3, std=(0.2,) * 3, interpolation="bilinear")
    assert integrations.load("timm:tiny").preprocessing == expected
    assert integrations.load("timm:tiny:img_size=16").preprocessing.size == 16


@pytest.mark.parametrize("name", ["w.safetensors", "plain.pth", "wrapped.pth.tar", "ema.bin", "parallel.pt"])
def test_weights_come_from_safetensors_or_from_files_of_tensors(made, tmp_path, name):
    network, path = trained(), tmp_path / name
    weights = network.state_dict()
    contents = {
        "plain.pth": weights,
        "wrapped.pth.tar": {"epoch": 3, "state_dict": weights},
        "ema.bin": {"state_dict": {"1.bias": torch.zeros(9)}, "state_dict_ema": weights},
        "parallel.pt": {"model": {f"module.{key}": value for key, value in weights.items()}},
    }
    save_file(weights, path) if name == "w.safetensors" else torch.save(contents[name], path)
    pixels = torch.randn(2, 3, 8, 8).float()
    assert torch.equal(integrations.load(f"timm:tiny:checkpoint={path}")(pixels), network(pixels))


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_code_in_a_checkpoint_is_not_run(made, tmp_path):
    path, trace = tmp_path / "evil.pth", tmp_path / "trace"
    torch.save({"state_dict": Touch(str(trace))}, path)
    assert "cannot be read without running code in it" in refused(f"timm:tiny:checkpoint={path}")
    (tmp_path / "old.pth").write_bytes(pickle.dumps(Touch(str(trace))))
    assert "cannot be read as a file of torch.save" in refused(f"timm:tiny:checkpoint={tmp_path / 'old.pth'}")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"1.weight": torch.zeros(4, 192)}, "lacks 1.bias"),
        ({"1.weight": torch.zeros(4, 192), "1.bias": torch.zeros(4), "2.x": torch.zeros(1)}, "has unexpected 2.x"),
        (
            {"1.weight": torch.zeros(9, 192), "1.bias": torch.zeros(9)},
            "has 1.weight of shape (9, 192) where",
        ),
        ({"epoch": 3}, "holds no dictionary of tensors"),
        (torch.zeros(3), "holds no dictionary of tensors"),
    ],
)
def test_weights_that_do_not_fit_are_one_line(made, tmp_path, contents, message):
    torch.save(contents, tmp_path / "w.pth")
    assert message in refused(f"timm:tiny:checkpoint={tmp_path / 'w.pth'}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("timm:tiny:checkpoint=nowhere.pth", "nowhere.pth does not exist"),
        ("timm:tinny", "cannot be made by timm: Unknown model (tinny)"),
        ("timm:tiny:depth=3", "unexpected keyword argument"),
        ("timm:tiny:3", "must read timm:NAME or timm:NAME:checkpoint=FILE,key=value"),
        ("timm:tiny:pretrained=true", "jostle downloads no models; give timm:NAME:checkpoint=FILE"),
        ("timm:hf-hub:timm/tiny", "must read timm:NAME"),
        ("timm:hf_hub", "jostle downloads no models"),
    ],
)
def test_wrong_use_is_one_line(made, spec, message):
    assert message in refused(spec)


def test_without_timm_it_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    assert refused("timm:tiny").endswith("needs timm: pip install timm torchvision")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import torchvision", "needs torchvision, which timm imports: pip install timm torchvision"),
        (
            "raise RuntimeError('operator torchvision::nms does not exist')",
            "cannot be imported: operator torchvision::nms",
        ),
    ],
)
def test_timm_with_a_torchvision_that_is_absent_or_broken_is_one_line(tmp_path, monkeypatch, source, message):
    (tmp_path / "timm").mkdir()
    (tmp_path / "timm" / "__init__.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert message in refused("timm:tiny")
