"""Numbers are a function of their address, however the addresses are asked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jostle.base.randomness import Stream
from tests.properties.checked import MODEST

WORDS = st.integers(0, 2**32 - 1)
ADDRESSES = st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=40)


def uniforms(stream, addresses, size):
    return stream.uniforms(*np.array(addresses, dtype=np.uint64).reshape(-1, 3).T, size=size)


@MODEST
@given(st.integers(), st.text(max_size=5), ADDRESSES, st.integers(1, 13), st.data())
def test_any_split_and_order_of_addresses_gives_the_same_numbers(seed, name, addresses, size, data):
    stream = Stream(seed, name)
    whole = uniforms(stream, addresses, size)
    cut = data.draw(st.integers(0, len(addresses)))
    parts = [uniforms(stream, part, size) for part in (addresses[:cut], addresses[cut:])]
    assert (np.concatenate(parts) == whole).all()
    order = data.draw(st.permutations(range(len(addresses))))
    assert (uniforms(stream, [addresses[i] for i in order], size) == whole[order]).all()
    fewer = data.draw(st.integers(1, size))
    assert (uniforms(stream, addresses, fewer) == whole[:, :fewer]).all()
    assert ((whole > 0) & (whole < 1)).all()


@MODEST
@given(st.integers(), st.integers(), ADDRESSES)
def test_other_seeds_and_names_are_other_streams(one, two, addresses):
    first, second = uniforms(Stream(one, "a"), addresses, 4), uniforms(Stream(two, "a"), addresses, 4)
    assert (first == second).all() == (one == two)
    assert not (first == uniforms(Stream(one, "b"), addresses, 4)).all()


@MODEST
@given(st.integers(), st.integers(0, 300))
def test_permutations_hold_every_index_once(seed, count):
    assert sorted(Stream(seed, "order").permutation(count).tolist()) == list(range(count))
