"""``load``: every source by its prefix, and one line for what cannot be loaded."""

import pytest
import torch
from torch import nn

from jostle import integrations, models
from jostle.base.errors import FailureError, UsageError

SOURCE_EXAMPLES = {  # a spec that any machine can try, and the line it ends in; None if it gives a model
    "hf": ("hf:nowhere", "nowhere is not a folder here, and jostle downloads no models"),
    "onnx": ("onnx:nowhere.onnx", "onnx:nowhere.onnx"),
    "py": ("py:nowhere:make", "cannot be imported"),
    "sample": ("sample:vit", None),
    "timm": ("timm:", "must read timm:NAME"),
    "torchvision": ("torchvision:", "must read torchvision:NAME"),
    "zoo": ("zoo:mlp:image_size=8", None),
}


def test_every_source_has_an_example():
    assert sorted(SOURCE_EXAMPLES) == integrations.SOURCES.names()


@pytest.mark.parametrize("kind", SOURCE_EXAMPLES)
def test_sources_give_a_model_or_one_line(kind):
    spec, message = SOURCE_EXAMPLES[kind]
    if message is None:
        assert not integrations.load(spec).training
        return
    with pytest.raises(UsageError, match=message) as error:
        integrations.load(spec)
    assert "\n" not in str(error.value)


def test_the_zoo_is_a_function_of_spec_and_seed():
    spec = "zoo:vit-small:image_size=8,depth=1,heads=1,dim=8"
    one, same, other = (integrations.load(spec, seed=seed) for seed in (1, 1, 2))
    expected = models.create("vit-small", seed=1, image_size=8, depth=1, heads=1, dim=8)
    images = torch.randn(2, 3, 8, 8)
    assert torch.equal(one(images), same(images))
    assert torch.equal(one(images), expected.eval()(images))
    assert not torch.equal(one(images), other(images))


def test_python_factories_take_options_and_modules_come_in_eval_mode(tmp_path, monkeypatch):
    (tmp_path / "factories_for_load.py").write_text(
        "from torch import nn\n"
        "def make(width=2): return nn.Sequential(nn.Linear(width, 3), nn.Dropout())\n"
        "module = nn.Linear(5, 2)\n"
        "def shift(by): return lambda x: x + by\n"
        "def number(): return 3\n"
        "def broken(): raise ValueError('no\\nweights')\n"
    )
    monkeypatch.chdir(tmp_path)
    for place in ("factories_for_load", "factories_for_load.py"):
        made = integrations.load(f"py:{place}:make:width=4")
        assert made[0].in_features == 4
        assert not made[1].training
        assert isinstance(integrations.load(f"py:{place}:module"), nn.Linear)
        assert integrations.load(f"py:{place}:shift:7")(1) == 8
        with pytest.raises(UsageError, match=f"py:{place}:number: the factory returned int, which cannot be called"):
            integrations.load(f"py:{place}:number")
        with pytest.raises(FailureError, match=f"py:{place}:broken': broken raised ValueError: no weights"):
            integrations.load(f"py:{place}:broken")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "must start with zoo: or py:, or with hf:, onnx:, timm: or torchvision:"),
        ("resnet", "must start with zoo: or py:"),
        ("zoo:mlp:8", "write options as key=value"),
        ("zoo:mpl", "unknown model 'mpl'; did you mean mlp"),
        ("zoo:mlp:hiden=8", "unknown mlp argument 'hiden'"),
        ("py:", "must read py:MODULE_OR_FILE:FACTORY"),
        ("py:json", "must read py:MODULE_OR_FILE:FACTORY"),
        ("py:json:lods", "json has no 'lods'"),
        ("py:no.py:make", "Python file no.py does not exist"),
    ],
)
def test_wrong_use_is_one_line(spec, message):
    with pytest.raises(UsageError, match=message) as error:
        integrations.load(spec)
    assert "\n" not in str(error.value)


def test_a_factory_that_returns_a_class_is_told_so(tmp_path):
    (tmp_path / "kind.py").write_text("from torch import nn\ndef make(): return nn.Identity\n")
    with pytest.raises(UsageError, match="the factory returned the class Identity; return a model made of it"):
        integrations.load(f"py:{tmp_path / 'kind.py'}:make")


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("net.py", "write py:net.py:NAME, with the NAME of the function or class in it"),
        ("net.py:make", "write py:net.py:NAME"),
        ("./net.onnx", "write onnx:./net.onnx"),
        ("saved", "write hf:saved"),
        ("resnet18", "write zoo:resnet-18, a network with random weights"),
        ("hf:saved/config.json", "saved/config.json is a file: give the folder that holds it, hf:saved"),
    ],
)
def test_a_spec_without_its_prefix_is_understood(tmp_path, monkeypatch, spec, meant):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "config.json").write_text("{}")
    with pytest.raises(UsageError) as raised:
        integrations.load(spec)
    assert meant in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
