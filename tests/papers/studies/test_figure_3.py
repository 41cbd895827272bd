"""Training on synthetic tokens: what is recorded, and what made-up records would decide."""

import json

import pytest
import torch

from jostle import studies
from jostle.base.errors import UsageError
from jostle.studies import Context, Records, Verdict, decide, from_plain, to_plain
from jostle.studies.settings import override_settings
from jostle.studies.study import make_cells
from jostle_papers.p2403_06925.figure_3 import (
    CASES,
    FIGURE_3,
    OURS,
    EpochLook,
    TokenCell,
    TokenRecord,
    TokenSettings,
    used,
)
from jostle_papers.p2403_06925.synthetic import counting_sensitivity, expected_alignments

NAME = "2403.06925/figure-3"
TINY = TokenSettings(epochs=6, evaluate_every=3, examples=200, test_examples=40, batch_size=20, enumerated=2)


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def measured(tmp_path, seed=0):
    cell = TokenCell("3, 5, 1, 16", 1.0, 0.1, seed)
    return studies.get(NAME).measure(cell, TINY, Context(folder=tmp_path, report=lambda state: None))


def test_a_record_says_how_training_went(tmp_path):
    record = measured(tmp_path)
    assert from_plain(TokenRecord, json.loads(json.dumps(to_plain(record))), "record") == record
    assert [look.epoch for look in record.epochs] == [0, 3, 6]
    first, last = record.epochs[0], record.epochs[-1]
    assert last.loss < 0.1 < first.loss
    assert (last.accuracy, last.test_accuracy, last.ood_accuracy) == (1, 1, 0)
    assert last.alignment["sparse"] > 0.8 > abs(last.alignment["frequent"]) + 0.5
    assert abs(first.alignment["sparse"]) < 0.2
    assert sum(last.attention.values()) == pytest.approx(1)
    assert record.uniform_attention == {"sparse": 0.06, "frequent": 0.1, "irrelevant": 0.84}
    assert first.attention == pytest.approx(record.uniform_attention, abs=0.01)
    assert record.of_predictors["frequent"] == pytest.approx(0.2878, abs=5e-5)
    assert 0 <= record.sensitivity < 0.05
    assert measured(tmp_path) == record
    assert measured(tmp_path, seed=1).loss != record.loss


def test_our_own_case_sets_sensitivity_against_the_first_gradient():
    task = CASES[OURS]
    assert counting_sensitivity(task, "frequent") == 0 < counting_sensitivity(task, "sparse")
    cosines = expected_alignments(task)
    assert cosines["sparse"] > cosines["frequent"]
    paper = [name for name in CASES if name != OURS]
    assert [used(name) for name in paper] == ["sparse"] * 3 + ["frequent"] * 3
    for name in paper:  # in the paper's they point the same way, or, in the last one, nowhere
        cosines = expected_alignments(CASES[name])
        assert cosines[used(name)] == pytest.approx(max(cosines.values()))


def made_up(chosen=used, lift=2.0, at_larger_scales=None):
    """Records of networks that use the tokens that ``chosen`` names for a case, whatever the paper says."""
    settings = TokenSettings(initial_scales=(0.1, 0.3))
    cells = studies.get(NAME).cells(settings, range(12))
    records = {}
    for cell in cells:
        group = (chosen if cell.scale <= 0.1 else at_larger_scales or chosen)(cell.case)
        noise = 0.001 * cell.seed
        uniform = {"sparse": 0.1, "frequent": 0.3, "irrelevant": 0.6}
        look = EpochLook(
            epoch=5,
            loss=0.1,
            accuracy=1.0,
            test_accuracy=1.0,
            ood_accuracy=0.0 if group == "sparse" else 1.0,
            alignment={group: 0.97 + noise, other(group): 0.1 - noise, "irrelevant": 0.0},
            attention={name: share * (lift + noise if name == group else 0.9) for name, share in uniform.items()},
        )
        records[cell.key] = TokenRecord(
            **vars(look),
            epochs=(look,),
            sensitivity=0.0,
            uniform_attention=uniform,
            of_predictors={"sparse": 0.03, "frequent": 0.03},
            expected_alignment={"sparse": 0.97, "frequent": 0.97, "irrelevant": 0.0},
        )
    return Records(cells, records, settings, "small")


def other(group):
    return "frequent" if group == "sparse" else "sparse"


def opposite(case):
    return other(used(case))


def findings(records):
    return decide(studies.get(NAME).expectations(records), scale="small")


def claimed(records):
    return [finding.verdict for finding in findings(records) if not finding.is_beyond]


def test_networks_as_the_paper_says_agree():
    found = findings(made_up())
    assert {finding.verdict for finding in found} == {Verdict.AGREES}
    assert claimed(made_up()) == [Verdict.AGREES] * 3
    said = "accuracy out of distribution is below 0.1 in case 1 and above 0.9 in case 2: share of seeds"
    assert found[0].statement == f"both cases of Figure 3: {said}"


def test_networks_that_use_the_other_tokens_disagree():
    assert claimed(made_up(opposite)) == [Verdict.DISAGREES] * 3


def test_one_case_of_figure_3_is_enough_to_disagree():
    wrong = made_up(lambda case: opposite(case) if case == FIGURE_3[1] else used(case))
    assert claimed(wrong) == [Verdict.DISAGREES] * 3
    elsewhere = made_up(lambda case: opposite(case) if case not in FIGURE_3 else used(case))
    assert claimed(elsewhere) == [Verdict.AGREES] * 3  # Figure 12's other cases are beyond the claim


def test_attention_is_compared_by_token_and_not_by_group():
    assert claimed(made_up(lift=0.8)) == [Verdict.AGREES, Verdict.AGREES, Verdict.DISAGREES]
    small = made_up(lift=1.5).where(case=FIGURE_3[0])  # a sum of 0.15 beside 0.54 for irrelevant tokens
    assert small.column(lambda record: record.attention["sparse"])[0] < 0.2
    assert claimed(made_up(lift=1.5)) == [Verdict.AGREES] * 3


def test_a_seed_is_one_answer_however_many_networks_it_has():
    records = made_up()
    [shares] = {finding.reason for finding in findings(records) if not finding.is_beyond}
    assert shares == "Clopper-Pearson"
    assert all(0.5 < finding.low < 0.8 for finding in findings(records)[:3])  # of 12 seeds, not 24 networks


def test_larger_initial_weights_are_a_question_of_their_own():
    found = findings(made_up(at_larger_scales=opposite))
    assert [finding.verdict for finding in found if not finding.is_beyond] == [Verdict.AGREES] * 3
    wrong = [finding.statement for finding in found if finding.verdict == Verdict.DISAGREES]
    assert len(wrong) == len(CASES)
    assert all("initial scale 0.3" in statement for statement in wrong)


def test_figures_show_small_scales_and_all_scales():
    drawings = studies.get(NAME).figures(made_up())
    stems = [drawing.stem for drawing in drawings]
    assert stems[0] == "accuracy"
    assert stems[1:8] == [f"alignment-{case.replace(', ', '-')}" for case in CASES]
    assert stems[8:] == ["attention", "against-scale"]
    assert "0.97 with the sparse" in drawings[1].caption


def test_cases_and_scales_that_cannot_be_are_refused():
    study = studies.get(NAME)
    with pytest.raises(UsageError, match="unknown case '5'"):
        make_cells(study, override_settings(TINY, {"cases": "5"}), range(1))
    with pytest.raises(UsageError, match=r"initial_scales=\(0.3,\) must have one of at most 0.1"):
        make_cells(study, override_settings(TINY, {"initial_scales": "0.3"}), range(1))


def test_paper_scale_has_the_sizes_of_the_paper():
    paper = studies.get(NAME).scales["paper"]
    assert (paper.examples, paper.test_examples, paper.batch_size) == (1000, 500, 100)
