"""One comparison for all functions: every exact value against a loop over the function's own table."""

from fractions import Fraction

import numpy as np

from jostle.boolean.functions import KnownFunction
from tests.boolean import oracles_boolean as oracles

RHO = Fraction(1, 3)
SPECTRAL = ("degree", "weight_by_degree")


def exact_table(function: KnownFunction) -> list:
    """The table in whole numbers or fractions; the values of ``mean`` are multiples of 1/n."""
    table = function.table().tolist()
    return table if function.is_boolean else [Fraction(value).limit_denominator(1000) for value in table]


def check_exact(function: KnownFunction, missing: tuple[str, ...] = ()) -> None:
    """Every closed form equals the oracle's, rounded once; those in ``missing`` must be None."""
    table, exact = exact_table(function), function.exact
    assert not exact.is_expectation
    expected = {
        "mean": float(oracles.mean(table)),
        "total_sensitivity": float(oracles.total_sensitivity(table)),
        "max_sensitivity": float(oracles.max_sensitivity(table)),
        "min_sensitivity": float(oracles.min_sensitivity(table)),
        "degree": oracles.degree(table),
        "influences": [float(value) for value in oracles.influences(table)],
        "sensitivity_profile": oracles.profile(table),
        "weight_by_degree": [float(value) for value in oracles.weight_by_degree(table)],
    }
    for name, value in expected.items():
        found = getattr(exact, name)
        if name in missing:
            assert found is None, name
            continue
        if isinstance(value, list):
            assert len(found) == len(value), name
            found = list(found)
        assert found == value, name
    if "weight_by_degree" in missing:
        assert exact.noise_stability is None
    else:
        np.testing.assert_allclose(
            exact.noise_stability(float(RHO)), float(oracles.noise_stability(table, RHO)), rtol=1e-12, atol=1e-15
        )
