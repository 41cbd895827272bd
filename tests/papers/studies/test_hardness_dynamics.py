"""Networks followed along training: looks against slow twins, alignment on made-up looks, and verdicts that turn."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from jostle import studies
from jostle.base.errors import UsageError
from jostle.landscape import POSITIONS, average_direction_sharpness, layernorm_blowup, parameter_norm
from jostle.studies import Context, Records, Verdict, decide
from jostle_papers.p2402_09963 import figure_3, hardness
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.course import HardnessLook, HardnessObserver, at, converged_at, drop, follow
from jostle_papers.p2402_09963.hardness.observation import draw_strings
from tests.studies.stopping import stopped_and_resumed

NAME = "2402.09963/figure-3"
SMALL, PLAN = HardnessDesign(dim=8), HardnessPlan(batch_size=64, lr=1e-2, steps=60, fit_loss=0.0)


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def look(step, loss=0.2, sharpness=0.5, blowup=1.0, norm=30.0):
    return HardnessLook(step, loss, 1.0, sharpness, 16 * blowup, blowup, norm)


class TestLooks:
    def test_a_look_is_what_the_slow_functions_measure(self):
        task = hardness.named_task("parity", 5)
        network = SMALL.create(5, 3)
        found = HardnessObserver(task, SMALL, 12, 16, seed=7).look(network, 40)
        bits = draw_strings(5, 16, seed=7)  # fewer than the 32 there are
        labels = (bits.prod(dim=1) + 1) / 2
        outputs = network(bits).detach()
        rho = 0.02 * math.sqrt(sum(p.numel() for name, p in network.named_parameters() if name != "positions"))
        slow = average_direction_sharpness(network, bits, rho=rho, directions=12, label_values=(0, 1), seed=7)
        assert found.step == 40
        assert found.loss == pytest.approx(float((outputs - labels).square().mean()), rel=1e-5)
        assert found.accuracy == float(((outputs > 0.5) == (labels > 0.5)).float().mean())
        assert found.sharpness == pytest.approx(slow.value, rel=1e-3)
        assert found.blowup == pytest.approx(layernorm_blowup(network, bits).value)
        assert found.released_blowup == pytest.approx(layernorm_blowup(network, bits, protocol="released").value)
        assert found.norm == pytest.approx(parameter_norm(network, skip=POSITIONS))

    def test_following_does_not_change_training(self, tmp_path):
        task = hardness.named_task("parity", 3)
        looks = follow(task, SMALL, PLAN, seed=1, every=20, directions=3)
        assert [each.step for each in looks] == [0, 20, 40, 60]
        trained = hardness.train(task, SMALL, PLAN, seeds=[1]).networks[0]
        assert looks[-1] == HardnessObserver(task, SMALL, 3, 256, 1).look(trained, 60)
        assert looks[0] == HardnessObserver(task, SMALL, 3, 256, 1).look(SMALL.create(3, 1), 0)

    def test_looks_are_rarer_after_convergence_and_counted_from_there(self):
        plan = dataclasses.replace(PLAN, steps=150)
        looks = follow(hardness.named_task("first", 3), SMALL, plan, seed=0, every=5, later=15, directions=2)
        start = converged_at(looks)
        steps = [each.step for each in looks]
        assert 5 < start < 100
        assert steps == [*range(0, start, 5), *range(start, 151, 15)]

    def test_looks_that_were_stopped_are_the_same(self, tmp_path, monkeypatch):
        task = hardness.named_task("first", 3)
        whole = follow(task, SMALL, PLAN, seed=0, every=5, later=10, directions=2)

        class Stop(BaseException):
            pass

        original, taken = HardnessObserver.look, []

        def stopping(self, network, step):
            if len(taken) == 6 and step:
                raise Stop
            taken.append(step)
            return original(self, network, step)

        monkeypatch.setattr(HardnessObserver, "look", stopping)
        with pytest.raises(Stop):
            follow(task, SMALL, PLAN, seed=0, every=5, later=10, directions=2, folder=tmp_path)
        monkeypatch.setattr(
            HardnessObserver, "look", lambda self, network, step: taken.append(step) or original(self, network, step)
        )
        assert follow(task, SMALL, PLAN, seed=0, every=5, later=10, directions=2, folder=tmp_path) == whole
        assert len(taken) == len(set(taken)) == len(whole)  # none was taken twice

    def test_looks_of_another_kind_are_not_mixed(self, tmp_path):
        task, plan = hardness.named_task("first", 3), dataclasses.replace(PLAN, steps=5)
        looks = follow(task, SMALL, plan, seed=0, every=5, directions=2, folder=tmp_path)
        assert follow(task, SMALL, plan, seed=0, every=5, directions=2, folder=tmp_path) == looks
        with pytest.raises(UsageError, match="directions"):
            follow(task, SMALL, plan, seed=0, every=5, directions=3, folder=tmp_path)

    def test_wrong_use_is_one_line(self):
        with pytest.raises(UsageError, match="soon=200 and late=1550 must be multiples of later=100"):
            figure_3.LearningSettings(late=1550)
        task = hardness.named_task("first", 3)
        with pytest.raises(UsageError, match="later=12 must be a multiple of every=5"):
            follow(task, SMALL, PLAN, seed=0, every=5, later=12)
        with pytest.raises(UsageError, match="architecture='mlp' cannot be followed"):
            follow(task, HardnessDesign(dim=8, architecture="mlp"), PLAN, seed=0)


class TestAlignment:
    RUN = (
        look(0, 0.4), look(10, 0.24), look(20, 0.21), look(30, 0.23), look(40, 0.1), look(50, 0.009), look(60, 0.02),
        look(70, 0.001),
    )  # fmt: skip

    def test_the_first_look_below_the_bound_is_convergence(self):
        assert converged_at(self.RUN) == 50
        assert converged_at(self.RUN[:5]) is None
        assert converged_at([look(0, 0.01)]) is None  # not below

    def test_the_drop_begins_at_the_last_look_like_a_constant(self):
        start, end = drop(self.RUN)
        assert (start.step, end.step) == (30, 50)
        start, end = drop(self.RUN, constant=0.2)
        assert (start.step, end.step) == (30, 50)
        assert drop(self.RUN[4:])[0].step == 40  # none is like a constant: the first
        assert drop(self.RUN[:5]) is None

    def test_offsets_are_from_convergence(self):
        assert at(self.RUN, 0).step == 50
        assert at(self.RUN, 20).step == 70
        assert at(self.RUN, -30).step == 20
        assert at(self.RUN, 25) is None
        assert at(self.RUN[:5], 0) is None


def record(rng, *, rise=0.5, decline=-0.1, norm=-1.0, blowup=0.3, delay=0, converges=True, bump=0.0):
    """A run that converges at step 300 + delay, with looks every 50 steps before and every 100 after."""
    end = 300 + delay
    steps = [*range(0, end, 50), *range(end, 2001, 100)]
    looks = []
    for step in steps:
        before = min(max((step - (end - 150)) / 150, 0.0), 1.0)  # of the drop
        after = max(step - end, 0) / 1500
        level = 0.25 + rise * before + decline * after + 0.004 * rng.normal() + bump * (step >= 1200)
        loss = 0.25 if before == 0 else 0.2 if before < 1 or not converges else 1e-3
        looks.append(look(step, loss, level, 1 + blowup * after + 1e-3 * rng.normal(), 36 + norm * after))
    columns = {field.name: [getattr(each, field.name) for each in looks] for field in dataclasses.fields(HardnessLook)}
    columns["norm"] = [value + 0.01 * rng.normal() for value in columns["norm"]]
    return figure_3.LearningRecord(constant=0.25, **{name: tuple(values) for name, values in columns.items()})


def made(changes=lambda cell: {}):
    study = studies.get(NAME)
    settings, rng = study.scales["small"], np.random.default_rng(0)
    cells = study.cells(settings, range(5))
    found = {}
    for cell in cells:
        usual = {"delay": 50 * (cell.seed % 2)}
        if cell.target == "majority":
            usual["rise"] = 0.1
        found[cell.key] = record(rng, **usual | changes(cell))
    return Records(cells, found, settings, "small")


def findings(records):
    return {finding.statement: finding for finding in decide(studies.get(NAME).expectations(records), scale="small")}


def test_figure_3_agrees_with_made_up_runs_like_the_papers():
    records = made()
    found = findings(records)
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 5
    assert {finding.verdict for finding in found.values()} == {Verdict.AGREES}
    rise = found["parity, weight decay 0.1: change of sharpness across the drop of the loss"]
    assert rise.value == pytest.approx(0.5, abs=0.01)
    decline = found["parity, weight decay 0.1: change of sharpness from 200 to 1500 steps after it"]
    assert decline.value == pytest.approx(-0.1 * 1300 / 1500, abs=0.01)
    drawings = studies.get(NAME).figures(records)
    assert [drawing.stem for drawing in drawings] == ["sharpness", "loss", "released-blowup", "norm", "exchange"]
    assert all("0 of 20 runs did not converge in time" in drawing.caption for drawing in drawings)


@pytest.mark.parametrize(
    ("change", "statement"),
    [
        ({"rise": -0.1}, "change of sharpness across the drop of the loss"),
        ({"decline": 0.2}, "change of sharpness from 200 to 1500 steps after it"),
        ({"decline": -0.7}, "sharpness 1500 steps after convergence - before the drop"),
        ({"norm": 0.5}, "change of the norm from convergence to 1500 steps after it"),
        ({"blowup": -0.1}, "change of the blow-up from convergence to 1500 steps after it"),
    ],
)
def test_figure_3_disagrees_where_it_must(change, statement):
    """Only the weight decay of Figure 3 is the paper's claim; the others are shown."""
    for decay, is_beyond in ((0.1, False), (0.3, True)):
        found = findings(made(lambda cell, decay=decay: change if cell.decay == decay else {}))
        finding = found[f"parity, weight decay {decay:g}: {statement}"]
        assert finding.verdict == Verdict.DISAGREES
        assert finding.is_beyond == is_beyond


def test_figure_3_asks_for_no_smaller_norm_without_weight_decay():
    assert not [each for each in findings(made()) if each.startswith("parity, weight decay 0:") and "norm" in each]


def test_a_rise_elsewhere_and_controls_that_rise_more_are_seen():
    found = findings(made(lambda cell: {"bump": 0.6} if cell.key == "parity/decay=0.1/seed=3" else {}))
    steepest = found["parity: sharpness rises fastest between two looks of the drop, in every run"]
    assert (steepest.verdict, steepest.value) == (Verdict.DISAGREES, 1)
    found = findings(made(lambda cell: {"rise": 0.9} if cell.target == "majority" else {}))
    for part in (
        "change of sharpness across the drop, parity - majority",
        "sharpness 1500 steps after, parity - majority",
    ):
        assert found[part].verdict == Verdict.DISAGREES


def test_runs_that_do_not_converge_in_time_are_counted_and_left_out():
    spoiled = {"parity/decay=0.1/seed=1": {"converges": False, "rise": 9}, "parity/decay=0/seed=2": {"delay": 300}}
    records = made(lambda cell: spoiled.get(cell.key, {}))
    found = findings(records)
    assert found["parity, weight decay 0.1: change of sharpness across the drop of the loss"].value < 0.6
    statement = "parity, weight decay {}: every run converged 1500 steps before its end"
    assert found[statement.format("0.1")].value == found[statement.format("0")].value == 1
    assert found[statement.format("0.3")].verdict == Verdict.AGREES
    assert "2 of 20 runs did not converge in time" in studies.get(NAME).figures(records)[0].caption


def test_no_converged_run_decides_nothing():
    records = made(lambda _: {"converges": False})
    verdicts = {finding.verdict for finding in findings(records).values() if not finding.is_beyond}
    assert verdicts == {Verdict.UNDECIDED}
    assert len(studies.get(NAME).figures(records)) == 4


def test_curves_are_drawn_where_a_quarter_of_the_runs_is():
    """With five runs two are needed: the offset that only the latest of them reaches is not drawn."""
    records = made(lambda cell: {"delay": 100 if cell.seed == 0 else 0})
    assert len(figure_3.counting_runs(records, "parity", 0.1)) == 5
    axes = studies.get(NAME).figures(records)[0].figure.axes[0]
    line = next(line for line in axes.lines if line.get_label() == "parity, weight decay 0.1")
    offsets = list(line.get_xdata())
    assert min(offsets) == -300  # -400 is there in one run of five
    assert max(offsets) == 1700
    at_start = list(line.get_ydata())[offsets.index(0)]
    runs = figure_3.counting_runs(records, "parity", 0.1)
    assert at_start == pytest.approx(np.mean([run.after(0).sharpness for run in runs]))


def test_a_cell_that_was_stopped_ends_with_the_same_record(tmp_path, monkeypatch):
    study = studies.get(NAME)
    settings = dataclasses.replace(study.scales["smoke"], steps=100)
    cell = study.cells(settings, range(1))[0]
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: None))

    monkeypatch.setitem(hardness.train.__kwdefaults__, "checkpoint_every", 20)
    again, taken = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=70)
    assert again == whole
    assert taken == 100 - 60  # it went on from the last state
