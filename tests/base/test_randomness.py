import multiprocessing

import numpy as np
import pytest

from jostle.base.randomness import Stream, philox

ADDRESSES = [np.arange(40) * 7, np.arange(40) % 5, np.arange(40) % 3]


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0, 0, 0, 0], (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_known_answers_of_its_authors(counter, key, expected):
    words = philox(np.array(counter, dtype=np.uint64)[:, None], key)
    assert words[:, 0].tolist() == expected


def test_numbers_are_a_function_of_the_address_alone(stream):
    whole = stream.uniforms(*ADDRESSES, size=11)
    for batch in (1, 7, 40):
        parts = [
            stream.uniforms(*(address[at : at + batch] for address in ADDRESSES), size=11) for at in range(0, 40, batch)
        ]
        assert (np.concatenate(parts) == whole).all()
    assert (stream.uniforms(*(address[::-1] for address in ADDRESSES), size=11)[::-1] == whole).all()
    assert (stream.uniforms(*ADDRESSES, size=3) == whole[:, :3]).all()


def _shard(part: slice) -> np.ndarray:
    return Stream(20240601, "tests").uniforms(*(address[part] for address in ADDRESSES), size=6)


def test_any_number_of_workers_draws_the_same_numbers(stream):
    whole = stream.uniforms(*ADDRESSES, size=6)
    for workers in (1, 2, 3):
        step = -(-40 // workers)
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            parts = pool.map(_shard, [slice(at, at + step) for at in range(0, 40, step)])
        assert (np.concatenate(parts) == whole).all()


@pytest.mark.parametrize("other", [Stream(20240602, "tests"), Stream(20240601, "test"), Stream(-20240601, "tests")])
def test_other_seeds_and_names_give_other_numbers(stream, other):
    assert not np.isclose(stream.uniforms(*ADDRESSES, size=4), other.uniforms(*ADDRESSES, size=4)).any()


def test_every_part_of_the_address_matters(stream):
    base = stream.uniforms([3], [5], [7], size=4)
    for address in ([4], [5], [7]), ([3], [6], [7]), ([3], [5], [8]), ([5], [3], [7]):
        assert not np.isclose(base, stream.uniforms(*address, size=4)).any()


def test_numbers_are_uniform_and_uncorrelated(stream):
    u = stream.uniforms(np.arange(20_000), np.zeros(20_000), np.zeros(20_000), size=5)
    assert u.min() > 0
    assert u.max() < 1
    error = 1 / np.sqrt(12 * u.size)
    assert abs(u.mean() - 0.5) < 4 * error
    counts = np.histogram(u, bins=64, range=(0, 1))[0]
    chi_square = ((counts - u.size / 64) ** 2 / (u.size / 64)).sum()
    assert abs(chi_square - 63) < 4 * np.sqrt(2 * 63)
    correlation = np.corrcoef(u.T)[np.triu_indices(5, 1)]
    assert np.abs(correlation).max() < 4 / np.sqrt(20_000) * 1.5


def test_seed_zero_is_a_seed():
    assert (Stream(0, "a").uniforms([1], [1], [1], 4) == Stream(0, "a").uniforms([1], [1], [1], 4)).all()
    assert (Stream(0, "a").uniforms([1], [1], [1], 4) != Stream(1, "a").uniforms([1], [1], [1], 4)).all()


def test_permutation_is_one_and_depends_on_the_seed():
    order = Stream(1, "order").permutation(1000)
    assert sorted(order.tolist()) == list(range(1000))
    assert order.tolist() != list(range(1000))
    assert order.tolist() == Stream(1, "order").permutation(1000).tolist()
    assert order.tolist() != Stream(2, "order").permutation(1000).tolist()
