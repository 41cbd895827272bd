"""``jostle corrupt`` as a person meets it."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from jostle import corruptions
from tests.cli.test_cli import run as run_command
from tests.corruptions.pictures import natural


@pytest.fixture(autouse=True)
def files(monkeypatch, tmp_path):
    """Images in the current folder, and no folder of datasets."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JOSTLE_DATA", raising=False)
    np.save(tmp_path / "images.npy", natural(6, height=16, width=20) * 2 - 1)
    np.save(tmp_path / "grey.npy", natural(2, channels=1, height=28, width=28))


def run(capsys, *words):
    return run_command(capsys, "corrupt", *words)


def test_a_picture_has_a_row_for_each_corruption(capsys, tmp_path):
    sizes = {}
    for chosen, count in {"fog": 1, "fog,snow": 2, "weather": 4}.items():
        out = tmp_path / "grid.png"
        words = ("--data", "images.npy", "--corruption", chosen, "--severity", "1/5", "--out", out)
        code, text, err = run(capsys, *words)
        assert (code, err) == (0, "")
        assert text == f"{count} corruption{'s' if count > 1 else ''} at severities 1, 5: {out}\n"
        with Image.open(out) as picture:
            sizes[chosen] = picture.size
    assert sizes["fog"][0] == sizes["fog,snow"][0]
    row = sizes["fog,snow"][1] - sizes["fog"][1]
    assert sizes["weather"][1] - sizes["fog"][1] == pytest.approx(3 * row, abs=2)


@pytest.mark.parametrize("name", ["contrast", "gaussian_noise"])
def test_the_cells_of_a_picture_are_the_corrupted_images(capsys, tmp_path, name):
    words = ("--data", "grey.npy", "--value-range", "0/1", "--corruption", name, "--severity", "5", "--image", 1)
    assert run(capsys, *words, "--out", tmp_path / "one.png")[0] == 0
    with Image.open(tmp_path / "one.png") as picture:
        pixels = np.asarray(picture.convert("L")) / 255.0
    side, gap, left, head = 0.8 * 200, 0.06 * 200, 1.5 * 200, 0.3 * 200  # 200 dots an inch
    images = np.load(tmp_path / "grey.npy")
    expected = corruptions.corrupt(images[1:], name, 5, value_range=(0, 1), indices=[1])
    for column, image in enumerate((images[1, 0], expected[0, 0])):
        for row, place in ((3, 20), (14, 6), (25, 11)):
            y, x = head + (row + 0.5) * side / 28, left + column * (side + gap) + (place + 0.5) * side / 28
            assert pixels[int(y), int(x)] == pytest.approx(image[row, place], abs=0.01)


def test_arrays_are_what_corrupt_makes(capsys, tmp_path):
    out = tmp_path / "new" / "arrays.npz"
    words = ("--data", "images.npy", "--corruption", "noise,fog", "--severity", "2,4", "--limit", 4, "--seed", 9)
    code, text, err = run(capsys, *words, "--out", out, "--json")
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert (found["images"], found["severities"], found["seed"], found["file"]) == (4, [2, 4], 9, str(out))
    assert found["corruptions"] == [*corruptions.names("noise"), "fog"]
    images = np.load(tmp_path / "images.npy")[:4]
    with np.load(out, allow_pickle=False) as arrays:
        assert set(arrays.files) == {f"{name}-{severity}" for name in found["corruptions"] for severity in (2, 4)}
        assert (arrays["fog-4"] == corruptions.corrupt(images, "fog", 4, seed=9)).all()
    before = out.read_bytes()
    run(capsys, *words, "--out", out)
    assert out.read_bytes() == before


def test_a_named_dataset_brings_its_labels(capsys, tmp_path, monkeypatch):
    from tests.data.made_up import make_batches, make_official

    [(_, labels)] = make_batches(tmp_path / "cifar10", ["test_batch.bin"], count=5).values()
    make_official(monkeypatch, "cifar-10", tmp_path / "cifar10")
    monkeypatch.setenv("JOSTLE_DATA", str(tmp_path))
    assert run(capsys, "--data", "cifar-10", "--corruption", "fog", "--limit", 5, "-o", "fog.npz")[0] == 0
    with np.load("fog.npz") as arrays:
        assert arrays["labels"].tolist() == labels.tolist()
        assert arrays["fog-3"].shape == (5, 3, 32, 32)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--data", "images.npy", "--corruption", "fogg"), "unknown corruption 'fogg'; did you mean fog"),
        (("--data", "images.npy", "--severity", "6"), "--severity 6 must be whole numbers from 1 to 5"),
        (("--data", "images.npy", "--severity", "1/x"), "--severity 1/x must be"),
        (("--data", "images.npy", "--out", "grid.gif"), "--out grid.gif must end in .png, .svg, .pdf"),
        (("--data", "images.npy", "--image", "7"), "--image 7: images.npy holds 6 images"),
        (("--data", "images.npy", "--limit", "0", "--out", "a.npz"), "--limit 0 at least 1"),
        (("--data", "images.npy", "--value-range", "1"), "--value-range 1 must be two numbers"),
        (("--data", "nowhere.npy"), "the file does not exist"),
        (("--data", "mnst"), "unknown dataset 'mnst'"),
        (("--data", "images.npy", "--out", "."), "is a directory"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(capsys, tmp_path, words, message):
    code, text, err = run(capsys, *words)
    assert (code, text) == (2, "")
    assert message in err
    assert err.startswith("jostle: ")
    assert err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"images.npy", "grey.npy"}


def test_files_with_several_arrays_are_refused(capsys):
    np.savez("two.npz", a=np.zeros((2, 1, 8, 8)), b=np.zeros((2, 1, 8, 8)))
    assert "--data two.npz holds a, b; give a file with one array" in run(capsys, "--data", "two.npz")[2]


def test_help_teaches_and_does_not_import_torch(capsys):
    code, text, _ = run(capsys, "--help")
    assert code == 0
    assert "jostle corrupt --data cifar-10 --out grid.png" in text
    assert "not the files published as CIFAR-10-C" in text
    program = "import sys, jostle.cli.corrupt; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_picture_of_images_that_look_scaled_to_0_and_1_says_so(capsys, tmp_path):
    np.save(tmp_path / "positive.npy", natural(10, height=16, width=16))
    code, _, err = run(capsys, "--data", "positive.npy", "--corruption", "fog", "--out", tmp_path / "one.png")
    assert code == 0
    assert err.startswith("jostle: none of 10 images has a value below 0")
    assert err.endswith("give --value-range 0/1\n")


def test_images_without_channels_are_one_clear_line(capsys, tmp_path):
    np.save(tmp_path / "flat.npy", natural(3, channels=1, height=16, width=16)[:, 0])
    code, _, err = run(capsys, "--data", "flat.npy", "--corruption", "fog", "--out", tmp_path / "one.png")
    assert code == 2
    assert "images have shape (3, 16, 16)" in err
    assert err.count("\n") == 1


def test_a_folder_without_classes_gives_no_labels(capsys, tmp_path):
    (tmp_path / "pictures").mkdir()
    for number in range(2):
        Image.new("RGB", (16, 16), (10 * number, 90, 200)).save(tmp_path / "pictures" / f"{number}.png")
    spec = "images:pictures:size=16,mean=0.5,std=0.5"
    assert run(capsys, "--data", spec, "--corruption", "fog", "--severity", "1", "--out", tmp_path / "few.npz")[0] == 0
    with np.load(tmp_path / "few.npz") as arrays:
        assert arrays.files == ["fog-1"]


def test_a_folder_is_read_in_the_usual_range(capsys, tmp_path):
    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (16, 16), (0, 90, 255)).save(tmp_path / "pictures" / "0.png")
    assert run(capsys, "--data", "images:pictures", "--corruption", "fog", "--out", tmp_path / "one.png")[0] == 0
    code, _, err = run(capsys, "--data", "csv:texts.csv", "--corruption", "fog", "--out", tmp_path / "two.png")
    assert (code, err) == (2, "jostle: --data csv:texts.csv holds texts, and these are corruptions of images\n")


def test_a_warning_about_the_range_is_said_once(capsys, tmp_path):
    np.save(tmp_path / "unit.npy", natural(16, height=16, width=16))
    words = ("--data", "unit.npy", "--corruption", "fog,snow", "--out", tmp_path / "grid.png")
    code, _, err = run(capsys, *words)
    assert code == 0
    assert err.count("--value-range 0/1") == 1


def test_a_warning_about_the_range_of_a_models_images_names_the_option(capsys, tmp_path):
    np.savez(tmp_path / "unit.npz", x=natural(16, height=16, width=16), y=np.zeros(16, int))
    (tmp_path / "mean.py").write_text("def make():\n    return lambda x: x.mean(dim=(2, 3))\n")
    words = ("--data", "unit.npz", "--model", "py:mean.py:make", "--corruption", "contrast", "--severity", "1")
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        code, _, err = run(capsys, *words)
    assert (code, err.count("--value-range 0/1"), err.count("\n")) == (0, 1, 1)
    assert not [one for one in others if "value_range" in str(one.message)]


def test_half_precision_is_read(capsys, tmp_path):
    images = torch.from_numpy(natural(3, height=16, width=16) * 2 - 1).bfloat16()
    save_file({"images": images}, tmp_path / "half.safetensors")
    for out in ("grid.png", "arrays.npz"):
        code, _, err = run(capsys, "--data", "half.safetensors", "--corruption", "fog", "--out", tmp_path / out)
        assert (code, err) == (0, "")


def test_accuracy_of_a_model(capsys, tmp_path):
    rng = np.random.default_rng(0)
    images = np.clip(rng.normal(size=(20, 1, 8, 8)), -1, 1).astype(np.float32)
    labels = (images.mean(axis=(1, 2, 3)) > 0).astype(int)
    np.savez("labelled.npz", x=images, y=labels)
    Path("mean.py").write_text("def make():\n    return lambda x: x.mean(dim=(1, 2, 3))\n")
    words = ("--model", "py:mean.py:make", "--corruption", "contrast", "--severity", "1", "--limit", 20)
    code, text, err = run(capsys, *words, "--data", "labelled.npz", "--json")
    assert (code, err) == (0, "")
    found = json.loads(text)
    expected = corruptions.accuracy_under(lambda x: x.mean(dim=(1, 2, 3)), images, labels, ["contrast"], [1])
    assert found["clean"]["value"] == 1.0
    assert found["mean"]["value"] == expected.mean.value
    assert not Path("corruptions.png").exists()
    assert "contrast" in run(capsys, *words, "--data", "labelled.npz")[1]
    code, _, err = run(capsys, *words, "--data", "images.npy")
    assert (code, err.count("\n")) == (2, 1)
    assert "has no labels, so there is no accuracy" in err
