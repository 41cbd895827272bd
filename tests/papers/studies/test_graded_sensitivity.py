"""Graded sensitivity: its functions, its verdicts on made-up records, and that a killed cell goes on."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from jostle import studies
from jostle.base.errors import UsageError
from jostle.boolean import analyse, pointwise
from jostle.studies import Context, Records, Verdict, decide
from jostle_papers.own import graded_sensitivity
from jostle_papers.own.graded_sensitivity import FAMILIES, CopiesRecord, GradedRecord, members, truth_table
from jostle_papers.p2402_09963.hardness import observe, table_task
from tests.studies.stopping import stopped_and_resumed

GRADED = "jostle/graded-sensitivity"


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def findings(name, records):
    return {finding.statement: finding for finding in decide(studies.get(name).expectations(records), scale="small")}


def total(name, n=8):
    return float(pointwise.influences(truth_table(name, n)).sum())


class TestFunctions:
    def test_there_are_many_of_graded_sensitivity(self):
        names = [name for family in FAMILIES for name in members(family, 8)]
        assert len(set(names)) == len(names) == 33
        found = sorted(total(name) for name in names)
        assert found[0] == 1 / 16
        assert found[-1] == 8
        assert max(np.diff(found)) <= 1
        assert len(set(found)) >= 26

    def test_no_two_are_the_same_and_none_is_constant(self):
        tables = {name: truth_table(name, 8) for family in FAMILIES for name in members(family, 8)}
        assert len({found.tobytes() for found in tables.values()}) == 33
        assert all(found.dtype == np.int8 and found.shape == (256,) and np.ptp(found) == 2 for found in tables.values())

    @pytest.mark.parametrize("other", ["majority", "multiplexer", "tribes:width=2", "and"])
    def test_times_parity_turns_sensitivity_round(self, other):
        assert total(f"parity times {other}") == 8 - total(other)

    def test_an_unknown_family_is_one_clear_line(self):
        with pytest.raises(UsageError, match="unknown family 'junta'; did you mean juntas"):
            members("junta", 8)

    def test_the_multiplexer_reads_the_first_bits(self):
        assert total("multiplexer") == 2.0
        assert analyse(truth_table("multiplexer", 8)).influences.tolist() == [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0, 0]
        assert total("multiplexer", 4) == 1.5


def record(target, sharpness, converged=True, lost=0.4, violations=0):
    """Made-up networks: the longer the step, the sharper."""
    sensitivity = total(target)
    moved = {
        std: CopiesRecord(sharpness=factor * sharpness, bound=0.3 * sharpness, sensitivity=sensitivity * (1 - lost),
                          violations=violations)
        for std, factor in (("0.01", 0.3), ("0.02", 1.0), ("0.04", 3.0))
    }  # fmt: skip
    return GradedRecord(
        fitted=200, steps=600, total_sensitivity=sensitivity, loss=1e-5, is_right=converged,
        has_converged=converged, norm=25.0, moved=moved,
    )  # fmt: skip


def graded(sharpness, change=None):
    """Records of small scale whose sharpness is a function of target and sensitivity, with a little noise."""
    study, rng = studies.get(GRADED), np.random.default_rng(3)
    settings = study.scales["small"]
    cells = study.cells(settings, range(3))
    found = {}
    for cell in cells:
        target = cell.target
        options = (change or (lambda cell: {}))(cell)
        found[cell.key] = record(target, sharpness(target, total(target)) * math.exp(0.05 * rng.normal()), **options)
    return Records(cells, found, settings, "small")


def law(target, sensitivity):
    return 0.15 + sensitivity / 8 * (1.5 if target.startswith("random") else 0.9)


def test_it_agrees_where_sharpness_follows_sensitivity():
    records = graded(law)
    found = findings(GRADED, records)
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 2
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    copies = found["no copy is closer than its sensitivity allows"]
    assert copies.reason == "0 violations among all 29,700 cases"
    assert found["sparse parities of k bits: slope of sharpness over k"].value == pytest.approx(0.9 / 8, rel=0.1)
    half = found["log sharpness at n / 2: random functions - parity of 4 bits"]
    assert half.verdict == Verdict.AGREES
    assert half.value == pytest.approx(math.log(0.9 / 0.6), abs=0.1)
    shares = [found[f"std {std}: share of functions whose networks lie above the floor as_n / n"] for std in
              ("0.01", "0.02", "0.04")]  # fmt: skip
    assert [finding.verdict for finding in shares][1:] == [Verdict.AGREES] * 2
    assert shares[0].value < shares[1].value <= shares[2].value == 1
    assert found["sensitive functions, as_n >= n / 2: share of it that copies lose"].value == pytest.approx(0.4)
    assert found["share of the sharpness that the inequality asks for, mean over functions"].value == pytest.approx(0.3)
    whole = found["log sharpness: random functions - parity of all bits"].value
    assert whole == pytest.approx(math.log(0.9 / 1.05), abs=0.1)
    assert found["every network converged"].verdict == Verdict.AGREES


def test_what_copies_of_random_functions_lose_is_told_apart():
    rng = np.random.default_rng(1)

    def lost(cell):
        is_random = cell.target.startswith("random")
        return {"lost": (-0.2 if is_random else 0.4) + 0.01 * rng.normal()}

    found = findings(GRADED, graded(law, lost))
    assert found["random functions: share of as_n that copies lose"].verdict == Verdict.DISAGREES
    assert found["random functions: share of as_n that copies lose"].value == pytest.approx(-0.2, abs=0.02)
    assert found["sensitive functions, as_n >= n / 2: share of it that copies lose"].verdict == Verdict.AGREES


def test_it_disagrees_where_sharpness_falls():
    found = findings(GRADED, graded(lambda _, sensitivity: 1.2 - 0.1 * sensitivity))
    what = "rank correlation of sensitivity and sharpness"
    assert found[f"{what}, over 33 functions"].verdict == Verdict.DISAGREES
    assert found[f"{what} of these functions, over seeds"].verdict == Verdict.DISAGREES
    assert found["sparse parities of k bits: slope of sharpness over k"].verdict == Verdict.DISAGREES
    assert found["rank correlation over functions that are no parities"].verdict == Verdict.DISAGREES


def test_it_is_undecided_where_there_is_no_relation():
    rng = np.random.default_rng(0)
    values = {name: float(rng.random()) for family in FAMILIES for name in members(family, 8)}
    found = findings(GRADED, graded(lambda target, _: 0.2 + values[target]))
    assert found["rank correlation of sensitivity and sharpness, over 33 functions"].verdict == Verdict.UNDECIDED


def test_one_copy_too_close_disagrees():
    records = graded(law, lambda cell: {"violations": int(cell.key == "majority/thresholds/seed=1")})
    found = findings(GRADED, records)["no copy is closer than its sensitivity allows"]
    assert found.verdict == Verdict.DISAGREES


def test_what_did_not_converge_is_counted_and_left_out():
    spoiled = {"bent/random/seed=0", "sparse-parity:k=8/sparse parities/seed=2"}

    def change(cell):
        return {"converged": cell.key not in spoiled}

    records = graded(law, change)
    for key in spoiled:
        moved = records[key].moved
        moved["0.02"] = dataclasses.replace(moved["0.02"], sharpness=1e6)
    found = findings(GRADED, records)
    assert found["every network converged"].verdict == Verdict.DISAGREES
    assert found["sparse parities of k bits: slope of sharpness over k"].value < 1
    drawings = studies.get(GRADED).figures(records)
    assert [drawing.stem for drawing in drawings] == ["sharpness", "steps", "copies"]
    assert all("2 of 99 networks did not converge and are left out: " in drawing.caption for drawing in drawings)
    assert all(key in drawings[0].caption for key in spoiled)
    assert "Above the floor: std 0.01 " in drawings[1].caption
    assert "std 0.04 97 of 97 networks." in drawings[1].caption


def test_no_network_that_counts_decides_nothing_but_the_inequality():
    records = graded(law, lambda cell: {"converged": False})
    found = findings(GRADED, records)
    rest = [finding for finding in found.values() if "no copy" not in finding.statement]
    assert {finding.verdict for finding in rest if finding.statement != "every network converged"} == {
        Verdict.UNDECIDED
    }
    drawings = studies.get(GRADED).figures(records)
    assert all("None of the 99 networks converged" in drawing.caption for drawing in drawings)


def test_a_measured_cell_is_its_own_twin(tmp_path, monkeypatch):
    """Stopped and gone on with: the same record; its sharpness that of the landscape, its inequality true."""
    study = studies.get(GRADED)
    settings = study.scales["smoke"]
    cell = next(cell for cell in study.cells(settings, range(1)) if cell.target == "sparse-parity:k=2")
    kept = {}

    def keep(network, n, **options):
        kept["network"] = network
        return moved(network, n, **options)

    moved = graded_sensitivity.moved_tables
    monkeypatch.setattr(graded_sensitivity, "moved_tables", keep)
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: None))
    monkeypatch.undo()
    assert whole.total_sensitivity == 2
    assert all(part.violations == 0 and part.bound <= part.sharpness for part in whole.moved.values())
    task = table_task((truth_table("sparse-parity:k=2", settings.n) + 1) / 2)
    found = observe(kept["network"], task, directions=settings.directions)
    assert whole.copies().sharpness == pytest.approx(found.sharpness, rel=1e-5)
    assert whole.loss == pytest.approx(found.loss, rel=1e-5)
    assert whole.norm == found.norm

    again, _ = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=30)
    assert again == whole
