"""Folders of images: layouts, splits, choice, specs, and what ``measure`` makes of them."""

import numpy as np
import pytest
import torch
from PIL import Image

import jostle
from jostle import data
from jostle.base.errors import UsageError
from jostle.data.image_folder import open_images


def put(path, colour=0, size=(12, 10), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (colour, colour, colour)).convert(mode).save(path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three classes, 6 training and 2 validation images, each of its own brightness."""
    colours = iter(range(10, 250, 10))
    for name in ("n02/a.JPEG", "n02/b.jpg", "n01/z.png", "n01/deep/y.jpeg", "n03/c.png", "n03/d.PNG"):
        put(tmp_path / "photos" / "train" / name, next(colours))
    for name in ("n01/v.png", "n03/w.png"):
        put(tmp_path / "photos" / "val" / name, next(colours))
    put(tmp_path / "photos" / "train" / "n01" / ".hidden.png")
    (tmp_path / "photos" / "train" / "n01" / "notes.txt").write_text("not an image")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SMALL = "size=8,mean=0,std=1"


def names(images):
    return [path.name for path in images.paths]


def brightness(inputs):
    return (inputs.mean(dim=(1, 2, 3)) * 255).round().int().tolist()


def test_classes_are_numbered_by_the_order_of_their_names(folder):
    images = open_images("images:photos")
    assert images.classes == ("n01", "n02", "n03")
    assert names(images) == ["y.jpeg", "z.png", "a.JPEG", "b.jpg", "c.png", "d.PNG"]
    assert images.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert (images.name, images.split, images.note) == ("images:photos", "train", "")


def test_splits_are_the_folders_of_imagenet(folder):
    images = open_images("images:photos", "test")
    assert names(images) == ["v.png", "w.png"]
    assert images.classes == ("n01", "n03")
    (folder / "photos" / "val").rename(folder / "photos" / "test")
    assert names(open_images("images:photos", "test")) == ["v.png", "w.png"]
    (folder / "photos" / "test").rename(folder / "elsewhere")
    with pytest.raises(UsageError, match="holds the folders train, but none called val or validation or test"):
        open_images("images:photos", "test")


def test_a_flat_folder_is_one_class_and_says_that_it_has_no_splits(folder):
    put(folder / "flat" / "b.png", 20)
    put(folder / "flat" / "a.jpg", 10)
    for split in ("train", "test"):
        images = open_images("images:flat", split)
        assert names(images) == ["a.jpg", "b.png"]
        assert images.labels.tolist() == [0, 0]
        assert images.note == "one folder of images without splits"


def test_an_empty_class_folder_still_counts_as_a_class(folder):
    (folder / "photos" / "train" / "n00").mkdir()
    images = open_images("images:photos")
    assert images.classes == ("n00", "n01", "n02", "n03")
    assert images.labels.tolist() == [1, 1, 2, 2, 3, 3]


def test_limit_and_seed(folder):
    everything = names(open_images("images:photos:seed=3"))
    assert sorted(everything) == sorted(names(open_images("images:photos")))
    assert everything != names(open_images("images:photos"))
    assert names(open_images("images:photos", limit=4, seed=3)) == everything[:4]
    assert names(open_images("images:photos:limit=4,seed=3")) == everything[:4]
    assert names(open_images("images:photos:limit=4,seed=5", limit=2, seed=3)) == everything[:2]
    shuffled = open_images("images:photos", seed=3)
    whole = open_images("images:photos")
    by_name = dict(zip(names(whole), whole.labels.tolist(), strict=True))
    assert [by_name[name] for name in names(shuffled)] == shuffled.labels.tolist()


def test_items_are_pixels_and_labels(folder):
    images = open_images(f"images:photos:{SMALL}")
    pixels, label = images[2]
    assert pixels.shape == (3, 8, 8)
    assert (pixels * 255).round().unique().tolist() == pytest.approx([10], abs=1)
    assert label == 1
    with pytest.raises(IndexError):
        images[6]


def test_options_are_stronger_than_what_a_network_wants(folder):
    from jostle.data.preprocessing import Preprocessing

    images = open_images("images:photos:mean=0.5").with_preprocessing(
        Preprocessing(size=32, resize=32, mean=(0.1,) * 3)
    )
    assert images.preprocessing == Preprocessing(size=32, resize=32, mean=(0.5,) * 3)


def test_load_makes_a_dataset_of_it(folder):
    dataset = data.load(f"images:photos:{SMALL}", limit=3, balanced=True)
    assert dataset.inputs.shape == (3, 3, 8, 8)
    assert dataset.labels.tolist() == [0, 1, 2]
    assert dataset.classes == 3
    assert brightness(dataset.inputs) == pytest.approx([40, 10, 50], abs=1)


def test_measure_reads_files_as_it_would_read_the_tensor(folder):
    images = open_images(f"images:photos:{SMALL}")

    def model(batch):
        return torch.stack([batch.mean(dim=(1, 2, 3)), torch.full((len(batch),), 0.1, dtype=batch.dtype)], dim=1)

    choices = {"tokens": "patches:4", "perturbation": "gaussian-noise:1", "plan": "grid:2", "seed": 4}
    lazy, eager = (jostle.measure(model, inputs, **choices) for inputs in (images, images.dataset().inputs))
    assert 0 < lazy.value < 1
    assert lazy.value == eager.value
    assert np.array_equal(lazy.per_input, eager.per_input)


def test_the_fingerprint_tells_other_files_apart(folder):
    first = open_images("images:photos").fingerprint()
    assert first == open_images("images:photos").fingerprint()
    put(folder / "photos" / "train" / "n01" / "z.png", 99, size=(40, 40))
    assert first != open_images("images:photos").fingerprint()
    assert first != open_images("images:photos", limit=3).fingerprint()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("images:", "must read images:DIR"),
        ("images::size=3", "must read images:DIR"),
        ("images:nowhere", "the folder nowhere does not exist"),
        ("images:photos/train/n01/z.png", "does not exist"),
        ("images:empty", "holds no images; expected files that end in .jpg, .jpeg, .png"),
        ("images:mixed", "holds 1 images next to folders of images, such as x"),
        ("images:photos:sise=8", "unknown option of images 'sise'; did you mean size"),
        ("images:photos:size=8,9", "write options as key=value"),
        ("images:photos:limit=0", "limit=0 must be a whole number, at least 1"),
        ("images:photos:seed=-1", "seed=-1 must be a whole number, at least 0"),
        ("images:photos:limit=7", "cannot take 7 of the 6 images in"),
        ("images:photos:std=0", "std larger than 0"),
    ],
)
def test_wrong_use_is_one_line(folder, spec, message):
    (folder / "empty").mkdir()
    put(folder / "mixed" / "x" / "a.png")
    put(folder / "mixed" / "b.png")
    with pytest.raises(UsageError, match=message) as error:
        open_images(spec)
    assert "\n" not in str(error.value)


def test_unknown_split(folder):
    with pytest.raises(UsageError, match="unknown split 'valid'"):
        open_images("images:photos", "valid")
