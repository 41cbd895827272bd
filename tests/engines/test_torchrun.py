"""``torchrun -m jostle measure`` in two gloo processes: the number of one process, also if one of them is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.engines.works import pictures
from tests.estimates.test_workers import plain_record

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
FACTORY = """
import os, sys
sys.path.insert(0, {root!r})
from tests.engines.toy import die_once
from tests.engines.works import Net
from pathlib import Path

class Mortal(Net):
    def forward(self, images):
        if os.environ.get("RANK") == "1" and self.calls > 4:
            die_once(Path({mark!r}))
        return super().forward(images)

def make(mortal=False):
    return Mortal() if mortal else Net()
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "factory.py").write_text(FACTORY.format(root=str(ROOT), mark=str(tmp_path / "mark")))
    np.save(tmp_path / "inputs.npy", pictures().numpy())
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}

    def run(before, command, model, *after):
        words = [*before, "-m", "jostle", command, "--model", f"py:{tmp_path}/factory.py:make{model}"]
        words += ["--data", str(tmp_path / "inputs.npy"), "--tokens", "patches:4", "--json", "--quiet", *after]
        found = subprocess.run(words, capture_output=True, text=True, timeout=400, env=environment, check=False)
        assert found.returncode == 0, found.stderr
        return json.loads(found.stdout)  # one process speaks for all

    return run


GANG = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def test_two_processes_give_the_number_of_one(run, tmp_path):
    options = ("--half-width", "0.01", "-o", str(tmp_path / "result.json"))
    two = run(GANG, "measure", "", *options)
    assert (tmp_path / "result.json").exists()
    one = run([sys.executable], "measure", "", *options, "--force")
    assert plain_record(two) == plain_record(one)
    again = run([*GANG, "--max-restarts", "3"], "measure", ":mortal=true", *options, "--force")
    assert (tmp_path / "mark").exists()
    assert plain_record(again | {"name": one["name"]}) == plain_record(one)


def test_a_sweep(run):
    options = ("--stds", "0.5", "1", "--draws", "2")
    two, one = (run(before, "sweep", "", *options) for before in (GANG, [sys.executable]))
    assert plain_record(two) == plain_record(one)
