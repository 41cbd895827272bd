"""Stand-ins for TensorBoard's writer and a run of Weights & Biases: the same methods, nothing else."""

import pytest
import torch

from jostle.base.errors import FailureError, UsageError
from jostle.base.trackers import make_senders
from jostle.estimates import JostleWarning
from jostle.probe import Probe
from tests.probe.toys import CHOICES, network, points


class Writer:
    def __init__(self):
        self.scalars = []

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False):
        self.scalars.append((tag, scalar_value, global_step))


class Run:
    """A run counts its rows and drops what is logged for a step below."""

    def __init__(self):
        self.rows, self.defined = [], []

    def log(self, data, step=None, commit=None):
        assert step is None
        self.rows.append(data)

    def define_metric(self, name, step_metric=None):
        self.defined.append((name, step_metric))


def test_numbers_go_to_both_kinds():
    writer, run = Writer(), Run()
    probe = Probe(points(30), **CHOICES, every=3, share=None, trackers=[writer, run])
    rows = [probe(network(), step) for step in range(5)]
    assert [row["jostle/step"] for row in run.rows] == [0, 3]
    assert run.rows[1] == {"jostle/step": 3} | {f"jostle/{name}": number for name, number in rows[3].items()}
    assert run.defined == [("jostle/*", "jostle/step")]
    assert ("jostle/sensitivity", rows[0]["sensitivity"], 0) in writer.scalars
    assert {step for _, _, step in writer.scalars} == {0, 3}
    assert len(writer.scalars) == 2 * len(rows[0])


def test_one_alone_needs_no_list_and_numbers_that_are_not_finite_stay_behind():
    run = Run()
    Probe(points(30).inputs, **CHOICES, trackers=run, measures={"own": lambda *_: torch.nan})(lambda x: x, 0)
    assert set(run.rows[0]) == {"jostle/step", "jostle/sensitivity", "jostle/low", "jostle/high"}


def test_a_tracker_that_breaks_is_an_error_at_first_and_a_warning_later():
    class Broken(Run):
        is_down = True

        def log(self, data):
            if self.is_down:
                raise ConnectionError("no route")

    run = Broken()
    probe = Probe(points(30), **CHOICES, every=1, share=None, trackers=run)
    with pytest.raises(FailureError, match="the numbers of model could not be kept: ConnectionError: no route"):
        probe(network(), 0)
    run.is_down = False
    probe(network(), 1)
    run.is_down = True
    with pytest.warns(JostleWarning, match="the numbers of model could not be kept: ConnectionError: no route"):
        assert probe(network(), 2)
    assert probe.history["step"].tolist() == [0, 1, 2]


def test_other_objects_are_refused():
    assert make_senders(()) == []
    with pytest.raises(UsageError, match=r"trackers holds a NoneType, .*; wandb.run is None before wandb.init\(\)"):
        make_senders(None)
    with pytest.raises(UsageError, match="trackers holds a str, expected an object with add_scalar"):
        make_senders(["runs"])
