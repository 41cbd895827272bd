"""A finished study answers from its summary, without torch, until anything changes."""

import json
import os
import subprocess
import sys

import pytest

from jostle import studies
from jostle.cli import main
from jostle.studies import finished as marks
from jostle.studies.catalogue import STUDIES
from jostle.studies.finished import current_version, finished

NAME = "2403.06925/proposition-3.2"


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    studies.run(NAME, "smoke", folder, seeds=1, progress=False)
    return folder


def test_the_summary_is_that_of_the_run(out):
    again = studies.run(NAME, "smoke", out, seeds=1, progress=False)
    assert finished(NAME, "smoke", out, 1, None) == again.summary


def test_the_command_says_the_same_and_runs_nothing(out, capsys, monkeypatch):
    words = ["run", NAME, "--seeds", "1", "--out", str(out), "--quiet"]
    expected = studies.run(NAME, "smoke", out, seeds=1, progress=False)
    monkeypatch.setattr(studies, "run", lambda *_, **__: 1 / 0)
    main(words)
    assert capsys.readouterr().out == f"{expected}\n"
    main([*words, "--json"])
    assert json.loads(capsys.readouterr().out) == [studies.to_plain(expected.summary)]
    for more in (["--fresh"], ["--set", "rhos=[0.5]"], ["--data", str(out)]):
        with pytest.raises(SystemExit):
            main([*words, *more])
        assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["records", "figure", "summary", "source", "seeds"])
def test_any_change_makes_it_unfinished(out, change, monkeypatch, tmp_path):
    folder, seeds = out / NAME / "smoke", 1
    studies.run(NAME, "smoke", out, seeds=1, progress=False)
    assert finished(NAME, "smoke", out, 1, None) is not None
    if change == "seeds":
        seeds = 2
    elif change == "source":
        for package in ("jostle", "jostle_papers"):
            (tmp_path / package).mkdir()
            (tmp_path / package / "changed.py").touch()
        monkeypatch.setattr(marks, "_place", lambda package: tmp_path / package)
    elif change == "figure":
        next((folder / "figures").iterdir()).unlink()
    else:
        path = folder / ("records.jsonl" if change == "records" else "summary.json")
        os.utime(path, ns=(1, 1))
    assert finished(NAME, "smoke", out, seeds, None) is None


def test_what_was_never_run_is_unfinished(out, tmp_path):
    assert finished(NAME, "small", out, 1, None) is None
    assert finished("no/such-study", "smoke", out, 1, None) is None


@pytest.mark.parametrize("name", STUDIES.names())
def test_versions_are_read_in_the_source(name):
    written = marks._written_version(STUDIES.home(name))
    assert written == STUDIES.get(name).version
    assert current_version(name) == written


def test_no_version_where_there_is_no_study():
    assert current_version("no/such-study") is None
    assert marks._written_version("jostle.studies.study:Study") is None
    assert marks._written_version("jostle.no_such_module:Study") is None


@pytest.mark.parametrize(
    "words",
    [["run", NAME, "--seeds", "1", "--quiet", "--out"], ["report", "--json"], ["boolean", "majority", "--n", "7"]],
)
def test_neither_torch_nor_matplotlib_is_imported(out, words):
    given = words if words[0] == "boolean" else [*words, str(out)]
    studies.run(NAME, "smoke", out, seeds=1, progress=False)
    code = f"import sys; from jostle.cli import main; main({given!r}); print(sys.modules.keys(), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("torch", "matplotlib", "scipy.stats"):
        assert f"'{heavy}'" not in done.stderr
    assert "'jostle'" in done.stderr
