"""Tables 1 and 3: which numbers agree, which cannot, and that a wrong formula would be seen."""

import dataclasses
import math

import pytest

from jostle import studies
from jostle.studies import Context, Records, Verdict, decide, overall
from jostle_papers.p2403_06925 import table_1

TABLE_1, TABLE_3 = "2403.06925/table-1", "2403.06925/table-3"


def made(tmp_path, name=TABLE_3):
    """The records of one seed at smoke scale, as if they were of small scale."""
    study = studies.get(name)
    settings = study.scales["smoke"]
    cells = study.cells(settings, range(1))
    context = Context(folder=tmp_path, report=lambda state: None)
    return Records(cells, {cell.key: study.measure(cell, settings, context) for cell in cells}, settings, "small")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return made(tmp_path_factory.mktemp("cells"))


def test_all_printed_digits_but_those_of_the_impossible_column(records):
    findings = decide(studies.get(TABLE_3).expectations(records), scale="small")
    paper = [finding for finding in findings if not finding.is_beyond]
    assert len(paper) == 12
    wrong = [finding for finding in paper if finding.verdict != Verdict.AGREES]
    assert [finding.verdict for finding in wrong] == [Verdict.DISAGREES]
    assert wrong[0].statement.startswith("Table 3, (1, 32, 7, 36), M = 75, the least there can be")
    assert round(wrong[0].value, 4) == 0.0328
    assert overall(findings) == Verdict.DISAGREES
    assert all(finding.verdict == Verdict.AGREES for finding in findings if finding.is_beyond)


def test_table_1_is_columns_two_and_five_of_table_3_and_agrees(tmp_path):
    study = studies.get(TABLE_1)
    assert [table_1.COLUMNS[name].printed for name in study.columns] == [(0, 0.2878), (0.0339, 0)]
    findings = decide(study.expectations(made(tmp_path, TABLE_1)), scale="small")
    assert [finding.is_beyond for finding in findings] == [False] * 4 + [True]
    assert overall(findings) == Verdict.AGREES


def test_formula_enumeration_and_sampling_are_of_the_same_number(records):
    for _, record in records:
        for group in table_1.GROUPS:
            found = record.predictor(group)
            numerator, denominator = found.fraction
            assert found.closed_form == numerator / denominator == pytest.approx(found.enumerated, abs=1e-14)
            value, trials = found.closed_form, 10 * 50
            assert abs(found.sampled.value - value) <= 4 * (value * (1 - value) / trials) ** 0.5


def test_an_enumeration_that_is_not_a_number_does_not_agree(records):
    found = {cell.key: record for cell, record in records}
    key, record = next(iter(found.items()))
    wrong = dataclasses.replace(record, sparse=dataclasses.replace(record.sparse, enumerated=math.nan))
    edited = Records([cell for cell, _ in records], found | {key: wrong}, records.settings, "small")
    [finding] = decide([table_1.enumeration_agrees(edited)], scale="small")
    assert (finding.value, finding.verdict) == (1, Verdict.DISAGREES)


def test_the_vocabulary_is_what_the_digits_leave(records):
    usual = table_1.USUAL
    assert records.one(column="3, 5, 1, 16").frequent.fitting[usual] == (59,)
    assert records.one(column="1, 17, 7, 20").sparse.fitting[usual] == (69,)
    assert records.one(column="1, 17, 7, 20").frequent.fitting[usual] is None  # 0 whatever M is
    assert records.one(column=table_1.IMPOSSIBLE).sparse.fitting[usual] == ()
    assert records.one(column=table_1.IMPOSSIBLE).least_vocabulary == 75


def test_a_wrong_formula_or_enumeration_disagrees(tmp_path, monkeypatch):
    right = table_1.counting_sensitivity
    monkeypatch.setattr(table_1, "counting_sensitivity", lambda task, group, **how: right(task, group, **how) / 2)
    findings = decide(studies.get(TABLE_3).expectations(made(tmp_path)), scale="small")
    wrong = [finding.statement for finding in findings if finding.verdict == Verdict.DISAGREES]
    assert len(wrong) == 8  # six numbers above 0 and the one that may be meant, and the enumeration
    assert "enumeration gives what the closed form gives" in wrong
