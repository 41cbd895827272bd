"""Right classes of inputs: folders of images that are called like classes, and (inputs, labels) of a function."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from tests.cli.test_cli import run

MODELS = """
from types import SimpleNamespace
import numpy as np
import torch
from torch import nn
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import ImageClassifier

def classifier(classes="Tree frog/dog/cat"):
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.config = SimpleNamespace(id2label=dict(enumerate(classes.split("/"))))
    return ImageClassifier(network, Preprocessing(8, 8, (0.5,) * 3, (0.5,) * 3), "colours")

def unnamed():
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

def rows():
    return nn.Identity()

X = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
def right(): return X, np.array([0, 1, 2, 1])
def listed(): return X, [0.0, 1.0, 2.0, 0.0]
def strings(): return X, ["a", "b", "c", "a"]
def short(): return torch.from_numpy(X), [0]
def dataset():
    from jostle.data import Dataset
    return Dataset("mine", torch.from_numpy(X), torch.tensor([0, 1, 2, 1]), 3, "train", "")
"""
COLOURS = {"tree_frog": (200, 20, 20), "dog": (20, 200, 20), "Cat": (20, 20, 200)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "labelled_models.py").write_text(MODELS)
    for name, colour in COLOURS.items():
        place = tmp_path / "photos" / name
        place.mkdir(parents=True)
        for number in range(2):
            wrong = number == 1 and name == "dog"
            pixels = np.full((10, 10, 3), COLOURS["Cat"] if wrong else colour, dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(capsys, model, data, tokens="patches:4", *more):
    words = ("--tokens", tokens, "--draws", 1, "--quiet", *more)
    return run(capsys, "measure", "--model", f"py:labelled_models.py:{model}", "--data", data, *words)


def test_folders_that_are_called_like_classes_give_the_accuracy(capsys, folder):
    code, out, err = measured(capsys, "classifier", "images:photos")
    assert (code, err) == (0, "")
    assert "83 % accuracy on all 6 inputs" in out  # the order of folders is another than that of classes
    assert "no accuracy" not in out


def test_the_limit_counts_for_labels_too(capsys, folder):
    _, out, _ = measured(capsys, "classifier", "images:photos", "patches:4", "--limit", 2)
    assert "100 % accuracy on all 2 inputs" in out


def test_one_of_several_names_of_a_class_is_enough(capsys, folder):
    _, out, _ = measured(capsys, "classifier:classes=Hyla; tree frog/dog/cat", "images:photos")
    assert "no accuracy: the folder tree_frog is no class" in out
    from jostle.cli.labels import _words

    assert "tree frog" in _words("Hyla, Tree_Frog")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("classifier:classes=bird/dog/cat", "no accuracy: the folder tree_frog is no class of "),
        ("unnamed", "unnamed does not name its classes, so folders cannot be compared with them"),
    ],
)
def test_folders_that_are_no_classes_are_said(capsys, folder, model, said):
    size = ":size=8,resize=8,mean=0.5,std=0.5" if model == "unnamed" else ""
    code, out, _ = measured(capsys, model, f"images:photos{size}")
    assert code == 0
    assert said in out
    assert "% accuracy" not in out


def test_one_folder_has_no_classes_and_nothing_is_said(capsys, folder):
    _, out, _ = measured(capsys, "classifier", "images:photos/dog")
    assert "accuracy" not in out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("right", "75 % accuracy on all 4 inputs"),
        ("listed", "100 % accuracy on all 4 inputs"),
        ("dataset", "75 % accuracy on all 4 inputs"),
        (
            "strings",
            "the labels that py:labelled_models.py:strings returned cannot be used, they are text",
        ),
        ("short", "cannot be used, they have shape (1,); expected (4,)"),
    ],
)
def test_a_function_may_return_inputs_and_labels(capsys, folder, data, said):
    code, out, err = measured(capsys, "rows", f"py:labelled_models.py:{data}", "coordinates")
    assert (code, err) == (0, "")
    assert said in out


def test_a_limit_takes_inputs_and_labels(capsys, folder):
    code, out, _ = measured(capsys, "rows", "py:labelled_models.py:right", "coordinates", "--limit", 3)
    assert code == 0
    assert "100 % accuracy on all 3 inputs" in out
    code, out, _ = measured(capsys, "rows", "py:labelled_models.py:right", "coordinates", "--json")
    assert json.loads(out)["settings"]["num_inputs"] == 4
    assert torch.get_default_dtype() in (torch.float32, torch.float64)


COUNTING = """
import torch
def make():
    def model(x):
        with open("asked", "a") as file:
            file.write(f"{len(x)}\\n")
        return torch.stack([x.sum(dim=1), 0.1 * x[:, 0]], dim=1)
    return model
"""
CHECKS = 40  # passes that are for looking at the model, at most


@pytest.mark.parametrize(("most", "inputs"), [(200, 400), (300, 30), (1000, 400), (5000, 400)])
def test_no_more_passes_than_asked_for_where_labels_are_known(capsys, folder, most, inputs):
    """Clean answers for the accuracy, and for whether flips mean errors, are passes too."""
    numbers = np.random.default_rng(0)
    np.savez("x.npz", x=numbers.standard_normal((inputs, 5)).astype(np.float32), y=numbers.integers(0, 2, inputs))
    (folder / "counting_model.py").write_text(COUNTING)
    words = ("--data", "x.npz", "--tokens", "coordinates", "--half-width", 0.0001, "--quiet", "--json")
    code, out, err = run(
        capsys, "measure", "--model", "py:counting_model.py:make", *words, "--max-passes", most, "--workers", 1
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["stopped"] == "max_passes"
    assert "certainty" in found
    asked = sum(map(int, (folder / "asked").read_text().split()))
    assert found["passes"] <= asked
    assert 0.5 * most < asked <= most + CHECKS


def test_accuracy_under_corruptions_has_the_classes_of_the_folders(capsys, folder):
    words = ("--corruption", "brightness", "--severity", "1", "--json")
    code, out, err = run(
        capsys, "corrupt", "--model", "py:labelled_models.py:classifier", "--data", "images:photos", *words
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["clean"]["value"] == pytest.approx(5 / 6)  # as measured above
    code, out, err = run(
        capsys, "corrupt", "--model", "py:labelled_models.py:unnamed", "--data", "images:photos", *words
    )
    assert (code, out) == (2, "")
    assert "does not name its classes, so folders cannot be compared with them" in err


def test_real_numbers_of_a_function_get_the_type_of_the_model(capsys, folder):
    (folder / "wide.py").write_text(
        "import numpy as np\nfrom torch import nn\n"
        "def data(): return np.eye(3)\ndef named(): return {'input': np.eye(3)}\n"
        "def make(): return nn.Linear(3, 2).float()\n"
    )
    for data in ("data", "named"):
        words = ("--model", "py:wide.py:make", "--data", f"py:wide.py:{data}", "--tokens", "coordinates", "--draws", 1)
        code, _, err = run(capsys, "measure", *words, "--quiet")
        assert (code, err) == (0, ""), data
