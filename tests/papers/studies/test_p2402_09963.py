"""What the studies of paper 2 ask of their records, on made-up runs; and that a killed cell goes on."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from jostle import studies
from jostle.studies import Context, Records, Verdict, decide, scaled
from jostle.studies.study import Cell
from jostle_papers.p2402_09963 import figure_2, random_init
from jostle_papers.p2402_09963.figure_4 import PartRecord
from jostle_papers.p2402_09963.hardness import Observation
from jostle_papers.p2402_09963.regression import least_squares, slope
from jostle_papers.p2402_09963.runs import RunRecord
from tests.papers.studies.made_up_runs import FITTED, OBSERVED
from tests.studies.stopping import stopped_and_resumed

FIGURE_1, FIGURE_2, FIGURE_4 = (f"2402.09963/figure-{number}" for number in (1, 2, 4))


@pytest.fixture(autouse=True)
def float32():
    """As the runner has it."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


class TestRegression:
    def test_it_is_linear_regression(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=12), rng.normal(size=12)
        found, theirs = slope(list(zip(x, y, strict=True))), stats.linregress(x, y)
        assert found.value == pytest.approx(theirs.slope)
        reach = stats.t.ppf(0.975, 10) * theirs.stderr
        assert found.ends(0.95) == pytest.approx((theirs.slope - reach, theirs.slope + reach))

    def test_two_columns_and_their_coverage(self):
        rng, hits = np.random.default_rng(1), 0
        a, b = np.repeat([4.0, 8.0, 12.0], 3), rng.normal(size=9)
        for _ in range(300):
            y = 1 + 0.5 * a - 2 * b + rng.normal(size=9)
            low, high = least_squares(y, {"a": a, "b": b})["b"].ends(0.9)
            hits += low <= -2 <= high
        assert abs(hits / 300 - 0.9) < 4 * math.sqrt(0.09 / 300)

    def test_what_cannot_be_told_is_doubted(self):
        assert slope([(1.0, 2.0), (2.0, 3.0)]).doubt
        assert slope([(1.0, 2.0)] * 4).doubt
        assert slope([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]).doubt
        assert slope([(1.0, 1.0), (2.0, math.nan), (3.0, 3.0)]).doubt
        assert least_squares([], {"a": []})["a"].doubt

    def test_times_turns_intervals_round(self):
        found = slope([(0, 0.0), (1, 1.2), (2, 1.9), (3, 3.1)])
        low, high = found.ends(0.95)
        assert scaled(found, -5).ends(0.95) == pytest.approx((-5 * high, -5 * low))


def run(sharpness, blowup=1.0, norm=35.0, converged=True):
    own = {
        "sharpness": sharpness, "released_sharpness": sharpness * 1.01, "blowup": 10 * blowup,
        "released_blowup": blowup, "norm": norm, "has_converged": converged,
    }  # fmt: skip
    return RunRecord(**FITTED, **OBSERVED | own)


def findings(name, records):
    return {finding.statement: finding for finding in decide(studies.get(name).expectations(records), scale="small")}


def figure_1(slopes, spoiled=()):
    """Runs whose sharpness is a line in n with a little noise."""
    study = studies.get(FIGURE_1)
    settings = study.scales["small"]
    rng = np.random.default_rng(5)
    cells = study.cells(settings, range(3))
    found = {}
    for cell in cells:
        steep = slopes.get(cell.target, 0.0)
        found[cell.key] = run(0.3 + steep * cell.n + 0.01 * rng.normal(), 1 + steep * cell.n / 10)
    for cell in cells:
        if cell.key in spoiled:
            found[cell.key] = run(50.0, converged=False)
    return Records(cells, found, settings, "small")


def test_figure_1_agrees_where_parity_alone_rises():
    records = figure_1({"parity": 0.1, "majority": 0.005, "mean": -0.005})
    found = findings(FIGURE_1, records)
    said = [finding for finding in found.values() if not finding.is_beyond]
    assert len(said) == 4
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    assert found["parity: slope of sharpness over the number of bits"].value == pytest.approx(0.1, abs=0.005)
    assert [drawing.stem for drawing in studies.get(FIGURE_1).figures(records)] == [
        "sharpness",
        "released-blowup",
        "norm",
    ]


def test_figure_1_disagrees_where_majority_rises_as_well():
    found = findings(FIGURE_1, figure_1({"parity": 0.1, "majority": 0.15}))
    apart = found["slope of sharpness over the number of bits, parity - majority"]
    assert (apart.verdict, apart.is_beyond) == (Verdict.DISAGREES, False)
    found = findings(FIGURE_1, figure_1({"parity": 0.1, "majority": 0.05}))
    assert found["slope of sharpness over the number of bits, parity - majority"].verdict == Verdict.AGREES
    factor = found["slope of parity - 5 |slope of majority|"]
    assert (factor.verdict, factor.is_beyond) == (Verdict.DISAGREES, True)
    found = findings(FIGURE_1, figure_1({"parity": 0.1, "majority": -0.05}))
    assert found["slope of parity - 5 |slope of majority|"].verdict == Verdict.DISAGREES
    found = findings(FIGURE_1, figure_1({"parity": -0.1}))
    assert found["parity: slope of sharpness over the number of bits"].verdict == Verdict.DISAGREES


def test_runs_that_did_not_converge_are_left_out_and_counted():
    spoiled = ["parity/n=12/seed=1", "first/n=4/seed=0"]
    records = figure_1({"parity": 0.1}, spoiled)
    found = findings(FIGURE_1, records)
    assert found["parity: slope of sharpness over the number of bits"].value == pytest.approx(0.1, abs=0.005)
    assert found["parity: every run converged, loss below 0.001"].verdict == Verdict.DISAGREES
    assert found["mean: every run converged, loss below 0.001"].verdict == Verdict.AGREES
    captions = [drawing.caption for drawing in studies.get(FIGURE_1).figures(records)]
    assert all("2 of 60 runs did not converge and are left out: " in caption for caption in captions)
    assert all(key in captions[0] for key in spoiled)


def test_no_converged_run_decides_nothing():
    records = figure_1({}, [cell.key for cell in figure_1({}).cells])
    verdicts = {finding.verdict for finding in findings(FIGURE_1, records).values() if not finding.is_beyond}
    assert verdicts == {Verdict.UNDECIDED}
    assert studies.get(FIGURE_1).figures(records)


def test_figure_2_finds_the_frontier():
    study = studies.get(FIGURE_2)
    settings, rng = study.scales["small"], np.random.default_rng(0)
    cells = study.cells(settings, range(6))
    found = {}
    for cell in cells:
        norm = 30 + 5 * rng.random()
        rise = 0.1 * cell.n - 0.2 * norm if cell.target == "parity" else 0.0
        made = run(1.0, math.exp(rise + 0.02 * rng.normal()), norm)
        found[cell.key] = figure_2.Figure2Record(lr=1e-3, weight_decay=0.1, **vars(made))
    judged = findings(FIGURE_2, Records(cells, found, settings, "small"))
    assert {finding.verdict for finding in judged.values()} == {Verdict.AGREES}
    per_bit = judged["parity: log blow-up per bit at equal norm, as in the released code"]
    assert per_bit.value == pytest.approx(0.1, abs=0.01)
    drawings = study.figures(Records(cells, found, settings, "small"))
    assert len(drawings) == 4


def test_figure_2_draws_rates_within_their_bounds():
    settings = studies.get(FIGURE_2).scales["paper"]
    pairs = np.array([figure_2.draw_rates(seed, settings) for seed in range(200)])
    assert (pairs >= [1e-4, 0]).all()
    assert (pairs <= [5e-4, 0.4]).all()
    assert abs(pairs.mean(axis=0) / [3e-4, 0.2] - 1).max() < 0.15
    assert len(np.unique(pairs)) == 400


def figure_4(learned, sharper=0.0, unfitted=False):
    study = studies.get(FIGURE_4)
    settings, rng = study.scales["small"], np.random.default_rng(2)
    cells = study.cells(settings, range(4))
    found = {}
    for cell in cells:
        own = [learned[cell.size] + 0.1 * rng.normal() for _ in range(2)]
        coins = [3.95 + 0.05 * rng.normal() for _ in range(2)]
        refits = {
            kind: [OBSERVED | {"total_sensitivity": value, "sharpness": 0.2 * value + 0.005 * rng.normal() - shift}
                   for value in values]
            for kind, values, shift in (("learned", own, 0.0), ("completed", coins, sharper))
        }  # fmt: skip
        fits = [True, not unfitted]
        if unfitted:
            own[1] = refits["learned"][1]["sharpness"] = 99.0
        found[cell.key] = PartRecord(
            true=3.9 + 0.05 * rng.normal(), learned=tuple(own), completed=tuple(coins), fits=tuple(fits), steps=900,
            refits={kind: tuple(Observation(**each) for each in some) for kind, some in refits.items()},
        )  # fmt: skip
    return Records(cells, found, settings, "small")


def test_figure_4_agrees_where_less_is_learnt_from_less():
    records = figure_4({32: 2.5, 64: 2.7, 128: 3.3})
    said = [finding for finding in findings(FIGURE_4, records).values() if not finding.is_beyond]
    assert len(said) == 6
    assert {finding.verdict for finding in said} == {Verdict.AGREES}
    assert [drawing.stem for drawing in studies.get(FIGURE_4).figures(records)] == ["sensitivity", "refits"]


def test_figure_4_disagrees_where_it_must():
    found = findings(FIGURE_4, figure_4({32: 4.9, 64: 2.7, 128: 3.3}, sharper=1.0))
    assert found["32 strings: sensitivity learned - that of the function"].verdict == Verdict.DISAGREES
    assert found["sensitivity learned from 32 strings - from 128"].verdict == Verdict.DISAGREES
    assert found["sharpness of refits, learned - completed"].verdict == Verdict.DISAGREES


def test_figure_4_leaves_out_what_does_not_fit_and_says_so():
    records = figure_4({32: 2.5, 64: 2.7, 128: 3.3}, unfitted=True)
    found = findings(FIGURE_4, records)
    assert found["64 strings: sensitivity learned - that of the function"].value == pytest.approx(-1.2, abs=0.3)
    assert found["sharpness of refits, learned - completed"].value < 0
    assert found["every network has its own strings right"].verdict == Verdict.DISAGREES
    assert "12 of 24 networks that do not fit" in studies.get(FIGURE_4).figures(records)[0].caption


def test_random_init_counts_networks():
    study = studies.get("2402.09963/random-init")
    settings = study.scales["small"]
    cells = study.cells(settings, range(3))
    found = {}
    for cell in cells:
        is_last, is_control = cell.read == "last", cell.init == random_init.CONTROL
        has_zero = tuple(place % 3 > 0 or not (is_last or is_control) for place in range(50))
        part = random_init.EnsembleRecord(
            total_sensitivity=tuple(0.5 + 0.01 * place for place in range(50)), zero_share=(0.5,) * 50,
            has_zero=has_zero, is_constant=tuple(place % 5 > 0 for place in range(50)),
        )  # fmt: skip
        found[cell.key] = random_init.RandomInitRecord(zero=part, median=None if is_control else part)
    judged = findings(study.name, Records(cells, found, settings, "small"))
    assert {finding.verdict for finding in judged.values()} == {Verdict.AGREES}
    assert len(judged) == 18
    assert judged["default, read at an end symbol: share with a string of sensitivity 0"].value == 1
    assert judged["default: share of constant functions"].value == pytest.approx(0.8)


@pytest.mark.parametrize("name", [FIGURE_1, FIGURE_4])
def test_a_cell_that_was_stopped_ends_with_the_same_record(name, tmp_path, monkeypatch):
    study = studies.get(name)
    settings = study.scales["smoke"]
    cell = study.cells(settings, range(1))[0]
    assert isinstance(cell, Cell)
    whole = study.measure(cell, settings, Context(tmp_path / "whole", lambda state: None))

    again, _ = stopped_and_resumed(study, cell, settings, tmp_path / "stopped", at=70)
    assert again == whole  # stopped of figure 4 in the refits, of figure 1 in the only training
