"""``hf:``: small random networks saved by transformers itself."""

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
