import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.figures.style import spread

pieces = st.lists(st.tuples(st.floats(0, 100), st.floats(0.5, 5)), min_size=1, max_size=12)


@given(pieces)
def test_pieces_keep_their_order_and_do_not_overlap(pieces):
    wanted, sizes = zip(*pieces, strict=True)
    middles = spread(wanted, sizes, 0.0, 100.0)
    order = np.argsort(wanted, kind="stable")
    below, above = order[:-1], order[1:]
    room = (np.asarray(sizes)[below] + np.asarray(sizes)[above]) / 2
    assert (middles[above] - middles[below] >= room - 1e-9).all()
    assert (middles - np.asarray(sizes) / 2 >= -1e-9).all()
    assert (middles + np.asarray(sizes) / 2 <= 100 + 1e-9).all()


def test_pieces_with_room_stay():
    assert spread([10.0, 1.0, 5.0], [2.0, 2.0, 2.0], 0.0, 20.0).tolist() == [10.0, 1.0, 5.0]


def test_pieces_move_no_farther_than_they_must():
    assert spread([5.0, 5.0], [2.0, 4.0], 0.0, 20.0).tolist() == pytest.approx([3.5, 6.5])


def test_too_many_pieces_overflow_at_the_top():
    assert spread([1.0, 1.0], [4.0, 4.0], 0.0, 5.0).tolist() == [2.0, 6.0]
