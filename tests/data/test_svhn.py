import numpy as np
import pytest
from scipy.io import savemat

from jostle import data
from jostle.base.errors import UsageError
from jostle.data.svhn import read_matlab
from tests.data.made_up import make_matlab, numbers

X, Y = numbers(0, 32, 32, 3, 5), np.array([[1], [2], [10], [9], [3]], dtype=np.uint8)


@pytest.mark.parametrize(("split", "name"), [("train", "train_32x32.mat"), ("test", "test_32x32.mat")])
def test_images_and_digits(tmp_path, split, name):
    images, digits = make_matlab(tmp_path / "svhn" / name)
    dataset = data.load("svhn", split, folder=tmp_path, check=False, download=False)
    assert dataset.inputs.is_contiguous()
    assert np.array_equal(((dataset.inputs + 1) * 127.5).round().numpy().astype(np.uint8), images)
    assert dataset.labels.tolist() == digits.tolist()
    assert 0 in dataset.labels


def test_label_10_is_the_digit_0(tmp_path):
    savemat(tmp_path / "a.mat", {"X": X, "y": Y})
    assert read_matlab(tmp_path / "a.mat").labels.tolist() == [1, 2, 0, 9, 3]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "has no y; SVHN's files hold"),
        ({"Z": X}, "has no X and no y"),
        ({"X": X[..., :4], "y": Y}, "holds 4 images in X, but 5 labels in y"),
        ({"X": X[:, :, 0], "y": Y}, r"has X of shape \(32, 32, 5\) and type uint8; expected 32 x 32 x 3 x n, uint8"),
        ({"X": X.astype(float), "y": Y}, ".* and type float64; expected"),
        ({"X": X, "y": Y + 1}, "has labels y that are not whole numbers from 1 to 10"),
        ({"X": X, "y": Y / 2}, "has labels y that are not whole numbers from 1 to 10"),
        ({"X": X[..., :0], "y": Y[:0]}, "has X of shape|holds no examples"),
    ],
)
def test_other_contents(tmp_path, arrays, message):
    path = tmp_path / "a.mat"
    savemat(path, arrays)
    with pytest.raises(UsageError, match=f"^{path} (?:{message})"):
        read_matlab(path)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("part", [0, 3, 100, 200, 1000, 12000])
def test_a_file_cut_short(tmp_path, part, compressed):
    path = tmp_path / "a.mat"
    savemat(path, {"X": X, "y": Y}, do_compression=compressed)
    path.write_bytes(path.read_bytes()[:part])
    with pytest.raises(UsageError) as caught:
        read_matlab(path)
    assert str(caught.value).startswith(f"{path} ")
    assert "\n" not in str(caught.value)


def test_another_file(tmp_path):
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(500))
    with pytest.raises(UsageError, match="cannot be read as a MATLAB 5 file"):
        read_matlab(path)
