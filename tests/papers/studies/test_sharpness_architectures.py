"""Sharpness of architectures: its verdicts on made-up records, its line, and that a killed cell goes on."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy import stats

from jostle import studies
from jostle.studies import Context, Records, Verdict, decide
from jostle_papers.own import sharpness_architectures
from jostle_papers.own.sharpness_architectures import NETWORKS, ArchitectureRecord
from jostle_papers.p2402_09963.hardness import HardnessPlan
from jostle_papers.p2402_09963.regression import height
from tests.papers.studies.made_up_runs import FITTED, OBSERVED
from tests.studies.stopping import stopped_and_resumed

NAME = "jostle/sharpness-architectures"


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def findings(records):
    return {finding.statement: finding for finding in decide(studies.get(NAME).expectations(records), scale="small")}


def made_up(slopes, spoiled=(), seeds=3):
    """Runs with sharpness 0.2 exp(slope of the network * n) for parity and 0.2 otherwise, with a little noise."""
    study, rng = studies.get(NAME), np.random.default_rng(7)
    settings = study.scales["small"]
    cells = study.cells(settings, range(seeds))
    found = {}
    for cell in cells:
        rise = slopes.get(cell.network, 0.0) * cell.n if cell.target == "parity" else 0.0
        sharpness = 0.2 * math.exp(rise + 0.03 * rng.normal())
        found[cell.key] = ArchitectureRecord(
            **FITTED, **OBSERVED | {"sharpness": sharpness}, relative_sharpness=0.3 * sharpness, relative_rho=1.0
        )
    for key in spoiled:
        found[key] = dataclasses.replace(found[key], sharpness=1e9, relative_sharpness=1e9, has_converged=False)
    return Records(cells, found, settings, "small")


ALL_RISE = dict.fromkeys(NETWORKS, 0.1)


def test_further_seeds_have_only_what_the_claim_compares():
    few, many = (made_up({"transformer": 0.1}, seeds=seeds) for seeds in (3, 5))
    further = {(cell.network, cell.target) for cell, _ in many if cell.seed >= 3}
    assert further == {("transformer", "parity"), ("transformer", "majority")}
    [before], [now] = (
        [one for said, one in findings(records).items() if said.startswith("transformer: slope of log parity / maj")][
            :1
        ]
        for records in (few, many)
    )
    assert now.high - now.low < before.high - before.low
    assert studies.get(NAME).figures(many)


def test_a_law_of_all_networks_is_found():
    found = findings(made_up(ALL_RISE))
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 2
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    for network in NETWORKS:
        for statement in (
            f"{network}: slope of sharpness over bits, parity",
            f"{network}: slope of log parity / majority over bits",
            f"{network}: slope of log parity / majority over bits, relative step",
            f"{network}: log parity / first at 7 bits",
            f"{network}: every run converged, loss below 0.001",
        ):
            assert found[statement].verdict == Verdict.AGREES, statement
        assert found[f"{network}: slope of log parity / majority over bits"].value == pytest.approx(0.1, abs=0.02)
        assert found[f"{network}: log parity / first at 7 bits"].value == pytest.approx(0.7, abs=0.06)
    assert found["log parity / first at 7 bits, transformer - lstm"].verdict == Verdict.UNDECIDED
    [corollary] = [finding for statement, finding in found.items() if statement.startswith("Corollary 5")]
    assert corollary.is_beyond
    assert corollary.reason.endswith(f"all {4 * 3 * 3} cases")  # lengths, functions, seeds of transformers alone
    assert len(found) == 5 * len(NETWORKS) + len(NETWORKS) - 1 + 1


def test_a_law_of_transformers_only_is_found():
    found = findings(made_up({"transformer": 0.1, "mlp": -0.05}))
    assert found["transformer: slope of sharpness over bits, parity"].verdict == Verdict.AGREES
    assert found["mlp: slope of sharpness over bits, parity"].verdict == Verdict.DISAGREES
    assert found["mlp: slope of log parity / majority over bits, relative step"].verdict == Verdict.DISAGREES
    assert found["lstm: slope of sharpness over bits, parity"].verdict == Verdict.UNDECIDED
    assert found["log parity / first at 7 bits, transformer - lstm"].verdict == Verdict.AGREES
    found = findings(made_up({**ALL_RISE, "transformer": -0.1}))
    assert found["transformer: slope of sharpness over bits, parity"].verdict == Verdict.DISAGREES
    assert found["transformer: slope of log parity / majority over bits"].verdict == Verdict.DISAGREES
    assert found["log parity / first at 7 bits, transformer - lstm"].verdict == Verdict.DISAGREES


def test_what_did_not_converge_is_counted_and_left_out():
    spoiled = ["lstm/parity/n=10/seed=1", "transformer/majority/n=4/seed=0", "mlp/first/n=8/seed=2"]
    records = made_up(ALL_RISE, spoiled)
    found = findings(records)
    for network in ("lstm", "transformer", "mlp"):
        assert found[f"{network}: every run converged, loss below 0.001"].verdict == Verdict.DISAGREES
        assert found[f"{network}: slope of log parity / majority over bits"].value == pytest.approx(0.1, abs=0.02)
        assert found[f"{network}: log parity / first at 7 bits"].value == pytest.approx(0.7, abs=0.08)
    assert found["state-space: every run converged, loss below 0.001"].verdict == Verdict.AGREES
    drawings = studies.get(NAME).figures(records)
    assert [drawing.stem for drawing in drawings] == [
        "parity", "majority", "first", "ratio-sharpness", "ratio-relative-sharpness",
    ]  # fmt: skip
    assert all("3 of 216 runs did not converge and are left out: " in drawing.caption for drawing in drawings)
    assert all(key in drawings[0].caption for key in spoiled)


def test_a_network_that_never_fits_decides_nothing():
    records = made_up(ALL_RISE, [cell.key for cell in made_up({}).cells if cell.key.startswith("state-space/parity")])
    found = findings(records)
    undecided = [finding for statement, finding in found.items() if "state-space" in statement]
    assert {finding.verdict for finding in undecided if "converged" not in finding.statement} == {Verdict.UNDECIDED}
    assert studies.get(NAME).figures(records)
    nothing = made_up({}, [cell.key for cell in made_up({}).cells])
    assert {finding.verdict for finding in findings(nothing).values() if not finding.is_beyond} == {Verdict.UNDECIDED}
    assert studies.get(NAME).figures(nothing)


class TestLine:
    def test_it_is_linear_regression(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=12), rng.normal(size=12)
        found, theirs = height(list(zip(x, y, strict=True)), 0.0), stats.linregress(x, y)
        assert found.value == pytest.approx(theirs.intercept)
        reach = stats.t.ppf(0.975, 10) * theirs.intercept_stderr
        assert found.ends(0.95) == pytest.approx((theirs.intercept - reach, theirs.intercept + reach))
        assert height(list(zip(x + 3, y, strict=True)), 3.0).value == pytest.approx(found.value)

    def test_its_interval_covers(self):
        rng, hits, x = np.random.default_rng(1), 0, np.repeat([4.0, 6.0, 8.0, 10.0], 3)
        for _ in range(300):
            low, high = height(list(zip(x, 1 + 0.5 * x + rng.normal(size=12), strict=True)), 7.0).ends(0.9)
            hits += low <= 4.5 <= high
        assert abs(hits / 300 - 0.9) < 4 * math.sqrt(0.09 / 300)

    def test_what_cannot_be_told_is_doubted(self):
        assert height([], 1.0).doubt
        assert height([(1.0, 2.0), (2.0, 3.0)], 1.0).doubt
        assert height([(1.0, 2.0)] * 4, 1.0).doubt
        assert height([(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)], 1.0).doubt
        assert height([(1.0, 1.0), (2.0, math.nan), (3.0, 3.0)], 1.0).doubt


@pytest.mark.parametrize(("network", "lr", "curriculum"), [("mlp", 3e-3, ()), ("lstm", 2e-3, (2,))])
def test_a_cell_that_was_stopped_ends_with_the_same_record(network, lr, curriculum, tmp_path, monkeypatch):
    study = studies.get(NAME)
    settings = study.scales["smoke"]
    cell = next(cell for cell in study.cells(settings, range(1)) if cell.key == f"{network}/parity/n=3/seed=0")
    plans, train = [], sharpness_architectures.hardness.train

    def noting(task, design, plan, **options):
        plans.append((design.architecture, plan))
        return train(task, design, plan, **options)

    monkeypatch.setattr(sharpness_architectures.hardness, "train", noting)
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: None))
    monkeypatch.undo()
    ((architecture, plan),) = plans
    assert architecture == network
    assert plan == HardnessPlan(batch_size=64, lr=lr, steps=40, fit_loss=0.003, settle=20, curriculum=curriculum)
    assert whole.relative_rho == pytest.approx(0.1 * whole.norm)
    assert whole.blowup == 1

    again, _ = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=25)
    assert again == whole
