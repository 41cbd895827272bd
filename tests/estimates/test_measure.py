import json
import math

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import FailureError, UsageError

INPUTS = torch.randn(60, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
MODEL = nn.Sequential(nn.Flatten(), nn.Linear(15, 4, dtype=torch.float64)).eval()
NOISE = jostle.GaussianNoise(1.0)


def measure(model=MODEL, inputs=INPUTS, **options):
    choices = {"tokens": jostle.Rows(), "perturbation": NOISE, "plan": jostle.Grid(2), **options}
    return jostle.measure(model, inputs, **choices)


def same(a, b):
    a, b = a.to_dict(), b.to_dict()
    for record in (a, b):
        del record["seconds"], record["provenance"]
    return a == b


@pytest.mark.parametrize("plan", [jostle.Grid(3), jostle.Until(half_width=0.05), jostle.Until(relative=0.3)])
@pytest.mark.parametrize("response", ["flip", "margin"])
def test_the_same_seed_gives_the_same_result_for_every_batch_size(plan, response):
    results = [measure(plan=plan, response=response, batch_size=size) for size in (1, 7, 128)]
    for other in results[1:]:
        assert other.value == pytest.approx(results[0].value, abs=1e-12)
        assert other.trials == results[0].trials
        assert other.per_input == pytest.approx(results[0].per_input, abs=1e-12, nan_ok=True)


def test_another_seed_gives_another_result():
    assert measure(seed=0).per_input.tolist() != measure(seed=1).per_input.tolist()


def test_specs_and_objects_mean_the_same():
    spelled = measure(tokens="rows", perturbation="gaussian-noise:std=1", plan="grid:2", response="flip")
    assert same(spelled, measure())


def test_single_logit_models_flip_by_sign():
    column = nn.Sequential(nn.Flatten(), nn.Linear(15, 1)).eval()
    flat = measure(lambda x: column(x)[:, 0])
    assert flat.value == measure(column).value
    two = measure(lambda x: torch.cat([torch.zeros(len(x), 1), column(x)], dim=1))
    assert two.value == flat.value


def test_masked_tokens_are_never_touched_and_inputs_weigh_the_same():
    mask = torch.zeros(60, 5, dtype=torch.int64)
    mask[:30, :2], mask[30:, 1:] = 1, 1

    def model(x, attention_mask):
        return (x * attention_mask[:, :, None]).flatten(1) @ weights

    weights = torch.randn(15, 3)
    mapping = {"x": INPUTS, "attention_mask": mask}
    m = jostle.measure(model, mapping, tokens=jostle.Rows(), perturbation=NOISE, plan=jostle.Grid(4))
    assert m.trials == 30 * 2 * 4 + 30 * 4 * 4
    assert m.value == pytest.approx(m.per_input.mean())
    assert m.profile.counts.tolist() == [120, 240, 120, 120, 120]
    poisoned = {"x": torch.where(mask[:, :, None] == 1, INPUTS, 1e6), "attention_mask": mask}
    assert (
        jostle.measure(model, poisoned, tokens=jostle.Rows(), perturbation=NOISE, plan=jostle.Grid(4)).value == m.value
    )
    until = jostle.measure(model, mapping, tokens=jostle.Rows(), perturbation=NOISE, plan=jostle.Until(half_width=0.02))
    exact = jostle.measure(model, mapping, tokens=jostle.Rows(), perturbation=NOISE, plan=jostle.Grid(200)).value
    assert abs(until.value - exact) < 4 * math.sqrt(0.25 / until.trials)


def test_an_explicit_mask_is_the_same_as_one_in_a_mapping():
    mask = torch.rand(60, 5) < 0.5
    mask[:, 0] = True
    by_argument = measure(mask=mask)
    by_mapping = jostle.measure(
        lambda x, mask: MODEL(x), {"x": INPUTS, "mask": mask}, tokens="rows", perturbation=NOISE, plan=jostle.Grid(2)
    )
    assert by_argument.value == by_mapping.value


def test_token_ids_can_be_replaced():
    ids = torch.randint(11, (50, 6))
    table = torch.randn(11, 4)
    m = measure(lambda x: table[x].sum(dim=1), ids, perturbation=jostle.UniformToken(11))
    assert 0 < m.value < 1
    assert m.settings.num_tokens == 6


def test_until_stops_at_the_width_asked_for_and_says_so():
    m = measure(plan=jostle.Until(half_width=0.03))
    assert m.stopped == "precision"
    assert m.high - m.low <= 0.06
    r = measure(plan=jostle.Until(relative=0.2))
    assert (r.high - r.low) / 2 <= 0.2 * r.value


def test_until_says_when_max_passes_ended_it():
    for limit in (60, 100, 333):
        m = measure(plan=jostle.Until(half_width=0.001, max_passes=limit))
        assert m.stopped == "max_passes"
        assert m.passes <= limit
        assert m.passes >= limit - 1
        assert m.high - m.low > 0.002
        assert "max_passes was reached" in str(m)


def test_until_for_the_population_ends_when_all_inputs_were_seen():
    m = measure(plan=jostle.Until(half_width=0.001), target="population")
    assert m.stopped == "all-inputs-visited"
    assert (m.low, m.high) == (m.population.low, m.population.high)
    assert m.population.half_width > m.dataset.half_width
    assert not np.isnan(m.per_input).any()


def test_outputs_that_are_not_finite_are_counted_and_never_a_flip():
    def model(x):
        return torch.where((x[:, 0, 0] > 2)[:, None], torch.nan, MODEL(x))

    calm = INPUTS.clamp(max=1.5)
    with pytest.warns(jostle.JostleWarning, match="have no finite response"):
        m = measure(model, calm, perturbation=jostle.GaussianNoise(1.0))
    clean = measure(MODEL, calm)
    assert 0 < m.nonfinite < m.trials
    assert m.trials + m.nonfinite == clean.trials
    assert m.value <= clean.value * clean.trials / m.trials
    for plan in (jostle.Until(half_width=0.05), jostle.Grid(1)):
        with pytest.warns(jostle.JostleWarning, match="left out"):
            assert measure(model, calm, plan=plan).nonfinite > 0


def test_a_model_whose_clean_outputs_are_not_finite_is_refused():
    with pytest.raises(UsageError, match=r"answers 60 of 60 unperturbed inputs with NaN or infinity"):
        measure(lambda x: MODEL(x) * torch.inf)


def test_nothing_finite_is_a_failure():
    first = INPUTS[:, 0, 0].clone()

    def model(x):
        moved = ~(x.flatten(1)[:, None] == INPUTS.flatten(1)[None]).all(dim=2).any(dim=1)
        return MODEL(x).masked_fill(moved[:, None], torch.nan)

    with pytest.raises(FailureError, match="nothing could be measured"):
        measure(model, plan=jostle.Grid(1))
    assert torch.equal(first, INPUTS[:, 0, 0])


def test_the_inputs_and_the_random_state_are_left_alone():
    before, state = INPUTS.clone(), torch.get_rng_state()
    measure()
    assert torch.equal(before, INPUTS)
    assert torch.equal(state, torch.get_rng_state())


def test_suspicious_models_are_said():
    dropout = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(15, 4)).train()
    m = measure(dropout)
    assert dropout.training
    assert (m.warnings, m.notes) == ([], ["model was in train mode; it was measured in eval mode and put back"])
    assert "  note: model was in train mode" in str(m)
    assert m.value == measure(dropout.eval()).value
    with pytest.warns(jostle.JostleWarning, match="differently twice"):
        measure(lambda x: nn.functional.dropout(MODEL(x), 0.5, training=True))


@pytest.mark.parametrize("plan", [jostle.Until(half_width=0.0001), jostle.Grid(5)])
def test_interruption_keeps_what_is_known(plan):
    calls = 0

    def model(x):
        nonlocal calls
        calls += len(x)
        if calls > 1000:
            raise KeyboardInterrupt
        return MODEL(x)

    with pytest.raises(jostle.Interrupted) as caught:
        measure(model, plan=plan, batch_size=8)
    m = caught.value.result
    assert m.stopped == "interrupted"
    assert 0 < m.trials < 1000
    assert m.low <= m.value <= m.high
    assert "interrupted" in str(m)


def test_interruption_before_anything_is_known_is_an_ordinary_one():
    def model(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        measure(model)
    assert not isinstance(caught.value, jostle.Interrupted)


def test_a_saved_result_is_read_back_whole(tmp_path):
    for plan, model in ((jostle.Grid(2), MODEL), (jostle.Until(half_width=0.2), nn.Sequential(MODEL))):
        m = measure(model, plan=plan)
        assert len(m.notes) == len(m.to_dict().get("notes", ())) == (model is not MODEL)
        m.save(tmp_path / "m.json")
        loaded = jostle.load(tmp_path / "m.json")
        assert same(loaded, m)
        assert str(loaded) == str(m)
        assert loaded.profile.values == pytest.approx(m.profile.values, nan_ok=True)
        assert json.loads((tmp_path / "m.json").read_text())["value"] == m.value


def test_progress_is_told_estimate_interval_and_passes():
    states = []
    m = measure(plan=jostle.Until(half_width=0.03), progress=states.append)
    assert states[-1].passes == m.passes
    assert f"{m.value:.4f} [{m.low:.4f}, {m.high:.4f}]" in states[-1].summary
    assert [state.passes for state in states] == sorted(state.passes for state in states)
    assert states[-1].share == 1.0


@pytest.mark.parametrize("plan", [jostle.Until(half_width=0.03), jostle.Grid(1)])
def test_progress_is_told_from_the_first_batch_on_before_there_is_an_estimate(plan):
    states = []
    measure(plan=plan, batch_size=8, progress=states.append)
    assert (states[0].share, states[0].summary) == (0.0, "no estimate yet")
    assert states[0].passes < len(INPUTS)  # not all clean inputs have been asked about
    assert "[" in states[-1].summary or "±" in states[-1].summary


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": INPUTS[:0]}, "inputs are empty"),
        ({"inputs": INPUTS.clone().fill_(torch.nan)}, "60 of 60 inputs hold NaN"),
        ({"tokens": "patch:4"}, "unknown token view 'patch'; did you mean patches?"),
        ({"tokens": "patches:4"}, "must divide"),
        ({"perturbation": "gaussian-noise:-1"}, "std=-1"),
        ({"perturbation": jostle.UniformToken([[1.0]])}, "tokens of 1 numbers, the inputs' tokens have 3"),
        ({"response": "flips"}, "unknown response 'flips'; did you mean flip or"),
        ({"plan": "unti:0.1"}, "unknown plan 'unti'; did you mean until?"),
        ({"tokens": None}, "tokens=None is not a token view; give one of jostle's objects or names: columns"),
        ({"tokens": NOISE}, "tokens=GaussianNoise(std=1.0) is not a token view"),
        ({"perturbation": jostle.Rows()}, "is not a perturbation"),
        ({"response": 3}, "response=3 is not a response"),
        ({"plan": 5}, "plan=5 is not a plan"),
        (
            {"plan": jostle.Until(half_width=0.1, max_passes=10)},
            "ended before a single trial; give a larger max_passes",
        ),
        ({"target": "world"}, "target='world' must be dataset (the inputs given) or population"),
        ({"level": 95}, "level=95 must be a finite number above 0 and at most 0.999"),
        ({"batch_size": 0}, "batch_size=0 must be"),
        ({"mask": torch.zeros(60, 5)}, "are all masked"),
        ({"model": lambda x: x}, "needs (batch, classes)"),
        ({"model": lambda x: MODEL(x)[:1]}, "answered 16 inputs with outputs of shape (1, 4)"),
    ],
)
def test_wrong_use_is_one_clear_line(options, message):
    with pytest.raises(UsageError) as error:
        measure(**options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jostle.Until(half_width=0), "half_width=0 must be a finite number above 0"),
        (lambda: jostle.Until(half_width=-0.1), "half_width=-0.1"),
        (lambda: jostle.Until(relative=math.nan), "relative=nan"),
        (lambda: jostle.Until(), "exactly one of half_width=, relative= and decided=True"),
        (lambda: jostle.Until(half_width=0.1, relative=0.1), "exactly one"),
        (lambda: jostle.Until(half_width=0.1, max_passes=0), "max_passes=0"),
        (lambda: jostle.Grid(0), "draws=0 must be a whole number, at least 1"),
        (lambda: jostle.Grid(2.5), "draws=2.5 must be a whole number"),
    ],
)
def test_wrong_plans_are_one_clear_line(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert message in str(error.value)


def test_the_default_plan_is_exact_where_that_is_cheap_and_relative_for_real_responses():
    exact = jostle.measure(lambda x: x.prod(dim=1), torch.ones(20, 4), tokens="coordinates", perturbation="sign-flip")
    assert (exact.settings.plan, exact.stopped, exact.low) == ("grid:draws=1", "complete", 1.0)
    assert measure(plan=None).settings.plan.startswith("until:half_width=0.01")
    real = measure(plan=None, response="margin")
    assert real.settings.plan.startswith("until:relative=0.05")
    assert (real.high - real.low) / 2 <= 0.05 * real.value


def test_real_changes_that_are_all_zero_at_first_do_not_end_it():
    """One coordinate in a hundred matters: 64 draws may well show no change at all."""
    inputs = torch.randn(500, 100)
    for seed in range(5):
        m = jostle.measure(
            lambda x: x[:, :1],
            inputs,
            tokens="coordinates",
            perturbation=NOISE,
            response="absolute-change",
            plan=jostle.Until(relative=0.3),
            seed=seed,
        )
        assert m.value > 0
        assert m.low <= math.sqrt(2 / math.pi) / 100 <= m.high


def test_intervals_without_end_are_written_as_valid_json(tmp_path):
    m = jostle.measure(
        lambda x: x, torch.randn(1, 1), tokens="coordinates", perturbation=NOISE, response="margin", plan="grid:1"
    )
    m.save(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text(), parse_constant=pytest.fail)["low"] is None
    assert jostle.load(tmp_path / "m.json").low == -math.inf


def test_a_deterministic_grid_with_failed_trials_is_not_called_exact():
    broken = lambda x: MODEL(x).masked_fill((x[:, 0, 0] < -1)[:, None], torch.nan)  # noqa: E731
    calm = INPUTS.abs().clamp(min=0.1)
    with pytest.warns(jostle.JostleWarning, match="no finite response"):
        m = measure(broken, calm, perturbation=jostle.SignFlip())
    assert m.nonfinite > 0
    assert m.low < m.value < m.high
    assert "exact" not in m.dataset.method


def test_warnings_point_at_the_caller():
    model = nn.Sequential(nn.Flatten(), nn.Linear(15, 1), nn.Sigmoid())
    for call in (
        lambda: measure(model),
        lambda: jostle.compare({"a": model}, INPUTS, tokens="rows", perturbation=NOISE),
    ):
        with pytest.warns(jostle.JostleWarning) as caught:
            call()
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "a"}, "seed='a' must be a whole number"),
        ({"level": 0.9999}, "level=0.9999 must be a finite number above 0 and at most 0.999"),
    ],
)
def test_more_wrong_use(options, message):
    with pytest.raises(UsageError) as error:
        measure(**options)
    assert message in str(error.value)


def test_a_grid_that_does_not_fit_into_memory_is_refused_before_it_is_begun():
    with pytest.raises(UsageError, match="draws=5,000,000,000 of 4 tokens are more than 20,000,000 passes"):
        jostle.measure(
            lambda x: x, torch.ones(5, 4), tokens="coordinates", perturbation="gaussian-noise:1",
            plan=jostle.Grid(5 * 10**9),
        )  # fmt: skip
