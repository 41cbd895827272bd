"""Downloads from a web server on this machine, which may misbehave."""

import contextlib
import hashlib
import io
import socket
import tarfile

import pytest

from jostle import data
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import reporter
from jostle.data.downloads import download, download_file
from jostle.data.official import OfficialFile
from tests.data.made_up import make_batches, make_idx, make_official
from tests.data.server import publish_dataset, server  # noqa: F401 - a fixture

CONTENTS = b"0123456789" * 100
BATCHES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]


def official(contents, *urls, name="a.bin"):
    return OfficialFile(name, len(contents), hashlib.sha256(contents).hexdigest(), urls)


def get(file, target, progress=False):
    download_file(file, target, reporter(progress, ""))


@pytest.fixture
def served(tmp_path, monkeypatch, server):  # noqa: F811
    """MNIST as a server publishes it."""
    make_idx(tmp_path / "served", train=30, test=12)
    publish_dataset(monkeypatch, server, make_official(monkeypatch, "mnist", tmp_path / "served"), tmp_path / "served")
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
    assert f"not found in {cache} (cache); could not download train-labels-idx1-ubyte.gz: http://127.0.0.1" in message
    assert message.endswith(f"put them in {cache / 'mnist'}, or run jostle data get mnist with a network")


def test_without_a_network_it_is_one_short_line(tmp_path, server):  # noqa: F811
    file = official(CONTENTS, "http://192.0.2.1/a.bin")
    with pytest.raises(FailureError) as caught:
        get(file, tmp_path / "a")
    expected = "could not download a.bin: http://192.0.2.1/a.bin failed ([Errno 101] Network is unreachable)"
    assert str(caught.value) == expected


def test_a_second_address_helps(tmp_path, server):  # noqa: F811
    server.answers = {"/short": CONTENTS[:-1], "/right": CONTENTS}
    get(official(CONTENTS, *map(server.url, ("/none", "/short", "/right"))), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == CONTENTS
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").stat().st_mode & 0o044 == 0o044  # a colleague may read it


def promise_more(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENTS)))
    handler.end_headers()
    handler.wfile.write(CONTENTS[:500])


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def send_without_length(contents):
    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(contents)

    return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"failed \(HTTP 404 Not Found\)"),
        (CONTENTS[:-1], "sent a file that has 999 bytes, expected 1,000"),
        (b"", "sent a file that has 0 bytes, expected 1,000"),
        (CONTENTS + b"!", "sent more than the 1,000 bytes expected"),
        (send_without_length(CONTENTS[:-1]), "sent a file that has 999 bytes, expected 1,000"),
        (b"x" + CONTENTS[1:], r"sent a file that has sha256 \w{12}\.\.\., expected \w{12}\.\.\."),
        (promise_more, r"failed \(IncompleteRead\(500 bytes read, 500 more expected\)\)"),
        (hang_up, r"failed \(Remote end closed connection without response\)"),
    ],
    ids=["404", "short", "empty", "long", "no length", "other", "incomplete", "hang up"],
)
def test_what_goes_wrong_is_said_and_nothing_is_left(tmp_path, server, answer, message):  # noqa: F811
    server.answers = {"/one": answer}
    with pytest.raises(FailureError, match=f"^could not download a.bin: {server.url('/one')} {message}$"):
        get(official(CONTENTS, server.url("/one")), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none(tmp_path):
    with pytest.raises(FailureError, match=r"could not download a\.bin: one failed "):
        get(official(CONTENTS, "one"), tmp_path / "a")


def test_an_older_file_survives_a_failed_download(tmp_path, server):  # noqa: F811
    (tmp_path / "a").write_bytes(b"older")
    server.answers = {"/one": CONTENTS[:-1]}
    with pytest.raises(FailureError):
        get(official(CONTENTS, server.url("/one")), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"older"


def test_an_interruption_leaves_nothing_behind(tmp_path, server):  # noqa: F811
    def interrupt(_):
        raise KeyboardInterrupt

    server.answers = {"/one": CONTENTS}
    with pytest.raises(KeyboardInterrupt):
        get(official(CONTENTS, server.url("/one")), tmp_path / "a", interrupt)
    assert list(tmp_path.iterdir()) == []


def test_an_endless_answer_is_cut_off(tmp_path, server):  # noqa: F811
    def never_end(handler):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):  # a broken pipe or a reset, once nobody listens
            while True:
                handler.wfile.write(b"0" * 2**20)

    server.answers = {"/one": never_end}
    with pytest.raises(FailureError, match="sent more than the 1,000 bytes expected"):
        get(official(CONTENTS, server.url("/one")), tmp_path / "a")


def test_a_folder_that_cannot_be_made(tmp_path, served):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made: Not a directory"):
        data.fetch("mnist", tmp_path / "file", progress=False)


class TestArchive:
    """CIFAR-10 comes as one archive."""

    @pytest.fixture
    def source(self, tmp_path, monkeypatch, server):  # noqa: F811
        self.made = make_batches(tmp_path / "served", BATCHES, count=2)
        self.server = server
        source = make_official(monkeypatch, "cifar-10", tmp_path / "served")
        self.pack(monkeypatch, source, tmp_path / "served", BATCHES)
        return source

    def pack(self, monkeypatch, source, folder, names):
        with tarfile.open(folder / "all.tar.gz", "w:gz") as archive:
            for name in names:
                archive.add(folder / name, f"cifar-10-batches-bin/{name}")
            stranger = tarfile.TarInfo("../../stranger.bin")
            stranger.size = 3
            archive.addfile(stranger, io.BytesIO(b"abc"))
            link = tarfile.TarInfo("link.bin")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
        self.serve(monkeypatch, source, (folder / "all.tar.gz").read_bytes())

    def serve(self, monkeypatch, source, contents):
        self.server.answers["/all.tar.gz"] = contents
        packed = official(contents, self.server.url("/all.tar.gz"), name="all.tar.gz")
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

    def test_no_archive_at_all(self, source, monkeypatch, cache):
        self.serve(monkeypatch, source, b"no archive")
        with pytest.raises(FailureError, match=r"could not unpack all\.tar\.gz"):
            download(source, BATCHES, cache, progress=False)


def test_a_disk_that_cannot_be_written_is_not_blamed_on_the_network(tmp_path, monkeypatch, server):  # noqa: F811
    server.answers = {"/one": CONTENTS}
    monkeypatch.setattr(
        "jostle.base.files.os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(FailureError, match=r"could not write .*: No space left on device; nothing was left behind"):
        get(official(CONTENTS, server.url("/one")), tmp_path / "a")


def test_the_request_says_who_asks_and_wants_the_file_as_it_is(tmp_path, server):  # noqa: F811
    server.answers = {"/a": CONTENTS}
    get(official(CONTENTS, server.url("/a")), tmp_path / "a")
    [request] = server.requests
    assert request.headers["User-Agent"] == "jostle"
    assert request.headers["Accept-Encoding"] == "identity"
