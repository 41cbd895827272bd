"""The study of pretrained networks: settings as text, the same noise for all, verdicts with and without a ViT."""

import numpy as np
import pytest
import torch
from PIL import Image

from jostle import measure, studies
from jostle.base.errors import UsageError
from jostle.studies import Context, Records, Verdict, decide
from jostle.studies.settings import override_settings
from jostle.studies.study import make_cells
from jostle_papers.p2403_06925 import imagenet_pretrained
from jostle_papers.p2403_06925.imagenet_pretrained import (
    ImagenetPretrained,
    PretrainedCell,
    PretrainedRecord,
    PretrainedSettings,
    specs_by_name,
)

NAME = "2403.06925/imagenet-pretrained"
MODELS = """
import torch
from torch import nn
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import ImageClassifier

def make(seed=0, mean=0.5, classes=2):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 256, 8), nn.ReLU(), nn.Linear(8, classes))
    return ImageClassifier(network, Preprocessing(16, 16, (mean,) * 3, (0.25,) * 3), "made")
"""


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "made_for_imagenet.py").write_text(MODELS)
    for number in range(8):
        pixels = np.random.default_rng(number).integers(0, 256, (20, 24, 3), dtype=np.uint8)
        path = tmp_path / "photos" / f"n0{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def context(folder):
    return Context(folder=folder, report=lambda state: None)


def settings(**changes):
    standard = {
        "models": "conv=py:made_for_imagenet.py:make:seed=1,vit-l-16=py:made_for_imagenet.py:make:seed=2,mean=0.1",
        "images": "images:photos:mean=0.5,std=0.25",
        "limit": "8",
        "patch": "4",
        "draws": "2",
    }
    return override_settings(PretrainedSettings(), standard | changes)


def test_it_is_registered_and_runs_at_smoke_scale(tmp_path):
    assert isinstance(studies.get(NAME), ImagenetPretrained)
    result = studies.run(NAME, scale="smoke", out=tmp_path, progress=False)
    assert result.verdict == Verdict.UNDECIDED
    assert result.findings[0].value is not None
    assert {path.stem for path in (result.folder / "figures").iterdir()} == {
        "against-std",
        "positions-convnext",
        "positions-vit-small",
    }
    assert all(0 < record.accuracy < 0.5 for _, record in result.records)  # random weights


def test_models_are_named_on_the_command_line_with_their_options():
    named = specs_by_name(settings().models)
    assert named == {
        "conv": "py:made_for_imagenet.py:make:seed=1",
        "vit-l-16": "py:made_for_imagenet.py:make:seed=2,mean=0.1",
    }
    paper = ImagenetPretrained.scales["paper"]
    assert list(specs_by_name(paper.models)) == ["convnext-v2-tiny", "vit-l-16"]
    text = "a=timm:x:checkpoint=w.pth,num_classes=5, b=hf:some/folder"
    assert specs_by_name(override_settings(paper, {"models": text}).models) == {
        "a": "timm:x:checkpoint=w.pth,num_classes=5",
        "b": "hf:some/folder",
    }


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("hf:folder", "must read NAME=SPEC"),
        ("a=folder", "must read NAME=SPEC"),
        ("a=hf:x,a=hf:y", "names 'a' twice"),
    ],
)
def test_wrong_models_are_said_before_any_work(models, message):
    with pytest.raises(UsageError, match=message):
        make_cells(ImagenetPretrained(), override_settings(PretrainedSettings(), {"models": models}), range(1))


def test_paper_scale_is_the_papers():
    paper = ImagenetPretrained.scales["paper"]
    assert paper.std**2 == pytest.approx(15)
    assert paper.limit == 20_000
    assert paper.patch == 16


def test_all_models_get_the_same_pixels_and_noise(folder, monkeypatch):
    seen = []

    def watched(model, images, **given):
        pixels = torch.stack([images[index][0] for index in range(len(images))])
        seen.append((pixels.sum().item(), given["tokens"], given["perturbation"], given["plan"], given["seed"]))
        return measure(model, images, **given)

    monkeypatch.setattr(imagenet_pretrained, "measure", watched)
    chosen = settings(further="1.0/2.0")
    for name in ("conv", "vit-l-16"):
        ImagenetPretrained().measure(PretrainedCell(name, 3), chosen, context(folder))
    assert len(seen) == 6
    assert seen[:3] == seen[3:]
    assert {given[-1] for given in seen} == {3}


def test_a_record_is_what_measure_gives_and_says_of_what(folder):
    from jostle import GaussianNoise, Grid, Patches, integrations
    from jostle.data.image_folder import open_images

    chosen = settings()
    record = ImagenetPretrained().measure(PretrainedCell("conv", 1), chosen, context(folder))
    model = integrations.load("py:made_for_imagenet.py:make:seed=1")
    images = integrations.prepare_images(open_images(chosen.images), [model])
    expected = measure(model, images, tokens=Patches(4), perturbation=GaussianNoise(15**0.5), plan=Grid(2), seed=1)
    assert record.sensitivity == expected.value > 0
    assert (record.low, record.high) == (expected.low, expected.high)
    assert record.by_std["3.87298"]["profile"]["values"] == expected.profile.values.tolist()
    inputs, labels = images.dataset().inputs, images.labels
    assert record.accuracy == (model(inputs).argmax(dim=1) == labels).double().mean().item()
    assert record.num_images == 8
    assert record.preprocessing["mean"] == [0.5, 0.5, 0.5]
    again = ImagenetPretrained().measure(PretrainedCell("conv", 1), chosen, context(folder))
    assert again == record
    other = ImagenetPretrained().measure(PretrainedCell("vit-l-16", 1), chosen, context(folder))
    assert other.weights != record.weights
    assert other.images == record.images


def test_labels_that_are_not_the_models_classes_give_no_accuracy(folder):
    chosen = settings(models="conv=py:made_for_imagenet.py:make:classes=5")
    assert ImagenetPretrained().measure(PretrainedCell("conv", 0), chosen, context(folder)).accuracy is None


def made_up(sensitivity):
    """A record with this sensitivity."""
    about = {"accuracy": None, "parameters": 1, "weights": "", "num_images": 1, "images": "", "preprocessing": {}}
    return PretrainedRecord(sensitivity=sensitivity, low=0.0, high=1.0, level=0.95, by_std={}, note="", **about)


def judged(sensitivities, scale="paper", models=None):
    """Findings of made-up records: sensitivity by model and seed."""
    chosen = settings(models=models or "convnext-v2-tiny=zoo:mlp,vit-l-16=zoo:mlp")
    cells = ImagenetPretrained().cells(chosen, range(4))
    records = {cell.key: made_up(sensitivities[cell.model][cell.seed]) for cell in cells}
    return decide(ImagenetPretrained().expectations(Records(cells, records, chosen, scale)), scale=scale)


LOW, HIGH = [0.0191, 0.0192, 0.0190, 0.0193], [0.0342, 0.0340, 0.0344, 0.0341]


def test_verdicts():
    agrees = judged({"convnext-v2-tiny": HIGH, "vit-l-16": LOW})
    assert [finding.verdict for finding in agrees] == [Verdict.AGREES] * 3
    disagrees = judged({"convnext-v2-tiny": LOW, "vit-l-16": HIGH})
    assert [finding.verdict for finding in disagrees] == [Verdict.DISAGREES] * 3
    assert [finding.is_beyond for finding in disagrees] == [False, True, True]


def test_without_a_transformer_the_claim_is_undecided_and_says_why():
    [finding] = judged({"efficientnet-lite0": HIGH}, models="efficientnet-lite0=zoo:mlp")
    assert finding.verdict == Verdict.UNDECIDED
    assert finding.reason == "no weights of vit-l-16 at hand, so there is nothing to compare"
    [finding, _] = judged({"vit-l-16": LOW}, models="vit-l-16=zoo:mlp")
    assert finding.reason == "no weights of another network at hand, so there is nothing to compare"


def test_a_folder_that_is_not_there_is_one_line_for_each_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(studies.CellsFailedError, match="convnextv2-tiny-22k-224 is not a folder here"):
        studies.run(NAME, scale="paper", out=tmp_path, seeds=1, progress=False)
