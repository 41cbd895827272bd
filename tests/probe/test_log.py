"""Rows stay, none is doubled, and none of another run is mistaken for ours."""

import json

import numpy as np
import pytest
import torch

from jostle.base.errors import UsageError
from jostle.estimates import JostleWarning
from jostle.probe import Probe, ProbeLog
from tests.probe.toys import CHOICES, network, points


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "probe.jsonl"


def probe_of(path, **options):
    return Probe(points(30), **CHOICES, every=2, share=None, log=path, **options)


def trained(model, probe, steps, lr=0.1):
    """Plain gradient descent on all points, with the probe called before each step."""
    data = points()
    for step in steps:
        probe(model, step)
        loss = torch.nn.functional.cross_entropy(model.eval()(data.inputs), data.labels)
        for parameter, gradient in zip(model.parameters(), torch.autograd.grad(loss, model.parameters()), strict=True):
            parameter.data -= lr * gradient
    return model


def written(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def steps_in(path):
    return [line["record"]["step"] for line in written(path) if line["record"]["kind"] == "row"]


def test_a_restart_on_the_same_path_keeps_rows_and_doubles_none(path):
    whole = probe_of(None)
    trained(network(), whole, range(11))
    first = probe_of(path)
    trained(network(), first, range(7))
    lines = path.read_text()
    checkpoint = trained(network(), lambda *_: None, range(3))  # the weights before step 3
    again = probe_of(path)
    trained(checkpoint, again, range(3, 11))  # retraces 4 and 6, which are in the log
    assert path.read_text().startswith(lines)
    assert steps_in(path) == [0, 2, 4, 6, 8, 10]
    assert again.notes == []
    for name in ("step", "sensitivity", "low", "high", "accuracy", "weight_norm"):
        assert again.history[name].tolist() == whole.history[name].tolist() == Probe.read(path).history[name].tolist()


def test_a_restart_on_another_path_sets_the_old_rows_aside_and_says_so(path):
    trained(network(), probe_of(path), range(9))
    checkpoint = trained(network(), lambda *_: None, range(4))
    again = probe_of(path)
    with pytest.warns(JostleWarning, match="step 6: the weights are not those in the log; its rows from step 6 on are"):
        trained(checkpoint, again, range(4, 7), lr=0.2)
    assert again.history["step"].tolist() == Probe.read(path).history["step"].tolist() == [0, 2, 4, 6]
    assert steps_in(path) == [0, 2, 4, 6, 8, 6]  # nothing is lost
    assert len(again.notes) == 1
    trained(checkpoint, again, range(7, 13), lr=0.2)
    assert again.history["step"].tolist() == probe_of(path).history["step"].tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_the_same_script_with_another_seed_is_not_shown_old_rows(path):
    trained(network(), probe_of(path), range(5))
    other = probe_of(path)
    with pytest.warns(JostleWarning, match="step 0"):
        trained(network(seed=5), other, range(3))
    fresh = probe_of(None)
    trained(network(seed=5), fresh, range(3))
    assert other.history["sensitivity"].tolist() == fresh.history["sensitivity"].tolist()
    assert other.history["step"].tolist() == [0, 2]


def test_a_torn_last_line_is_dropped_and_measured_again(path):
    trained(network(), probe_of(path), range(5))
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    assert Probe.read(path).history["step"].tolist() == [0, 2]
    trained(network(), probe_of(path), range(5))
    assert steps_in(path) == [0, 2, 4]


def test_it_can_be_read_and_drawn_while_the_run_goes_on(path):
    model, probe, seen = network(), probe_of(path, measures=["logit-margin"]), []
    with pytest.raises(UsageError, match="does not exist; give the file that a probe writes to"):
        Probe.read(path)
    for step in range(7):
        probe(model, step)
        log = Probe.read(path)
        seen.append(len(log.history["step"]))
    assert seen == [1, 1, 2, 2, 3, 3, 4]
    [axes] = log.plot().axes
    assert [line.get_label() for line in axes.lines if line.get_label() == "sensitivity"]
    assert [band.get_label() for band in axes.collections] == ["band of sensitivity"]
    x, y = axes.lines[0].get_data()
    assert np.array_equal(x, [0, 2, 4, 6])
    assert np.array_equal(y, probe.history["sensitivity"])
    two = log.plot("accuracy", "logit-margin", title="both", log_y=True)
    assert len(two.axes[0].collections) == 0
    assert log.settings["definition"]["tokens"] == "coordinates"
    with pytest.raises(UsageError, match="unknown column 'accurracy'; did you mean accuracy"):
        probe.plot("accurracy")


def test_bands_of_other_columns_are_theirs():
    probe = Probe(points(30), **CHOICES, every=1, share=None, measures=["sharpness"])
    model = network()
    probe(model, 0), probe(model, 1)
    figure = probe.plot("sharpness.output", "sensitivity")
    assert [band.get_label() for band in figure.axes[0].collections] == [
        "band of sharpness.output",
        "band of sensitivity",
    ]


def test_nothing_to_plot_is_one_line():
    with pytest.raises(UsageError, match="nothing is measured yet"):
        probe_of(None).plot()
    assert ProbeLog().history["step"].tolist() == []


def test_times_go_on_after_a_restart(path):
    trained(network(), probe_of(path), range(3))
    last = written(path)[-1]["record"]
    budget = probe_of(path)._budget
    assert (budget.training_seconds, budget.probe_seconds) == (last["training_seconds"], last["probe_seconds"])
    assert last["training_seconds"] > 0 < last["probe_seconds"]


def test_a_skipped_step_is_noted_once(path):
    log = ProbeLog(path)
    log.begin({"quantity": "sensitivity", "definition": {}})
    for _ in range(2):
        log.add_note(3, "skipped: no time", "skipped")
    assert len(written(path)) == 2
    again = ProbeLog.read(path)
    again.add_note(3, "skipped: no time", "skipped")
    assert len(written(path)) == 2
    assert again.notes == ["step 3: skipped: no time"]
