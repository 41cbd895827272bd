import os
import subprocess
import sys
from pathlib import Path

import pytest

from jostle.base import files
from jostle.base.errors import FailureError, UsageError

WRITES = """
import sys, time
from jostle.base import files
with files.replacing(sys.argv[1]) as part:
    print(part, flush=True)
    time.sleep(60)
"""


def test_text_is_written_whole_and_nothing_else_is_left(tmp_path: Path):
    target = tmp_path / "new" / "result.json"
    files.write_text(target, "one")
    files.write_text(target, "two")
    assert target.read_text() == "two"
    assert [path.name for path in target.parent.iterdir()] == ["result.json"]


def test_files_have_the_permissions_of_ordinary_ones(tmp_path: Path):
    files.write_text(tmp_path / "ours", "x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path):
    target = tmp_path / "result.json"
    files.write_text(target, "old")

    def write_half() -> None:
        with files.replacing(target) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_what_a_killed_writer_left_is_removed_and_what_another_writer_holds_is_not(tmp_path: Path):
    target = tmp_path / "figure[1].svg"
    killed = subprocess.Popen([sys.executable, "-c", WRITES, str(target)], stdout=subprocess.PIPE)
    assert killed.stdout is not None
    killed.stdout.readline()
    killed.kill()
    killed.wait()
    killed.stdout.close()
    assert len(list(tmp_path.iterdir())) == 1
    with files.replacing(target) as mine:
        files.write_text(target, "another")
        assert mine.exists()
        mine.write_text("mine")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_text() == "mine"


def test_a_full_disk_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FailureError, match=r"could not write .*result\.json: No space left on device"):
        files.write_text(tmp_path / "result.json", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_really_full_disk_is_one_clear_line(tmp_path: Path):
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("no /dev/full on this system")

    def write_to_full() -> None:
        with files.replacing(tmp_path / "result.json") as temporary:
            temporary.unlink()
            temporary.symlink_to(device)
            temporary.write_text("x" * 10_000)

    with pytest.raises(FailureError, match="No space left on device"):
        write_to_full()
    assert list(tmp_path.iterdir()) == []


def no_room(**_: object) -> None:
    raise OSError(2, "No such file or directory")


def test_a_place_that_takes_no_files_is_noticed_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.mkstemp", no_room)
    with pytest.raises(UsageError, match=r"result\.json cannot be written: no file can be made in .* \(No such file"):
        files.check_writable(tmp_path / "result.json")
    with pytest.raises(FailureError, match=r"could not write .*result\.json: No such file or directory"):
        files.write_text(tmp_path / "result.json", "text")


def test_checking_leaves_nothing_behind(tmp_path: Path):
    files.check_writable(tmp_path / "new" / "result.json")
    assert [path.name for path in tmp_path.rglob("*")] == ["new"]


@pytest.mark.parametrize("letter", ["a", "\N{GREEK SMALL LETTER SIGMA}", "\N{CHICKEN}"])
def test_the_longest_name_that_a_folder_takes_can_be_written(tmp_path: Path, letter: str):
    name = letter * (255 // len(letter.encode()))
    files.check_writable(tmp_path / name)
    files.write_text(tmp_path / name, "text")
    assert (tmp_path / name).read_text() == "text"
    for write in (files.check_writable, lambda path: files.write_text(path, "text")):
        with pytest.raises(UsageError, match=r"cannot be written: File name too long"):
            write(tmp_path / (name + letter))


def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is no ordinary file"):
        files.check_writable(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is no ordinary file"):
        files.write_text(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path):
    (tmp_path / "afile").write_text("")
    for path in (tmp_path / "afile" / "r.json", tmp_path / "afile" / "below" / "r.json"):
        with pytest.raises(UsageError, match=r"afile is a file, not a folder"):
            files.check_writable(path)


def test_a_folder_is_answered_with_a_name_of_the_right_kind(tmp_path: Path):
    with pytest.raises(UsageError, match=r"is a directory; give the name of a file, for example .*/report\.html"):
        files.check_writable(tmp_path, "report.html")


@pytest.mark.parametrize("make", [lambda p: p, lambda p: p / "file" / "below"])
def test_paths_that_cannot_be_files_are_refused_before_any_work(tmp_path: Path, make):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="output"):
        files.check_writable(make(tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "does not exist"), (b"\xff\xfe\x00\x01", "is not a text file"), ("dir", "cannot be read")],
)
def test_unreadable_files_are_one_clear_line(tmp_path: Path, content, message):
    path = tmp_path / "x"
    if content == "dir":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        files.read_text(path, "result")
