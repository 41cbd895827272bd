import itertools

import matplotlib
import matplotlib.figure
import pytest

from jostle.figures.style import HEAT, looks, styled, wrapped


def test_a_look_goes_by_first_appearance():
    two = looks(["b", "a", "b"])
    assert list(two) == ["b", "a"]
    assert two["b"] == looks(["b"])["b"] == looks(["something else"])["something else"]
    assert all(x != y for x, y in zip(two["a"], two["b"], strict=True))  # colour, line and marker all differ


def test_many_looks_are_distinct():
    assert len(set(looks(str(i) for i in range(56)).values())) == 56


def test_settings_of_the_user_do_not_matter_and_come_back():
    with matplotlib.rc_context({"font.size": 33.0, "axes.facecolor": "red"}):
        with styled():
            assert matplotlib.rcParams["font.size"] == 9.5
            assert matplotlib.rcParams["axes.facecolor"] == "white"
        assert matplotlib.rcParams["font.size"] == 33.0


def test_settings_come_back_after_an_error():
    before = dict(matplotlib.rcParams)
    with pytest.raises(ZeroDivisionError), styled():
        1 / 0  # noqa: B018
    assert dict(matplotlib.rcParams) == before


def test_wrapping_loses_nothing():
    name = "google/vit-base-patch16-224-finetuned"
    lines = wrapped(name, 12).split("\n")
    assert "".join(lines) == name
    assert max(map(len, lines)) <= 12


def test_heat_gets_darker_all_the_way():
    luminance = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b, _ in (HEAT(i / 20) for i in range(21))]
    assert all(a > b for a, b in itertools.pairwise(luminance))
