"""Seeds that are added until a study is decided, and what the looks cost."""

import pytest

from jostle.base.errors import UsageError
from jostle.studies import run
from jostle.studies.looks import planned, share_of_error
from jostle.studies.runner import CellsFailedError
from tests.studies.toys import Toy, make_known


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    make_known(monkeypatch)


def run_toy(out, **options):
    gap = options.pop("gap", 0.0)
    return run(Toy.name, "small", out, progress=False, overrides={"gap": gap, **options.pop("settings", {})}, **options)


def seeds_of(result):
    return sorted({cell.seed for cell in result.records.cells})


@pytest.mark.parametrize("first", [3, 5, 8])
@pytest.mark.parametrize("at_most", [8, 9, 24, 100])
def test_shares_add_up_to_one(first, at_most):
    looks = planned(first, at_most)
    assert (looks[0], looks[-1]) == (first, at_most)
    assert sum(share_of_error(looks, seeds) for seeds in looks) == pytest.approx(1)
    assert list(looks) == sorted(set(looks))


def test_seeds_are_added_until_it_is_decided(tmp_path):
    clear = run_toy(tmp_path, gap=10.0, until_decided=True)
    assert (clear.verdict, seeds_of(clear)) == ("AGREES", [0, 1, 2])
    assert clear.summary.looks == (3, 6, 12, 24)
    assert clear.findings[0].level == pytest.approx(1 - 0.05 * 0.1)
    never = run_toy(tmp_path, gap=0.0, until_decided=True, at_most=7)
    assert (never.verdict, seeds_of(never)) == ("UNDECIDED", list(range(7)))
    assert never.summary.looks == (3, 6, 7)
    assert "seeds" in never.findings[0].needs
    assert never.findings[0].needs in str(never)
    assert "judged at 7 seeds; looks taken or planned: 3, 6, 7" in str(never)


def fail_once(monkeypatch, key):
    measure = Toy.measure

    def failing(self, cell, settings, context):
        if cell.key == key:
            raise ValueError("the power failed")
        return measure(self, cell, settings, context)

    monkeypatch.setattr(Toy, "measure", failing)


def test_a_failure_at_the_second_look_changes_nothing(tmp_path, monkeypatch):
    whole = run_toy(tmp_path / "whole", until_decided=True, at_most=6)
    with monkeypatch.context() as patch:
        fail_once(patch, "mlp/seed=4")
        with pytest.raises(CellsFailedError, match="the power failed"):
            run_toy(tmp_path / "failed", until_decided=True, at_most=6)
    again = run_toy(tmp_path / "failed", until_decided=True, at_most=6)
    assert again.findings == whole.findings
    assert again.summary.looks == whole.summary.looks == (3, 6)
    assert run_toy(tmp_path / "whole", seeds=6).findings == whole.findings  # redrawn: the plan is in the records


def test_an_extension_after_a_verdict_is_a_look(tmp_path):
    first = run_toy(tmp_path)
    assert (first.summary.looks, first.findings[0].level) == ((), 0.95)
    second = run_toy(tmp_path, seeds=5)
    assert second.summary.looks == (3, 5)
    assert second.findings[0].level == pytest.approx(1 - 0.05 * 2 / 3)
    third = run_toy(tmp_path, seeds=9)
    assert third.summary.looks == (3, 5, 9)
    assert run_toy(tmp_path, seeds=9).summary == third.summary
    planned_now = run_toy(tmp_path, seeds=9, until_decided=True, at_most=10)
    assert planned_now.summary.looks == (3, 5, 9, 10)


def test_a_run_that_was_only_interrupted_was_not_looked_at(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        fail_once(patch, "vit/seed=1")
        with pytest.raises(CellsFailedError):
            run_toy(tmp_path)
    result = run_toy(tmp_path, seeds=4)
    assert (result.summary.looks, result.findings[0].level) == ((), 0.95)


def test_declared_looks_count(tmp_path, monkeypatch):
    monkeypatch.setattr(Toy, "earlier_looks", (3,))
    result = run_toy(tmp_path, seeds=6)
    assert result.summary.looks == (3, 6)


def test_nonsense_is_refused(tmp_path):
    with pytest.raises(UsageError, match="smoke decides nothing"):
        run(Toy.name, "smoke", tmp_path, until_decided=True)
    with pytest.raises(UsageError, match="at_most=2 is less than the 3 seeds"):
        run_toy(tmp_path, until_decided=True, at_most=2)
    with pytest.raises(UsageError, match="at_most=1000000000000 must be a whole number from 1 to 10000"):
        run_toy(tmp_path, until_decided=True, at_most=10**12)
