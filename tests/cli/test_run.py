"""``jostle run`` and ``jostle report`` as a person meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tests.studies.toys import Toy, make_known


@pytest.fixture(autouse=True)
def _known(monkeypatch, tmp_path):
    make_known(monkeypatch)
    monkeypatch.chdir(tmp_path)


def test_run_prints_the_verdict_and_report_makes_a_page(capsys):
    code, out, err = run(capsys, "run", "toy/noise", "--scale", "small", "--quiet")
    assert (code, err) == (0, "")
    assert out.startswith("toy/noise (small): AGREES\n")
    code, out, _ = run(capsys, "report", "runs", "-o", "pages/report.html")
    assert (code, out) == (0, "report of 1 run: pages/report.html\n")
    assert "Verdict: AGREES." in Path("pages/report.html").read_text()
    code, out, _ = run(capsys, "report", "--markdown")
    assert "| toy/noise |" in out
    assert not Path("report.html").exists()
    code, out, _ = run(capsys, "report", "--json", "-o", "report.html")
    assert json.loads(out)[0]["status"] == "AGREES"
    assert Path("report.html").exists()


def test_json_is_a_list_of_summaries_and_nothing_else(capsys):
    words = ("--set", "gap=-10", "--set", "stds=1/2", "--seeds", 4, "--out", "other", "--quiet", "--json")
    code, out, _ = run(capsys, "run", "toy/noise", "toy/noise", "--scale", "small", *words)
    assert code == 0
    [summary] = json.loads(out)
    assert summary["verdict"] == "DISAGREES"
    assert summary["modified"] == {"gap": -10.0, "stds": [1.0, 2.0]}
    assert summary["seeds"] == 4
    assert Path("other/toy/noise").is_dir()


@pytest.mark.parametrize("command", ["run", "report"])
def test_help_teaches(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "--json" in out
    assert f"jostle {command} " in out
    assert "set_" not in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "toy/nose"), "unknown study 'toy/nose'; did you mean toy/noise?"),
        (("run", "toy/noise", "toy/nose"), "unknown study 'toy/nose'"),
        (("run",), "jostle run --help"),
        (("run", "toy/noise", "--scale", "big"), "scale"),
        (("run", "toy/noise", "--set", "size"), "--set 'size' must read KEY=VALUE"),
        (("run", "toy/noise", "--set", "siez=3"), "unknown setting 'siez'; did you mean size?"),
        (("run", "toy/noise", "--set", "size=1", "--set", "size=2"), "--set names 'size' twice"),
        (("run", "toy/noise", "--set", "size=big"), "setting size='big' must be int"),
        (("run", "toy/noise", "--seeds", "0"), "seeds=0 must be"),
        (("run", "toy/noise", "--workers", "0"), "workers=0 must be"),
        (("report", "nowhere"), "runs folder nowhere does not exist"),
        (("report", ".", "-o", "."), "is a directory; give the name of a file, for example report.html"),
        (("report", ".", "-o", "good.html"), ". holds no runs of studies"),
        (("report", ".", "--json"), ". holds no runs of studies"),
    ],
)
def test_wrong_use_is_one_line_exit_code_2_and_writes_nothing(capsys, words, message):
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []


def test_another_version_is_one_line_and_fresh_starts_anew(capsys, monkeypatch):
    run(capsys, "run", "toy/noise", "--quiet")
    monkeypatch.setattr(Toy, "version", 2)
    code, _, err = run(capsys, "run", "toy/noise", "--quiet")
    assert code == 2
    assert "--fresh" in err
    assert err.count("\n") == 1
    code, _, _ = run(capsys, "run", "toy/noise", "--quiet", "--fresh")
    assert code == 0


def test_failed_cells_are_a_line_each_exit_code_1_and_debug_shows_where(capsys):
    words = ("run", "toy/noise", "--set", "broken=mlp/seed=0,mlp/seed=1", "--quiet")
    code, out, err = run(capsys, *words)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "jostle: 2 of 4 cells of toy/noise failed; the others are kept, start again to retry",
        "  mlp/seed=0: ValueError: cannot do mlp/seed=0, sorry",
        "  mlp/seed=1: ValueError: cannot do mlp/seed=1, sorry",
    ]
    code, _, err = run(capsys, *words, "--debug")
    assert code == 1
    assert 'raise ValueError(f"cannot do' in err


def test_progress_counts_cells(capsys, monkeypatch):
    monkeypatch.setattr("jostle.base.progress._SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = run(capsys, "run", "toy/noise")
    assert "toy/noise:  12%  vit/seed=0  half way  0 of 4 cells" in err
    assert "toy/noise: 100%  mlp/seed=1" in err
    assert "4 of 4 cells" in err


def test_ctrl_c_keeps_finished_cells(capsys, monkeypatch):
    measure = Toy.measure

    def interrupted(self, cell, settings, context):
        if cell.key == "mlp/seed=0":
            raise KeyboardInterrupt
        return measure(self, cell, settings, context)

    monkeypatch.setattr(Toy, "measure", interrupted)
    code, out, err = run(capsys, "run", "toy/noise", "--quiet")
    assert (code, out) == (130, "")
    assert err == "finished cells are kept in runs: start again to continue\njostle: interrupted\n"
    assert Path("runs/toy/noise/smoke/records.jsonl").read_text().count('"cell/') == 2


PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from jostle import studies
from jostle.cli import main
from tests.studies.toys import Toy
if __name__ == "__main__":
    studies.register(Toy)
    main(["run", "toy/noise", "--set", "delay=0.2", "--quiet", "--workers", "{workers}"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_in_a_process_of_its_own_exits_with_130(workers):
    Path("program.py").write_text(PROGRAM.format(workers=workers, root=str(Path(__file__).parent.parent.parent)))
    command = [sys.executable, "program.py"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        ends = time.monotonic() + 60
        while not any(
            path.read_bytes().count(b"\n") >= 3 for path in Path.cwd().glob("runs/toy/noise/*/records.jsonl")
        ):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < ends
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the workers as well
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "finished cells are kept in runs: start again to continue\njostle: interrupted\n"
