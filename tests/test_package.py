"""What is published: a wheel with everything it needs and nothing else, and what stands beside it."""

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import jostle

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "package.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
needs_hatchling = pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling builds the wheel")


def run(*words):
    return subprocess.run([sys.executable, str(TOOL), *words], capture_output=True, text=True, check=False)


@needs_hatchling
def test_wheel_and_source_hold_what_they_should():
    ended = run("--look")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs_hatchling
@pytest.mark.slow
def test_wheel_and_source_work_where_nothing_else_of_the_project_is():
    ended = run("--borrow")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_look_notices_what_is_missing_and_what_is_too_much(tmp_path):
    import tarfile
    import zipfile

    spec = importlib.util.spec_from_file_location("package_tool", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as file:
        file.writestr("jostle/__init__.py", "")
        file.writestr("jostle/junk.log", "")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as file:
        file.add(TOOL, "jostle-0/tools/package.py")
    found = tool.problems(tmp_path / "a.whl", tmp_path / "a.tar.gz")
    assert "wheel lacks jostle/py.typed" in found
    assert "wheel lacks jostle/report/page.html.j2" in found
    assert "wheel holds jostle/junk.log" in found
    assert "sdist holds tools/package.py" in found
    assert "sdist lacks pyproject.toml" in found


def test_the_version_is_one_number():
    assert PROJECT["version"] == jostle.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == jostle.__version__


def test_extras_are_there_and_none_is_a_part_of_the_core():
    extras = PROJECT["optional-dependencies"]
    assert {"hf", "onnx", "sklearn", "lightning", "metrics", "ray", "play", "docs", "tables", "samples"} <= set(extras)
    core = {name.split(">")[0].lower() for name in PROJECT["dependencies"]}
    assert not core & {"transformers", "lightning", "torchmetrics", "ray", "pandas", "onnxruntime", "scikit-learn"}


def test_every_way_calls_the_same_two_commands():
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())["jobs"]["test"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["make test", "make check"]
    assert "make test && make check" in (ROOT / "Dockerfile").read_text()
    script = (ROOT / ".ci" / "run").read_text()
    assert script.index("make test") < script.index("make check")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert "make check" in [hook["entry"] for hook in hooks]
