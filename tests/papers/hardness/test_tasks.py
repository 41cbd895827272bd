import numpy as np
import pytest

from jostle.base.errors import UsageError
from jostle.boolean import cube
from jostle_papers.p2402_09963.hardness import TARGETS, complete_table, named_task, table_task
from jostle_papers.p2402_09963.hardness.tasks import derive_seed


def test_labels_are_those_of_the_released_code():
    """With bits of 0 and 1: majority by sum(x) > n - sum(x), first x_1, mean of x; parity up to its sign."""
    points = cube.points(6)
    x = (points > 0).astype(int)
    assert (named_task("majority", 6).label(points) == (x.sum(axis=1) > 3)).all()
    assert (named_task("first", 6).label(points) == x[:, 0]).all()
    assert np.allclose(named_task("mean", 6).label(points), x.mean(axis=1))
    assert (named_task("parity", 6).label(points) == 1 - x.sum(axis=1) % 2).all()
    assert (named_task("parity", 5).label(cube.points(5)) == (cube.points(5) > 0).sum(axis=1) % 2).all()
    assert set(TARGETS) == {"parity", "majority", "first", "mean"}


def test_tables_are_looked_up_in_their_order():
    table = np.arange(16) / 15
    task = table_task(table)
    points = cube.points(4)[[3, 0, 15, 6]]
    assert np.allclose(task.label(points), table[[3, 0, 15, 6]])


def test_batches_are_functions_of_seed_and_step():
    task = named_task("parity", 12)
    bits, labels, shares = task.batch(64, seed=3, step=7)
    assert all(bool((a == b).all()) for a, b in zip(task.batch(64, 3, 7), (bits, labels, shares), strict=True))
    assert bits.shape == (64, 12)
    assert not bool((task.batch(64, 3, 8)[0] == bits).all())
    assert not bool((task.batch(64, 4, 7)[0] == bits).all())
    assert np.allclose(labels.numpy(), task.label(bits.numpy()))
    assert float(shares.sum()) == pytest.approx(1)
    assert task.batch(64, 3, 7, length=7)[0].shape == (64, 7)


def test_few_strings_are_counted_and_not_repeated():
    """Shares are those of a batch drawn with replacement: multinomial counts, with their mean and variance."""
    task = named_task("parity", 3)
    shares = np.stack([task.batch(64, seed=0, step=step)[2].numpy() for step in range(400)])
    bits = task.batch(64, seed=0, step=0)[0]
    assert (bits.numpy() == cube.points(3)).all()
    counts = 64 * shares
    assert np.allclose(counts, counts.round())
    assert np.allclose(counts.sum(axis=1), 64)
    variance = 64 / 8 * 7 / 8
    assert np.abs(counts.mean(axis=0) - 8).max() < 4 * np.sqrt(variance / 400)
    assert abs(counts.var() / variance - 1) < 4 * np.sqrt(2 / 400)


def test_only_chosen_strings_are_trained_on():
    task = table_task(np.arange(64) % 2, train_size=10, seed=5)
    assert len(set(task.rows.tolist())) == 10
    points, labels = task.training_strings()
    assert (points == cube.points(6)[task.rows]).all()
    assert (labels == task.rows % 2).all()
    few = task.batch(4, seed=0, step=0)
    allowed = {tuple(point) for point in points.tolist()}
    assert few[0].shape == (4, 6)
    assert {tuple(point) for point in few[0].tolist()} <= allowed
    many = task.batch(40, seed=0, step=0)
    assert many[0].shape == (10, 6)
    assert not np.array_equal(table_task(np.arange(64) % 2, train_size=10, seed=6).rows, task.rows)


def test_scales_are_those_of_the_labels():
    assert named_task("parity", 5).scale() == 1
    assert named_task("mean", 6).scale() == pytest.approx(1 / 6)
    assert named_task("mean", 6).scale(3) == pytest.approx(1 / 3)
    assert named_task("mean", 20).scale() == pytest.approx(1 / 20, rel=0.1)
    assert table_task([0, 0, 1, 1], train_size=None).scale() == 1
    assert table_task(np.zeros(4)).scale() == 1


def test_labels_at_both_ends_are_taken():
    assert table_task([0, 1, 0.5, 1]).labels.tolist() == [0, 1, 0.5, 1]
    assert table_task(np.array([False, True])).labels.tolist() == [0, 1]


def test_a_seed_of_numpy_is_that_seed():
    assert (
        table_task(np.zeros(64), train_size=9, seed=np.int64(3)).rows
        == table_task(np.zeros(64), train_size=9, seed=3).rows
    ).all()
    assert derive_seed("purpose", np.int64(3), 1) == derive_seed("purpose", 3, 1) != derive_seed("purpose", 1, 3)


def test_a_completion_keeps_what_is_trained_on():
    table = np.arange(256) % 3 == 0
    task = table_task(table, train_size=64, seed=1)
    first, second = complete_table(task, seed=0), complete_table(task, seed=1)
    assert (first[task.rows] == table[task.rows]).all()
    others = np.setdiff1d(np.arange(256), task.rows)
    assert 0.3 < first[others].mean() < 0.7
    assert not (first == second).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: named_task("parti", 4), "did you mean parity"),
        (lambda: named_task("parity", 0), "n=.* must be a whole number"),
        (lambda: table_task([0, 1, 1]), r"labels of shape \(3,\) must be a table of 2\^n numbers"),
        (lambda: named_task(3, 4), "name=3 must be the name of a function, e.g. 'parity'"),
        (lambda: named_task(None, 4), "name=None must be the name of a function"),
        (
            lambda: table_task([-1, 1]),
            r"labels must lie between 0 and 1; for a table of -1 and 1 give \(table \+ 1\) / 2",
        ),
        (lambda: table_task([0, 1.5]), "labels must lie between 0 and 1"),
        (lambda: table_task([0, np.nan]), "labels must lie between 0 and 1"),
        (lambda: table_task(["a", "b"]), r"labels must be a table of 2\^n numbers from 0 to 1"),
        (lambda: table_task([[0], [1, 2]]), r"labels must be a table of 2\^n numbers from 0 to 1"),
        (lambda: table_task([0, 1], train_size=1, seed="a"), "seed='a' must be a whole number"),
        (lambda: complete_table(table_task([0, 1], train_size=1), "a"), "seed='a' must be a whole number"),
        (
            lambda: table_task([0, 1], train_size=3),
            "train_size=3 must be a whole number from 1 to 2, the number",
        ),
        (lambda: complete_table(named_task("parity", 4), 0), "only a table has strings"),
    ],
)
def test_wrong_use_is_one_clear_line(make, message):
    with pytest.raises(UsageError, match=message):
        make()
