"""Units in several processes, some of which die."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from jostle.base.errors import FailureError, UsageError
from jostle.engines import Automatic, Done, Failed, Lost, Processes, Serial, automatic, choose
from jostle.studies.workers import alone
from tests.engines.toy import Toy


@pytest.fixture(scope="module")
def crew():
    with Processes(2).crew(Toy()) as crew:
        yield crew


def test_results_come_in_the_order_of_the_units(crew):
    units = [("sleep", 0.2, "slow"), *range(20)]
    assert list(crew.results(units)) == ["slow", *(number * number for number in range(20))]
    with Serial().crew(Toy()) as here:
        assert list(here.results(units)) == list(crew.results(units))


def test_units_end_in_any_order_and_tell_how_far_they_are(crew):
    states = []
    ended = dict(crew.outcomes([("sleep", 0.8, "slow"), 3], lambda unit, state: states.append((unit, state.summary))))
    assert ended == {0: Done("slow"), 1: Done(9)}
    assert all(told[1] == "halfway" for told in states)


def test_both_processes_work(crew):
    assert len(set(crew.results([("where", 0.2)] * 6))) == 2


def test_a_killed_process_costs_one_unit_which_is_done_again(crew, tmp_path):
    before = crew.deaths
    units = [1, ("die_once", str(tmp_path / "mark"), "alive"), *range(10)]
    assert list(crew.results(units)) == [1, "alive", *(number * number for number in range(10))]
    assert crew.deaths == before + 1


def test_a_unit_that_always_kills_is_given_up(crew):
    ended = dict(crew.outcomes([("die",), 5], lambda *_: None))
    assert ended == {0: Lost("process died (killed by signal 9)", 3), 1: Done(25)}
    with pytest.raises(FailureError, match="if memory ran out, use fewer workers"):
        list(crew.results([("die",)]))


def test_what_a_unit_raises_is_raised_here_once(crew):
    with pytest.raises(UsageError, match=r"^no such luck$"):
        list(crew.results([1, ("complain", "no such luck"), ("complain", "later")]))
    [(_, outcome)] = crew.outcomes([("complain", "x")], lambda *_: None)
    assert isinstance(outcome, Failed)
    assert "in complain" in outcome.trace


def test_what_an_abandoned_call_left_in_the_workers_is_thrown_away(crew):
    abandoned = crew.outcomes([1, *[("sleep", 0.5, "late")] * 4], lambda *_: None)
    next(abandoned)
    abandoned.close()
    assert list(crew.results([2, 3])) == [4, 9]


def test_what_cannot_be_pickled_is_one_clear_line(crew):
    with pytest.raises(UsageError, match=r"a unit of work cannot be sent to other processes .*lock"):
        list(crew.results([threading.Lock()]))
    work = Toy()
    work.lock = threading.Lock()
    with pytest.raises(UsageError, match=r"cannot be sent to other processes .*lock"), Processes(2).crew(work):
        pass


SCRIPT = """
from jostle.engines import Processes

class Local:
    def do(self, unit, report):
        return -unit

with Processes(2).crew(Local()) as crew:
    print(sum(crew.results(range(4))))
"""


def test_a_script_without_a_guard_is_not_started_again(tmp_path):
    """Its classes travel by value."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    found = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout == "-6\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "cloud"}, "engine='cloud' must be serial, processes, ray, torchrun"),
        ({"workers": 0}, "workers=0 must be"),
        ({"workers": 10**6}, "workers=1000000 must be a whole number from 1 to 1024"),
        ({"workers": 2, "cpus": 0}, "cpus=0 must be"),
        ({"workers": 2, "cpus": 2**31 - 1}, "cpus=2147483647 must be a whole number from 1 to 1024"),
        ({"engine": "ray", "cpus": 2**31 - 1}, "cpus=2147483647 must be"),
        ({"cpus": 10**12}, "cpus=1000000000000 must be"),
        ({"engine": "serial", "workers": 2}, "engine=serial has one worker, not 2"),
        ({"workers": 2, "address": "auto"}, "address=auto is for engine=ray"),
        ({"engine": "torchrun"}, "needs a process that torchrun started"),
        ({"engine": Serial(), "workers": 2}, "are arguments of the engine"),
    ],
)
def test_wrong_arguments_are_one_clear_line(arguments, message):
    with pytest.raises(UsageError, match=message):
        choose(**arguments)


@pytest.mark.parametrize(
    ("processors", "load", "count"), [(2, 0.4, 2), (2, 1.3, 2), (2, 1.6, 1), (2, 9.0, 1), (8, 3.0, 6), (1, 0.0, 1)]
)
def test_without_a_number_only_free_processors_get_processes(processors, load, count, monkeypatch):
    """On busy processors two processes were no faster than one, and took seconds to start."""
    monkeypatch.setattr(automatic, "cores", lambda: processors)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert Automatic().count == count
    assert Automatic().is_possible == (count > 1)
    assert Automatic(workers=3).count == 3


def test_a_cell_of_a_study_starts_no_processes_of_its_own():
    engine = Automatic(workers=2)
    assert engine.is_possible
    with alone("a cell"):
        assert not engine.is_possible
    assert engine.is_possible
