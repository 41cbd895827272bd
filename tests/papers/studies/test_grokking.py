"""What the grokking study asks of its records, on curves with known phases; and that a killed cell goes on."""

import dataclasses

import numpy as np
import pytest
import torch

from jostle import studies
from jostle.base.errors import UsageError
from jostle.studies import Context, Records, Verdict, decide
from jostle_papers.p2403_06925.grokking.study import PRINTED, GrokkingCell, GrokkingRecord, GrokkingSettings
from jostle_papers.stacked.trajectory import Trajectory
from tests.studies.stopping import stopped_and_resumed

NAME, PROGRESS = "2403.06925/grokking", "2403.06925/grokking-weight-norm"
EPOCHS = np.array([0, 1, *range(100, 15_001, 100)])


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def network(seed, began, sensitivity=None):
    """Three phases as in the paper's figure, with the onset at ``began`` and a turn 6,000 epochs before."""
    phases = np.interp(EPOCHS, [0, 1, 500, began - 6000, began, 15_000], [0.102, 0.102, 0.031, 0.086, 0.03, 0.01])
    small = 1e-4 * np.cos(0.7 * EPOCHS + seed) + 1e-4 * seed % 7e-4
    generalised = np.where(began <= EPOCHS, 1.0, 0.0)
    curves = {
        "train_accuracy": np.minimum(1, EPOCHS / 300),
        "test_accuracy": 0.3 + 0.7 * generalised,
        "unmirrored_accuracy": generalised,
        "train_loss": np.exp(-EPOCHS / 2000),
        "test_loss": np.exp(-EPOCHS / 2000),
        "joint_sensitivity": (phases if sensitivity is None else sensitivity) + small,
        "sensitivity": phases / 2 + small,
        "weight_norm": np.interp(EPOCHS, [0, began - 1000 - 10 * seed, 15_000], [120, 50, 49]),
        "restricted_loss": np.exp(-np.interp(EPOCHS, [0, began - 2000 - 10 * seed, 15_000], [0, 0.1, 5])),
        "excluded_loss": np.exp(np.interp(EPOCHS, [0, began - 3000 - 10 * seed, 15_000], [0, 0.1, 5])),
    }
    return Trajectory(seed, tuple(map(int, EPOCHS)), {key: tuple(map(float, each)) for key, each in curves.items()})


def records_of(networks, **changed):
    cell = GrokkingCell("released", 0)
    record = GrokkingRecord(trials=3830, networks=tuple(networks))
    settings = GrokkingSettings(seeds=1, networks=len(networks), **changed)
    return Records([cell], {cell.key: record}, settings, "small")


def findings(networks, name=NAME, **changed):
    asked = studies.get(name).expectations(records_of(networks, **changed))
    return {finding.statement: finding for finding in decide(asked, scale="small")}


def drawn(name, networks):
    return [drawing.stem for drawing in studies.get(name).figures(records_of(networks))]


ONSETS = (9200, 10_100, 11_000, 12_200, 12_800, 13_500)


def test_the_papers_phases_agree():
    found = findings([network(42 + i, began) for i, began in enumerate(ONSETS)])
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 3
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    fallen = found["joint sensitivity after epoch 500 / after epoch 1 (released)"]
    assert fallen.value == pytest.approx(0.031 / 0.102, rel=0.02)
    assert found["every network generalises within the epochs (released)"].verdict == Verdict.AGREES
    for epoch in PRINTED:
        assert found[f"joint sensitivity of seed 42 after epoch {epoch}"].verdict == Verdict.AGREES


def test_leads_are_found_and_a_later_weight_norm_agrees():
    found = findings([network(42 + i, began) for i, began in enumerate(ONSETS)], PROGRESS)
    lead, later = (finding for finding in found.values() if not finding.is_beyond)
    assert lead.statement == "epochs from the turn of joint sensitivity to the onset (released)"
    assert lead.value == pytest.approx(6000, abs=150)
    assert later.statement == "lead of weight norm - lead of joint sensitivity, epochs (released)"
    assert later.value == pytest.approx(1450 - 6000, abs=150)
    assert {lead.verdict, later.verdict} == {Verdict.AGREES}
    related = found["rank correlation of the turn of joint sensitivity with the onset (released)"]
    assert related.value == pytest.approx(1.0)
    falls = found[
        "joint sensitivity just before the onset / after epoch 3000, divided by the same of weight norm (released)"
    ]
    made = [(network(42 + i, began), began - 1) for i, began in enumerate(ONSETS)]
    by_hand = [
        (one.at("joint_sensitivity", before) / one.at("joint_sensitivity", 3000))
        / (one.at("weight_norm", before) / one.at("weight_norm", 3000))
        for one, before in made
    ]
    assert falls.value == pytest.approx(np.exp(np.mean(np.log(by_hand))))


def test_a_sensitivity_that_only_rises_disagrees():
    rising = [network(42 + i, began, sensitivity=EPOCHS / 15_000) for i, began in enumerate(ONSETS)]
    found = findings(rising)
    said = {finding.statement: finding.verdict for finding in found.values() if not finding.is_beyond}
    assert list(said.values()) == [Verdict.DISAGREES, Verdict.AGREES, Verdict.DISAGREES]


def test_networks_that_do_not_generalise_decide_nothing_about_it():
    never = [network(42 + i, 10**6) for i in range(3)]
    found = findings(never)
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert said[2].verdict == Verdict.UNDECIDED
    assert found["every network generalises within the epochs (released)"].verdict == Verdict.DISAGREES
    said = [finding for finding in findings(never, PROGRESS).values() if not finding.is_beyond]
    assert {finding.verdict for finding in said} == {Verdict.UNDECIDED}


def test_printed_numbers_are_only_compared_with_the_same_network():
    networks = [network(42 + i, began) for i, began in enumerate(ONSETS)]
    for changed in ({"task": "addition:modulus=97"}, {"std": 0.2}, {"sizes": {"dim": 64}}):
        assert not any("seed 42" in statement for statement in findings(networks, **changed))
    assert not any("seed 42" in statement for statement in findings(networks[1:]))


def test_figures_with_and_without_an_onset():
    grokking, not_grokking = [network(42 + i, began) for i, began in enumerate(ONSETS[:2])], [network(42, 10**6)]
    for networks in (grokking, not_grokking):
        assert drawn(NAME, networks) == ["sensitivity-released", "accuracy-released"]
    always = ["weight-norm-released", "loss-released"]
    assert drawn(PROGRESS, grokking) == ["lead-times-released", *always]
    assert drawn(PROGRESS, not_grokking) == always


@pytest.mark.parametrize("bounds", [(500,), (3000, 500), (500, 20_000)])
def test_bounds_must_be_two_epochs_of_training(bounds):
    with pytest.raises(UsageError, match=r"bounds=.* must be two epochs between 1 and epochs=15000"):
        GrokkingSettings(bounds=bounds)


def test_cells_share_no_seeds(tmp_path):
    study = studies.get(NAME)
    settings = dataclasses.replace(study.scales["smoke"], epochs=5, every=5, bounds=(2, 4))
    seeds = []
    for cell in study.cells(settings, range(2)):
        folder = tmp_path / cell.key.replace("/", "-")
        record = study.measure(cell, settings, Context(folder, lambda state: None))
        seeds += [each.seed for each in record.networks]
        assert record.trials == int(0.3 * 121)
    assert seeds == [42, 43, 44, 45, 46, 47]


def test_a_cell_that_was_stopped_ends_with_the_same_record(tmp_path, monkeypatch):
    study = studies.get(NAME)
    settings, cell = (
        dataclasses.replace(study.scales["smoke"], epochs=20, bounds=(5, 10)),
        GrokkingCell("released", 0),
    )
    shares = []
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: shares.append(state.share)))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)

    again, _ = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=13)
    assert again == whole
