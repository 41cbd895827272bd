import contextlib
import json
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.base.errors import FailureError, UsageError
from jostle.estimates import JostleWarning
from jostle.probe import Probe
from jostle.training import evaluate, fit
from tests.probe.toys import CHOICES, network, points
from tests.training.toys import network as fit_network
from tests.training.toys import random_points, same_weights


def majority(x):
    return x.sum(dim=1)


def test_a_row_is_what_the_library_measures_on_the_same_inputs(bits):
    """A flipped bit changes the majority of 7 with probability C(6, 3) / 2^6 = 0.3125."""
    settings = {"tokens": "coordinates", "perturbation": "sign-flip", "plan": jostle.Until(half_width=0.05), "seed": 4}
    row = Probe(bits, **settings, share=None)(majority, 0)
    m = jostle.measure(majority, bits, **settings)
    assert (row["sensitivity"], row["low"], row["high"]) == (m.value, m.low, m.high)
    assert abs(row["sensitivity"] - 0.3125) < 4 * math.sqrt(0.3125 * 0.6875 / m.trials)
    exact = Probe(bits, **(settings | {"plan": None}), share=None)(majority, 0)
    assert [exact["sensitivity"], exact["low"], exact["high"]] == pytest.approx([0.3125] * 3, abs=1e-12)


def test_accuracy_weight_norm_and_other_columns():
    model, data = network().train(), points()
    probe = Probe(data, **CHOICES, share=None, measures={"bias": lambda model, _: model[4].bias.sum(), "twice": twice})
    probe(model, 0)
    history = probe.history
    assert list(history)[:8] == ["step", "sensitivity", "low", "high", "accuracy", "weight_norm", "bias", "twice"]
    assert history["accuracy"] == evaluate(model, data).accuracy
    norm = math.sqrt(sum(parameter.double().square().sum().item() for parameter in model.parameters()))
    assert history["weight_norm"][0] == pytest.approx(norm, rel=1e-12)
    assert history["bias"][0] == model[4].bias.sum().item()
    assert history["twice.low"] <= history["twice"] <= history["twice.high"]
    assert history["twice"] > history["sensitivity"]
    assert history["passes"] > 64
    bare = Probe(data.inputs, **CHOICES, share=None)
    bare(majority, 0)
    assert "accuracy" not in bare.history
    assert np.isnan(bare.history["weight_norm"]).all()


def twice(model, inputs):
    return jostle.measure(model, inputs, tokens="coordinates", perturbation="gaussian-noise:std=6", plan="grid:1")


def test_another_response_has_its_own_name():
    probe = Probe(points(), tokens="coordinates", perturbation="gaussian-noise:std=1", response="margin", share=None)
    assert set(probe(network(), 0)) == {"margin", "low", "high", "accuracy", "weight_norm"}
    assert probe.plot().axes[0].lines[0].get_label() == "margin"


@pytest.mark.parametrize(
    ("steps", "due"),
    [
        (range(12), [0, 5, 10]),
        (range(3, 12), [5, 10]),
        (range(0, 30, 4), [0, 8, 12, 16, 20, 28]),
        ([5, 5, 6, 40], [5, 40]),
    ],
)
def test_it_is_time_at_multiples_or_at_the_first_call_from_there_on(steps, due):
    probe = Probe(points(20), **CHOICES, every=5, share=None)
    returned = [step for step in steps if probe(majority, step)]
    assert returned == probe.history["step"].tolist() == due


def test_measuring_now_whatever_time_it_is():
    probe = Probe(points(20), **CHOICES, every=100)
    assert probe.measure(majority, 3) == probe.measure(majority, 3)
    assert probe(majority, 7) is None
    assert probe.measure(majority, 7)
    assert probe.history["step"].tolist() == [3, 7]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every=0 must be a whole number, at least 1"),
        ({"every": 2.5}, "every=2.5 must be a whole number, at least 1"),
        ({"share": 0}, "share=0 must be a finite number above 0 and at most 1, a part of the training time"),
        ({"share": 1.5}, "share=1.5 must be"),
        ({"share": math.nan}, "share=nan must be"),
        ({"share": "5%"}, "share='5%' must be"),
        ({"inputs": torch.empty(0, 5)}, "inputs are empty: there is nothing to measure"),
        ({"inputs": torch.utils.data.TensorDataset(torch.empty(0, 5))}, "inputs are empty"),
        ({"inputs": 3}, "inputs of type int cannot be read"),
        ({"inputs": torch.full((4, 5), math.nan)}, "4 of 4 inputs hold NaN or infinity"),
        ({"tokens": "patches:2"}, "tokens=patches:2 cannot cut inputs of shape (5,)"),
        ({"tokens": "coordinate"}, "unknown token view 'coordinate'; did you mean coordinates?"),
        ({"inputs": torch.ones(4, 5, dtype=torch.int64)}, "gaussian-noise:std=2 needs real-valued tokens"),
        ({"plan": "until"}, "Until needs exactly one of half_width=, relative= and decided=True"),
        ({"level": 1.0}, "level=1.0 must be a finite number above 0 and at most 0.999"),
        ({"target": "all"}, "target='all' must be dataset"),
        ({"seed": 0.5}, "seed=0.5 must be a whole number"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number, at least 1"),
        ({"labels": torch.zeros(3)}, "labels of shape (3,) and torch.float32 must be 80 whole numbers, one for each"),
        ({"labels": torch.full((80,), -1)}, "labels hold -1; expected classes from 0"),
        ({"measures": "sharpness"}, "measures='sharpness' must be a list of names or a mapping"),
        ({"measures": ["sharpnes"]}, "unknown measure 'sharpnes'; did you mean sharpness?"),
        ({"measures": {"accuracy": majority}}, "measures: the name 'accuracy' cannot be used"),
        ({"measures": {"own": 3}}, "measures['own']=3 must be a function of (model, inputs), or a known name"),
        ({"trackers": [None]}, "trackers holds a NoneType, expected an object with add_scalar"),
    ],
)
def test_wrong_use_is_one_line_before_training(options, said):
    inputs = options.pop("inputs", points())
    with pytest.raises(UsageError) as caught:
        Probe(inputs, **(CHOICES | options))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_log_that_is_a_folder_or_no_log_or_anothers_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="is a directory; give the name of a file"):
        Probe(points(), **CHOICES, log=tmp_path)
    path = tmp_path / "probe.jsonl"
    path.write_text('{"key": "a", "record": {"loss": 1}}\n')
    with pytest.raises(UsageError, match=r"probe.jsonl was not written by a probe \(entry 'a'\); give another file"):
        Probe(points(), **CHOICES, log=path)
    path.write_text("loss,accuracy\n")
    with pytest.raises(UsageError, match="line 1 is not a record"):
        Probe(points(), **CHOICES, log=path)
    path.unlink()
    Probe(points(), **CHOICES, log=path)(network(), 0)
    with pytest.raises(UsageError, match="is from another run: seed was 0, is 1; use those settings or another file"):
        Probe(points(), **CHOICES, log=path, seed=1)
    with pytest.raises(UsageError, match="is from another run: inputs was"):
        Probe(points(seed=4), **CHOICES, log=path)
    Probe(points(), **CHOICES, log=path, every=7, share=None)  # how often does not change what


def test_steps_that_fall_are_refused():
    probe = Probe(points(), **CHOICES)
    probe(network(), 40)
    with pytest.raises(
        UsageError, match="step=3 comes after step=40; a probe watches one run, with steps counted over"
    ):
        probe(network(), 3)
    with pytest.raises(UsageError, match="step=-1 must be a whole number"):
        probe(network(), -1)


def test_what_is_wrong_is_raised_at_first_and_noted_later(tmp_path):
    def answers(x):
        return x[:, :2] * math.nan if is_broken else x[:, :2]

    is_broken = True
    probe = Probe(points(), **CHOICES, every=1, share=None, log=tmp_path / "probe.jsonl")
    with pytest.raises(UsageError, match="unperturbed inputs with NaN"):
        probe(answers, 0)
    assert not (tmp_path / "probe.jsonl").exists()
    is_broken = False
    probe(answers, 1)
    is_broken = True
    with pytest.warns(JostleWarning, match="model was not measured at step 2: model answers 44 of 44"):
        assert probe(answers, 2) is None
    is_broken = False
    assert probe(answers, 3)
    assert [note[:24] for note in probe.notes] == ["step 2: failed: model an"]
    assert Probe.read(tmp_path / "probe.jsonl").notes == probe.notes
    assert probe.history["step"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("measure", "kind", "said"),
    [
        (lambda model, inputs: 1 / 0, FailureError, "measure 'own' raised ZeroDivisionError: division by zero"),
        (lambda model, inputs: "much", UsageError, "measure 'own' answered with a str; expected a number, something"),
        (lambda model, inputs: torch.ones(2), UsageError, "measure 'own' answered with a Tensor"),
    ],
)
def test_a_measure_that_fails_is_one_line(measure, kind, said):
    with pytest.raises(kind, match=said):
        Probe(points(), **CHOICES, measures={"own": measure})(network(), 0)


def test_a_warning_about_the_model_names_the_line_of_the_loop():
    probe = Probe(points(30), **CHOICES, share=None)
    with pytest.warns(JostleWarning, match="answers the same input differently twice") as caught:
        probe(lambda x: torch.randn(len(x)), 0)
    assert {warning.filename for warning in caught} == {__file__}


def test_ctrl_c_during_a_measurement_ends_the_loop():
    calls = []

    def interrupted(x):
        calls.append(len(x))
        if len(calls) > 12:
            raise KeyboardInterrupt
        return x.sum(dim=1)

    probe = Probe(points(30), **(CHOICES | {"plan": "grid:20"}), batch_size=10, share=None)
    with pytest.raises(KeyboardInterrupt):
        probe(interrupted, 0)
    assert probe.history["step"].tolist() == []


def test_the_default_plan_is_exact_for_few_tokens_and_looser_than_that_of_measure_otherwise():
    settings = {"tokens": "coordinates", "perturbation": "sign-flip", "share": None}
    probes = [
        Probe(torch.ones(512, 8), **settings),
        Probe(torch.ones(513, 8), **settings),
        Probe(torch.ones(513, 8), **settings, response="margin"),
    ]
    plans = [probe._recorder.measurement.plan for probe in probes]
    assert plans == [jostle.Grid(1), jostle.Until(half_width=0.02), jostle.Until(relative=0.1)]


def test_labels_that_do_not_fit_the_model_are_one_line():
    with pytest.raises(UsageError, match=r"labels up to 7 do not fit outputs of shape \(80, 2\) of model"):
        Probe(points(), **CHOICES, labels=torch.full((80,), 7))(network(), 0)


def test_a_number_that_is_not_finite_is_a_gap(tmp_path):
    probe = Probe(points(), **CHOICES, measures={"own": lambda *_: math.inf}, log=tmp_path / "probe.jsonl")
    assert math.isnan(probe(network(), 0)["own"])
    assert np.isnan(probe.history["own"]).all()
    for line in (tmp_path / "probe.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_a_full_disk_during_training_is_a_warning_and_the_rows_follow(tmp_path):
    path = tmp_path / "probe.jsonl"
    probe, whole = Probe(points(), **CHOICES, every=1, share=None, log=path), Probe.read
    probe(majority, 0)
    append, probe._log._store.append = probe._log._store.append, refuse
    with pytest.warns(JostleWarning, match="the numbers of model could not be kept: no space left"):
        assert probe(majority, 1)
    assert whole(path).history["step"].tolist() == [0]
    probe._log._store.append = append
    probe(majority, 2)
    assert whole(path).history["step"].tolist() == probe.history["step"].tolist() == [0, 1, 2]


def refuse(*_):
    raise FailureError("no space left")


def test_only_the_first_process_measures(monkeypatch, tmp_path):
    probe = Probe(points(), **CHOICES, log=tmp_path / "probe.jsonl")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert probe(network(), 0) is None
    assert probe.measure(network(), 1) is None
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    assert probe.measure(network(), 2)
    assert probe.history["step"].tolist() == [2]


def test_inputs_are_copied():
    data = points()
    probe = Probe(data.inputs, labels=data.labels, **CHOICES, every=1, share=None)
    first = probe(network(), 0)
    data.inputs.zero_(), data.labels.zero_()
    assert probe(network(), 1) == first


def test_mappings_with_a_mask_are_asked_by_keyword():
    ids = torch.randint(1, 9, (30, 6))
    mask = (torch.arange(6) < torch.randint(2, 7, (30, 1))).long()
    table = nn.Embedding(9, 2)

    def model(input_ids, attention_mask):
        return {"logits": (table(input_ids) * attention_mask[:, :, None]).sum(dim=1)}

    settings = {"tokens": "rows", "perturbation": jostle.UniformToken(9), "plan": "grid:2"}
    inputs = {"input_ids": ids, "attention_mask": mask}
    row = Probe(inputs, **settings, share=None, measures=["logit-margin"])(model, 0)
    assert row["sensitivity"] == jostle.measure(model, inputs, **settings).value
    with torch.no_grad():
        logits = model(**inputs)["logits"]
    assert row["logit-margin"] == pytest.approx((logits[:, 0] - logits[:, 1]).abs().mean().item())


def test_watching_needs_an_optimizer_that_tells():
    watching = Probe(points(), **CHOICES).watching(network(), object())
    with pytest.raises(UsageError, match="optimizer of type object does not tell when it makes a step"):
        watching.__enter__()


def test_after_an_error_watching_ends_without_a_measurement():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = Probe(points(), **CHOICES, every=2, share=None)
    with contextlib.suppress(ZeroDivisionError), probe.watching(model, optimizer, start=10):
        for _ in range(3):
            optimizer.step()
        raise ZeroDivisionError
    assert probe.history["step"].tolist() == [10, 12]
    assert not optimizer._optimizer_step_post_hooks


def test_fit_calls_it_and_shows_its_numbers_and_trains_alike(tmp_path):
    settings = {"lr": 0.01, "batch_size": 16, "max_epochs": 4, "checkpoint": tmp_path / "a.safetensors"}
    plain, watched, shown = fit_network(), fit_network(), []
    fit(plain, random_points(), **(settings | {"checkpoint": None}))
    probe = Probe(random_points(), **CHOICES, every=2, share=None, log=tmp_path / "probe.jsonl")
    fit(
        watched,
        random_points(),
        **settings,
        on_epoch=probe.on_epoch,
        progress=lambda state: shown.append(state.summary),
    )
    assert same_weights(plain, watched)
    assert probe.history["step"].tolist() == [0, 2, 4]
    assert f"sensitivity {probe.history['sensitivity'][-1]:.4f}" in shown[-1]

    again = Probe(random_points(), **CHOICES, every=2, share=None, log=tmp_path / "probe.jsonl")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(watched, random_points(), **(settings | {"max_epochs": 6}), on_epoch=again.on_epoch)
    assert again.history["step"].tolist() == [0, 2, 4, 6]


def test_a_probe_says_in_a_line_what_it_asks_and_how_far_it_is(bits):
    probe = Probe(bits, tokens="coordinates", perturbation="sign-flip", every=10, share=None)
    asked = f"Probe({len(bits)} inputs, tokens=coordinates, perturbation=sign-flip, every=10, share=None: "
    assert repr(probe) == asked + "0 measurements)"
    probe(majority, 0)
    assert repr(probe) == asked + "1 measurement, the last at step 0)"
    probe(majority, 10)
    assert repr(probe) == asked + "2 measurements, the last at step 10)"
