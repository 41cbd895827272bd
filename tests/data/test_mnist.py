"""MNIST, and with it what every dataset of files does."""

import numpy as np
import pytest
import torch

from jostle import data
from jostle.base.errors import UsageError
from tests.data.made_up import TRAIN, make_idx, make_official


def load(folder, split="train", **options):
    return data.load("mnist", split, folder=folder, check=False, download=False, **options)


@pytest.mark.parametrize("layout", ["mnist", "MNIST/raw", "."])
@pytest.mark.parametrize("split", ["train", "test"])
def test_both_splits_from_every_layout(tmp_path, layout, split):
    pixels, labels = make_idx(tmp_path / layout, train=30, test=12)[split]
    digits = load(tmp_path, split)
    assert (digits.name, digits.split, digits.classes, digits.note) == ("mnist", split, 10, "")
    assert (digits.inputs.dtype, digits.labels.dtype) == (torch.float32, torch.int64)
    assert digits.labels.tolist() == labels.tolist()
    exact = (pixels[:, None].astype(np.float64) / 255 - 0.5) / 0.5
    assert np.abs(digits.inputs.double().numpy() - exact).max() < 1e-7
    assert digits.inputs.is_contiguous()


def test_subsets_are_rows_of_the_whole(tmp_path):
    make_idx(tmp_path / "mnist", train=200)
    whole = load(tmp_path)
    first, some = load(tmp_path, limit=20), load(tmp_path, limit=20, seed=3, balanced=True)
    assert torch.equal(first.inputs, whole.inputs[:20])
    assert some.labels.bincount().tolist() == [2] * 10
    same = whole.subset(20, seed=3, balanced=True)
    assert torch.equal(some.inputs, same.inputs)
    assert torch.equal(some.labels, same.labels)


def test_limit_beyond_the_data(tmp_path):
    make_idx(tmp_path)
    with pytest.raises(UsageError, match="cannot take 31 of the 30 train examples of 'mnist'"):
        load(tmp_path, limit=31)


def test_files_as_published_pass_and_a_changed_byte_does_not(tmp_path, monkeypatch):
    make_idx(tmp_path)
    make_official(monkeypatch, "mnist", tmp_path)
    assert len(data.load("mnist", folder=tmp_path, download=False)) == 30
    path = tmp_path / TRAIN[1]
    contents = bytearray(path.read_bytes())
    contents[4] ^= 1  # the time in the gzip header: the data stay the same
    path.write_bytes(contents)
    with pytest.raises(
        UsageError, match=rf"dataset 'mnist': {path} has sha256 \w{{12}}\.\.\., expected \w{{12}}\.\.\.;"
    ):
        data.load("mnist", folder=tmp_path, download=False)
    assert len(load(tmp_path)) == 30


def test_other_files_are_refused_by_their_size(tmp_path):
    make_idx(tmp_path)
    with pytest.raises(UsageError, match=r"has [\d,]+ bytes, expected 9,912,422; replace it \(jostle data get mnist"):
        data.load("mnist", folder=tmp_path, download=False)


def test_absent_files_are_named_with_the_places(tmp_path, monkeypatch, cache):
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("JOSTLE_DATA", str(other))
    make_idx(tmp_path / "mnist")
    with pytest.raises(UsageError) as caught:
        data.load("mnist", "test", folder=tmp_path, download=False)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(
        f"dataset 'mnist' (test) needs t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz, not found in "
        f"{tmp_path} (folder), {other} (JOSTLE_DATA), {cache} (cache); put them in {tmp_path / 'mnist'}, or run "
    )
    (tmp_path / "mnist" / TRAIN[0]).unlink()
    with pytest.raises(UsageError, match=r"needs train-images-idx3-ubyte\.gz, not found"):
        load(tmp_path)
