"""``jostle measure`` and ``compare`` on folders of images and on models that say which pixels they take."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

import jostle
from jostle.data.image_folder import ImageFiles, open_images
from jostle.data.preprocessing import Preprocessing
from tests.cli.test_cli import run

MODELS = """
import torch
from torch import nn
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import ImageClassifier

def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 4)).float()

def classifier(seed=0, size=8, mean=0.5):
    return ImageClassifier(network(seed), Preprocessing(size, size, (mean,) * 3, (0.25,) * 3), f"classifier {size}")

def images():
    from jostle.data.image_folder import open_images
    return open_images("images:photos")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "pretrained_models.py").write_text(MODELS)
    for number in range(6):
        pixels = np.random.default_rng(number).integers(0, 256, (10, 14, 3), dtype=np.uint8)
        path = tmp_path / "photos" / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(model, data):
    return ("measure", "--model", model, "--data", data, "--tokens", "patches:4", "--draws", 2, "--quiet", "--json")


def expected(network, **wanted):
    preprocessing = Preprocessing(**wanted)
    inputs = open_images("images:photos").with_preprocessing(preprocessing).dataset().inputs
    choices = {"tokens": "patches:4", "perturbation": "gaussian-noise:1", "plan": "grid:2"}
    return jostle.measure(network, inputs, **choices)


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 4)).float().eval()


HALF = {"size": 8, "resize": 8, "mean": (0.5,) * 3, "std": (0.25,) * 3}


@pytest.mark.parametrize("data", ["images:photos", "py:pretrained_models.py:images"])
def test_images_are_made_as_the_model_wants_them(capsys, folder, data):
    code, out, err = run(capsys, *words("py:pretrained_models.py:classifier", data))
    assert (code, err) == (0, "")
    assert json.loads(out)["value"] == expected(network(), **HALF).value
    assert json.loads(out)["settings"]["num_inputs"] == 6


def test_a_photograph_is_decoded_once_however_many_trials_it_is_in(capsys, folder, monkeypatch):
    decoded, decode = [], ImageFiles.__getitem__
    monkeypatch.setattr(ImageFiles, "__getitem__", lambda files, row: decoded.append(row) or decode(files, row))
    command = [word for word in words("py:pretrained_models.py:classifier", "images:photos") if word != "--draws"]
    command.remove(2)
    code, out, _ = run(capsys, *command, "--half-width", 0.05)
    assert code == 0
    assert json.loads(out)["trials"] > 100
    assert sorted(decoded) == [0, *range(6)]  # the first once more, to count the classes


def test_a_model_that_does_not_say_takes_what_the_data_says(capsys, folder):
    data = "images:photos:size=8,resize=8,mean=0.5,std=0.25"
    code, out, _ = run(capsys, *words("py:pretrained_models.py:network", data))
    assert code == 0
    assert json.loads(out)["value"] == expected(network(), **HALF).value


def test_limit_and_seed_choose_images(capsys, folder):
    spec = "py:pretrained_models.py:classifier"
    for data in ("images:photos:seed=1", "py:pretrained_models.py:images"):
        code, out, _ = run(capsys, *words(spec, data), "--limit", 3)
        assert code == 0
        assert json.loads(out)["settings"]["num_inputs"] == 3


def test_weights_go_into_the_network_of_a_classifier(capsys, folder):
    save_file(network(7).state_dict(), "w.safetensors")
    command = words("py:pretrained_models.py:classifier", "images:photos")
    code, out, _ = run(capsys, *command, "--weights", "w.safetensors")
    assert code == 0
    assert json.loads(out)["value"] == expected(network(7), **HALF).value


def test_compare_gives_all_models_the_same_pixels(capsys, folder):
    """Twins that say different means: the second is given the first one's pixels, brought to its own."""
    models = (
        "--model",
        "a=py:pretrained_models.py:classifier",
        "--model",
        "b=py:pretrained_models.py:classifier:mean=0.1",
    )
    command = (
        "compare",
        *models,
        "--data",
        "images:photos",
        "--tokens",
        "patches:4",
        "--draws",
        2,
        "--quiet",
        "--json",
    )
    code, out, _ = run(capsys, *command)
    found = {m["name"]: m["value"] for m in json.loads(out)["measurements"]}
    assert code == 0
    assert found["a"] == expected(network(), **HALF).value
    shifted = network()
    with torch.no_grad():
        shifted[1].bias += (shifted[1].weight * (0.5 - 0.1) / 0.25).sum(dim=1)
    assert found["b"] == expected(shifted, **HALF).value


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (
            "py:pretrained_models.py:network",
            "images:photos",
            "does not say which pixels it takes: give size, mean, std",
        ),
        ("py:pretrained_models.py:classifier", "images:nowhere", "the folder nowhere does not exist"),
        ("py:pretrained_models.py:classifier", "images:broken", "cannot be read"),
        ("py:pretrained_models.py:classifier", "images:photos:sise=3", "unknown option of images 'sise'"),
        ("hf:nowhere", "images:photos", "nowhere is not a folder here"),
        ("timm:", "images:photos", "must read timm:NAME"),
        ("resnet", "images:photos", "or with hf:, onnx:, timm: or torchvision: for a pretrained network"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(capsys, folder, model, data, message):
    (folder / "broken").mkdir()
    (folder / "broken" / "x.jpg").write_bytes(b"not an image")
    code, out, err = run(capsys, *words(model, data))
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
