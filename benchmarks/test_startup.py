"""How long people wait before anything is measured: CPU seconds of whole processes, the median of three."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.records import record

ROUNDS = 3
STUDY = "2403.06925/proposition-3.2"
USE = (
    "import torch, jostle; jostle.measure(lambda x: x.sum(1), torch.ones(9, 4), tokens='coordinates', "
    "perturbation='sign-flip')"
)
COMMANDS = {
    "import": ["-c", "import jostle"],
    "torch": ["-c", "import torch"],
    "first-measurement": ["-c", USE],
    "help": ["-m", "jostle", "--help"],
    "measure-help": ["-m", "jostle", "measure", "--help"],
    "boolean": ["-m", "jostle", "boolean", "majority", "--n", "11"],
    "finished-run": ["-m", "jostle", "run", STUDY, "--out", "runs", "--quiet"],
    "report": ["-m", "jostle", "report", "runs", "-o", "report.html", "--force"],
}


def cpu_seconds(words: list[str], folder: Path) -> float:
    before = os.times()
    subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("start")
    cpu_seconds(COMMANDS["finished-run"], made)
    return made


@pytest.mark.parametrize("name", list(COMMANDS))
def test_start(name: str, folder: Path) -> None:
    seconds = statistics.median(cpu_seconds(COMMANDS[name], folder) for _ in range(ROUNDS))
    record(f"start-{name}", {"seconds": seconds})
    print(f"\n{name}: {seconds:.2f} s")
