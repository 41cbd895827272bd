"""Paper 2's long strings, long training, sharpness at the strings of training, and inequalities."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from jostle import studies
from jostle.boolean import cube, fourier, functions
from jostle.landscape import average_direction_sharpness, layernorm_blowup
from jostle.studies import Context, Records, Verdict, decide
from jostle_papers.p2402_09963 import bounds, hardness
from jostle_papers.p2402_09963.bounds import CorollaryCase, LeastConstants
from jostle_papers.p2402_09963.figure_3 import LearningRecord
from jostle_papers.p2402_09963.figure_4 import PartCell
from jostle_papers.p2402_09963.figure_15 import RefitRecord, RefitsRecord
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.observation import answers, step_length
from jostle_papers.p2402_09963.runs import RunRecord
from jostle_papers.p2402_09963.theorem_4 import Theorem4Record
from tests.papers.studies.made_up_runs import FITTED, OBSERVED
from tests.studies.stopping import stopped_and_resumed

FIGURE_5, FIGURE_14, FIGURE_15, THEOREM_4 = (
    f"2402.09963/{item}" for item in ("figure-5", "figure-14", "figure-15", "theorem-4")
)
COROLLARY = "Corollary 5 with the constant 1: as_n / sqrt(n log n) - 2 / n is at most the mean square of the blow-up"


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def findings(name, records):
    return {finding.statement: finding for finding in decide(studies.get(name).expectations(records), scale="small")}


def claimed(found):
    return {finding.verdict for finding in found.values() if not finding.is_beyond}


class TestBounds:
    @pytest.fixture
    def network(self):
        network = HardnessDesign(dim=8).create(3, 4)
        with torch.no_grad():  # so that strings differ much
            for parameter in network.parameters():
                parameter += 0.5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
        return network

    def test_least_constants_are_those_of_the_definitions(self, network):
        n, seen = 3, []
        strings = torch.from_numpy(cube.points(n)).float()
        network.readout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        with torch.no_grad():
            outputs = 2 * network(strings).double().numpy() - 1  # labels of -1 and 1
        tokens = seen[0].double().numpy()
        factors = layernorm_blowup(network, strings).per_input
        blowup = {tuple(row): value for row, value in zip(cube.points(n), factors, strict=True)}
        place = {tuple(row): at for at, row in enumerate(cube.points(n))}
        lemma, theorem, total = 0.0, 0.0, 0.0
        for x, at in place.items():
            flips = [tuple(-bit if other == i else bit for other, bit in enumerate(x)) for i in range(n)]
            sensitivity = sum((outputs[at] - outputs[place[flip]]) ** 2 for flip in flips) / 4
            total += sensitivity / 2**n
            room = blowup[x] ** 2 + sum(blowup[flip] ** 2 for flip in flips) / n
            theorem = max(theorem, sensitivity / math.sqrt(n * math.log(n)) / room)
            for i, flip in enumerate(flips):
                reach = blowup[x] * blowup[flip] * (1 / n + (i == n - 1))
                lemma = max(lemma, np.linalg.norm(tokens[at] - tokens[place[flip]]) / reach)
        found = bounds.least_constants(network, n)
        square = np.mean(np.square(list(blowup.values())))
        assert found.lemma == pytest.approx(lemma)
        assert found.theorem == pytest.approx(theorem)
        assert found.corollary == pytest.approx((total / math.sqrt(n * math.log(n)) - 2 / n) / square)
        weight = fourier.coefficients(outputs) ** 2
        sizes = np.array([bin(row).count("1") for row in range(2**n)])
        assert total == pytest.approx(float(weight @ sizes))  # as_n by its Fourier weights

    def test_the_constant_from_a_loss_is_an_upper_bound(self, network):
        n, task = 3, hardness.named_task("parity", 3)
        found = hardness.observe(network, task, directions=2, strings=8)
        case = bounds.case_of("parity", n, found)
        assert case.sensitivity == 3
        assert case.constant >= bounds.least_constants(network, n).corollary

    def test_a_blowup_that_is_too_small_is_counted(self):
        cases = [CorollaryCase(12, 12.0, 0.0, square) for square in (100.0, 2.1, 1.5)]
        finding = bounds.expect_corollary(cases).judge(0.95)
        assert (finding.verdict, finding.value) == (Verdict.DISAGREES, 1)
        assert bounds.expect_corollary(cases[:2]).judge(0.95).verdict == Verdict.AGREES


def theorem_records(**constants):
    study = studies.get(THEOREM_4)
    settings = study.scales["small"]
    cells = study.cells(settings, range(3))
    usual = LeastConstants(lemma=0.1, theorem=0.01, corollary=0.005)
    wrong = dataclasses.replace(usual, **constants)
    own = {
        cell.key: Theorem4Record(
            **FITTED,
            **OBSERVED,
            before=usual,
            after=wrong if (cell.target, cell.n, cell.seed) == ("parity", 8, 1) else usual,
        )
        for cell in cells
    }
    return Records(cells, own, settings, "small")


def test_theorem_4_agrees_and_one_network_breaks_it():
    found = findings(THEOREM_4, theorem_records())
    assert {finding.verdict for finding in found.values()} == {Verdict.AGREES}
    assert len([finding for finding in found.values() if not finding.is_beyond]) == 3
    for part, name in (("lemma", "Lemma 9"), ("theorem", "Theorem 4"), ("corollary", "Corollary 5")):
        found = findings(THEOREM_4, theorem_records(**{part: 1.5}))
        (wrong,) = [one for one in found.values() if not one.is_beyond and one.verdict == Verdict.DISAGREES]
        assert wrong.statement.startswith(name)
        assert wrong.value == 1


def long_strings(exponents, spoiled=()):
    study = studies.get(FIGURE_5)
    settings, rng = study.scales["small"], np.random.default_rng(2)
    cells = study.cells(settings, range(5))
    own = {}
    for cell in cells:
        sharpness = 0.02 * cell.n ** exponents.get(cell.target, 0.0) * math.exp(0.1 * rng.normal())
        changed = {"sharpness": sharpness, "has_converged": cell.key not in spoiled}
        changed |= {"released_blowup": math.exp(0.1 * rng.normal()), "norm": 6 + rng.random()}
        own[cell.key] = RunRecord(**FITTED, **OBSERVED | changed)
    return Records(cells, own, settings, "small")


def test_figure_5_agrees_where_sharpness_barely_rises():
    records = long_strings({"mean": -0.1})
    found = findings(FIGURE_5, records)
    assert claimed(found) == {Verdict.AGREES}
    assert len([finding for finding in found.values() if not finding.is_beyond]) == 3
    assert found[COROLLARY].verdict == Verdict.AGREES
    assert [drawing.stem for drawing in studies.get(FIGURE_5).figures(records)] == [
        "sharpness",
        "released-blowup",
        "norm",
    ]
    rising = findings(FIGURE_5, long_strings({"first": 0.5}))
    statement = "first: exponent of n in the average direction sharpness"
    assert rising[statement].verdict == Verdict.DISAGREES
    assert rising[statement].value == pytest.approx(0.5, abs=0.1)
    spoiled = [f"majority/n=64/seed={seed}" for seed in range(5)]
    left = findings(FIGURE_5, long_strings({}, spoiled))
    assert left["majority: every run converged, loss below 0.001"].value == 5


def course(rng, *, end=0.5, middle=0.5, before=0.3, at=600, last=100_000, rate=4 * 3e-4 * 0.1):
    """Sharpness jumps at convergence, falls to ``middle``, goes to ``end``; blow-up grows at ``rate`` a step."""
    steps = [*range(0, at + 1, 50), *range(at + 1000, last + 1, 1000)]
    sharpness = np.interp(
        steps, [0, at - 50, at, at + 20_000, at + 50_000, last], [before, before, 0.9, middle, middle, end]
    )
    sharpness = sharpness * np.exp(0.01 * rng.normal(size=len(steps)))
    loss = [0.25 if step < at - 25 else 1e-5 for step in steps]
    blowup, norm = (
        values * np.exp(0.01 * rng.normal(size=len(steps)))
        for values in (10 * np.exp(rate * np.array(steps)), np.interp(steps, [0, last], [18.0, 9.0]))
    )
    return LearningRecord(
        constant=0.25, step=tuple(steps), loss=tuple(loss), accuracy=tuple(1.0 for _ in steps),
        sharpness=tuple(map(float, sharpness)), blowup=tuple(map(float, blowup)),
        released_blowup=tuple(map(float, blowup / 10)), norm=tuple(map(float, norm)),
    )  # fmt: skip


def long_training(**options):
    study = studies.get(FIGURE_14)
    settings, rng = study.scales["small"], np.random.default_rng(1)
    cells = study.cells(settings, range(3))
    return Records(cells, {cell.key: course(rng, **options) for cell in cells}, settings, "small")


def test_figure_14_agrees_where_sharpness_levels_off():
    records = long_training()
    found = findings(FIGURE_14, records)
    assert {finding.verdict for finding in found.values()} == {Verdict.AGREES}
    assert len([finding for finding in found.values() if not finding.is_beyond]) == 2
    assert found[COROLLARY].reason.startswith("0 violations among all 336 cases")
    assert len(studies.get(FIGURE_14).figures(records)) == 4
    level = "weight decay 0.1: log of sharpness over the last tenth / over the tenth before the middle"
    left = "weight decay 0.1: log of sharpness over the last tenth / before the loss dropped"
    falling = findings(FIGURE_14, long_training(end=0.3))
    assert falling[level].verdict == Verdict.DISAGREES
    trivial = findings(FIGURE_14, long_training(before=0.6))
    assert (trivial[level].verdict, trivial[left].verdict) == (Verdict.AGREES, Verdict.DISAGREES)
    [slow] = [
        finding
        for said, finding in findings(FIGURE_14, long_training(rate=6e-5)).items()
        if "growth of the log" in said
    ]
    assert slow.verdict == Verdict.DISAGREES
    assert slow.value == pytest.approx(0.5, abs=0.01)
    late = findings(FIGURE_14, long_training(at=6000))
    assert claimed(late) == {Verdict.UNDECIDED}


def refits(ratio=1.0, noise=0.02, converged=True):
    study = studies.get(FIGURE_15)
    settings, rng = study.scales["small"], np.random.default_rng(0)
    cells = study.cells(settings, range(4))
    own = {}
    for cell in cells:
        made = []
        for _ in range(settings.networks):
            sharpness = 0.2 + 0.002 * cell.size + 0.03 * rng.normal()
            train = ratio * sharpness * math.exp(noise * rng.normal())
            loss = 1e-4 if converged else 0.01
            made.append(RefitRecord(fits=True, sensitivity=3.0, loss=loss, sharpness=sharpness, train_sharpness=train))
        own[cell.key] = RefitsRecord(refits=tuple(made))
    return Records(cells, own, settings, "small")


def test_figure_15_agrees_where_both_are_alike():
    found = findings(FIGURE_15, refits())
    assert {finding.verdict for finding in found.values()} == {Verdict.AGREES}
    assert len([finding for finding in found.values() if not finding.is_beyond]) == 2
    assert studies.get(FIGURE_15).figures(refits())[0].stem == "sharpness"
    apart = findings(FIGURE_15, refits(ratio=1.6))
    assert Verdict.DISAGREES in claimed(apart)
    none = findings(FIGURE_15, refits(converged=False))
    assert claimed(none) == {Verdict.UNDECIDED}
    assert none["every refit counts: converged, of a network that fits"].value == 24
    assert studies.get(FIGURE_15).figures(refits(converged=False))


def test_sharpness_at_all_strings_is_that_of_landscape(tmp_path):
    study = studies.get(FIGURE_15)
    settings = dataclasses.replace(study.scales["smoke"], steps=20)
    record = study.measure(PartCell(8, 0), settings, Context(tmp_path, lambda state: None))
    (found,) = record.refits
    table = (functions.random(settings.n, seed=0).table().astype(np.float64) + 1) / 2
    part = hardness.table_task(table, train_size=8, seed=0)
    plan = HardnessPlan(batch_size=32, lr=3e-3, steps=20, fit_loss=1e-3, settle=5)
    first = hardness.train([part], HardnessDesign(dim=8), plan, seeds=[0]).networks[0]
    learnt = (answers(first, settings.n).astype(np.float64) + 1) / 2
    refit = hardness.train([hardness.table_task(learnt)], HardnessDesign(dim=8), plan, seeds=[1000]).networks[0]
    strings = torch.from_numpy(cube.points(settings.n)).float()
    common = {"rho": step_length(refit), "directions": 4, "label_values": (0.0, 1.0), "seed": 1000}
    assert found.sharpness == pytest.approx(average_direction_sharpness(refit, strings, **common).value, rel=1e-4)
    own = average_direction_sharpness(refit, strings[part.rows], **common).value
    assert found.train_sharpness == pytest.approx(own, rel=1e-4)


@pytest.mark.parametrize("name", [FIGURE_5, THEOREM_4])
def test_a_cell_that_was_stopped_ends_with_the_same_record(name, tmp_path):
    study = studies.get(name)
    settings = dataclasses.replace(study.scales["smoke"], steps=30, settle=5)
    cell = study.cells(settings, range(1))[-1]
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: None))
    again, _ = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=12)
    assert again == whole
