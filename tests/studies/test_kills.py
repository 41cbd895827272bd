"""Training studies killed at random moments: what is recorded in the end is what an undisturbed run records.

Commands run in processes of their own, forked from one that has imported torch already, so that ten kills cost ten
times a part of the work and not ten times the start of Python.
"""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from jostle.base.store import Store
from jostle.data import DATASETS, Dataset
from jostle.studies import STUDIES
from jostle_papers.trained import Network, Noise, TrainingSettings, TrainingStudy

ROOT = Path(__file__).parent.parent.parent
SIZES = {"image_size": 28, "channels": 1, "classes": 10}
VIT = Network(
    model="vit-small",
    sizes={**SIZES, "patch_size": 7, "depth": 1, "heads": 1, "dim_head": 8, "mlp_dim": 16, "dim": 16},
    lr=0.003,
    optimizer="adam",
)
MLP = Network(model="mlp", sizes={**SIZES, "hidden": (16,)}, lr=0.0005, optimizer="adam")


def blobs(split):
    """Pictures of ten kinds that a small network tells apart after some epochs."""
    generator = torch.Generator().manual_seed(len(split))
    labels = torch.arange(200) % 10
    kinds = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    pictures = kinds[labels] + 2 * torch.randn(200, 1, 28, 28, generator=generator, dtype=torch.float32)
    return Dataset("blobs", pictures, labels, classes=10, split=split)


class First(TrainingStudy):
    """A vision transformer and an MLP, followed over training."""

    name = "trained/first"
    title = claim = source = "made up"
    version = 1
    settings = {"dataset": "blobs", "batch_size": 20, "max_epochs": 6, "passes": 100}  # noqa: RUF012
    scales = dict.fromkeys(
        ("smoke", "small", "paper"),
        TrainingSettings(seeds=1, networks={"vit": VIT, "mlp": MLP}, final={"loud": Noise(3.0)}, **settings),
    )

    def figures(self, records):
        return []  # they take as long as training does

    def expectations(self, records):
        return []


class Second(First):
    """The same networks, and other questions about them."""

    name = "trained/second"
    scales = dict.fromkeys(
        First.scales,
        TrainingSettings(seeds=1, networks={"vit": VIT, "mlp": MLP}, milestones=(0.3, 0.5), std=2.0, **First.settings),
    )


class Diverging(First):
    """One of three networks learns at an absurd rate."""

    name = "trained/diverging"
    networks = {"vit": VIT, "wild": dataclasses.replace(MLP, lr=1e30), "mlp": MLP}  # noqa: RUF012
    scales = dict.fromkeys(First.scales, TrainingSettings(seeds=1, networks=networks, **First.settings))


THINGS = {"blobs": blobs}, {study.name: study for study in (First, Second, Diverging)}


def make_known():
    """Register the pictures and the studies, in a process that ends with the test; other studies are not imported."""
    for registry, things in zip((DATASETS, STUDIES), THINGS, strict=True):
        registry._things.update(things)


PROGRAM = f"""
import json, os, resource, signal, socket, sys, traceback
sys.path.insert(0, {str(ROOT)!r})
import torch._dynamo  # slow to import, for any optimiser: once here, not in each command
from jostle import studies
from jostle.cli import main
from tests.studies.test_kills import make_known

def refuse(*_, **__):
    raise OSError(101, "Network is unreachable")

make_known()  # in worker processes too
socket.getaddrinfo = socket.socket.connect = refuse

def command(words, folder, environment, largest_file):
    os.setpgid(0, 0)
    os.chdir(folder)
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{{name}}-{{os.getpid()}}", os.O_WRONLY | os.O_CREAT), number)
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    code = 1
    try:
        main(words)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

if __name__ == "__main__":
    studies.names()
    running = set()
    for line in sys.stdin:
        wish, *given = json.loads(line)
        if wish == "start":
            answer = os.fork() or command(*given)
            os.setpgid(answer, answer)  # here as well, so that it has a group of its own before anybody is told
            running.add(answer)
        else:
            pid, status = os.waitpid(given[0], 0 if wish == "wait" else os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
            running.discard(pid)
        print(json.dumps(answer), flush=True)
    for pid in running:  # the tests were stopped
        os.killpg(pid, signal.SIGKILL)
"""


@dataclass
class Command:
    """A command under way."""

    commands: "Commands"
    pid: int
    code: int | None = None

    def is_running(self):
        if self.code is None:
            self.code = self.commands.ask("poll", self.pid)
        return self.code is None

    def signal(self, number):
        """To the command and all its workers, as a terminal or a scheduler does it."""
        os.killpg(self.pid, number)

    def ended(self):
        """Exit code, stdout and stderr."""
        if self.code is None:
            self.code = self.commands.ask("wait", self.pid)
        out, err = ((self.commands.folder / f"{name}-{self.pid}").read_text() for name in ("out", "err"))
        return self.code, out, err


class Commands:
    """Starts ``jostle`` commands in ``folder``, each in a process and a process group of its own, without a network."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM)
        environment = {key: value for key, value in os.environ.items() if key != "JOSTLE_DATA"}
        environment |= {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (folder / "trouble").open("w") as trouble:
            program = [sys.executable, folder / "program.py"]
            self.server = subprocess.Popen(program, env=environment, stderr=trouble, **pipes)

    def close(self):
        """Commands that are still running are killed."""
        self.server.communicate()

    def ask(self, *wish):
        self.server.stdin.write(json.dumps(wish) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        assert answer, (self.server.wait(), (self.folder / "trouble").read_text())
        return json.loads(answer)

    def start(self, *words, largest_file=None, **environment):
        texts = [str(word) for word in words]
        return Command(self, self.ask("start", texts, str(self.folder), environment, largest_file))

    def run(self, *words, **options):
        """Exit code, stdout and stderr of a whole command."""
        return self.start(*words, **options).ended()


_SHARED = []


def shared_commands(config, folders):
    """One for all tests of a session, because it takes seconds to import torch."""
    if not _SHARED:
        _SHARED.append(Commands(folders.mktemp("commands")))
        config.add_cleanup(_SHARED[0].close)
    return _SHARED[0]


def undisturbed(commands, study):
    """The folder of a run of ``study`` alone to which nothing happened."""
    out = commands.folder / study.__name__
    if not out.exists():
        code, _, err = commands.run("run", study.name, "--quiet", "--out", out)
        assert (code, err) == (0, "")
    return out


@pytest.fixture(scope="module")
def commands(pytestconfig, tmp_path_factory):
    return shared_commands(pytestconfig, tmp_path_factory)


def lines(out):
    """How much has been written so far."""
    paths = [*out.glob("networks/*/measured*.jsonl"), *out.glob("*/*/*/records.jsonl")]
    return sum(path.read_bytes().count(b"\n") for path in paths)


def wait_for_lines(command, out, count):
    while command.is_running() and lines(out) < count:
        time.sleep(0.001)
    assert command.is_running(), command.ended()


def records(out):
    """What was recorded of each cell of each study."""
    stores = {path.parent.parent.name: Store(path) for path in sorted(out.glob("*/*/*/records.jsonl"))}
    cells = [(study, store, key) for study, store in stores.items() for key in store if key.startswith("cell/")]
    return {(study, key): (store[key]["values"], store[key]["record"]) for study, store, key in cells}


def kept(out):
    """Bits of the weights of each kept network, and what was measured of it."""
    found = {}
    for place in (out / "networks").iterdir():
        tensors = load_file(place / "training.safetensors")
        [path] = place.glob("measured*.jsonl")
        store = Store(path)
        bits = {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
        found[place.name] = bits, {key: store[key] for key in store}
    return found


def killed(commands, words, out, kills, *, most_lines):
    """Start it, kill it, start it again, ... and let it end: the exit code."""
    chance = random.Random(f"{words} {kills}")
    for _ in range(kills):
        command = commands.start(*words, "--out", out)
        wait_for_lines(command, out, lines(out) + chance.randrange(most_lines))
        time.sleep(chance.uniform(0, 0.02))
        command.signal(signal.SIGKILL)
        code, _, _ = command.ended()
        assert code == -signal.SIGKILL, "it ended before it could be killed"
    return commands.run(*words, "--out", out)[0]


FIGURE = ("run", "2403.06925/figure-13", "--quiet", "--seeds", 3, "--set", "dataset=blobs", "--set", "max_epochs=30")


@pytest.fixture(scope="module")
def whole(commands, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    assert commands.run(*FIGURE, "--out", out)[0] == 0
    return out


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ten_kills_at_random_moments_change_no_bit(commands, whole, workers, tmp_path):
    assert killed(commands, (*FIGURE, "--workers", workers), tmp_path, 10, most_lines=10) == 0
    assert records(tmp_path) == records(whole)
    assert kept(tmp_path) == kept(whole)
    assert len(records(tmp_path)) == 6


def test_two_kills_change_no_bit(commands, tmp_path):
    whole = undisturbed(commands, First)
    assert killed(commands, ("run", First.name, "--quiet"), tmp_path, 2, most_lines=16) == 0
    assert records(tmp_path) == records(whole)
    assert kept(tmp_path) == kept(whole)


def assert_as_if_alone(commands, out):
    """Both studies have their own records, and each network has one set of weights and all that both asked of it."""
    first, second = (undisturbed(commands, study) for study in (First, Second))
    assert records(out) == records(first) | records(second)
    one, other, both = kept(first), kept(second), kept(out)
    assert both.keys() == one.keys() == other.keys()
    for name, (bits, measured) in both.items():
        assert bits == one[name][0] == other[name][0]
        assert measured == one[name][1] | other[name][1]


def test_a_network_that_one_study_was_killed_at_serves_another_and_then_the_first(commands, tmp_path):
    command = commands.start("run", First.name, "--quiet", "--out", tmp_path)
    wait_for_lines(command, tmp_path, 6)
    command.signal(signal.SIGKILL)
    assert command.ended()[0] == -signal.SIGKILL
    assert len(list((tmp_path / "networks").iterdir())) == 1
    for study in (Second, First):
        assert commands.run("run", study.name, "--quiet", "--out", tmp_path)[0] == 0
    assert_as_if_alone(commands, tmp_path)


@pytest.mark.slow
def test_two_studies_at_once_share_their_networks_and_not_a_line(commands, tmp_path):
    both = [commands.start("run", study.name, "--quiet", "--out", tmp_path) for study in (First, Second)]
    assert [command.ended()[0] for command in both] == [0, 0]
    assert_as_if_alone(commands, tmp_path)
