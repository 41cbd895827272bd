"""Arrays in MATLAB files: the same as scipy reads."""

import contextlib

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from jostle.base.errors import UsageError
from jostle.data.matlab import read_matlab_arrays

ARRAYS = {
    "X": np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5),
    "doubles": np.linspace(-1, 1, 7),
    "small": np.array([[1, 2]], dtype=np.uint8),
    "whole": np.array([[-3], [2**40]], dtype=np.int64),
    "counts": np.array([[3.0, 200.0]]),  # doubles that are stored as bytes
    "none": np.zeros((0, 4)),
}


@pytest.mark.parametrize("compressed", [True, False])
def test_it_reads_what_scipy_reads(tmp_path, compressed):
    path = tmp_path / "a.mat"
    savemat(path, {**ARRAYS, "text": "left out", "complex": np.array([1j])}, do_compression=compressed)
    found, expected = read_matlab_arrays(path), loadmat(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in found.items():
        assert array.dtype == expected[name].dtype
        assert np.array_equal(array, expected[name])


def test_every_cut_and_every_flipped_bit_is_read_or_refused(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {name: ARRAYS[name] for name in ("small", "doubles")})
    content = path.read_bytes()
    for place in range(len(content)):
        for changed in (content[:place], content[:place] + bytes([content[place] ^ 0x81]) + content[place + 1 :]):
            path.write_bytes(changed)
            with contextlib.suppress(UsageError):
                read_matlab_arrays(path)
