"""A slice of `make chaos`: seconds of mutated files, command lines, odd arguments and kills."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="forks are of Unix")


@pytest.fixture(scope="module", autouse=True)
def _tools():
    sys.path.insert(0, str(ROOT / "tools"))
    yield
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def work(tmp_path):
    torch.set_default_dtype(torch.float32)
    return tmp_path


def test_mutated_files_are_read_or_refused_in_one_line(work):
    from chaos import files, samples
    from chaos.record import Count

    rng, count = random.Random(0), Count()
    readers = samples.readers(work / "good")
    assert len(readers) > 25
    for reader in readers:
        for content in reader.contents:
            assert files.try_file(reader, work, content) == ("read", "")
        files.attack(reader, work, rng, count, 8)
    assert count.faults == []
    assert sum(count.ended.values()) == 8 * len(readers)


def test_a_reader_that_runs_code_or_breaks_or_lies_is_found(work):
    import pickle

    from chaos.files import Harmful, Reader, try_file

    good = (b"0123456789",)
    cases = {
        "code executed": lambda path: pickle.loads(path.read_bytes()),
        "traceback": lambda path: 1 / 0,
        "silent wrong number": lambda path: path.read_bytes(),
    }
    import os

    before = os.getcwd()  # noqa: PTH109
    os.chdir(work)
    try:
        for kind, read in cases.items():
            content = pickle.dumps(Harmful()) if kind == "code executed" else b"012345678x"
            assert (
                try_file(Reader("x", ".x", good, read, notices=kind == "silent wrong number"), work, content, good)[0]
                == kind
            )
    finally:
        os.chdir(before)


LINES = """
import json, random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from chaos import mutations, words
from chaos.record import Count
import jostle.cli.app
import jostle.cli.subject
rng, count, home = random.Random(1), Count(), Path(sys.argv[2])
words.make_folder(home)
others = sorted({word for line in words.LINES for word in line.split()})
cheap = ("boolean", "list pert", "data", "help", "--version")  # the others run in make chaos
for line in [line for line in words.LINES if line.startswith(cheap)] * 2:
    words.attack(mutations.mutate(line.split(), rng, others), home, count)
print(json.dumps([count.faults, sum(count.ended.values())]))
"""


def test_mutated_command_lines_end_in_a_line(work):
    """In a process of its own: the command line writes to the stderr that it was imported with."""
    call = [sys.executable, "-c", LINES, str(ROOT / "tools"), str(work / "home")]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    faults, ended = json.loads(done.stdout.splitlines()[-1])
    assert faults == []
    assert ended > 10


def test_odd_arguments_are_refused_in_one_line(work):
    from chaos import functions
    from chaos.record import Count

    count = Count()
    for name in functions.ATTACKS:
        functions.attack(name, 15, 3, count)
    assert count.faults == []
    assert count.ended["refused in one line"] > 10


def test_kills_leave_the_same_records(work):
    from chaos.kills import Attack, Victim

    victim = Victim("run", ("run", "2403.06925/table-1", "--scale", "smoke", "--out", "{out}", "--quiet"))
    attack = Attack(work, random.Random(2), share_of_cold=0.0)
    attack.attack(victim, 4)
    assert attack.count.faults == []
    assert sum(attack.count.tried.values()) > 1
    expected, _ = attack.reference(victim)
    assert any("records.jsonl" in name for name in expected)


def test_the_page_is_that_of_the_record():
    from chaos import page, record

    assert (ROOT / "docs" / "chaos.md").read_text() == page.page(record.read())


def test_a_result_of_an_interrupted_command_is_known_as_partial():
    """One that is not is compared with a whole one, and called changed."""
    from chaos.kills import is_partial

    assert is_partial({"kind": "jostle/measurement", "stopped": "interrupted"})
    assert is_partial({"kind": "jostle/sweep", "missing": [2.0], "comparisons": []})
    assert not is_partial({"kind": "jostle/sweep", "missing": [], "comparisons": [{"stopped": "half_width"}]})


def test_a_traceback_that_was_asked_for_is_no_fault():
    from chaos.forks import Outcome
    from chaos.record import Count
    from chaos.words import _judge

    shown = "Traceback (most recent call last):\n  ...\njostle: --data is missing\n"
    for words, err, faults in (
        (["measure", "--debug"], shown, []),
        (["measure"], shown, ["traceback"]),
        (["measure", "--debug"], shown + "jostle: unexpected KeyError: 1\n", ["traceback"]),
        (["measure"], "jostle: unexpected KeyError: 1\n", ["traceback"]),
    ):
        count = Count()
        _judge(words, Outcome(2, "", err, 0.1), count)
        assert [fault["kind"] for fault in count.faults] == faults


def test_a_command_that_is_killed_at_once_does_not_run_the_handlers_of_the_attack(work):
    """A fork has the handlers of its parent until it sets its own; a signal has to wait for that."""
    import signal

    from chaos.forks import Running

    def ours(*_):
        sys.exit(143)

    before = signal.signal(signal.SIGTERM, ours)
    try:
        for _ in range(40):
            running = Running(lambda: 0 if __import__("time").sleep(20) else 1, work)
            running.kill(signal.SIGTERM)
            assert running.outcome(20).code == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ctrl_c_before_a_command_begins_is_no_fault_of_the_command(work):
    import signal
    import time

    from chaos.forks import Running

    for _ in range(10):
        running = Running(lambda: time.sleep(20), work)
        running.kill(signal.SIGINT)
        ended = running.outcome(20)
        assert (ended.code, ended.err) == (130, "")


@pytest.mark.parametrize("name", ["measure", "sweep"])
def test_the_same_numbers_by_one_process_or_two_are_the_same_result(work, name):
    """What is said about processes is no part of a result; a note about it made 17 sweeps and 8 measurements differ."""
    from chaos.forks import call
    from chaos.kills import _steady, victims

    victim = next(one for one in victims() if one.name == name)
    found = []
    for workers in (1, 2):
        out = work / str(workers)
        out.mkdir()
        ended = call(victim.command(out, work, workers), out, 120)
        assert ended.code == 0
        written = (out / "r.json").read_text()
        assert ("measured in one process" in written) == (workers == 2)
        found.append(json.loads(written))
    assert _steady(found[0]) == _steady(found[1])
    assert _steady({"value": 0.5}) != _steady({"value": 0.6})
    assert _steady({"notes": []}) != _steady({"notes": ["of 3 inputs"]})


def test_what_other_code_did_is_no_reference(work, monkeypatch):
    from chaos import kills

    def made(words):
        attack = kills.Attack(work, random.Random(0))
        return attack.reference(
            kills.Victim("boolean", ("boolean", "majority", "--n", words, "--figure", "{out}/f.svg"))
        )

    first = made("3")
    assert made("3") == first  # the same code: kept, with its seconds
    assert made("5")[0] != first[0]
    monkeypatch.setattr(kills, "code", lambda: "of tomorrow")
    assert made("3")[1] != first[1]


def test_kills_are_spread_over_all_commands_those_first_that_were_spared(work, monkeypatch):
    from chaos import kills

    asked = []

    def attack(self, victim, count):
        asked.append((victim.name, count))
        self.count.where[victim.name] += count - 1
        self.count.tried["parent SIGKILL"] += count - 1

    monkeypatch.setattr(kills.Attack, "attack", attack)
    names = [victim.name for victim in kills.victims()]
    spared = names[7]
    kills.run(work, 1000, 0, lambda count: [part.clear() for part in (count.tried, count.where)],
              {name: 5 for name in names if name != spared})  # fmt: skip
    assert asked[0][0] == spared
    assert {name for name, _ in asked} == set(names)
    assert len({name for name, _ in asked[: len(names)]}) == len(names)  # all of them before any comes again
    with pytest.raises(SystemExit, match="no command is called measures"):
        kills.named(["sweep", "measures"])
