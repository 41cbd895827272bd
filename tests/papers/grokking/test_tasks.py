# ruff: noqa: NPY002 - the released code uses numpy's legacy generator, and so does its twin here
import itertools

import numpy as np
import pytest
import torch

from jostle.base import specs
from jostle.base.errors import UsageError
from jostle_papers.p2403_06925.grokking import TASKS, Addition, Division, GrokkingTask, Permutations, Subtraction, split

SMALL = [Addition(7), Subtraction(7), Division(7), Permutations(3)]


@pytest.mark.parametrize("task", SMALL, ids=lambda task: task.describe())
def test_contract(task):
    pairs, answers = task.pairs(), task.answers()
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs) == len(answers)
    assert pairs.tolist() == sorted(pairs.tolist())  # the second number runs faster
    assert 0 <= int(answers.min()) <= int(answers.max()) == task.numbers - 1
    assert int(pairs.max()) < task.numbers
    assert specs.build(TASKS, task.describe(), "task", GrokkingTask) == task
    if task.cycle is not None:
        assert torch.bincount(answers).tolist() == [len(pairs) // task.cycle] * task.cycle
    lookup = {tuple(pair): answer for pair, answer in zip(pairs.tolist(), answers.tolist(), strict=True)}
    commutes = all(lookup[a, b] == lookup.get((b, a)) for a, b in lookup)
    assert commutes == task.is_commutative


def test_every_registered_task_is_tested():
    assert {task.describe().partition(":")[0] for task in SMALL} == set(TASKS.names())


def test_arithmetic_against_python():
    for task, rule in (
        (Addition(7), lambda a, b: (a + b) % 7),
        (Subtraction(7), lambda a, b: (a - b) % 7),
        (Division(7), lambda a, b: next(c for c in range(7) if c * b % 7 == a)),
    ):
        assert task.answers().tolist() == [rule(a, b) for a, b in task.pairs().tolist()]


def test_permutations_are_composed():
    task = Permutations(4)
    elements = list(itertools.permutations(range(4)))
    for (a, b), answer in zip(task.pairs().tolist(), task.answers().tolist(), strict=True):
        assert elements[answer] == tuple(elements[a][elements[b][i]] for i in range(4))
    assert len(Permutations().pairs()) == 14_400


def test_the_split_is_that_of_the_released_code():
    state = np.random.get_state()
    np.random.seed(42)
    expected = np.arange(113**2)
    np.random.shuffle(expected)
    np.random.set_state(state)
    trained, tested = split(Addition(), 0.3, seed=42)
    assert torch.cat([trained, tested]).tolist() == expected.tolist()
    assert len(trained) == 3830


def test_a_split_leaves_the_global_generator_alone():
    np.random.seed(5)
    expected = np.random.rand(3).tolist()
    np.random.seed(5)
    split(Addition(5), 0.3, seed=42)
    assert np.random.rand(3).tolist() == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Addition(1), "modulus=1 must be a whole number, at least 2"),
        (lambda: Addition(True), "modulus=True must be"),
        (lambda: Division(9), "modulus=9 of division must be a prime"),
        (lambda: Permutations(9), "degree of permutations=9 must be a whole number from 2 to 6"),
        (lambda: split(Addition(3), 1.0, 0), "train_fraction=1.0 must be a finite number above 0 and below 1"),
        (lambda: split(Addition(3), 0.1, 0), "train_fraction=0.1 of 9 pairs leaves none"),
        (lambda: TASKS.get("adition"), "unknown task 'adition'; did you mean addition"),
    ],
)
def test_wrong_use_is_one_clear_line(make, message):
    with pytest.raises(UsageError, match=message):
        make()
