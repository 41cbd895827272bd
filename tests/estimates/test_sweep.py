"""Curves over the strength of the noise: against closed forms, against ``measure`` and ``compare``, and in words."""

import functools
import json
import math

import numpy as np
import pytest
import torch
from scipy.special import ndtr

import jostle
from jostle.base.errors import FailureError, UsageError
from jostle.estimates.sweep import against
from tests import oracles

WEIGHTS = torch.tensor([0.5, -2.0, 1.0, 3.0], dtype=torch.float64)
STDS = [0.3, 1.0, 4.0]


def halfspace(x):
    return x @ WEIGHTS


def one_of_two(x):
    """Margin 1/2 in the first token, none in the second: at inputs of 2 the flip rate is Phi(-1 / 2 std) / 2."""
    return 4 * x[:, 0] - 6


def both(x):
    """Margin 2 in both tokens: at inputs of 2 the flip rate is Phi(-2 / std)."""
    return x.min(dim=1).values


CROSSING, TWOS = {"one": one_of_two, "both": both}, torch.full((400, 2), 2.0, dtype=torch.float64)


def crossing_rates(std):
    return {"one": ndtr(-0.5 / std) / 2, "both": ndtr(-2 / std)}


def randoms(count=40):
    return torch.randn(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def usual(models=halfspace, inputs=None, **changes):
    inputs = randoms() if inputs is None else inputs
    return jostle.sweep(models, inputs, **{"tokens": "coordinates", "stds": STDS, "plan": jostle.Grid(3), **changes})


def numbers(measurement, *left_out):
    return {
        key: value for key, value in measurement.to_dict().items() if key not in ("seconds", "provenance", *left_out)
    }


def test_a_halfspace_has_its_closed_form_at_every_strength():
    inputs, draws = randoms(200), 20
    s = usual(inputs=inputs, plan=jostle.Grid(draws))
    for std in STDS:
        cells = oracles.halfspace_sensitivity_given_inputs(WEIGHTS, inputs, std)
        error = float((cells * (1 - cells) / draws).sum().sqrt()) / cells.numel()
        assert abs(s["model"][std].value - float(cells.mean())) < 4 * error
        assert float(cells.mean()) in s["model"][std].dataset


def test_noise_is_the_same_at_every_strength_so_a_curve_never_falls():
    """s times the same Gaussian number: what flips a halfspace at weak noise flips it at stronger noise."""
    s = usual(stds=[0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    rates = np.stack([measured.per_input for measured in s["model"].values()])
    assert (np.diff(rates, axis=0) >= 0).all()
    assert rates[0].mean() < rates[-1].mean()


@pytest.mark.parametrize("plan", [jostle.Grid(2), jostle.Until(half_width=0.15), "until:relative=0.5", None])
@pytest.mark.parametrize("response", ["flip", "margin"])
def test_one_strength_is_what_measure_gives_number_for_number(plan, response):
    plan = plan or jostle.Until(half_width=0.2)
    choices = {"tokens": "coordinates", "plan": plan, "response": response, "seed": 3}
    found = jostle.sweep(halfspace, randoms(), stds=[0.7], **choices)["model"][0.7]
    assert numbers(found) == numbers(jostle.measure(halfspace, randoms(), perturbation="gaussian-noise:0.7", **choices))


def test_every_strength_is_what_compare_gives_and_clean_inputs_are_asked_about_once():
    models = {"all": halfspace, "first": lambda x: x[:, 0]}
    s = usual(models)
    for place, std in enumerate(STDS):
        choices = {"tokens": "coordinates", "perturbation": jostle.GaussianNoise(std), "plan": jostle.Grid(3)}
        alone = jostle.compare(models, randoms(), **choices)
        shared = jostle.compare(models, randoms(), level=s.shared_level, **choices)
        for name in models:
            assert numbers(s[name][std], "passes") == numbers(alone[name], "passes")
            assert s[name][std].passes == alone[name].passes - (len(randoms()) if place else 0)
        assert s.differences()[std].to_dict() == shared.difference("all", "first").to_dict()
    assert s.passes == sum(s["all"][std].passes for std in STDS)


def test_differences_share_the_level_over_the_strengths_and_measurements_do_not():
    s = usual({"a": halfspace, "b": lambda x: x[:, 0]}, stds=[0, 0.5, 1, 2, 4, 8], level=0.9)
    assert s.shared_level == pytest.approx(1 - 0.1 / 5)  # nothing is uncertain at 0
    assert {m.interval.level for m in s["a"].values()} == {0.9}
    assert {d.interval.level for d in s.differences().values()} == {s.shared_level}
    assert usual(level=0.9, stds=range(1, 61), plan=jostle.Grid(1), inputs=randoms(2)).level == 0.9  # no pairs
    with pytest.raises(UsageError, match=r"level=0.95 shared by 60 stds .* give fewer stds"):
        usual({"a": halfspace, "b": halfspace}, stds=range(1, 61))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [jostle.Grid(1), jostle.Until(half_width=0.1)])
def test_intervals_cover_each_on_its_own_and_differences_all_together(plan):
    repeats, stds, level = 200, [1.0, 2.0, 4.0], 0.8
    singles, together = 0.0, 0
    for seed in range(repeats):
        s = jostle.sweep(CROSSING, TWOS[:40], tokens="coordinates", stds=stds, plan=plan, seed=seed, level=level)
        rates = {std: crossing_rates(std) for std in stds}
        singles += np.mean([rates[std][name] in s[name][std].dataset for name in CROSSING for std in stds])
        gaps = {std: rates[std]["one"] - rates[std]["both"] for std in stds}
        together += all(gaps[std] in difference.dataset for std, difference in s.differences().items())
    assert min(singles, together) / repeats >= level - 3 * math.sqrt(level * (1 - level) / repeats)


def test_a_known_crossing_is_found_and_said():
    s = jostle.sweep(CROSSING, TWOS, tokens="coordinates", stds=[8, 0.5, 0, 2.45, 1], plan=jostle.Grid(4))
    for name in CROSSING:
        for std in s.strengths[1:]:
            rate = crossing_rates(std)[name]
            assert abs(s[name][std].value - rate) < 4 * math.sqrt(rate * (1 - rate) / 3200) + 1e-12
    said = "one against both: more sensitive at std 0.5 and 1; not told apart at std 2.45; less sensitive at std 8."
    assert s.crossings() == [said]
    assert said in str(s)
    assert s.differences("both", "one")[8.0].verdict == "both is more sensitive than one"


def test_words_go_from_weak_to_strong_and_shorten_long_rows():
    s = jostle.sweep(CROSSING, TWOS[:200], tokens="coordinates", stds=[0.5, 8], plan=jostle.Grid(4))
    more, less = s.differences().values()
    text = against("a", "b", {1: less, 2: more, 3: less, 4: less}, "radius")
    assert text == (
        "a against b: less sensitive at radius 1; more sensitive at radius 2; less sensitive at radius 3 and 4."
    )
    long = against("a", "b", dict.fromkeys(range(1, 9), more))
    assert long == "a against b: more sensitive at std 1 to 8 (all 8 measured there)."


def test_three_models_get_a_sentence_for_every_pair_and_need_names():
    s = usual({"a": halfspace, "b": lambda x: x[:, 0], "c": lambda x: x[:, 3]}, stds=[1])
    assert [sentence.partition(":")[0] for sentence in s.crossings()] == ["a against b", "a against c", "b against c"]
    with pytest.raises(UsageError, match="names of two models, and the sweep has a, b, c"):
        s.differences()
    with pytest.raises(UsageError, match="names of two models"):
        s.differences("a")
    with pytest.raises(UsageError, match="unknown model 'd'"):
        s["d"]


@pytest.mark.parametrize("response", ["flip", "relative-change"])
@pytest.mark.parametrize("target", ["dataset", "population"])
def test_strength_zero_is_exactly_zero_and_asks_nobody(response, target):
    def never(x):
        raise AssertionError("asked")

    s = usual({"a": never, "b": never}, stds=[0], response=response, target=target)
    for measured in (s["a"][0.0], s.differences()[0.0]):
        assert (measured.value, measured.low, measured.high) == (0, 0, 0)
        assert (measured.profile.values == 0).all()
        assert (measured.per_input == 0).all()
    assert s["a"][0.0].passes == 0
    assert s.crossings() == []
    assert "0 [0, 0]" in str(s)


def test_a_mask_keeps_its_gaps_at_strength_zero():
    mask = torch.ones(40, 4, dtype=torch.bool)
    mask[:, 2] = False
    mask[:10, 0] = False
    s = usual(stds=[0, 1], mask=mask, plan=jostle.Grid(1))
    assert s["model"][0.0].profile.counts.tolist() == s["model"][1.0].profile.counts.tolist() == [30, 40, 0, 40]
    assert np.isnan(s["model"][0.0].profile.values).tolist() == [False, False, True, False]
    assert s["model"][0.0].trials == s["model"][1.0].trials == 110


def test_strengths_are_sorted_and_taken_once():
    wanted = [0.3, 1.0, 4.0]
    for stds in ([4, 1, 0.3, 1.0], np.array([4.0, 0.3, 1.0]), torch.tensor([1.0, 4.0, 0.3]), (1, 0.3, 4), {4, 1, 0.3}):
        assert usual(stds=stds, plan=jostle.Grid(1), inputs=randoms(2)).strengths == wanted


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stds": []}, "stds is empty: give the strengths"),
        ({"stds": 1.0}, "stds=1.0 must be a list of strengths"),
        ({"stds": "1"}, "stds='1' must be a list of strengths"),
        ({"stds": [1, -2]}, "stds=-2 must be a finite number, at least 0"),
        ({"stds": [math.nan]}, "stds=nan must be a finite number"),
        ({"stds": [math.inf]}, "stds=inf must be a finite number"),
        ({"stds": ["1"]}, "stds='1' must be a finite number"),
        ({"stds": [True]}, "stds=True must be a finite number"),
        ({"models": {}}, "models must be a mapping from names to models with at least one entry"),
        ({"models": 3}, "cannot be called"),
        ({"perturbation": jostle.GaussianNoise(1.0)}, "gaussian-noise:std=1 has its strength already"),
        ({"perturbation": "gaussian-noise:std=2"}, "has its std already, which stds are to say: give 'gaussian-noise'"),
        ({"perturbation": "gaussian-noise:2"}, "has its std already"),
        ({"perturbation": "sphere:relativ=true"}, "unknown option of sphere 'relativ'"),
        ({"perturbation": "sign-flip"}, "'sign-flip' has no strength that is 0 where nothing moves"),
        ({"perturbation": "uniform-token"}, "'uniform-token' has no strength"),
        ({"perturbation": "gausian-noise"}, "did you mean"),
        ({"perturbation": lambda s: s}, "has no strength"),
        ({"perturbation": 3}, "perturbation=3 cannot be swept"),
        ({"level": 1.0}, "level=1.0 must be a finite number above 0 and at most 0.999"),
        ({"average": "mean"}, "average='mean' must be macro"),
        ({"inputs": torch.ones(5, 4, dtype=torch.int64)}, "needs real-valued tokens"),
    ],
)
def test_what_cannot_be_used_is_one_line(changes, message):
    with pytest.raises(UsageError) as error:
        usual(**changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("perturbation", "spec", "at_one"),
    [
        ("sphere", "sphere", jostle.Sphere(1.0)),
        ("sphere:relative=true", "sphere:relative=true", jostle.Sphere(1.0, relative=True)),
        (jostle.Sphere, "sphere", jostle.Sphere(1.0)),
        (functools.partial(jostle.Sphere, relative=True), "sphere:relative=true", jostle.Sphere(1.0, relative=True)),
        (lambda radius: jostle.Sphere(radius), "sphere", jostle.Sphere(1.0)),
    ],
)
def test_another_kind_of_jostle(perturbation, spec, at_one):
    s = usual(stds=[0, 1], perturbation=perturbation)
    assert (s.parameter, s.perturbation) == ("radius", spec)
    alone = jostle.measure(halfspace, randoms(), tokens="coordinates", perturbation=at_one, plan=jostle.Grid(3))
    assert numbers(s["model"][1.0]) == numbers(alone)
    assert str(s).splitlines()[1].split() == ["radius", "model"]


def test_ctrl_c_keeps_the_finished_strengths():
    calls = []

    def impatient(x):
        calls.append(len(x))
        if sum(calls) > most:
            raise KeyboardInterrupt
        return halfspace(x)

    most = 10**9
    first = usual(impatient, stds=[0, 1]).passes
    for extra in (1, 300):  # before and after something is known of the second strength
        calls.clear()
        most = first + extra
        with pytest.raises(jostle.Interrupted) as caught:
            usual(impatient, stds=[0, 1, 2, 3], batch_size=16)
        kept = caught.value.result
        assert (kept.strengths, kept.missing) == ([0.0, 1.0], (2.0, 3.0))
        assert kept["model"][1.0].value == usual(stds=[1])["model"][1.0].value
        assert "interrupted before std 2 and 3 was measured" in str(kept)
    calls.clear()
    most = 100
    with pytest.raises(KeyboardInterrupt) as nothing:
        usual(impatient, stds=[0, 1], batch_size=16)
    assert not isinstance(nothing.value, jostle.Interrupted)


def test_a_sweep_is_saved_and_loaded(tmp_path):
    s = usual({"a": halfspace, "b": lambda x: x[:, 0]}, stds=[0, 0.5, 2])
    s.save(tmp_path / "sweep.json")
    back = jostle.load(tmp_path / "sweep.json")
    assert isinstance(back, jostle.Sweep)
    assert str(back) == str(s)
    assert back.to_dict() == s.to_dict() == json.loads((tmp_path / "sweep.json").read_text())
    assert back.differences("b", "a")[2.0].value == s.differences("b", "a")[2.0].value
    assert back["a"][2.0].profile.values.tolist() == s["a"][2.0].profile.values.tolist()
    record = s.to_dict() | {"strengths": [1]}
    (tmp_path / "edited.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match="was it edited"):
        jostle.load(tmp_path / "edited.json")


def test_the_table_has_a_row_for_each_strength_and_says_what_the_intervals_are():
    s = usual({"a": halfspace, "b": lambda x: x[:, 0]}, stds=[0.5, 2], level=0.9)
    lines = str(s).splitlines()
    assert lines[0] == "flip, 90% intervals for the inputs given, each on its own"
    assert lines[1].split() == ["std", "a", "b"]
    m = s["b"][2.0]
    assert lines[3].startswith("  2 ")
    assert lines[3].endswith(f"{m.value:.4g} [{m.low:.4g}, {m.high:.4g}]")
    assert "paired differences at 95.00%: of a pair, all together 90%" in str(s)
    assert "perturbation=gaussian-noise\n" in str(s)
    assert "every token of every input was jostled" in str(s)


def test_reasons_name_their_strengths_where_they_differ():
    s = usual(stds=[0.01, 4], plan=jostle.Until(relative=0.5, max_passes=400))
    assert [m.stopped for m in s["model"].values()] == ["max_passes", "precision"]
    assert "before the stopping rule was met (at std 0.01); the interval" in str(s)
    assert "asked for (at std 4)" in str(s)


@pytest.mark.parametrize(("stds", "scale"), [([1, 2, 10], "linear"), ([1, 2, 11], "log"), ([0, 1, 20], "symlog")])
def test_the_figure_shows_every_model_on_a_fitting_axis(stds, scale):
    s = usual({"a": halfspace, "b": lambda x: x[:, 0]}, stds=stds, plan=jostle.Grid(1), inputs=randoms(5))
    axes = s.plot().axes[0]
    assert axes.get_xscale() == scale
    lines = {line.get_label(): line for line in axes.lines if line.get_label() in s.names}
    assert list(lines) == ["a", "b"]
    assert lines["b"].get_xdata().tolist() == stds
    assert lines["b"].get_ydata().tolist() == [m.value for m in s["b"].values()]
    assert axes.get_xlabel() == "std of gaussian-noise"


def test_progress_goes_over_all_strengths():
    states = []
    s = usual(stds=[0, 1, 2], progress=states.append)
    shares = [state.share for state in states]
    assert shares == sorted(shares)
    assert shares[0] >= 1 / 3  # told before its first trial
    assert shares[-1] == 1
    assert states[-1].passes == s.passes
    assert states[-1].summary.startswith("std 2: ")


def test_warnings_are_given_once_and_failures_name_the_strength():
    model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid()).double().train()
    with pytest.warns(jostle.JostleWarning, match="probability") as caught:
        s = usual(model)
    assert len(caught) == 1
    assert model.training
    assert (str(s).count("warning: "), str(s).count("note: ")) == (1, 1)
    assert all(len(m.warnings) == len(m.notes) == 1 for m in s["model"].values())

    def far_from_home(x):
        return torch.where(x.abs().amax(dim=1) > 1e6, torch.nan, halfspace(x))

    with pytest.raises(FailureError, match=r"^at std 1e\+30: nothing could be measured"):
        usual(far_from_home, stds=[1, 1e30], plan=jostle.Grid(1))
