"""Ensembles of random functions: against loops over the tables, theory, and what was measured before."""

import itertools
import math

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import networks
from jostle.boolean.ensembles import (
    Ensemble,
    _points,
    _signs_and_sensitivities,
    draw_network,
    random_functions,
    random_networks,
)

SIZES = {
    "lstm": {"dim": 8, "hidden": 8},
    "mixer": {"dim": 8, "position_dim": 8, "mlp_dim": 8},
    "mlp": {"width": 8},
    "state-space": {"dim": 8, "state": 2},
    "transformer": {"dim": 8},
}
SIGNS = ("signs", "sensitivities")


def sensitivity_by_loops(table, n):
    """s(x, f) for every x, with f as a dictionary from points to signs."""
    points = list(itertools.product((-1, 1), repeat=n))
    f = dict(zip(points, table.tolist(), strict=True))
    return [sum(f[x] != f[(*x[:i], -x[i], *x[i + 1 :])] for i in range(n)) for x in points]


class TestEnsemble:
    def test_every_number_equals_loops_over_the_tables(self):
        tables = np.array(
            [[1] * 16, [-1] * 15 + [1], [math.prod(x) for x in itertools.product((-1, 1), repeat=4)]], dtype=np.int8
        )
        tables = np.concatenate([tables, random_functions(4, 5, seed=3).tables])
        ensemble = Ensemble.of_tables(tables)
        assert len(ensemble) == 8
        for index, table in enumerate(tables):
            found = sensitivity_by_loops(table, 4)
            assert ensemble.sensitivities[index].tolist() == found
            assert ensemble.total_sensitivity[index] == sum(found) / 16
            assert ensemble.sensitivity[index] == sum(found) / 64
            assert ensemble.max_sensitivity[index] == max(found)
            assert ensemble.profiles[index].tolist() == [found.count(size) for size in range(5)]
            assert ensemble.zero_share[index] == found.count(0) / 16
            assert ensemble.has_zero[index] == (0 in found)
            assert ensemble.is_constant[index] == (len(set(table.tolist())) == 1)
            assert ensemble.positive_share[index] == table.tolist().count(1) / 16
        assert ensemble.degrees()[:3].tolist() == [0, 4, 4]
        dictator = np.array([x[1] for x in itertools.product((-1, 1), repeat=4)], dtype=np.int8)
        assert Ensemble.of_tables(dictator[None]).degrees().tolist() == [1]

    def test_the_summary_holds_means_and_intervals_around_them(self):
        ensemble = random_functions(6, 40, seed=1)
        summary = ensemble.summary(level=0.9)
        assert summary["count"] == 40
        assert summary["n"] == 6
        for name in ("total_sensitivity", "sensitivity", "max_sensitivity", "zero_share", "positive_share"):
            assert summary[name]["mean"] == pytest.approx(getattr(ensemble, name).mean())
            assert summary[name]["low"] < summary[name]["mean"] < summary[name]["high"]
            assert summary[name]["level"] == 0.9
        low, high = summary["has_zero"]["low"], summary["has_zero"]["high"]
        assert low < ensemble.has_zero.mean() < high
        assert summary["is_constant"] == {
            "mean": 0.0,
            "low": 0.0,
            "high": pytest.approx(1 - 0.05 ** (1 / 40)),
            "level": 0.9,
            "method": "Clopper-Pearson",
        }

    def test_exact_ensembles_have_intervals_without_width(self):
        ensemble = random_functions(4, 3)
        assert np.array_equal(ensemble.total_sensitivity_intervals(), np.stack([ensemble.total_sensitivity] * 2, 1))


class TestRandomFunctions:
    def test_they_match_the_theory(self):
        n, count = 8, 2000
        ensemble = random_functions(n, count, seed=5)
        total = ensemble.total_sensitivity
        sd = math.sqrt(n / 2 ** (n + 1))
        assert total.mean() == pytest.approx(n / 2, abs=4 * sd / math.sqrt(count))
        assert total.std() == pytest.approx(sd, rel=4 / math.sqrt(2 * count))
        # K_0 is nearly Poisson with mean 1: each of 2^n inputs agrees with all neighbours with probability 2^-n.
        share = 1 - math.exp(-1)
        error = math.sqrt(share * (1 - share) / count)
        assert ensemble.has_zero.mean() == pytest.approx(share, abs=4 * error + 0.005)  # 0.005: n is finite
        assert ensemble.zero_share.mean() * 2**n == pytest.approx(1, abs=4 * 1.1 / math.sqrt(count))
        assert ensemble.positive_share.mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(count * 2**n))

    def test_function_j_is_the_same_whatever_the_count(self):
        few, many, other = random_functions(5, 3), random_functions(5, 6), random_functions(5, 3, seed=1)
        assert np.array_equal(few.tables, many.tables[:3])
        assert not np.array_equal(few.tables, other.tables)
        assert len({table.tobytes() for table in many.tables}) == 6


@pytest.mark.parametrize("init", ["default", "uniform", "xavier-normal"])
@pytest.mark.parametrize("name", networks.names())
def test_tables_equal_the_signs_of_single_networks_at_the_points_of_the_cube(name, init):
    found = random_networks(name, 5, 4, init=init, seed=2, **SIZES[name])
    points = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=5)))
    for index, table in enumerate(found.tables):
        network = draw_network(name, 5, index, init=init, seed=2, **SIZES[name])
        with torch.no_grad():
            logits = network(points).numpy()
        is_clear = np.abs(logits) > 1e-6 * np.abs(logits).max()
        assert is_clear.sum() > 28
        assert np.array_equal(table[is_clear], np.where(logits >= 0, 1, -1)[is_clear])
    assert np.array_equal(found.sensitivities[3], sensitivity_by_loops(found.tables[3], 5))


@pytest.mark.parametrize("inputs", [None, 9])
@pytest.mark.parametrize("name", networks.names())
def test_neither_batch_nor_count_nor_the_default_type_changes_a_network(name, inputs):
    arguments = {"init": "gaussian", "seed": 4, "threshold": "median", "inputs": inputs, **SIZES[name]}
    expected = random_networks(name, 4, 5, **arguments)
    torch.set_default_dtype(torch.float32)
    for count, batch in ((5, 1), (5, 2), (3, 3)):
        found = random_networks(name, 4, count, batch=batch, **arguments)
        for field in SIGNS:
            assert np.array_equal(getattr(found, field), getattr(expected, field)[:count])
    assert not np.array_equal(random_networks(name, 4, 5, **arguments | {"seed": 5}).signs, expected.signs)
    assert torch.get_default_dtype() == torch.float32


def test_networks_of_an_ensemble_differ():
    for init in ("default", "gaussian"):
        weights = [draw_network("mlp", 4, index, init=init).layers[0].weight for index in range(3)]
        assert weights[0].dtype == torch.float32
        assert not torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[1], weights[2])


class TestThresholds:
    """On logits given by hand, as if from one or two networks on two bits."""

    @staticmethod
    def signs(logits, threshold, inputs=None):
        values = torch.tensor(logits, dtype=torch.float32)
        return _signs_and_sensitivities(values, 2, threshold, inputs)[0].tolist()

    def test_zero_counts_as_positive(self):
        assert self.signs([[-1.0, 0.0, 2.0, -1e-9]], "zero") == [[-1, 1, 1, -1]]

    def test_half_exceed_the_lower_median(self):
        assert self.signs([[5.0, 7.0, 6.0, 9.0], [-5.0, -7.0, -6.0, -9.0]], "median") == [
            [-1, 1, -1, 1],
            [1, -1, 1, -1],
        ]

    def test_ties_with_the_median_are_negative_even_by_rounding(self):
        assert self.signs([[3.0, 3.0, 3.0, 4.0]], "median") == [[-1, -1, -1, 1]]
        assert self.signs([[3.0, 3.000001, 2.999999, 4.0]], "median") == [[-1, -1, -1, 1]]
        assert self.signs([[3.0, 3.0, 3.0, 3.0]], "median") == [[-1] * 4]
        assert self.signs([[1.0, 3.0, 3.0, 3.0]], "median") == [[-1] * 4]
        assert self.signs([[0.0, 0.0, 0.0, 0.0]], "median") == [[-1] * 4]

    def test_the_median_of_a_sample_is_over_its_points_and_not_their_neighbours(self):
        logits = [[1.0, 50.0, 60.0, 2.0, 70.0, 0.0]]  # two points, each before its two neighbours
        found = _signs_and_sensitivities(torch.tensor(logits), 2, "median", 2)
        assert found[0].tolist() == [[-1, 1]]
        assert found[1].tolist() == [[2, 1]]

    def test_half_of_the_values_of_real_networks_are_positive(self):
        found = random_networks("mlp", 8, 20, threshold="median", activation="tanh")
        assert (found.positive_share == 0.5).all()


def test_without_biases_the_scale_of_a_relu_network_means_nothing():
    expected = random_networks("mlp", 6, 10, init="uniform", scale=1.0)
    assert np.array_equal(random_networks("mlp", 6, 10, init="uniform", scale=8.0).tables, expected.tables)
    assert not expected.is_constant.all()


class TestSampled:
    def test_points_and_neighbours_are_those_of_the_table(self):
        exact = random_networks("mlp", 5, 3, seed=6)
        sampled = random_networks("mlp", 5, 3, seed=6, inputs=40)
        assert not sampled.is_exact
        for index in range(3):
            centres = _points(5, range(index, index + 1), 40, 6)[0].reshape(40, 6, 5)[:, 0]
            rows = (((centres + 1) / 2).long() * torch.tensor([16, 8, 4, 2, 1])).sum(dim=1).numpy()
            assert len(set(rows.tolist())) > 16
            assert np.array_equal(sampled.signs[index], exact.signs[index, rows])
            assert np.array_equal(sampled.sensitivities[index], exact.sensitivities[index, rows])

    def test_estimates_agree_with_the_whole_cube_and_intervals_cover(self):
        exact = random_networks("mlp", 7, 40, seed=6)
        sampled = random_networks("mlp", 7, 40, seed=6, inputs=400)
        errors = exact.sensitivities.std(axis=1) / 20
        assert (np.abs(sampled.total_sensitivity - exact.total_sensitivity) <= 4 * errors + 1e-12).all()
        low, high = sampled.total_sensitivity_intervals(level=0.99).T
        assert ((low <= exact.total_sensitivity) & (exact.total_sensitivity <= high)).mean() >= 0.95
        assert (high - low).mean() < 1

    def test_each_network_has_its_own_points(self):
        points = _points(20, range(3), 10, 0)
        assert points.shape == (3, 10 * 21, 20)
        assert not torch.equal(points[0], points[1])
        assert torch.equal(_points(20, range(2, 3), 10, 0)[0], points[2])

    def test_many_bits(self):
        found = random_networks("mlp", 40, 3, inputs=50)
        assert found.profiles.sum(axis=1).tolist() == [50] * 3
        assert found.summary()["total_sensitivity"]["high"] < 40
        for what in ("tables", "degrees"):
            with pytest.raises(UsageError, match=rf"{what} needs all 2\^40 inputs"):
                getattr(found, what)() if what == "degrees" else found.tables

    def test_a_function_that_is_constant_at_the_points_but_not_around_them_is_not_constant(self):
        signs = np.ones((2, 3), dtype=np.int8)
        ensemble = Ensemble(4, signs, np.array([[0, 0, 0], [0, 1, 0]], dtype=np.uint8), is_exact=False)
        assert ensemble.is_constant.tolist() == [True, False]


class TestWhatWasMeasuredBefore:
    """P(K_0 >= 1) of transformers with n = 10, dim 64 and depth 2: 1 when read at an end symbol, less at x_n."""

    @pytest.mark.parametrize(
        ("init", "threshold"), [("default", "zero"), ("default", "median"), ("gaussian", "median")]
    )
    def test_read_at_the_end_symbol(self, init, threshold):
        found = random_networks("transformer", 10, 12, init=init, threshold=threshold, dim=64, depth=2)
        assert found.has_zero.all()
        if threshold == "median":
            assert 2.0 < found.total_sensitivity.mean() < 3.0  # 24 networks in each of 5 settings: 2.25 to 2.77
        else:
            assert found.is_constant.mean() > 0.3  # 75 to 79 % of 24

    def test_read_at_the_last_bit(self):
        found = random_networks("transformer", 10, 24, threshold="median", dim=64, depth=2, read="last")
        error = math.sqrt(0.42 * 0.58 * (1 / 24 + 1 / 24))
        assert found.has_zero.mean() == pytest.approx(0.42, abs=min(4 * error, 0.35))  # 0.42 of 24 networks


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"name": "mpl"}, "unknown network 'mpl'; did you mean mlp"),
            ({"n": 0}, "n=0 must be a whole number, at least 1"),
            ({"n": 17}, "n=17 has too many inputs to evaluate all for each network; pass inputs=2000"),
            ({"count": 0}, "must be a whole number, at least 1"),
            ({"batch": 0}, "batch=.* must be a whole number"),
            ({"inputs": 0}, "inputs=.* must be a whole number"),
            ({"init": "normal"}, "unknown init 'normal'"),
            ({"init": "uniform", "scale": -1}, "scale=-1 must be a finite number above 0"),
            ({"scale": 2.0}, "scale=2.0 has no meaning with init='default'"),
            ({"threshold": "mean"}, "unknown threshold 'mean'; did you mean median"),
            ({"widht": 3}, "unknown mlp argument 'widht'; did you mean width"),
        ],
    )
    def test_errors_name_the_argument(self, arguments, message):
        with pytest.raises(UsageError, match=message):
            random_networks(**{"name": "mlp", "n": 4, "count": 2} | arguments)

    def test_logits_that_are_not_finite_are_an_error(self):
        with pytest.raises(UsageError, match=r"network 0 \(mlp, init='gaussian', scale=100\) has .* of 16 logits that"):
            random_networks("mlp", 4, 2, init="gaussian", scale=100, depth=20)


def test_more_than_255_bits_do_not_overflow():
    found = random_networks("mlp", n=300, count=1, inputs=4, threshold="median", seed=3, width=16)
    assert found.max_sensitivity.max() <= 300
    constant = Ensemble(300, found.signs, np.full((1, 4), 300, dtype=found.sensitivities.dtype), False)
    assert constant.total_sensitivity.tolist() == [300]


def test_numbers_of_numpy_and_wrong_ones():
    assert random_functions(np.int64(3), np.int32(2)).n == 3
    for options, message in (({"seed": None}, "seed=None"), ({"seed": 1.5}, "seed=1.5"), ({"n": 2.5}, "n=2.5")):
        with pytest.raises(UsageError, match=message):
            random_networks("mlp", **{"n": 3, "count": 1, **options})
    with pytest.raises(UsageError, match="limit is 24"):
        random_functions(40, 1)
