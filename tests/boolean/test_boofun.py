"""Agreement with boofun, an independent library for Boolean functions.

Its tables list 0 for +1 and 1 for -1, of outputs and of input bits, and count coordinates from the other end; so
fhat(U) differs from ours by the sign (-1)^|U|, and influences come in reverse order.
"""

import warnings

import numpy as np
import pytest

from jostle.boolean import analyse, cube

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import boofun
    from boofun.analysis import sensitivity as their_sensitivity


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 0), (3, 1), (4, 2), (6, 3), (8, 4), (10, 5)])
def test_common_quantities(n, seed):
    table = np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), 2**n)
    ours, theirs = analyse(table), boofun.create((table < 0).astype(int).tolist())
    signs = np.where(cube.degrees(n) % 2, -1, 1)
    assert np.allclose(np.asarray(theirs.fourier()) * signs, ours.coefficients, rtol=0, atol=1e-14)
    assert np.asarray(theirs.influences())[::-1].tolist() == ours.influences.tolist()
    assert theirs.total_influence() == pytest.approx(ours.total_sensitivity, rel=1e-14)
    assert theirs.degree() == ours.degree
    weight = theirs.spectral_weight_by_degree()
    assert [weight.get(k, 0.0) for k in range(n + 1)] == pytest.approx(ours.fourier_weight, rel=1e-12, abs=1e-14)
    assert np.asarray(their_sensitivity.sensitivity_profile(theirs)).tolist() == ours.pointwise.tolist()
    assert their_sensitivity.max_sensitivity(theirs) == ours.max_sensitivity
    assert theirs.noise_stability(0.7) == pytest.approx(ours.noise_stability(0.7), rel=1e-12)
    assert theirs.variance() == pytest.approx(ours.variance, rel=1e-12, abs=1e-14)
