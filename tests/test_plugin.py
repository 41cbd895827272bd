"""A package of somebody else's adds a model, a dataset, a perturbation, a response and a study: examples/plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "examples" / "plugin"

PROGRAM = """
import json, sys
import jostle
found = {
    "models": jostle.models.names(), "data": jostle.data.names(),
    "perturbations": jostle.perturbations.PERTURBATIONS.names(), "responses": jostle.responses.RESPONSES.names(),
    "studies": [name for name in jostle.studies.names() if name.startswith("plugin/")],
}
found["imported"] = sorted(name for name in sys.modules if name.startswith(("jostle_plugin", "jostle_papers")))
model = jostle.models.create("checkerboard-net", share=0.25)
boards = jostle.data.load("checkerboards", split="train")
m = jostle.measure(model, boards, tokens="coordinates", perturbation="negative", response="decided-flip:least=0.5")
found["measured"] = [m.value, m.low, m.high, m.settings.perturbation, m.settings.response]
found["study"] = jostle.run("plugin/checkerboard", out="runs", progress=False).findings[0].measured
found["after"] = sorted(name for name in sys.modules if name.startswith("jostle_papers"))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the plug-in as pip installs it, without fetching anything."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    copy = tmp_path_factory.mktemp("source") / "plugin"  # pip leaves build folders behind
    subprocess.run(["cp", "-r", str(PLUGIN), str(copy)], check=True)
    done = subprocess.run([*pip, "--target", str(folder), str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def run(installed, folder, *command):
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_of_a_plugin_is_found_by_name_and_imported_only_when_asked_for(installed, tmp_path):
    found = json.loads(run(installed, tmp_path, sys.executable, "-c", PROGRAM))
    assert "checkerboard-net" in found["models"]
    assert "checkerboards" in found["data"]
    assert "negative" in found["perturbations"]
    assert "decided-flip" in found["responses"]
    assert found["studies"] == ["plugin/checkerboard"]
    assert found["imported"] == []
    assert found["measured"] == [1 / 64, 1 / 64, 1 / 64, "negative", "decided-flip:least=0.5"]
    assert found["study"] == "0"  # networks for which it does not hold
    assert found["after"] == []


def test_the_command_line_finds_them_too(installed, tmp_path):
    jostle = (sys.executable, "-m", "jostle")
    assert "checkerboard-net" in run(installed, tmp_path, *jostle, "list", "models")
    words = ("--model", "zoo:checkerboard-net", "--data", "checkerboards", "--perturbation", "negative", "--json")
    out = run(installed, tmp_path, *jostle, "measure", *words, "--tokens", "coordinates", "--quiet")
    assert json.loads(out)["value"] == 1 / 64


def test_a_plugin_that_cannot_be_imported_is_one_line(installed, tmp_path):
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    entry = "[jostle.models]\nbroken-net = no_such_package:Net\n"
    (tmp_path / "broken-1.dist-info" / "entry_points.txt").write_text(entry)
    program = (
        "import jostle\ntry:\n    jostle.models.create('broken-net')\nexcept jostle.JostleError as e:\n    print(e)"
    )
    out = run(tmp_path, tmp_path, sys.executable, "-c", program)
    assert out == (
        "the model 'broken-net' of the package broken cannot be imported: ModuleNotFoundError: No module named "
        "'no_such_package'\n"
    )
