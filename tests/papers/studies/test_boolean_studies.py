"""What the studies of Boolean functions count, on cases where the answer is known."""

import numpy as np
import pytest

from jostle import studies
from jostle.boolean import analyse, functions
from jostle.studies import Context
from jostle_papers.own.random_networks import WeightsCell
from jostle_papers.p2403_06925 import proposition_3_1, proposition_3_2
from jostle_papers.p2403_06925.proposition_3_1 import AttentionCell
from jostle_papers.p2403_06925.proposition_3_2 import EveryCell, StructuredCell


def context(tmp_path):
    return Context(folder=tmp_path, report=lambda state: None)


def test_proposition_3_2_counts_every_function_once(tmp_path):
    study = studies.get("2403.06925/proposition-3.2")
    settings = study.scales["smoke"]
    for n in (1, 2, 3):
        record = study.measure(EveryCell(n=n), settings, context(tmp_path))
        assert record.tested == 2**2**n
        assert record.violations == record.huang_violations == record.average_violations == 0
        assert record.least_slack == pytest.approx(0, abs=1e-12)  # tight for constants and dictators


def test_proposition_3_2_agrees_with_the_analysis(tmp_path):
    study = studies.get("2403.06925/proposition-3.2")
    settings = study.scales["smoke"]
    for name in proposition_3_2.STRUCTURED:
        record = study.measure(StructuredCell(function=name, n=12), settings, context(tmp_path))
        b = analyse(functions.create(name, n=12))
        assert record.disagreement == pytest.approx(b.disagreement(np.array(settings.rhos)))
        assert record.bound == pytest.approx([b.proposition_3_2(rho).right for rho in settings.rhos])
        assert record.average_bound == pytest.approx([b.average_bound(rho).right for rho in settings.rhos])
        assert record.max_sensitivity == b.max_sensitivity


def test_a_violation_would_be_counted(monkeypatch, tmp_path):
    study = studies.get("2403.06925/proposition-3.2")
    stability = proposition_3_2.stability
    monkeypatch.setattr(stability, "disagreement_bound", lambda s, rho: 0 * s * rho)
    record = study.measure(EveryCell(n=2), study.scales["smoke"], context(tmp_path))
    assert record.violations == 14  # all but the two constants


@pytest.mark.parametrize(("tokens", "dim"), proposition_3_1.SPLITS)
def test_proposition_3_1_finds_where_the_premise_holds(tokens, dim, tmp_path):
    study = studies.get("2403.06925/proposition-3.1")
    cell = AttentionCell(kernel="ck", depth=1, tokens=tokens, dim=dim)
    record = study.measure(cell, study.scales["smoke"], context(tmp_path))
    assert record.premise_holds == (tokens == 1 or dim == 1)
    assert (record.off_diagonal_share < 1e-18) == (tokens == 1 or dim == 1)


def test_the_kernel_as_printed_takes_many_values_at_one_product(tmp_path):
    """Four tokens of two bits; by hand, K = <x, y> / 2 sum over i, j of (<x_i, y_j> / 2)^2."""
    study = studies.get("2403.06925/proposition-3.1")
    cell = AttentionCell(kernel="ck", depth=1, tokens=4, dim=2)
    record = study.measure(cell, study.scales["smoke"], context(tmp_path))
    assert record.values_by_product["4"] == pytest.approx((12, 32))
    assert record.largest_eigenvalues[0] == pytest.approx((5 + 13**0.5) / 2)
    x, y = np.array([[1, 1], [1, -1], [1, -1], [1, -1]]), np.array([[1, 1], [1, 1], [1, 1], [1, -1]])
    assert (x * y).sum() == 4
    assert (x * y).sum() / 2 * ((x @ y.T / 2) ** 2).sum() == 12


def test_random_networks_are_the_same_in_every_process(tmp_path):
    study = studies.get("jostle/random-networks")
    settings = study.scales["smoke"]
    cell = WeightsCell("lstm", "uniform 10", depth=1, n=4, seed=2)
    first, second = (study.measure(cell, settings, context(tmp_path)) for _ in range(2))
    assert first == second
    assert len(first.zero.total_sensitivity) == settings.count
    assert sum(first.median.profile) == pytest.approx(1)
