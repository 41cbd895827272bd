"""The studies of noise stability as a regulariser: what is trained, which setting is chosen, what is concluded."""

import numpy as np
import pytest
import torch

from jostle.studies.records import Records
from jostle.studies.verdict import Verdict, decide
from jostle_papers.p2602_08287.grokking import AdditionProblem, AdditionSettings, StableGrokking
from jostle_papers.p2602_08287.parity import ParityProblem, ParitySettings, StableParity
from jostle_papers.p2602_08287.speed import PLAIN, STABLE, SpeedCell, SpeedRecord, choose, train

SETTINGS = AdditionSettings(lrs=(0.01, 0.02), strengths=(0.1, 0.5), seeds=6)


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


def made_up(steps, learned=lambda cell: True):
    """Records in which ``steps`` says how long a cell took."""
    cells = StableGrokking().cells(SETTINGS, range(6))
    looks = tuple(range(10, 110, 10))
    rising = np.linspace(0, 1, 10)
    records = {}
    for cell in cells:
        wobble = np.random.default_rng(cell.seed).normal(size=10)
        curves = {"test_accuracy": rising, "stability": rising**2, "sensitivity": rising + wobble}
        records[cell.key] = SpeedRecord(
            steps=steps(cell), has_learned=learned(cell), memorised=20, looks=looks,
            curves={name: tuple(map(float, values)) for name, values in curves.items()},
        )  # fmt: skip
    return Records(cells, records, SETTINGS, "small")


def test_the_network_is_read_at_the_equals_sign_as_the_plain_one():
    problem = AdditionProblem(AdditionSettings(modulus=11, dim=16, hidden=32), 0)
    pairs = torch.tensor([[1, 2], [3, 4], [10, 0]])
    torch.testing.assert_close(problem.read(problem.network.embed(pairs)), problem.network(pairs))


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdditionProblem(AdditionSettings(modulus=11, dim=16, hidden=32), 3),
        lambda: ParityProblem(ParitySettings(num_bits=6, samples=100, dim=16), 3),
    ],
    ids=["addition", "parity"],
)
def test_the_regulariser_adds_to_the_loss_and_looks_are_shares(make):
    problem = make()
    penalty = problem.penalty(0.9, 1.0)
    before = problem.loss(penalty)
    assert penalty.passes > 0
    assert before.requires_grad
    sensitivity, stability = problem.look(0.9)
    assert 0 <= sensitivity <= 1
    assert 0 <= stability <= 1
    assert 0 <= problem.accuracy(unseen=True) <= 1


def test_training_stops_when_it_has_learned_and_is_the_same_twice():
    settings = ParitySettings(num_bits=4, degree=1, samples=100, batch_size=32, dim=16, limit=400, look_every=20)
    cell = SpeedCell(0.01, 0.0, 0)
    first, second = (train(ParityProblem(settings, 0), cell, settings, lambda state: None) for _ in range(2))
    assert first == second
    assert first.has_learned
    assert first.steps < 400
    assert first.steps % settings.every == 0
    assert first.curves["test_accuracy"][-1] >= 0.99
    assert len(first.looks) == len(first.curves["stability"])


def test_each_seed_is_judged_at_the_setting_that_is_best_for_the_others():
    def steps(cell):
        lucky = cell.seed == 2 and cell.lr == 0.01  # one seed that is fast where the others are slow
        return 250 if lucky else (500 if cell.lr == 0.01 else 300) + cell.seed

    found = choose(made_up(steps), PLAIN)
    assert {cell.lr for cell, _ in found.values()} == {0.02}
    assert found[2][1].steps == 302
    assert {cell.strength for cell, _ in choose(made_up(steps), STABLE).values()} == {0.1}


def verdicts(records):
    findings = decide(StableGrokking().expectations(records), scale="small")
    return [finding.verdict for finding in findings], findings


def test_a_faster_arm_agrees_and_passes_are_counted():
    found, findings = verdicts(made_up(lambda cell: (400 if cell.strength == 0 else 240) + 3 * cell.seed))
    assert found[:3] == [Verdict.AGREES, Verdict.AGREES, Verdict.DISAGREES]
    assert [finding.is_beyond for finding in findings] == [False, True, True, True]
    assert findings[0].value == pytest.approx(0.6, abs=0.02)
    assert found[3] == Verdict.AGREES


def test_a_slower_arm_disagrees():
    found, _ = verdicts(made_up(lambda cell: (400 if cell.strength == 0 else 480) + 3 * cell.seed))
    assert found[:2] == [Verdict.DISAGREES, Verdict.DISAGREES]


def test_networks_that_have_not_learned_leave_it_undecided():
    found, findings = verdicts(made_up(lambda cell: 300 + cell.seed, learned=lambda cell: cell.seed != 1))
    assert set(found[:3]) == {Verdict.UNDECIDED}
    assert "had not learned at the limit" in findings[0].reason
    assert all("no number of seeds" in finding.needs for finding in findings[:3])


def test_the_figures_are_drawn():
    names = [drawing.stem for drawing in StableParity().figures(made_up(lambda cell: 300 + cell.seed))]
    assert names == ["steps", "course"]
