"""Columns of tables as tokens: noise in units of each column, values of other rows, names in the profile."""

import math

import numpy as np
import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.data.table import DataTable
from jostle.tokens.units import Units

WEIGHTS = torch.tensor([1.0, -2.0, 0.5])


def rows(count=400):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 4.0, 0.25])


def plane(x):
    return x @ WEIGHTS.to(x.dtype)


def exact(x, std):
    """The halfspace's flip probability, Phi(-|margin| / (std s_c |w_c|)), with s_c the column's standard deviation."""
    scale = std * x.std(dim=0, correction=0) * WEIGHTS.abs()
    shares = 0.5 * torch.special.erfc(plane(x).abs()[:, None] / scale / math.sqrt(2))
    return shares.mean(dim=0).numpy(), float(shares.mean())


def test_noise_is_in_units_of_each_column():
    x = rows()
    m = jostle.measure(plane, x, tokens="columns", perturbation="gaussian-noise:std=0.5", plan=jostle.Grid(200))
    by_column, mean = exact(x, 0.5)
    error = math.sqrt(mean / m.trials)
    assert abs(m.value - mean) < 4 * error
    assert np.abs(m.profile.values - by_column).max() < 4 * error * math.sqrt(3)
    plain = jostle.measure(plane, x, tokens="columns:scaled=false", perturbation="gaussian-noise:std=0.5")
    assert abs(plain.value - mean) > 10 * error


def test_another_unit_of_a_column_changes_nothing():
    x, kilo = rows(), torch.tensor([1024.0, 1.0, 2.0**-20])
    choices = {"tokens": "columns", "perturbation": "gaussian-noise:std=1", "plan": jostle.Grid(3)}
    m = jostle.measure(plane, x, **choices)
    other = jostle.measure(lambda y: plane(y / kilo), x * kilo, **choices)
    assert m.value == other.value
    assert (m.profile.values == other.profile.values).all()


def test_no_noise_is_exactly_no_change_and_a_constant_column_is_told():
    x = torch.cat([rows(50), torch.full((50, 1), 7.0)], dim=1)
    model = lambda y: plane(y[:, :3]) + y[:, 3] - 7  # noqa: E731
    m = jostle.measure(model, x, tokens="columns", perturbation="gaussian-noise:std=0", plan=jostle.Grid(1))
    assert m.value == 0.0
    m = jostle.measure(model, x, tokens="columns", perturbation="gaussian-noise:std=9", plan=jostle.Grid(5))
    assert m.profile.values[3] == 0.0
    assert "1 of 4 columns hold one value only (3)" in m.notes[0]


def test_whole_numbers_of_a_table_are_numbers():
    x = torch.arange(12).reshape(6, 2)
    m = jostle.measure(lambda y: y[:, 0] - 5, x, tokens="columns", perturbation="gaussian-noise:std=1")
    assert 0 < m.value < 1


def test_other_input_agrees_with_all_pairs():
    x = rows(30)
    sign = plane(x).sign()
    flips = []
    for column in range(3):
        for other in range(30):
            y = x.clone()
            y[:, column] = x[other, column]
            flips.append(plane(y).sign() != sign)
    truth = float(torch.stack(flips).double().mean())
    m = jostle.measure(plane, x, tokens="columns", perturbation="other-input", plan=jostle.Grid(400))
    assert abs(m.value - truth) < 4 * math.sqrt(truth * (1 - truth) / m.trials)
    assert m.low <= truth <= m.high


def test_other_input_takes_patches_too_and_refuses_texts():
    images = torch.randn(20, 1, 4, 4)
    m = jostle.measure(lambda x: x.sum(dim=(1, 2, 3)), images, tokens="patches:2", perturbation="other-input")
    assert 0 < m.value < 1
    ids = torch.ones(3, 4, dtype=torch.int64)
    with pytest.raises(UsageError, match="use uniform-token for texts"):
        jostle.measure(lambda x: x.double().sum(dim=1), ids, tokens="words", perturbation="other-input")


def test_stability_moves_every_column_by_its_own_size():
    x = rows(200)
    s = jostle.stability(plane, x, tokens="columns", rho=[0.0, 1.0], plan=jostle.Grid(5))
    assert s.notes == ["centre and std of the noise are those of each column"]
    assert s.points[-1].value == 1.0


def test_the_profile_has_the_names_of_a_table_and_keeps_them(tmp_path):
    table = DataTable.of_columns({"age": [20.0, 30, 40, 50], "height": [1.5, 1.6, 1.7, 1.8]})
    m = jostle.measure(lambda x: x[:, 0] - 35, table, tokens="columns", perturbation="gaussian-noise:std=1", seed=1)
    assert m.profile.names == ("age", "height")
    assert f"by column: age {m.profile.values[0]:.3g} [" in str(m)
    m.save(tmp_path / "m.json")
    assert jostle.load(tmp_path / "m.json").profile.names == ("age", "height")


def test_categories_stay_under_noise_and_move_by_other_input():
    table = DataTable.of_columns({"age": [20, 30, 40, 50], "city": ["Rome", "Bern", "Rome", "Bern"]})
    model = lambda x: (x[:, 1] - 0.5) + 0 * x[:, 0]  # noqa: E731
    m = jostle.measure(model, table, tokens="columns", perturbation="gaussian-noise:std=5", plan=jostle.Grid(3))
    assert m.profile.counts.tolist() == [12, 0]
    assert "columns of categories stay" in m.notes[0]
    m = jostle.measure(model, table, tokens="columns", perturbation="other-input", plan=jostle.Grid(50))
    assert m.profile.values[0] == 0
    assert abs(m.profile.values[1] - 0.5) < 4 * 0.5 / math.sqrt(200)
    only = DataTable.of_columns({"city": ["Rome", "Bern"]})
    with pytest.raises(UsageError, match="all columns are categories: use other-input"):
        jostle.measure(model, only, tokens="columns", perturbation="gaussian-noise:std=5")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [1.0, None, 2.0]}, "column 'a' has 1 missing or infinite values (first: row 1)"),
        ({"a": np.array(["2024-01-01"], dtype="datetime64[D]")}, "column 'a' holds times"),
        ({"a": [(1, 2)] * 2, "b": [1, 2]}, "column 'a'"),
        ({"a": []}, "the table is empty"),
    ],
)
def test_what_is_no_table_is_one_line(columns, said):
    with pytest.raises(UsageError) as caught:
        DataTable.of_columns(columns)
    assert said in str(caught.value)


def test_columns_are_of_tables_only():
    with pytest.raises(UsageError, match="expected a table"):
        jostle.measure(plane, torch.randn(3, 4, 4), tokens="columns", perturbation="gaussian-noise:std=1")


def test_units_do_not_depend_on_how_rows_are_cut():
    x = rows(1000) + 1e6
    whole, parts = Units.of([x]), Units.of(x.split(7))
    torch.testing.assert_close(whole.std, x.std(dim=0, correction=0))
    torch.testing.assert_close(parts.std, whole.std)
    torch.testing.assert_close(parts.mean, whole.mean)


def test_a_penalty_asks_for_columns_of_one_size():
    with pytest.raises(UsageError, match="standardise the inputs and use columns:scaled=false"):
        jostle.SensitivityPenalty(tokens="columns", std=1.0, strength=0.1)
    penalty = jostle.SensitivityPenalty(tokens="columns:scaled=false", std=1.0, strength=0.1)
    assert float(penalty(torch.nn.Linear(3, 2), rows(8)).detach()) > 0
