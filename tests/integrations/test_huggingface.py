"""``hf:``: small random networks saved by transformers itself, and the same pixels as its own processors make."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from jostle import integrations
from jostle.base.errors import UsageError
from jostle.data.preprocessing import Preprocessing
from jostle.integrations.huggingface import preprocessing

SIZES = {
    "vit": dict.fromkeys(("hidden_size", "intermediate_size"), 16)
    | {"num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 8},
    "convnextv2": {"hidden_sizes": [8, 8, 12, 12], "depths": [1, 1, 1, 1]},
}


def config(kind):
    from transformers import AutoConfig

    return AutoConfig.for_model(kind, image_size=32, num_labels=5, **SIZES[kind])


@pytest.fixture(params=sorted(SIZES))
def saved(request, tmp_path):
    """(network, folder) of a classifier with random weights; its classifier is large, so that logits differ."""
    from transformers import AutoModelForImageClassification

    network = AutoModelForImageClassification.from_config(config(request.param)).eval()
    with torch.no_grad():
        network.classifier.weight.mul_(50)
    network.save_pretrained(tmp_path)
    return network, tmp_path


def write(folder, **changes):
    """A preprocessor_config.json."""
    usual = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "size": {"height": 32, "width": 32}}
    (folder / "preprocessor_config.json").write_text(json.dumps(usual | changes))


def test_logits_are_those_of_the_network_that_was_saved(saved, capfd):
    network, folder = saved
    capfd.readouterr()
    loaded = integrations.load(f"hf:{folder}")
    assert capfd.readouterr() == ("", "")  # no bars, no reports
    pixels = torch.randn(3, 3, 32, 32)
    expected = network(pixels).logits
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert not any(module.training for module in loaded.modules())
    assert expected.std() > 0.01
    assert torch.allclose(loaded(pixels.float()).double(), expected, atol=1e-4)
    assert loaded.preprocessing is None


def test_it_knows_what_its_processor_wants(saved):
    _, folder = saved
    write(folder, size=32, resample=2)
    wanted = integrations.load(f"hf:{folder}").preprocessing
    assert wanted == Preprocessing(32, 32, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), "bilinear")


def photograph(height, width):
    """Smooth colours, as photographs have."""
    rows, columns = np.mgrid[:height, :width]
    waves = [np.sin(rows / (7 + colour)) * np.cos(columns / (9 - colour)) for colour in range(3)]
    return Image.fromarray(((np.stack(waves, axis=2) + 1) * 127).astype(np.uint8))


@pytest.mark.parametrize(
    ("kind", "options", "shape"),
    [
        ("convnext", {"size": {"shortest_edge": 32}, "crop_pct": 0.875}, (60, 80)),
        ("convnext", {"size": {"shortest_edge": 32}, "crop_pct": 0.8, "resample": 2}, (91, 50)),
        ("convnext", {"size": {"shortest_edge": 384}}, (70, 70)),
        ("vit", {"size": {"height": 32, "width": 32}, "image_mean": [0.4, 0.5, 0.6]}, (90, 90)),
        ("vit", {"do_normalize": False, "size": {"height": 16, "width": 16}}, (40, 40)),
        ("vit", {"rescale_factor": 1 / 127.5, "image_mean": [1.0, 1.1, 1.2]}, (40, 40)),
    ],
)
def test_pixels_are_those_of_transformers_own_processor(tmp_path, kind, options, shape):
    from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    processor = {"convnext": ConvNextImageProcessorPil, "vit": ViTImageProcessorPil}[kind](**options)
    processor.save_pretrained(tmp_path)
    image = photograph(*shape)
    expected = torch.as_tensor(np.asarray(processor(image)["pixel_values"][0]))
    ours = preprocessing(tmp_path).pixels(image)
    assert ours.shape == expected.shape
    assert (ours - expected).abs().max() < 1e-4


def test_processors_that_crop_and_that_take_one_off(tmp_path):
    write(tmp_path, size={"shortest_edge": 40}, do_center_crop=True, crop_size={"height": 32, "width": 32})
    assert (preprocessing(tmp_path).size, preprocessing(tmp_path).resize) == (32, 40)
    write(tmp_path, rescale_factor=1 / 127.5, rescale_offset=True, image_mean=[0.0] * 3, image_std=[1.0] * 3)
    assert preprocessing(tmp_path).mean == (0.5, 0.5, 0.5)
    assert preprocessing(tmp_path).std == (0.5, 0.5, 0.5)
    (tmp_path / "preprocessor_config.json").unlink()
    assert preprocessing(tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": {"height": 32, "width": 48}}, "is not a square"),
        ({"size": {"longest": 3}}, "cannot be understood .KeyError"),
        ({"image_mean": 3}, "cannot be understood .TypeError"),
        ({"image_std": [0.0, 1.0, 1.0]}, "std larger than 0"),
        ({"resample": 77}, "cannot be understood .ValueError"),
    ],
)
def test_a_processor_that_cannot_be_followed_is_one_line(tmp_path, changes, message):
    write(tmp_path, **changes)
    with pytest.raises(UsageError, match=message) as error:
        preprocessing(tmp_path)
    assert "preprocessor_config.json" in str(error.value)
    assert "\n" not in str(error.value)


def refused(folder):
    with pytest.raises(UsageError) as error:
        integrations.load(f"hf:{folder}")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_backbone_without_its_classifier_is_refused(tmp_path):
    from transformers import AutoModel

    AutoModel.from_config(config("vit")).save_pretrained(tmp_path)
    assert "lacks weights that fit classifier.bias, classifier.weight; expected a trained classifier" in refused(
        tmp_path
    )


def test_pickled_weights_and_incomplete_folders_are_refused(tmp_path):
    assert "the folder has no config.json" in refused(tmp_path)
    config("vit").save_pretrained(tmp_path)
    torch.save({}, tmp_path / "pytorch_model.bin")
    assert "has no model.safetensors; only weights in safetensors files are read" in refused(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    assert "cannot be loaded" in refused(tmp_path)


def test_a_name_on_the_hub_is_not_looked_up():
    assert "is not a folder here, and jostle downloads no models" in refused("google/vit-base-patch16-224")


def test_without_transformers_it_is_one_line(tmp_path, monkeypatch):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert 'needs transformers: pip install "jostle[hf]"' in refused(tmp_path)


def test_importing_jostle_integrations_imports_no_other_library():
    program = "import sys; from jostle.integrations import SOURCES; SOURCES.names(); names = {'transformers', 'timm'}; "
    program += "assert not names & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
