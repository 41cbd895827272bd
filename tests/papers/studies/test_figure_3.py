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
    OURS,
    EpochLook,
    TokenCell,
    TokenRecord,
    TokenSettings,
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
    cell = TokenCell("case 1", 1.0, 0.1, seed)
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
    for name, used in (("case 1", "sparse"), ("case 2", "frequent")):  # in the paper's they point the same way
        task, other = CASES[name], "frequent" if used == "sparse" else "sparse"
        assert counting_sensitivity(task, used) < counting_sensitivity(task, other)
        assert expected_alignments(task)[used] > expected_alignments(task)[other]


def made_up(used_by_case, attention=0.6, at_larger_scales=None):
    """Records of networks that use the tokens named, whatever the paper says."""
    settings = TokenSettings()
    cells = studies.get(NAME).cells(settings, range(3))
    records = {}
    for cell in cells:
        chosen = used_by_case if cell.scale <= 0.1 else at_larger_scales or used_by_case
        used, noise = chosen[cell.case], 0.001 * cell.seed
        other = "frequent" if used == "sparse" else "sparse"
        rest = (1 - attention) / 2
        look = EpochLook(
            epoch=5,
            loss=0.1,
            accuracy=1.0,
            test_accuracy=1.0,
            ood_accuracy=0.0 if used == "sparse" else 1.0,
            alignment={used: 0.97 + noise, other: 0.1 - noise, "irrelevant": 0.0},
            attention={used: attention + noise, other: rest, "irrelevant": rest},
        )
        records[cell.key] = TokenRecord(
            **vars(look),
            epochs=(look,),
            sensitivity=0.0,
            uniform_attention={"sparse": 0.1, "frequent": 0.3, "irrelevant": 0.6},
            of_predictors={"sparse": 0.03, "frequent": 0.03},
            expected_alignment={"sparse": 0.97, "frequent": 0.97, "irrelevant": 0.0},
        )
    return Records(cells, records, settings, "small")


AS_SAID = {"case 1": "sparse", "case 2": "frequent", "case 3": "frequent"}
OPPOSITE = {"case 1": "frequent", "case 2": "sparse", "case 3": "sparse"}


def verdicts(records):
    findings = decide(studies.get(NAME).expectations(records), scale="small")
    return [[finding.verdict for finding in findings if finding.is_beyond == kind] for kind in (False, True)]


def test_networks_as_the_paper_says_agree():
    paper, beyond = verdicts(made_up(AS_SAID))
    assert paper == [Verdict.AGREES] * 8
    assert beyond == [Verdict.AGREES] * (4 + 4 + 6 + 3)


def test_networks_that_use_the_other_tokens_disagree():
    paper, beyond = verdicts(made_up(OPPOSITE))
    assert paper == [Verdict.DISAGREES] * 8
    assert beyond.count(Verdict.AGREES) == 6  # all fit, and none is sensitive


def test_attention_that_is_not_the_largest_disagrees():
    paper, _ = verdicts(made_up(AS_SAID, attention=0.2))
    assert paper == ([Verdict.AGREES] * 3 + [Verdict.DISAGREES]) * 2


def test_larger_initial_weights_are_a_question_of_their_own():
    paper, beyond = verdicts(made_up(AS_SAID, at_larger_scales=OPPOSITE))
    assert paper == [Verdict.AGREES] * 8
    assert beyond == [Verdict.AGREES] * 14 + [Verdict.DISAGREES] * 3


def test_figures_show_small_scales_and_all_scales():
    drawings = studies.get(NAME).figures(made_up(AS_SAID))
    assert [drawing.stem for drawing in drawings] == [
        "accuracy",
        "alignment-case-1",
        "alignment-case-2",
        "alignment-case-3",
        "attention",
        "against-scale",
    ]
    assert "0.97 with the sparse" in drawings[1].caption


def test_cases_and_scales_that_cannot_be_are_refused():
    study = studies.get(NAME)
    with pytest.raises(UsageError, match="unknown case 'case 4'"):
        make_cells(study, override_settings(TINY, {"cases": "case 1,case 4"}), range(1))
    with pytest.raises(UsageError, match=r"initial_scales=\(0.3,\) must have one of at most 0.1"):
        make_cells(study, override_settings(TINY, {"initial_scales": "0.3"}), range(1))


def test_paper_scale_has_the_sizes_of_the_paper():
    paper = studies.get(NAME).scales["paper"]
    assert (paper.examples, paper.test_examples, paper.batch_size) == (1000, 500, 100)
