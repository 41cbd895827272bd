"""Paper 3's studies: which records agree with its claims and which do not."""

import dataclasses
import zlib

import pytest
import torch

from jostle.studies import Context, Records, Verdict, decide, overall
from jostle_papers.p2402_02969 import context_modification, texts, word_sensitivity
from jostle_papers.p2402_02969.context_modification import ContextModification
from jostle_papers.p2402_02969.features import TRAININGS
from jostle_papers.p2402_02969.word_sensitivity import WordSensitivityStudy

EXPONENTS = {"rf": -0.52, "drf": -0.5, "raf": -0.03, "raf-relu": -0.45, "raf-linear": -0.4, "raf-qk": -0.03}


def shaken(*values):
    """A factor near 1 that differs from cell to cell."""
    return 1 + 0.02 * (zlib.crc32(repr(values).encode()) / 2**32 - 0.5)


def word_records(**exponents):
    """Records of small scale as they would be if values were 2 n^exponent."""
    study = WordSensitivityStudy()
    settings = dataclasses.replace(study.scales["small"], dims=(96, 384))
    found = {}
    cells = study.cells(settings, range(5))
    for cell in cells:
        name, n, seed = cell.map, cell.n, cell.seed
        value = (1.3 if name in ("rf", "drf") else 2.5) * n ** (EXPONENTS | exponents)[name] * shaken(name, n, seed)
        average = word_sensitivity.wide_change(n)[0] * shaken("average", name, n, seed) * (1 if name == "rf" else 0.5)
        found[cell.key] = word_sensitivity.WordRecord(
            value=value,
            average=average,
            largest=value,
            constructed=0.8 * value * shaken("constructed", n, seed),
            absolute=value,
            position=0,
        )
    return Records(cells, found, settings, "small")


def verdicts(study, records):
    findings = decide(study.expectations(records), scale="small")
    wrong = [finding.statement for finding in findings if finding.verdict != Verdict.AGREES and not finding.is_beyond]
    return overall(findings), wrong, findings


def test_word_sensitivity_as_the_paper_says_it_agrees():
    verdict, wrong, findings = verdicts(WordSensitivityStudy(), word_records())
    assert (verdict, wrong) == (Verdict.AGREES, [])
    assert len([finding for finding in findings if not finding.is_beyond]) == 1 + 3 + 3
    assert all(finding.verdict == Verdict.AGREES for finding in findings)


@pytest.mark.parametrize(
    ("name", "exponent", "said"),
    [
        ("rf", -0.2, "exponent of n in the word sensitivity of RF, d = 384"),
        ("drf", -0.3, "exponent of n of DRF with 8 layers"),
        ("raf", -0.5, "exponent of n of RAF, reviews words, d = 384"),
        ("raf-relu", 0.0, "exponent of n of ReLU-RAF - that of RAF, reviews words, d = 384"),
    ],
)
def test_what_a_wrong_exponent_breaks(name, exponent, said):
    verdict, wrong, _ = verdicts(WordSensitivityStudy(), word_records(**{name: exponent}))
    assert verdict == Verdict.DISAGREES
    assert said in wrong


def modification(error, gamma=0.1, broken=0):
    return context_modification.ModificationRecord(
        error=error, gamma=gamma, alignment=0.5, bound=0.0, alignment_bound=1.0, feature_change=1.0,
        free_bound=(2 - gamma) ** 2, broken=broken, count=3,
    )  # fmt: skip


def modification_records(broken=0, free=None, **errors):
    """Records of small scale: errors by map, those of the released search after training again apart."""
    study = ContextModification()
    settings = study.scales["small"]
    cells = study.cells(settings, range(5))
    usual = {"rf": 3.3, "raf": 0.4, "raf-relu": 1.5} | errors
    found = {}
    for cell in cells:
        tuned, again = (modification(usual[cell.map] * shaken(cell.key, one), broken=broken) for one in TRAININGS)
        released = modification((usual | (free or {}))[cell.map] * shaken(cell.key, "free"), broken=broken)
        found[cell.key] = context_modification.ContextRecord(
            smallest_eigenvalue=1.0,
            fine_tuned=tuned,
            fine_tuned_free=tuned,
            retrained=again,
            retrained_free=released,
        )
    return Records(cells, found, settings, "small")


def test_context_modification_as_the_paper_says_it_agrees():
    verdict, wrong, findings = verdicts(ContextModification(), modification_records())
    assert (verdict, wrong) == (Verdict.AGREES, [])
    claimed = [finding.statement for finding in findings if not finding.is_beyond]
    assert claimed == [
        "error of RAF - error of RF, re-trained, reviews words, n = 20, as in the released search",
        "error of RAF - error of RF, re-trained, reviews words, n = 20, gamma held small",
    ]
    assert all(finding.verdict == Verdict.AGREES for finding in findings)


def test_what_wrong_errors_break():
    verdict, wrong, _ = verdicts(ContextModification(), modification_records(raf=3.6))
    assert (verdict, len(wrong)) == (Verdict.DISAGREES, 2)
    verdict, wrong, _ = verdicts(ContextModification(), modification_records(free={"raf": 3.6}))
    assert verdict == Verdict.DISAGREES
    assert wrong == ["error of RAF - error of RF, re-trained, reviews words, n = 20, as in the released search"]
    verdict, wrong, findings = verdicts(ContextModification(), modification_records(raf=1.4))
    assert (verdict, wrong) == (Verdict.AGREES, [])  # the bound of 1 is ours
    missed = [finding for finding in findings if finding.verdict == Verdict.DISAGREES]
    assert missed
    assert all(finding.is_beyond and finding.statement.startswith("error of RAF, ") for finding in missed)
    _, _, findings = verdicts(ContextModification(), modification_records(broken=1))
    assert findings[-1].verdict == Verdict.DISAGREES


def test_a_cell_is_a_function_of_its_values(tmp_path):
    context = Context(folder=tmp_path, report=lambda state: None)
    for study in (WordSensitivityStudy(), ContextModification()):
        settings = study.scales["smoke"]
        by_map = {cell.map: cell for cell in study.cells(settings, range(1))}
        for name, cell in by_map.items():
            first, again = (study.measure(cell, settings, context) for _ in range(2))
            assert first == again, name
        assert context_modification.MAPS[0] in by_map


def test_reviews_have_no_more_than_the_dimensions_of_their_embeddings():
    study = WordSensitivityStudy()
    paper = study.cells(study.scales["paper"], range(1))
    assert {cell.dim for cell in paper if cell.words == "reviews"} == {384}
    assert {cell.dim for cell in paper if cell.words == "isotropic"} == {192, 384, 768}


def test_labels_of_reviews_are_signs(monkeypatch):
    class Made:
        inputs = torch.zeros(2, 3, 4)
        labels = torch.tensor([0, 1])

    monkeypatch.setattr(texts, "_reviews", lambda folder: None)
    monkeypatch.setattr(texts, "embedded_words", lambda *_, **__: Made)
    _, labels = texts.labelled_words("reviews", 2, num_tokens=3, dim=4, seed=0, folder=None)
    assert labels.tolist() == [-1.0, 1.0]
