import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.tokens import Padding

RIGHT = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 1, 0]], dtype=bool)


@pytest.mark.parametrize(
    ("real", "first", "stop", "side"),
    [
        (RIGHT, [0, 0, 0], [3, 1, 4], "right"),
        (RIGHT[:, ::-1], [2, 4, 1], [5, 5, 5], "left"),
        (np.array([[0, 1, 1], [1, 1, 0]], dtype=bool), [1, 0], [3, 2], "both"),
        (np.ones((2, 3), dtype=bool), [0, 0], [3, 3], "right"),
    ],
)
def test_where_texts_begin_and_end(real, first, stop, side):
    padding = Padding.of(real)
    assert (padding.first.tolist(), padding.stop.tolist(), padding.width) == (first, stop, real.shape[1])
    assert padding.lengths.tolist() == [b - a for a, b in zip(first, stop, strict=True)]
    assert padding.side == side


def test_the_window_holds_every_real_token_and_no_more():
    padding = Padding.of(np.array([[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=bool))
    assert padding.window(np.array([0, 1])) == (1, 4)
    assert padding.window(np.array([1])) == (2, 4)
    assert padding.window(np.array([0, 2, 0])) == (0, 5)


def test_tokens_are_numbered_from_either_end_whatever_the_padding():
    left, right = Padding.of(RIGHT[:, ::-1]), Padding.of(RIGHT)
    texts = np.array([0, 0, 0, 1, 2, 2])
    columns = np.array([0, 1, 2, 0, 0, 3])
    shifted = columns + left.first[texts]
    assert right.numbers(texts, columns).tolist() == left.numbers(texts, shifted).tolist() == columns.tolist()
    from_the_end = [2, 3, 4, 4, 1, 4]  # the last token of every text is the last position
    assert right.numbers(texts, columns, "right").tolist() == from_the_end
    assert left.numbers(texts, shifted, "right").tolist() == from_the_end


def test_a_text_of_padding_alone_is_one_clear_line():
    with pytest.raises(UsageError, match=r"2 of 3 inputs are all padding \(first: input 1\)"):
        Padding.of(np.array([[1, 0], [0, 0], [0, 0]], dtype=bool))


def test_padding_between_tokens_is_noticed():
    real = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], dtype=bool)
    assert not Padding.of(real).has_gaps
    real[1, 2] = False
    assert Padding.of(real).has_gaps
