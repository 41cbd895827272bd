"""``jostle run`` when something goes wrong, in processes of its own: what is printed, the exit code, what is kept.

The same from Python: ``tests/studies/test_failures.py``.
"""

import signal

import pytest

from jostle.data import DATASETS
from tests.studies.test_kills import Diverging, First, Second, records, shared_commands, undisturbed, wait_for_lines

OF_TWO = "jostle: 2 of 2 cells of trained/first failed; the others are kept, start again to retry"


@pytest.fixture(scope="module")
def commands(pytestconfig, tmp_path_factory):
    return shared_commands(pytestconfig, tmp_path_factory)


@pytest.fixture(scope="module")
def whole(commands):
    return undisturbed(commands, First)


def failed(commands, out, *words, code=1, **options):
    """The lines on stderr of a run that must fail with ``code``, print nothing else and no traceback."""
    found, printed, err = commands.run("run", First.name, "--quiet", "--out", out, *words, **options)
    assert (found, printed) == (code, "")
    assert "Traceback" not in err
    return err.splitlines()


def test_data_that_are_nowhere(commands, tmp_path):
    (tmp_path / "empty").mkdir()
    empty = {"JOSTLE_DATA": str(tmp_path / "empty")}
    heading, line = failed(commands, tmp_path / "out", "--set", "dataset=mnist", **empty)
    assert heading == OF_TWO
    assert line.startswith(
        "  vit/seed=0, mlp/seed=0: FailureError: dataset 'mnist' (train) needs train-images-idx3-ubyte.gz"
    )
    assert f"not found in {tmp_path / 'empty'} (JOSTLE_DATA)" in line
    assert "Network is unreachable" in line
    assert line.endswith("or run jostle data get mnist with a network")


@pytest.mark.parametrize(("short", "message"), [(0, "has sha256 "), (1, "bytes, expected ")])
def test_files_with_another_content_or_cut_short(commands, tmp_path, short, message):
    for file in DATASETS.get("mnist").files:
        with (tmp_path / file.name).open("wb") as made:
            made.truncate(file.size - short)
    heading, line = failed(commands, tmp_path / "out", "--set", "dataset=mnist", "--data", tmp_path)
    assert heading == OF_TWO
    images = tmp_path / "train-images-idx3-ubyte.gz"
    assert line.startswith(f"  vit/seed=0, mlp/seed=0: UsageError: dataset 'mnist': {images} has ")
    assert message in line
    assert "(jostle data get mnist downloads the official file)" in line


def test_too_few_images(commands, tmp_path):
    assert failed(commands, tmp_path, "--set", "limit=201") == [
        OF_TWO,
        "  vit/seed=0, mlp/seed=0: UsageError: cannot take 201 of the 200 train examples of 'blobs'",
    ]


@pytest.mark.slow
def test_a_diverged_network_stops_neither_the_others_nor_the_next_study(commands, whole, tmp_path):
    code, printed, err = commands.run("run", Diverging.name, First.name, "--quiet", "--out", tmp_path)
    assert code == 1
    heading, line = err.splitlines()
    assert heading == "jostle: 1 of 3 cells of trained/diverging failed; the others are kept, start again to retry"
    assert line.startswith("  wild/seed=0: FailureError: training diverged: ")
    assert printed.startswith("trained/first (smoke): ")
    found = records(tmp_path)
    assert {key: found[key] for key in records(whole)} == records(whole)
    assert sorted(key for study, key in found if study == "diverging") == ["cell/mlp/seed=0", "cell/vit/seed=0"]
    code, printed, err = commands.run("run", Diverging.name, "--quiet", "--out", tmp_path, "--debug")
    assert (code, printed) == (1, "")
    assert err.count("jostle.base.errors.FailureError: training diverged") == 1  # tried again: this cell and no other
    assert "in _check_finite" in err


@pytest.mark.slow
def test_a_full_disk_costs_what_could_not_be_written_and_the_next_start_does_only_that(commands, whole, tmp_path):
    heading, line = failed(commands, tmp_path, largest_file=120_000)
    assert heading == "jostle: 1 of 2 cells of trained/first failed; the others are kept, start again to retry"
    assert line.startswith("  mlp/seed=0: FailureError: could not write ")
    assert "File too large" in line
    [(_, key)] = records(tmp_path)
    assert key == "cell/vit/seed=0"
    assert commands.run("run", First.name, "--quiet", "--out", tmp_path)[0] == 0
    assert records(tmp_path) == records(whole)


def test_an_out_folder_that_cannot_be_used_is_one_line(commands, tmp_path):
    (tmp_path / "file").write_text("")
    [line] = failed(commands, tmp_path / "file", code=2)
    assert line.startswith(f"jostle: folder {tmp_path / 'file'}/trained/first/smoke cannot be written: Not a directory")
    path = tmp_path / "out" / "trained" / "first" / "smoke" / "records.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\0\n")
    [line] = failed(commands, tmp_path / "out", code=2)
    assert (
        line
        == f"jostle: records {path}: line 1 is not a record; take the line out, or move the file away to start anew"
    )


def test_a_second_run_in_the_same_folder_is_refused_and_the_first_goes_on(commands, whole, tmp_path):
    first = commands.start("run", First.name, "--quiet", "--out", tmp_path)
    wait_for_lines(first, tmp_path, 4)
    first.signal(signal.SIGSTOP)  # or it may be done before the second one has begun
    [line] = failed(commands, tmp_path, code=2)
    assert line.startswith(f"jostle: folder {tmp_path}/trained/first/smoke is in use by another run; wait for it or")
    first.signal(signal.SIGCONT)
    assert first.ended()[0] == 0
    assert records(tmp_path) == records(whole)


@pytest.mark.slow
def test_ctrl_c_while_a_network_trains(commands, whole):
    out = commands.folder / "stopped"
    command = commands.start("run", First.name, Second.name, "--quiet", "--out", out.name)
    wait_for_lines(command, out, 6)
    command.signal(signal.SIGINT)
    code, printed, err = command.ended()
    assert (code, printed) == (130, "")
    assert err == "finished cells are kept in stopped: start again to continue\njostle: interrupted\n"
    assert not list(out.rglob("*.part"))
    assert not (out / "trained" / "second").exists()
    assert commands.run("run", First.name, "--quiet", "--out", out)[0] == 0
    assert records(out) == records(whole)
