"""``hf:``: small random networks saved by transformers itself."""

import os
import subprocess
import sys

import pytest
import torch

from jostle import integrations
from jostle.base.errors import UsageError

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


class RunsCode:
    """What a file of weights must not hold: an object whose unpickling calls a function."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_weights_in_a_bin_file_are_read_and_no_code_in_them_runs(tmp_path):
    from transformers import AutoModelForImageClassification

    network = AutoModelForImageClassification.from_config(config("vit")).float().eval()
    network.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
    side = network.config.image_size
    images = torch.randn(2, network.config.num_channels, side, side, dtype=torch.float32)
    assert torch.equal(integrations.load(f"hf:{tmp_path}")(images), network(images).logits)
    torch.save({"weight": RunsCode(tmp_path / "ran")}, tmp_path / "pytorch_model.bin")
    assert "cannot be loaded" in refused(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_incomplete_folders_are_refused(tmp_path):
    assert "the folder has no config.json" in refused(tmp_path)
    config("vit").save_pretrained(tmp_path)
    assert "has no weights that are read here, model.safetensors or pytorch_model.bin" in refused(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    assert "cannot be loaded" in refused(tmp_path)


def test_a_name_on_the_hub_is_not_looked_up():
    assert "is not a folder here, and jostle downloads no models" in refused("google/vit-base-patch16-224")


@pytest.mark.parametrize("name", ["languéage", "-x", "x--y", "a" * 100])
def test_a_name_that_the_hub_does_not_allow_is_no_folder(name):
    assert f"{name} is not a folder here, and jostle downloads no models" in refused(name)


def test_without_transformers_it_is_one_line(tmp_path, monkeypatch):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert 'needs transformers: pip install "jostle[hf]"' in refused(tmp_path)


def test_importing_jostle_integrations_imports_no_other_library():
    program = "import sys; from jostle.integrations import SOURCES; SOURCES.names(); names = {'transformers', 'timm'}; "
    program += "assert not names & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
