"""The exact analysis against loops over the cube, in whole numbers and fractions: equal, not close."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean import Analysis, analyse, fourier, functions
from tests.boolean import oracles_boolean as oracle

RHOS = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(7, 8), Fraction(1))  # floats hold them exactly


def random_table(n, seed=0):
    return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), 2**n)


def assert_equal_to_the_oracle(b, table):
    sensitivities = oracle.sensitivities(table)
    assert b.pointwise.tolist() == sensitivities
    assert Fraction(b.total_sensitivity) == oracle.total_sensitivity(table)
    assert (b.max_sensitivity, b.min_sensitivity) == (max(sensitivities), min(sensitivities))
    assert b.sensitivity_profile.tolist() == oracle.profile(table)
    assert list(map(Fraction, b.influences)) == oracle.influences(table)
    assert list(map(Fraction, b.coefficients)) == oracle.coefficients(table)
    assert list(map(Fraction, b.fourier_weight)) == oracle.weight_by_degree(table)
    assert b.degree == oracle.degree(table)
    assert Fraction(b.mean) == oracle.mean(table)
    assert Fraction(b.variance) == oracle.variance(table)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_function_of_up_to_three_bits(n):
    for table in oracle.all_sign_tables(n):
        b = analyse(list(table), n)
        assert_equal_to_the_oracle(b, table)
        for rho in RHOS[1:4] if n == 3 else RHOS:
            weights = oracle.weight_by_degree(table)
            stability = sum(rho**k * weight for k, weight in enumerate(weights))
            assert Fraction(b.noise_stability(float(rho))) == stability
            assert Fraction(b.disagreement(float(rho))) == (1 - stability) / 2
        assert b.huang.holds
        assert b.proposition_3_2(0.5).holds


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_stability_is_the_sum_over_all_pairs(n):
    for seed in range(4):
        table = random_table(n, seed)
        b = analyse(table)
        for rho in (*RHOS, Fraction(-1, 2)):
            assert Fraction(b.noise_stability(float(rho))) == oracle.noise_stability(table, rho)
            assert Fraction(b.disagreement(float(rho))) == oracle.disagreement(table, rho)


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_random_functions_by_all_definitions(n):
    table = random_table(n, n)
    assert_equal_to_the_oracle(analyse(table), table.tolist())


@pytest.mark.parametrize("n", [8, 9, 10, 11, 12])
def test_random_functions_of_up_to_twelve_bits(n):
    """The oracle's Fourier sums take 4^n steps: here its neighbours, and a few coefficients by their definition."""
    table = random_table(n, n).tolist()
    b = analyse(table)
    assert b.pointwise.tolist() == oracle.sensitivities(table)
    assert list(map(Fraction, b.influences)) == oracle.influences(table)
    assert Fraction(b.total_sensitivity) == oracle.total_sensitivity(table)
    for subset in [(), (0,), (n - 1,), (1, n - 2), tuple(range(n))]:
        values = (y * oracle.character(subset, x) for x, y in zip(oracle.points(n), table, strict=True))
        assert Fraction(b.coefficient(subset)) == Fraction(sum(values), 2**n)
    assert float(np.dot(np.arange(n + 1), b.fourier_weight)) == b.total_sensitivity


@pytest.mark.parametrize("n", [1, 2, 5])
def test_real_functions(n):
    numbers = [Fraction(int(k), 8) for k in np.random.default_rng(n).integers(-40, 40, 2**n)]
    b = analyse([float(number) for number in numbers])
    assert not b.is_boolean
    assert list(map(Fraction, b.pointwise)) == oracle.sensitivities(numbers)
    assert list(map(Fraction, b.influences)) == oracle.influences(numbers)
    assert list(map(Fraction, b.coefficients)) == oracle.coefficients(numbers)
    assert b.fourier_weight == pytest.approx(list(map(float, oracle.weight_by_degree(numbers))), rel=1e-14)
    assert b.noise_stability(0.3) == pytest.approx(float(oracle.noise_stability(numbers, Fraction(3, 10))), rel=1e-12)
    assert b.degree == oracle.degree(numbers)
    for need in ("sensitivity_profile", "huang"):
        with pytest.raises(UsageError, match="not only -1 and 1"):
            getattr(b, need)
    with pytest.raises(UsageError, match="output='sign'"):
        b.disagreement(0.5)


def test_the_degree_of_a_real_function_is_not_fooled_by_rounding():
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=12)))
    b = analyse(0.1 * x[:, 0] * x[:, 3] + 0.3 * x[:, 5] + 1 / 3)
    assert b.degree == 2
    assert b.total_sensitivity == pytest.approx(2 * 0.01 + 0.09, rel=1e-12)
    assert analyse(np.zeros(8)).degree == 0


def test_constants_and_one_bit():
    for value in (-1, 1):
        b = analyse([value] * 8)
        assert (b.total_sensitivity, b.max_sensitivity, b.degree, b.mean) == (0, 0, 0, value)
        assert b.sensitivity_profile.tolist() == [8, 0, 0, 0]
        assert b.proposition_3_2(0.0).slack == b.proposition_3_2(0.7).slack == b.huang.slack == 0
    one = analyse([-1, 1])
    assert (one.n, one.total_sensitivity, one.degree, one.influences.tolist()) == (1, 1.0, 1, [1.0])


def test_arrays_of_rho_and_the_bound():
    b, rhos = analyse(random_table(5)), np.array([0.0, 0.3, 1.0])
    assert b.noise_stability(rhos).tolist() == [b.noise_stability(rho) for rho in rhos]
    assert b.disagreement(rhos).tolist() == [b.disagreement(rho) for rho in rhos]
    inequality = b.proposition_3_2(0.3)
    assert inequality.right == (1 - 0.3 ** (b.max_sensitivity**2)) / 2
    assert inequality.slack == inequality.right - inequality.left
    for rho in (1.5, -2, float("nan")):
        with pytest.raises(UsageError, match="between -1 and 1"):
            b.noise_stability(rho)
    with pytest.raises(UsageError, match="between 0 and 1"):
        b.proposition_3_2(-0.5)


def test_largest_coefficients_name_their_sets():
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    b = analyse(3 * x[:, 1] * x[:, 2] - 5 * x[:, 0] + 0.5)
    assert b.largest_coefficients() == [((0,), -5.0), ((1, 2), 3.0), ((), 0.5)]
    assert b.largest_coefficients(1) == [((0,), -5.0)]
    assert b.coefficient([2, 1]) == b.coefficient((1, 2)) == 3.0
    with pytest.raises(UsageError, match="0 to 3"):
        b.coefficient([4])


def test_the_dictionary_is_plain_and_the_text_holds_the_numbers():
    import json

    table = random_table(6)
    numbers = json.loads(json.dumps(analyse(table).to_dict()))
    assert numbers["sensitivity_profile"] == oracle.profile(table.tolist())
    assert numbers["disagreement"]["0.5"] == analyse(table).disagreement(0.5)
    text = str(analyse(table))
    assert f"{numbers['total_sensitivity']:.6g}" in text
    assert "Huang" in text
    real = analyse(np.arange(4.0))
    assert "disagreement" not in real.to_dict()
    assert "real, from 0 to 3" in str(real)


def test_large_tables_take_the_split_path_and_stay_exact():
    n = 19
    table = random_table(n)
    b = Analysis.of(table)
    assert float(np.dot(np.arange(n + 1), b.fourier_weight)) == b.total_sensitivity == b.influences.sum()
    assert b.fourier_weight.sum() == 1.0
    assert np.square(b.coefficients[np.bitwise_count(np.arange(2**n)) == 1]).sum() == b.fourier_weight[1]


class TestWhatMayBeGiven:
    def test_callables_modules_and_tables_agree(self):
        n, weights = 6, torch.tensor([3.0, -2.0, 1.0, 1.0, 0.5, 4.0])
        linear = torch.nn.Linear(n, 1, bias=False, dtype=torch.float32)
        linear.weight.data = weights[None].float()
        expected = analyse(lambda x: np.sign(x @ weights.numpy()), n)
        for b in (
            analyse(linear, n, output="sign"),
            analyse(lambda x: torch.sign(x @ weights), n, tensors=True),
            analyse(lambda x: x @ weights.numpy() > 0, n),
            analyse(lambda x: np.stack([-(x @ weights.numpy()), x @ weights.numpy()], axis=1), n, output="sign"),
            analyse(torch.tensor(expected.table)),
            analyse((expected.table > 0).tolist()),
            analyse(expected.table.astype(float)),
            analyse(lambda x: np.sign(x @ weights.numpy())[:, None].tolist(), n, batch_size=7),
        ):
            assert b.table.dtype == np.int8
            assert b.table.tolist() == expected.table.tolist()

    def test_each_point_is_evaluated_once(self):
        seen = []
        analyse(lambda x: seen.append(x.copy()) or x[:, 0], 9, batch_size=100)
        assert sum(map(len, seen)) == 2**9
        assert np.unique(np.concatenate(seen), axis=0).shape == (2**9, 9)

    def test_a_module_is_evaluated_in_eval_mode_and_put_back(self):
        model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.9), torch.nn.Linear(8, 1)).train()
        first, second = (analyse(model, 5, output="sign") for _ in range(2))
        assert first.table.tolist() == second.table.tolist()
        assert all(module.training for module in model.modules())

    def test_ties_are_decided_by_the_caller(self):
        tied = [analyse(lambda x: x.sum(axis=1), 4, output="sign", tie=tie).mean for tie in (-1, 1)]
        assert tied == [-6 / 16, 6 / 16]
        with pytest.raises(UsageError, match="exactly 0 at 6 of 16 inputs; give tie=-1 or tie=1"):
            analyse(lambda x: x.sum(axis=1), 4, output="sign")
        with pytest.raises(UsageError, match="exactly 0 at 1 of 2 inputs"):
            analyse([0.0, 2.0], output="sign")

    def test_zeros_and_ones_are_not_silently_a_quarter(self):
        for f, n in (([0, 1, 1, 0], None), (lambda x: (x[:, 0] > 0) * 1.0, 3)):
            with pytest.raises(UsageError, match="values 0 and 1: write 2"):
                analyse(f, n)
            assert analyse(f, n, output="values").total_sensitivity == pytest.approx(0.5 if n is None else 0.25)

    @pytest.mark.parametrize(
        ("f", "n", "message"),
        [
            ([1, -1, 1], None, "3 values; expected 2\\^n"),
            ([], None, "0 values"),
            ([1], None, "1 values"),
            ([1, -1, 1, 1], 3, "n=3 does not fit a table of 4"),
            ([1, float("nan")], None, "not finite at 1 of 2"),
            ([[1, -1], [1, 1]], None, "shape \\(2, 2\\)"),
            ([[1, -1], [1]], None, "cannot be read as numbers"),
            (["a", "b"], None, "expected real numbers"),
            ([1j, 1], None, "expected real numbers"),
            ("parity", 3, "neither a function of bits nor a table"),
            (lambda x: x, 4, "shape \\(16, 4\\); expected one number per input"),
            (lambda x: 3.0, 4, "shape \\(\\)"),
            (lambda x: x[:3, 0], 4, "16 inputs with outputs of shape \\(3,\\)"),
            (lambda x: x[:, 0] / 0, 2, "not finite at 4 of 4"),
            (lambda x: x[:, 0] + 1j, 2, "complex"),
            (lambda x: x[:, 0], None, "n is missing"),
            (lambda x: x[:, 0], 0, "n=0"),
            (lambda x: x[:, 0], 2.5, "n=2.5"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:divide by zero")
    def test_what_cannot_be_analysed_is_one_line(self, f, n, message):
        with pytest.raises(UsageError, match=message) as caught:
            analyse(f, n)
        assert "\n" not in str(caught.value)

    def test_wrong_options_are_one_line(self):
        f = lambda x: x[:, 0]  # noqa: E731
        for options, message in (
            ({"output": "logit"}, "unknown output 'logit'; known: auto, sign, values"),
            ({"tie": 0}, "tie=0"),
            ({"method": "guess"}, "unknown method 'guess'; known: auto, exact, sampled"),
            ({"batch_size": 0}, "batch_size=0"),
            ({"samples": 1, "method": "sampled"}, "samples=1"),
            ({"level": 1.5, "method": "sampled"}, "level=1.5"),
        ):
            with pytest.raises(UsageError, match=message):
                analyse(f, 3, **options)
        with pytest.raises(UsageError, match="limit is 24"):
            analyse(f, 25, method="exact")
        with pytest.raises(UsageError, match="needs a function"):
            analyse([1, -1], method="sampled")

    def test_a_failing_function_says_what_it_was_given(self):
        from jostle.base.errors import FailureError

        with pytest.raises(FailureError, match="tensors=True gives it torch tensors"):
            analyse(lambda x: x.prod(dim=1), 3)


class TestUnusualArguments:
    def test_a_given_table_is_copied(self):
        table = np.array([-1, -1, -1, 1], dtype=np.int8)
        b = analyse(table)
        table[:] = 1
        assert b.coefficients.tolist() == [-0.5, 0.5, 0.5, 0.5]

    def test_arrays_of_any_layout(self):
        tables = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 256)))
        for one, row in zip(fourier.coefficients(tables), tables, strict=True):
            assert np.array_equal(one, fourier.coefficients(np.array(row)))
        assert np.allclose(fourier.values(np.asfortranarray(fourier.coefficients(tables))), tables)
        strided = np.repeat(random_table(8), 2)[::2]
        assert analyse(strided).fourier_weight.tolist() == analyse(strided.copy()).fourier_weight.tolist()
        assert analyse(strided[::-1]).total_sensitivity == analyse(strided).total_sensitivity
        with pytest.raises(ValueError, match="contiguous"):
            fourier.transform(np.asfortranarray(np.ones((4, 4))))

    def test_an_attribute_n_of_a_foreign_module_is_not_the_number_of_bits(self):
        module = torch.nn.Linear(6, 1)
        module.n = 64
        assert analyse(module, 6, output="sign").n == 6
        assert analyse(functions.majority(np.int64(5))).n == 5
        with pytest.raises(UsageError, match="does not fit a function of 5 bits"):
            analyse(functions.majority(5), 6)

    @pytest.mark.parametrize(
        ("f", "n", "message"),
        [
            (lambda x: None, 3, "answered with NoneType"),
            (lambda x: ["a"] * len(x), 3, "answered with list"),
            (functions.majority, 3, "n of majority=a ndarray must be a whole number"),
            ([1, -1, 1, 1], "2", "n='2'"),
            ([1, -1, 1, 1], 2.0, "n=2.0"),
            ([1e200, -1e200], None, "squares overflow"),
        ],
    )
    def test_one_line(self, f, n, message):
        with pytest.raises(UsageError, match=message) as caught:
            analyse(f, n)
        assert "\n" not in str(caught.value)

    def test_types_of_tables_and_answers(self):
        assert analyse(torch.tensor([1.0, -1.0], dtype=torch.bfloat16)).is_boolean
        assert analyse(torch.tensor([0.5, -1.0], requires_grad=True)).table.tolist() == [0.5, -1.0]
        assert analyse(lambda x: x[:, 0].astype(np.longdouble), 3).is_boolean

    def test_questions_about_a_set_or_a_rho(self):
        b = analyse([-1, -1, -1, 1])
        for subset in (0, "a"):
            with pytest.raises(UsageError, match="must be a list of coordinates, whole numbers from 0 to 1"):
                b.coefficient(subset)
        with pytest.raises(UsageError, match=r"coordinate of subset \[0\.0\]=0\.0 must be a whole number from 0 to 1"):
            b.coefficient([0.0])
        with pytest.raises(UsageError, match="twice"):
            b.coefficient([0, 0])
        with pytest.raises(UsageError, match="must be a number"):
            b.noise_stability("a")
        with pytest.raises(UsageError, match="one number here"):
            b.proposition_3_2([0.5, 0.9])
        with pytest.raises(UsageError, match="count=-1"):
            b.largest_coefficients(-1)
        assert set(b.to_dict([0.9999999, 1.0])["noise_stability"]) == {"0.9999999", "1"}
        assert "1: 1e-18" in str(analyse(lambda x: 1e-9 * x[:, 0], 4))
