"""The sensitivity of predictors that count: formula, enumeration, sampling, and the digits of the paper."""

from fractions import Fraction

import pytest
import torch

from jostle import Coordinates, Grid, UniformToken, measure
from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.synthetic import SparseFrequent, counting, counting_sensitivity, exact_sensitivity

# n_s, n_f, n_d, m, M, and what Table 3 prints for sparse and for frequent tokens only (Table 1: columns 2 and 5).
TABLE_3 = [
    ((3, 3, 1, 6, 59), "0.0000", "0.1315"),
    ((3, 5, 1, 16, 59), "0.0000", "0.2878"),
    ((3, 7, 1, 28, 59), "0.0000", "0.4502"),
    ((1, 7, 7, 10, 69), "0.0339", "0.0000"),
    ((1, 17, 7, 20, 69), "0.0339", "0.0000"),
    ((1, 32, 7, 33, 69), "0.0339", "0.0000"),  # printed with m = 36, which M = 69 cannot hold
    ((1, 32, 7, 36, 75), "0.0328", "0.0000"),  # as printed, with the smallest M there is: not 0.0339
]
SMALL = [
    SparseFrequent(1, 3, 1, 2, 7, num_tokens=6),
    SparseFrequent(2, 4, 2, 1, 6, num_tokens=7),
    SparseFrequent(3, 3, 3, 2, 9, num_tokens=6),
    SparseFrequent(1, 5, 2, 1, 4, num_tokens=6),
]


@pytest.mark.parametrize(("setting", "sparse", "frequent"), TABLE_3)
def test_the_digits_of_table_1_and_table_3(setting, sparse, frequent):
    task = SparseFrequent(*setting)
    inputs = task.sample(2, seed=0).inputs
    for group, printed in (("sparse", sparse), ("frequent", frequent)):
        value = counting_sensitivity(task, group)
        assert f"{float(value):.4f}" == printed
        assert exact_sensitivity(counting(task, group), inputs, task.vocabulary) == pytest.approx(float(value))


@pytest.mark.parametrize(("columns", "only"), [(TABLE_3[:3], 59), (TABLE_3[3:5], 69)], ids=["top row", "bottom row"])
def test_one_vocabulary_alone_gives_the_digits_of_a_row(columns, only):
    fitting = []
    for setting, *printed in columns:
        least = 2 * setting[3] + 3
        tasks = {size: SparseFrequent(*setting[:4], size) for size in range(least, 400)}
        values = {size: [counting_sensitivity(task, g) for g in ("sparse", "frequent")] for size, task in tasks.items()}
        fitting.append({size for size, pair in values.items() if [f"{float(value):.4f}" for value in pair] == printed})
    assert set.intersection(*fitting) == {only}


def brute(task, group, tokens, tie, includes_present):
    """Every replacement of every token, in loops."""
    weights = task.direction(group).tolist()
    changes, tried = Fraction(0), 0
    before = sum(weights[token] for token in tokens)
    for token in tokens:
        for new in range(task.vocabulary):
            if new == token and not includes_present:
                continue
            after = before - weights[token] + weights[new]
            tried += 1
            changes += tie if after == 0 else after * before < 0
    return changes / tried


@pytest.mark.parametrize("task", SMALL)
@pytest.mark.parametrize("group", ["sparse", "frequent"])
@pytest.mark.parametrize("tie", [Fraction(1), Fraction(1, 2), Fraction(0)])
@pytest.mark.parametrize("includes_present", [True, False])
def test_the_formula_is_the_enumeration_of_every_sequence(task, group, tie, includes_present):
    value = counting_sensitivity(task, group, tie=tie, includes_present=includes_present)
    for tokens in task.sample(5, seed=1).inputs.tolist():
        assert brute(task, group, tokens, tie, includes_present) == value


def test_small_settings_cover_every_case_of_the_formula():
    assert {task.sparse for task in SMALL} == {1, 2, 3} == {task.lead for task in SMALL}


@pytest.mark.parametrize("group", ["sparse", "frequent"])
def test_sampling_finds_the_formula(group):
    task = SparseFrequent(1, 17, 3, 20, 69) if group == "sparse" else SparseFrequent(3, 5, 1, 16, 59)
    inputs = task.sample(400, seed=5).inputs
    found = measure(
        counting(task, group), inputs, tokens=Coordinates(), perturbation=UniformToken(task.vocabulary), plan=Grid(1)
    )
    value = float(counting_sensitivity(task, group))
    assert abs(found.value - value) < 4 * (value * (1 - value) / (400 * 50)) ** 0.5


def test_counting_says_the_label_and_what_uses_sparse_tokens_is_wrong_when_they_are_exchanged():
    from jostle_papers.p2403_06925.synthetic import swap_sparse

    task = SparseFrequent(1, 17, 7, 20, 69)
    sample = task.sample(100, seed=0)
    signs = 2.0 * sample.labels[:, None] - 1
    for group in ("sparse", "frequent"):
        assert torch.equal(torch.sign(counting(task, group)(sample.inputs)), signs)
        swapped = torch.sign(counting(task, group)(swap_sparse(sample).inputs))
        assert torch.equal(swapped, -signs if group == "sparse" else signs)


def test_wrong_use_is_one_line():
    task = SMALL[0]
    with pytest.raises(UsageError, match="unknown group 'spars'; did you mean sparse"):
        counting(task, "spars")
    with pytest.raises(UsageError, match="unknown group"):
        counting_sensitivity(task, "irrelevant")
    with pytest.raises(UsageError, match="tie=2 must be from 0"):
        counting_sensitivity(task, "sparse", tie=2)
