import importlib
import sys

import pytest

from jostle.base.progress import State
from jostle.training import evaluate, fit, loop
from jostle.training.evaluation import Evaluation
from jostle.training.fit import summary
from tests.training.toys import network, random_points


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, "loss 0.250  accuracy 90.0%"),
        ({"sensitivity": 1 / 3, "draws": 12}, "loss 0.250  accuracy 90.0%  sensitivity 0.3333  draws 12"),
        ({"sensitivity": "0.012 ± 0.004"}, "loss 0.250  accuracy 90.0%  sensitivity 0.012 ± 0.004"),
        (17, "loss 0.250  accuracy 90.0%"),
    ],
)
def test_what_the_callback_returned_is_shown(returned, expected):
    assert summary(Evaluation(0.25, 0.9), returned) == expected


def test_a_state_at_every_evaluation_with_all_that_is_known():
    states: list[State] = []
    model, dataset = network(), random_points()
    arguments = {"lr": 0.01, "batch_size": 16, "max_epochs": 5, "evaluate_every": 2}
    fit(model, dataset, **arguments, on_epoch=lambda epoch: {"epoch": epoch.number}, progress=states.append)
    assert [(state.share, state.passes, state.unit) for state in states] == [
        (0.0, 0, "examples"),
        (0.4, 120, "examples"),
        (0.8, 240, "examples"),
        (1.0, 300, "examples"),
    ]
    final = evaluate(model, dataset)
    assert states[-1].summary == f"loss {final.loss:.3f}  accuracy {final.accuracy:.1%}  epoch 5"


def test_a_long_epoch_shows_that_it_goes_on(monkeypatch):
    monkeypatch.setattr(loop, "STEPS_BETWEEN_LOOKS", 2)
    states: list[State] = []
    fit(network(), random_points(), lr=0.01, batch_size=16, max_epochs=2, evaluate_every=2, progress=states.append)
    assert [state.passes for state in states] == [0, 32, 60, 92, 120, 120]  # Batches of 16, 16, 16 and 12.
    assert len({state.summary for state in states[:-1]}) == 1  # of the evaluation before training


def test_plain_lines_name_the_model_and_nothing_is_printed_by_default(capsys, monkeypatch):
    monkeypatch.setattr("jostle.base.progress._SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    fit(network(), random_points(), lr=0.01, max_epochs=1)
    assert capsys.readouterr() == ("", "")
    fit(network(), random_points(), lr=0.01, max_epochs=1, progress=True, name="toy")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line[:15] for line in printed.err.splitlines()] == ["train toy:   0%", "train toy: 100%"]


def test_the_reporter_is_closed_when_a_callback_fails(monkeypatch):
    closed = []

    class Remembers:
        def __call__(self, state):
            pass

        def close(self):
            closed.append(True)

    module = importlib.import_module("jostle.training.fit")  # the name alone is the function
    monkeypatch.setattr(module, "reporter", lambda progress, label: Remembers())
    with pytest.raises(ZeroDivisionError):
        fit(network(), random_points(), lr=0.01, max_epochs=1, on_epoch=lambda epoch: 1 / 0)
    assert closed == [True]
