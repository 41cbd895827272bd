"""Downloads without a network: from files by file:// addresses, or from an opener that misbehaves."""

import hashlib
import http.client
import io
import tarfile
import urllib.error
from dataclasses import replace

import pytest

from jostle import data
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import reporter
from jostle.data import downloads
from jostle.data.downloads import download, fetch
from jostle.data.official import OfficialFile
from tests.data.made_up import make_batches, make_idx, make_official

CONTENTS = b"0123456789" * 100
BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


def official(contents, *urls, name="a.bin"):
    return OfficialFile(name, len(contents), hashlib.sha256(contents).hexdigest(), urls)


def answering(answers):
    """An opener: for each address bytes, an open file, or an error to raise."""

    def opener(url):
        answer = answers[url]
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer) if isinstance(answer, bytes) else answer

    return opener


def get(file, target, opener):
    fetch(file, target, reporter(False, ""), opener)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """MNIST as published at file:// addresses."""
    make_idx(tmp_path / "served", train=30, test=12)
    source = make_official(monkeypatch, "mnist", tmp_path / "served")
    files = [replace(file, urls=((tmp_path / "served" / file.name).as_uri(),)) for file in source.files]
    monkeypatch.setattr(type(source), "files", tuple(files))
    return tmp_path / "served"


def test_load_downloads_to_the_cache_what_is_nowhere(served, cache):
    states = []
    assert len(data.load("mnist", "test", progress=states.append)) == 12
    assert sorted(path.name for path in (cache / "mnist").iterdir()) == [
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
    ]
    assert [state.share for state in states] == [1.0, 1.0]
    assert states[0].summary.startswith("t10k-images-idx3-ubyte.gz: 0.0 of 0.0 MB")
    states.clear()
    assert len(data.load("mnist", "test", progress=states.append)) == 12
    assert states == []


def test_fetch_leaves_right_files_alone_and_replaces_wrong_ones(served, cache):
    folder, downloaded = data.fetch("mnist", progress=False)
    assert folder == cache / "mnist"
    assert len(downloaded) == 4
    name = downloaded[0]
    (folder / name).write_bytes(b"damaged")
    assert data.fetch("mnist", progress=False) == (folder, [name])
    assert (folder / name).read_bytes() == (served / name).read_bytes()
    assert data.fetch("mnist", progress=False) == (folder, [])


def test_fetch_to_another_folder(served, tmp_path, cache):
    assert data.fetch("mnist", tmp_path / "mine", progress=False)[0] == tmp_path / "mine" / "mnist"
    assert not cache.exists()
    assert len(data.load("mnist", folder=tmp_path / "mine", download=False)) == 30


def test_what_cannot_be_downloaded_is_one_line_that_says_all(served, tmp_path, cache):
    (served / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FailureError) as caught:
        data.load("mnist", progress=False)
    message = str(caught.value)
    assert "\n" not in message
    assert f"not found in {cache} (cache); could not download train-labels-idx1-ubyte.gz: file://" in message
    assert message.endswith(f"put them in {cache / 'mnist'}, or run jostle data get mnist with a network")


def test_a_second_address_helps(tmp_path):
    answers = {"one": urllib.error.URLError("no route"), "two": CONTENTS[:-1], "three": CONTENTS}
    get(official(CONTENTS, "one", "two", "three"), tmp_path / "a", answering(answers))
    assert (tmp_path / "a").read_bytes() == CONTENTS
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


class Dropping(io.BytesIO):
    """Some bytes, then an error."""

    def __init__(self, error):
        super().__init__()
        self.answers = [CONTENTS[:500], error]

    def read(self, size=-1):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (urllib.error.URLError("no route"), r"failed \(<urlopen error no route>\)"),
        (urllib.error.HTTPError("u", 404, "Not Found", None, None), r"failed \(HTTP Error 404: Not Found\)"),
        (ValueError("unknown url type: 'one'"), r"failed \(unknown url type: 'one'\)"),
        (CONTENTS[:-1], r"sent 999 bytes of the 1,000 expected"),
        (b"", r"sent 0 bytes of the 1,000 expected"),
        (CONTENTS + b"!", r"sent more than the 1,000 expected"),
        (b"x" + CONTENTS[1:], r"sent another file \(sha256 \w{12}\.\.\., expected \w{12}\.\.\.\)"),
        (Dropping(TimeoutError("timed out")), r"failed \(timed out\)"),
        (Dropping(ConnectionResetError(104, "Connection reset")), r"failed \(\[Errno 104\] Connection reset\)"),
        (Dropping(http.client.IncompleteRead(b"", 5)), r"failed \(IncompleteRead\(0 bytes read, 5 more expected\)\)"),
    ],
    ids=["route", "404", "address", "short", "empty", "long", "other", "timeout", "reset", "incomplete"],
)
def test_what_goes_wrong_is_said_and_nothing_is_left(tmp_path, answer, message):
    with pytest.raises(FailureError, match=f"^could not download a.bin: one {message}$"):
        get(official(CONTENTS, "one"), tmp_path / "a", answering({"one": answer}))
    assert list(tmp_path.iterdir()) == []


def test_an_older_file_survives_a_failed_download(tmp_path):
    (tmp_path / "a").write_bytes(b"older")
    with pytest.raises(FailureError):
        get(official(CONTENTS, "one"), tmp_path / "a", answering({"one": CONTENTS[:-1]}))
    assert (tmp_path / "a").read_bytes() == b"older"


def test_an_interruption_leaves_nothing_behind(tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(official(CONTENTS, "one"), tmp_path / "a", reporter(interrupt, ""), answering({"one": CONTENTS}))
    assert list(tmp_path.iterdir()) == []


def test_an_endless_answer_is_cut_off(tmp_path):
    class Endless(io.BytesIO):
        sent = 0

        def read(self, size=-1):
            self.sent += 1
            return b"0" * 400

    endless = Endless()
    with pytest.raises(FailureError, match="sent more than the 1,000 expected"):
        get(official(CONTENTS, "one"), tmp_path / "a", answering({"one": endless}))
    assert endless.sent == 3
    assert endless.closed


def test_a_folder_that_cannot_be_made(tmp_path, served):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made: Not a directory"):
        data.fetch("mnist", tmp_path / "file", progress=False)


class TestArchive:
    """CIFAR-10 comes as one archive."""

    @pytest.fixture
    def source(self, tmp_path, monkeypatch):
        self.made = make_batches(tmp_path / "served", BATCHES, count=2)
        source = make_official(monkeypatch, "cifar-10", tmp_path / "served")
        self.pack(monkeypatch, source, tmp_path / "served", BATCHES)
        return source

    @staticmethod
    def pack(monkeypatch, source, folder, names):
        with tarfile.open(folder / "all.tar.gz", "w:gz") as archive:
            for name in names:
                archive.add(folder / name, f"cifar-10-batches-bin/{name}")
            stranger = tarfile.TarInfo("../../stranger.bin")
            stranger.size = 3
            archive.addfile(stranger, io.BytesIO(b"abc"))
            link = tarfile.TarInfo("link.bin")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        url = (folder / "all.tar.gz").as_uri()
        packed = official((folder / "all.tar.gz").read_bytes(), url, name="all.tar.gz")
        monkeypatch.setattr(type(source), "archive", packed)

    def test_its_files_and_nothing_else_are_unpacked(self, source, cache):
        train = data.load("cifar-10", progress=False)
        assert train.labels.tolist() == [label for name in BATCHES[:5] for label in self.made[name][1].tolist()]
        assert sorted(path.name for path in (cache / "cifar10").iterdir()) == BATCHES[:5]
        assert data.fetch("cifar-10", progress=False)[1] == ["test_batch.bin"]
        assert sorted(path.name for path in (cache / "cifar10").iterdir()) == BATCHES
        assert sorted(path.name for path in cache.rglob("*") if path.is_file()) == BATCHES

    def test_a_file_missing_in_it(self, source, tmp_path, monkeypatch, cache):
        self.pack(monkeypatch, source, tmp_path / "served", BATCHES[:3])
        with pytest.raises(FailureError, match=r"could not unpack all\.tar\.gz: data_batch_4\.bin cannot be read"):
            download(source, BATCHES, cache, progress=False)
        assert not cache.exists()

    def test_another_file_in_it(self, source, tmp_path, monkeypatch, cache):
        make_batches(tmp_path / "served", BATCHES[1:2], count=2, seed=9)
        self.pack(monkeypatch, source, tmp_path / "served", BATCHES)
        with pytest.raises(FailureError, match=r"could not unpack all\.tar\.gz: data_batch_2\.bin has sha256"):
            download(source, BATCHES, cache, progress=False)
        assert not cache.exists()

    def test_no_archive_at_all(self, source, tmp_path, monkeypatch, cache):
        (tmp_path / "served" / "no.tar.gz").write_bytes(b"no archive")
        url = (tmp_path / "served" / "no.tar.gz").as_uri()
        monkeypatch.setattr(type(source), "archive", official(b"no archive", url, name="no.tar.gz"))
        with pytest.raises(FailureError, match=r"could not unpack no\.tar\.gz"):
            download(source, BATCHES, cache, progress=False)


def test_a_disk_that_cannot_be_written_is_not_blamed_on_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "jostle.base.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(FailureError, match=r"could not write .*: No space left on device; nothing was left behind"):
        get(official(CONTENTS, "one"), tmp_path / "a", answering({"one": CONTENTS}))


def test_the_request_says_who_asks(monkeypatch):
    asked = []
    monkeypatch.setattr(downloads.urllib.request, "urlopen", lambda request, timeout: asked.append((request, timeout)))
    downloads.open_url("https://example.org/a")
    [(request, timeout)] = asked
    assert request.get_header("User-agent") == "jostle"
    assert timeout > 0
