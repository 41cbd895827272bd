"""Networks that others trained: the architectures by hand, reading of files, verdicts on made-up records."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from jostle import data, studies
from jostle.base.errors import UsageError
from jostle.estimates import Difference
from jostle.studies import Records, Verdict, decide
from jostle_papers.own.published import cifar_10
from jostle_papers.own.published import study as published
from jostle_papers.trained import MeasuredValue

NAME = "jostle/published-networks"
FOLDER = Path(os.environ.get("JOSTLE_NETWORKS", "/nowhere"))
ACCURACY = {"resnet_20": 0.91, "resnet_56": 0.93, "cct": 0.85, "vit": 0.72}  # on all test images, about


def test_sizes_by_hand():
    """Weights of convolutions, norms, linear layers and tokens, added up from the papers' descriptions."""

    def residual(n):
        blocks = 2 * n * 16 * 16 + (16 * 32 + (2 * n - 1) * 32 * 32) + (32 * 64 + (2 * n - 1) * 64 * 64)
        norms = 2 * (16 + 2 * n * (16 + 32 + 64))
        return 9 * (3 * 16 + blocks) + norms + 650

    def block(dim, hidden):
        return 4 * dim + 4 * (dim * dim + dim) + (dim * hidden + hidden) + (hidden * dim + dim)

    cct = 27 * 128 + 256 * 128 + 4 * block(128, 256) + 256 + 129 + 1290
    vit = (48 * 128 + 128) + 128 + 65 * 128 + 6 * block(128, 256) + 256 + 1290
    built = {
        residual(3): cifar_10.ResidualNetwork(3),
        residual(9): cifar_10.ResidualNetwork(9),
        cct: cifar_10.CompactConvolutionalTransformer(),
        vit: cifar_10.ClassTokenTransformer(),
    }
    assert [sum(weight.numel() for weight in model.parameters()) for model in built.values()] == list(built)
    assert list(built) == [269_722, 853_018, 567_819, 811_146]


def test_the_shortcut_takes_every_second_pixel_and_fills_up_with_zeros():
    block = cifar_10.ResidualBlock(2, 4).eval()
    for weight in block.parameters():
        weight.data.zero_()  # then the block is relu of its shortcut
    maps = torch.arange(32.0).reshape(1, 2, 4, 4)
    out = block(maps)
    assert out.shape == (1, 4, 2, 2)
    assert out[0, [0, 3]].eq(0).all()
    assert out[0, 1].tolist() == [[0, 2], [8, 10]]
    assert out[0, 2].tolist() == [[16, 18], [24, 26]]


def test_sequence_pooling_is_a_weighted_mean_of_the_tokens():
    model = cifar_10.CompactConvolutionalTransformer(dim=8, depth=1, heads=2, mlp_dim=8).double().eval()
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        model.weigh.weight.zero_()  # then all tokens weigh the same
        tokens = model.norm(model.blocks(model.tokenizer(images).flatten(2).mT + model.positions))
        torch.testing.assert_close(model(images), model.classifier(tokens.mean(dim=1)))


def test_without_the_folder_it_is_one_line(monkeypatch, tmp_path):
    monkeypatch.delenv("JOSTLE_NETWORKS", raising=False)
    with pytest.raises(UsageError, match="set JOSTLE_NETWORKS to the folder of networks"):
        cifar_10.resnet_20()
    monkeypatch.setenv("JOSTLE_NETWORKS", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="absent is no folder"):
        cifar_10.resnet_20()
    monkeypatch.setenv("JOSTLE_NETWORKS", str(tmp_path))
    with pytest.raises(UsageError, match=r"has no file cifar10_cct/model_checkpoint84_59.pt"):
        cifar_10.cct()
    (tmp_path / "cifar10_cct").mkdir()
    (tmp_path / "cifar10_cct" / "model_checkpoint84_59.pt").write_bytes(b"other")
    with pytest.raises(UsageError, match=r"has sha256 .*, expected f37e370f\.\.\.: it is another file"):
        cifar_10.cct()


@pytest.mark.skipif(not FOLDER.is_dir(), reason="JOSTLE_NETWORKS names no folder of networks that others trained")
@pytest.mark.parametrize("name", ACCURACY)
def test_published_weights_have_their_accuracy(name):
    try:
        images = data.load("cifar-10", "test", 300, progress=False)
    except UsageError as error:
        pytest.skip(f"CIFAR-10's test images are not there: {error}")
    model = getattr(cifar_10, name)()
    with torch.inference_mode():
        answers = torch.cat([model(part).argmax(dim=1) for part in images.inputs.float().split(50)])
    assert (answers == images.labels).double().mean().item() > ACCURACY[name] - 0.07


def test_labels_of_photographs_are_read_by_file(tmp_path):
    (tmp_path / "labels.tsv").write_text("index\twnid\tname\tfile\n7\tn1\ta b\tx.jpg\n0\tn2\tc\ty.jpg\n")
    assert published.read_labels(tmp_path / "labels.tsv") == {"x.jpg": 7, "y.jpg": 0}


def made_up(levels, half_width=0.002, name=NAME):
    """Records of made-up sensitivities; every network has the same at all variances."""
    study = studies.get(name)
    settings = study.scales["small"]
    cells, found = study.cells(settings, [0]), {}
    labels = [f"variance {variance:g}" for variance in settings.variances]

    def value(x):
        return MeasuredValue(value=x, low=x - half_width, high=x + half_width, level=published.LEVEL)

    for cell in cells:
        names = list(published.NETWORKS[cell.images])
        networks = {
            name: published.PublishedNetwork(
                accuracy=0.9,
                parameters=1,
                weights="0",
                sensitivity={each: value(levels.get(name, 0.01)) for each in labels},
            )
            for name in names
        }
        pairs = {
            f"{a} - {b}": published.PairedDifference(
                mean=levels.get(a, 0.01) - levels.get(b, 0.01), std=0.1, images=10_000
            )
            for a in names
            for b in names
            if a != b
        }
        found[cell.key] = published.PublishedRecord(
            networks=networks, pairs=dict.fromkeys(labels, pairs), num_images=10_000, note="made up"
        )
    return Records(cells, found, settings, "small")


def verdicts(records, name=NAME):
    found = decide(studies.get(name).expectations(records), scale="small")
    return [finding.verdict for finding in found if not finding.is_beyond]


def test_verdicts_turn_with_the_numbers():
    assert verdicts(made_up({"cct": 0.004, "vit": 0.005})) == [Verdict.AGREES] * 4
    assert verdicts(made_up({"cct": 0.004, "vit": 0.02})) == [Verdict.AGREES] * 2 + [Verdict.DISAGREES] * 2
    assert verdicts(made_up({})) == [Verdict.ALIKE] * 4


def test_images_that_were_tried_are_what_is_compared():
    trial = {"interval": None, "other": None, "profile": None, "trials": 5, "first": "a", "second": "b"}
    apart = np.asarray([1.0, -1.0, 0.0, np.nan, -1.0])
    found = published._over_images(Difference(value=-0.25, per_input=apart, **trial))
    assert found.mean == -0.25
    assert found.std == pytest.approx(np.sqrt(11 / 12))
    assert found.images == 4


def test_skipped_images_are_left_out():
    settings = published.PublishedSettings(skip=3, limit=4)
    inputs, labels, _ = published._load_images(settings, {}, None)
    every = data.load("mnist-5000", "train", 7, progress=False)
    assert torch.equal(inputs, every.inputs[3:])
    assert torch.equal(labels, every.labels[3:])


def test_verdicts_on_photographs():
    name = "jostle/published-photographs"
    assert verdicts(made_up({"efficientnet-lite2": 0.005}, name=name), name) == [Verdict.AGREES]
    assert verdicts(made_up({"efficientnet-lite2": 0.02}, name=name), name) == [Verdict.DISAGREES]
    statements = [each.statement for each in studies.get(name).expectations(made_up({}, name=name))]
    assert len(statements) == len(set(statements)) == 12


@pytest.mark.parametrize("name", [NAME, "jostle/published-photographs"])
def test_figures(name):
    stems = [drawing.stem for drawing in studies.get(name).figures(made_up({}, name=name))]
    assert stems == ["against-variance", "against-accuracy"]


def test_photographs_that_are_not_there_are_said(monkeypatch, tmp_path):
    monkeypatch.setenv("JOSTLE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(
        UsageError, match=r"no folder imagenet_sample_256 with photographs and labels.tsv among the datasets"
    ):
        published._load_images(published.PublishedSettings(images="photographs", limit=5), {}, None)
