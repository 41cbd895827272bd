"""Something goes wrong in a training study: one clear message, the other cells recorded, only what failed retried.

The same through the command line: ``tests/cli/test_run_failures.py``.
"""

import contextlib
import errno
import json
import resource
import shutil
from pathlib import Path

import pytest

from jostle.base.errors import FailureError, UsageError
from jostle.data import DATASETS
from jostle.studies import STUDIES, CellsFailedError, run
from jostle_papers.trained import course as following
from tests.data.made_up import TEST, TRAIN, make_idx, make_official
from tests.studies.test_kills import THINGS, Diverging, First, records


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """An empty cache of datasets; the studies and pictures made up for tests are known."""
    pictures, known = THINGS
    for name in DATASETS.homes:
        DATASETS.get(name)  # all others first: a module files its names only once
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DATASETS, "_things", DATASETS._things | pictures)
        patch.setitem(vars(STUDIES), "_published", {})
        patch.setattr(STUDIES, "_things", known)
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.delenv("JOSTLE_DATA", raising=False)
        yield folder / "jostle"


@pytest.fixture(scope="module")
def whole(cache, tmp_path_factory):
    """A run to which nothing happened."""
    out = tmp_path_factory.mktemp("whole")
    first(out)
    return out


def first(out, **options):
    given = {"scale": "smoke", "out": out, "progress": False, **options}
    return run(given.pop("name", First.name), **given)


def failing(out, **options):
    """The lines of the message when cells fail."""
    with pytest.raises(CellsFailedError) as failed:
        first(out, **options)
    assert failed.value.exit_code == 1
    return str(failed.value).splitlines()


def cells(out):
    return sorted(key.removeprefix("cell/") for _, key in records(out))


OF_TWO = "2 of 2 cells of trained/first failed; the others are kept, start again to retry"


def test_one_network_diverges_and_the_others_are_recorded(tmp_path):
    said = failing(tmp_path, name=Diverging.name)
    assert said[0] == "1 of 3 cells of trained/diverging failed; the others are kept, start again to retry"
    [line] = said[1:]
    assert line.startswith("  wild/seed=0: FailureError: training diverged: ")
    assert line.endswith("; lower lr=1e+30 or set clip=1.0")
    assert cells(tmp_path) == ["mlp/seed=0", "vit/seed=0"]
    assert records(tmp_path)["diverging", "cell/mlp/seed=0"][1]["epochs"][-1]["accuracy"] > 0.5


def test_trying_again_does_only_what_failed(tmp_path, monkeypatch):
    done, follow = [], following.follow

    def watched(network, *given):
        done.append(network.lr)
        return follow(network, *given)

    monkeypatch.setattr("jostle_papers.trained.study.follow", watched)
    before = failing(tmp_path, name=Diverging.name)
    assert done == [0.003, 1e30, 0.0005]
    [path] = tmp_path.glob("trained/*/*/records.jsonl")
    written = path.read_bytes()
    assert failing(tmp_path, name=Diverging.name) == before
    assert done[3:] == [1e30]
    assert path.read_bytes().startswith(written)
    assert path.read_bytes()[len(written) :].count(b"\n") == 1  # that there was a second session
    assert json.loads(path.read_bytes()[len(written) :])["key"] == "session/1"


def test_data_that_are_nowhere(tmp_path, cache, monkeypatch):
    """No file, and the network refuses, as in all tests."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("JOSTLE_DATA", str(tmp_path / "empty"))
    monkeypatch.setattr("socket.getaddrinfo", _refuse)
    heading, line = failing(tmp_path / "out", overrides={"dataset": "mnist"})
    assert heading == OF_TWO
    assert line.startswith("  vit/seed=0, mlp/seed=0: FailureError: dataset 'mnist' (train) needs train-images")
    assert f"not found in {tmp_path / 'empty'} (JOSTLE_DATA), {cache} (cache)" in line
    assert "could not download train-images-idx3-ubyte.gz: " in line
    assert line.endswith(f"put them in {tmp_path / 'empty' / 'mnist'}, or run jostle data get mnist with a network")
    assert not (cache / "mnist").exists()


def _refuse(*_, **__):
    raise OSError(errno.ENETUNREACH, "Network is unreachable")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with files that pass for MNIST's."""
    make_idx(tmp_path / "data" / "mnist", train=60, test=30)
    make_official(monkeypatch, "mnist", tmp_path / "data" / "mnist")
    return tmp_path / "data"


def _change_a_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _cut(path):
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(
    ("names", "damage", "message"), [(TRAIN, _change_a_byte, "has sha256 "), (TEST, _cut, "bytes, expected ")]
)
def test_a_damaged_file_is_named_and_its_replacement_is_all_that_is_needed(tmp_path, files, names, damage, message):
    """Of the training images, or of the unseen ones, which are looked at when the network is trained already."""
    path = files / "mnist" / names[0]
    shutil.copy(path, tmp_path / "whole")
    damage(path)
    options = {"overrides": {"dataset": "mnist", "max_epochs": 1}, "data": files}
    heading, line = failing(tmp_path / "out", **options)
    assert heading == OF_TWO
    assert line.startswith(f"  vit/seed=0, mlp/seed=0: UsageError: dataset 'mnist': {path} has ")
    assert message in line
    assert "jostle data get mnist" in line
    assert cells(tmp_path / "out") == []
    shutil.copy(tmp_path / "whole", path)
    assert len(first(tmp_path / "out", **options).records) == 2


def test_a_device_that_is_not_there_is_said_before_any_cell(tmp_path):
    with pytest.raises(UsageError, match="device='abacus' cannot be used"):
        run(First.name, out=tmp_path, device="abacus", progress=False)
    assert not any(tmp_path.iterdir())


def test_too_few_images(tmp_path):
    assert failing(tmp_path, overrides={"limit": 201}) == [
        OF_TWO,
        "  vit/seed=0, mlp/seed=0: UsageError: cannot take 201 of the 200 train examples of 'blobs'",
    ]


@contextlib.contextmanager
def no_file_larger_than(size):
    """As good as a full disk: writing more than so many bytes to a file fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_too_full_for_one_network_costs_its_cell(tmp_path, whole):
    """A checkpoint of the MLP has 154,000 bytes, one of the transformer 81,000."""
    with no_file_larger_than(120_000):
        heading, line = failing(tmp_path)
    assert heading.startswith("1 of 2 cells of trained/first failed")
    assert line.startswith("  mlp/seed=0: FailureError: could not write ")
    assert "File too large" in line
    assert cells(tmp_path) == ["vit/seed=0"]
    first(tmp_path)
    assert records(tmp_path) == records(whole)


def test_a_disk_too_full_for_a_record_is_one_line_and_loses_nothing_before_it(tmp_path, whole):
    path = Path("trained", "first", "smoke", "records.jsonl")
    shutil.copytree(whole / "networks", tmp_path / "networks")  # so that nothing larger than a record is written
    lengths = [len(line) + 1 for line in (whole / path).read_bytes().splitlines()]  # whose it is, a session, two cells
    with no_file_larger_than(sum(lengths[:3]) + lengths[3] // 2), pytest.raises(FailureError) as failed:
        first(tmp_path)
    assert str(failed.value) == f"could not write {tmp_path / path}: File too large"
    assert cells(tmp_path) == ["vit/seed=0"]
    first(tmp_path)
    assert records(tmp_path) == records(whole)


def test_a_missing_line_of_a_session_is_said_and_fresh_starts_anew(tmp_path, whole):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "trained" / "first" / "smoke" / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    (path.parent / "summary.json").unlink()
    (path.parent / ".finished").unlink(missing_ok=True)
    path.write_bytes(lines[0] + b"".join(lines[2:]))
    with pytest.raises(
        UsageError, match=r"^line 'session/0' of .*records\.jsonl is missing; put it back, or .* --fresh"
    ):
        first(tmp_path)
    assert path.read_bytes() == lines[0] + b"".join(lines[2:])
    first(tmp_path, fresh=True)
    assert records(tmp_path) == records(whole)


def test_an_out_folder_that_is_no_folder_or_holds_no_records(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        UsageError, match=f"folder {tmp_path / 'file'}.* cannot be written: Not a directory; give another"
    ):
        first(tmp_path / "file")
    (tmp_path / "out" / "trained" / "first" / "smoke" / "records.jsonl").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"records .* is a directory"):
        first(tmp_path / "out")


def test_a_networks_folder_that_cannot_be_made_is_said_for_each_cell(tmp_path):
    (tmp_path / "networks").write_text("")
    heading, *said = failing(tmp_path)
    assert heading == OF_TWO
    assert [line.split(": ")[0] for line in said] == ["  vit/seed=0, mlp/seed=0"]
    assert said[0].endswith(f"no network can be kept in {tmp_path / 'networks'}: Not a directory; give another --out")
