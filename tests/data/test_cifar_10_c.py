"""CIFAR-10-C from files of the official layout, made here."""

import numpy as np
import pytest
import torch

from jostle import corruptions
from jostle.base.errors import UsageError
from jostle.data.cifar_10_c import NAMES, load_corrupted

ROWS = 50_000


@pytest.fixture(autouse=True)
def _no_other_places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JOSTLE_DATA", raising=False)


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    """A folder as the archive makes it; zeros that were never written take no room on the disk."""
    place = tmp_path_factory.mktemp("data")
    folder = place / "CIFAR-10-C"
    folder.mkdir()
    pixels = np.lib.format.open_memmap(folder / "fog.npy", "w+", np.uint8, (ROWS, 32, 32, 3))
    labels = np.tile(np.random.default_rng(0).integers(0, 10, 10_000, dtype=np.uint8), 5)
    for severity in range(1, 6):
        start = (severity - 1) * 10_000
        pixels[start : start + 20] = numbers(severity)
        pixels[start + 9_999] = 200 + severity
    pixels.flush()
    del pixels
    np.save(folder / "labels.npy", labels)
    return place, labels[:10_000]


def numbers(severity):
    return np.random.default_rng(severity).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("severity", [1, 2, 5])
def test_rows_of_a_severity(official, severity):
    place, labels = official
    found = load_corrupted("fog", severity, limit=20, folder=place)
    expected = numbers(severity).astype(np.float32).transpose(0, 3, 1, 2) / 127.5 - 1
    np.testing.assert_allclose(found.inputs.numpy(), expected, atol=1e-6)
    assert found.labels.tolist() == labels[:20].tolist()
    assert (found.inputs.dtype, found.inputs.shape) == (torch.float32, (20, 3, 32, 32))
    assert (found.name, found.split, found.classes) == (f"cifar-10-c/fog-{severity}", "test", 10)
    assert found.note == f"official CIFAR-10-C, fog, severity {severity}"


def test_everything_up_to_the_last_row(official):
    place, labels = official
    found = load_corrupted("fog", 3, folder=place)
    assert len(found) == 10_000
    assert (found.labels.numpy() == labels).all()
    assert found.inputs[-1].unique().item() == pytest.approx(203 / 127.5 - 1)


def test_places_and_subsets(official, monkeypatch):
    place, labels = official
    direct = load_corrupted("fog", 1, limit=100, seed=3, folder=place / "CIFAR-10-C")
    monkeypatch.setenv("JOSTLE_DATA", str(place))
    shuffled = load_corrupted("fog", 4, limit=100, seed=3)
    assert torch.equal(direct.labels, shuffled.labels)  # the same images at every severity
    assert direct.labels.tolist() != labels[:100].tolist()
    assert load_corrupted("fog", limit=50, balanced=True).labels.bincount().tolist() == [5] * 10


def test_names_are_those_of_the_corruptions_made_here():
    assert list(NAMES) == sorted(corruptions.names())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "fogg"}, "unknown corruption of CIFAR-10-C 'fogg'; did you mean fog"),
        ({"severity": 0}, "severity=0 must be a whole number from 1 to 5"),
        ({"severity": 2.0}, "severity=.* must be a whole number"),
        ({"limit": 0}, "limit=.* must be a whole number"),
        ({"limit": 10_001}, "cannot take 10001 of the 10000 images of CIFAR-10-C"),
        ({"name": "snow"}, r"needs snow.npy and labels.npy, not found in .*CIFAR-10-C.tar from https://zenodo"),
    ],
)
def test_wrong_use_is_one_clear_line(official, changes, message):
    with pytest.raises(UsageError, match=message) as caught:
        load_corrupted(**{"name": "fog", "folder": official[0], **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (np.zeros((20, 32, 32, 3), dtype=np.uint8), r"holds uint8 of shape \(20, 32, 32, 3\); a file of CIFAR-10-C"),
        (np.zeros(3), "holds float64 of shape"),
        (np.asarray([{}]), "cannot be read as .npy: .*objects"),
        (b"not an array", "cannot be read as .npy"),
        (b"", "cannot be read as .npy"),
    ],
)
def test_files_of_another_kind(tmp_path, contents, message):
    if isinstance(contents, bytes):
        (tmp_path / "fog.npy").write_bytes(contents)
    else:
        np.save(tmp_path / "fog.npy", contents, allow_pickle=True)
    np.save(tmp_path / "labels.npy", np.zeros(ROWS, dtype=np.uint8))
    with pytest.raises(UsageError, match=message):
        load_corrupted("fog", folder=tmp_path)


def test_an_archive_and_wrong_labels(official, tmp_path):
    place, _ = official
    (tmp_path / "fog.npy").symlink_to(place / "CIFAR-10-C" / "fog.npy")
    for labels, message in ((np.full(ROWS, 10, np.uint8), "has a label 10"), (np.zeros(5, np.uint8), "shape")):
        np.save(tmp_path / "labels.npy", labels)
        with pytest.raises(UsageError, match=message):
            load_corrupted("fog", folder=tmp_path)
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    (tmp_path / "x.npz").rename(tmp_path / "labels.npy")
    with pytest.raises(UsageError, match="holds NpzFile"):
        load_corrupted("fog", folder=tmp_path)
