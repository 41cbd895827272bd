"""Lines in a log, a bar on a terminal, a function of one's own, or nothing."""

import io
import re
import sys

import pytest
import torch

import jostle
from jostle.base import progress
from jostle.base.progress import Remaining, State, reporter

STATES = [State(0.25, 1000, "0.1 ± 0.05"), State(0.5, 2000, "0.2 ± 0.02"), State(1.0, 1234567, "0.3 ± 0.01")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def pretend_terminal(monkeypatch):
    """A terminal in the place of stderr; called inside a test, since pytest sets stderr anew after its fixtures."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves when told to."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def tell(report):
    for state in STATES:
        report(state)
    report.close()


def test_a_log_gets_whole_lines(capsys, clock):
    report = reporter(True, "vit")
    for state in STATES:
        clock[0] += 2.5
        report(state)
    report.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split() for line in err.splitlines()] == [
        ["vit:", "25%", "0.1", "±", "0.05", "1,000", "passes"],
        ["vit:", "50%", "0.2", "±", "0.02", "2,000", "passes"],  # 2.5 s are too few to say what is left
        ["vit:", "100%", "0.3", "±", "0.01", "1,234,567", "passes"],
    ]


def test_a_log_gets_one_line_in_two_seconds_at_most(capsys, clock):
    report = reporter(True, "vit")
    for step in range(49):
        report(State(step / 48, step, f"step {step}", "examples"))
        clock[0] += 0.125
    lines = capsys.readouterr().err.splitlines()
    assert [re.search(r"step (\d+)  \d+ examples", line).group(1) for line in lines] == ["16", "32", "48"]


def left(clock, *states):
    """What is said at each of (seconds since the beginning, share)."""
    remaining, began, said = Remaining(), clock[0], []
    for seconds, share in states:
        clock[0] = began + seconds
        said.append(remaining(share))
    return said


def test_a_steady_pace_is_told_exactly(clock):
    steps = [(10 * step, step / 100) for step in range(101)]
    said = left(clock, *steps)
    assert said[0] == said[100] == ""
    assert [said[step] for step in (10, 50, 88, 95)] == [
        f"about {each} left" for each in ("15 min", "8 min", "2 min", "50 s")
    ]


def test_what_an_interrupted_run_had_done_took_no_time(clock):
    assert left(clock, (0, 0.6), (20, 0.7)) == ["", "about 60 s left"]


def test_a_change_of_pace_is_noticed(clock):
    slow = [(100 * step, step / 20) for step in range(11)]  # half of it in 1000 s
    fast = [(1000 + 10 * step, 0.5 + step / 20) for step in range(1, 10)]  # the rest in 100 s
    assert left(clock, *slow, *fast)[-1] == "about 19 s left"  # 58 s from the mean pace


def test_a_share_that_stands_still_makes_the_time_longer(clock):
    assert left(clock, (0, 0.0), (100, 0.5), (300, 0.5)) == ["", "about 2 min left", "about 5 min left"]


def test_a_million_states_are_not_kept(clock):
    remaining = Remaining()
    for state in range(10**5):
        clock[0] += 0.01
        said = remaining(state / 10**6)
    assert said == "about 2.5 h left"  # 9,000 s
    assert len(remaining._shares) <= 1001


def test_nothing_is_said_before_it_is_known(clock):
    assert left(clock, (0, 0.0), (2.9, 0.5), (2.95, 0.6)) == ["", "", ""]
    assert left(clock, (0, 0.0), (100, 0.005)) == ["", ""]


def test_logs_and_bars_say_what_is_left(monkeypatch, capsys, clock):
    for make in (lambda: None, lambda: pretend_terminal(monkeypatch)):
        terminal, report = make(), reporter(True, "vit")
        for share in (0.0, 0.5, 0.6):
            report(State(share, 10, "0.1"))
            clock[0] += 300
        report.close()
        assert "about 7 min left" in (terminal.getvalue() if terminal else capsys.readouterr().err)


def test_a_terminal_gets_a_bar_that_disappears(monkeypatch, capsys):
    terminal = pretend_terminal(monkeypatch)
    tell(reporter(True, "vit"))
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.getvalue())
    assert "vit" in shown
    assert "0.3 ± 0.01" in shown
    assert "1,234,567 passes" in shown
    assert "━" in shown
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")  # one line up, and erased
    assert capsys.readouterr().out == ""


def test_a_function_is_told_every_state():
    told = []
    tell(reporter(told.append, "vit"))
    assert told == STATES


def test_nothing_is_nothing(capsys, clock):
    clock[0] += 100
    tell(reporter(False, "vit"))
    assert capsys.readouterr() == ("", "")


def test_a_measurement_shows_its_bar_and_takes_it_away_even_if_the_model_fails(monkeypatch):
    terminal = pretend_terminal(monkeypatch)
    inputs = torch.randn(30, 4)
    options = {"tokens": "rows", "perturbation": "gaussian-noise:1", "progress": True}
    jostle.measure(lambda x: x, inputs, name="fine", plan="grid:1", **options)
    assert "fine" in terminal.getvalue()
    with pytest.raises(jostle.FailureError):
        jostle.measure(lambda x: x[:, 9], inputs, name="broken", plan="grid:1", **options)
    assert "broken" in terminal.getvalue()
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 2  # the cursor is back


def test_progress_changes_no_number():
    inputs = torch.randn(30, 4)
    options = {"tokens": "rows", "perturbation": "gaussian-noise:1", "plan": "grid:2"}
    shown = jostle.measure(lambda x: x, inputs, progress=lambda _: None, **options)
    assert shown.per_input.tolist() == jostle.measure(lambda x: x, inputs, **options).per_input.tolist()
