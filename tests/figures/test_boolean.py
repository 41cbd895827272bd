"""The figure of a Boolean function shows its weights and its profile."""

import numpy as np

from jostle.boolean import analyse
from jostle.figures import boolean_figure, svg


def heights(axes):
    return [bar.get_height() for bar in axes.patches]


def test_bars_are_the_weights_and_the_shares():
    b = analyse([-1, -1, -1, 1])
    weights, profile = boolean_figure(b, title="AND").axes
    assert heights(weights) == b.fourier_weight.tolist()
    assert heights(profile) == [0.25, 0.5, 0.25]
    assert "AND" in svg(boolean_figure(b, title="AND"))


def test_a_real_function_has_no_profile():
    b = analyse(np.arange(8.0))
    (weights,) = b.plot().axes
    assert heights(weights) == b.fourier_weight.tolist()


def test_a_constant_can_be_drawn():
    assert svg(analyse([1, 1]).plot()).startswith("<svg")
    assert svg(analyse(np.zeros(4)).plot()).startswith("<svg")
