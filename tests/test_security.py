"""One test for each sentence in bold of docs/security.md, with its name."""

import ast
import hashlib
import io
import json
import os
import re
import socket
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from jostle.base.errors import FailureError, JostleError, KeptFileError, UsageError
from jostle.base.files import replacing
from jostle.base.progress import reporter
from jostle.base.store import Store
from jostle.base.weights import read_weights
from jostle.boolean.tables import read_table
from jostle.cli.arrays import read_arrays
from jostle.cli.play import _listen
from jostle.data.downloads import _extract, download_file
from jostle.data.official import OfficialFile
from jostle.integrations import load
from jostle.report import Page, Section, recover, write
from jostle.report.html import render
from tests.cli.test_cli import run
from tests.data.server import server  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[1]
SENTENCES = re.findall(r"^- \*\*(.+?)\.\*\*", (ROOT / "docs" / "security.md").read_text(), re.MULTILINE)
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


class Harmful:
    """A pickle of it makes a folder when it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("canary",)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / "canary").exists()


def test_every_sentence_has_a_test():
    names = {f"test_{re.sub(r'[^a-z0-9]+', '_', sentence.lower())}" for sentence in SENTENCES}
    assert len(names) == len(SENTENCES) > 15
    assert names <= set(globals())


def test_a_py_spec_runs_the_python_file_that_you_name(folder):
    (folder / "mine_to_run.py").write_text("import os\nos.mkdir('made')\ndef make():\n    return abs\n")
    assert load("py:mine_to_run.py:make") is abs
    assert (folder / "made").is_dir()


def test_code_in_a_hugging_face_folder_is_not_run(folder):
    pytest.importorskip("transformers")
    (folder / "model").mkdir()
    (folder / "model" / "own.py").write_text("import os\nos.mkdir('../canary')\nos.mkdir('canary')\n")
    names = {"AutoConfig": "own.Config", "AutoModelForImageClassification": "own.Net"}
    for architecture in ("NetForImageClassification", "Net"):
        config = {"model_type": "own", "architectures": [architecture], "auto_map": names}
        (folder / "model" / "config.json").write_text(json.dumps(config))
        (folder / "model" / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
        with pytest.raises(UsageError) as caught:
            load("hf:model")
        assert "\n" not in str(caught.value)
    assert not (folder / "model" / "canary").exists()


def test_a_pickle_in_a_file_of_arrays_is_refused(folder):
    np.save("a.npy", np.array([Harmful()], dtype=object))
    np.savez("a.npz", x=np.array([Harmful()], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(UsageError, match="cannot be read as"):
            read_arrays(Path(name), [])
    with pytest.raises(UsageError, match="not a plain array"):
        read_table("a.npy")


def test_a_file_of_weights_runs_no_code(folder):
    for name in ("w.pt", "w.ckpt", "w.bin"):
        torch.save({"weight": Harmful()}, name)
        with pytest.raises(UsageError, match="runs no code from a file of weights"):
            read_weights(name)
    Path("w.pt").rename("w.safetensors")
    with pytest.raises(UsageError, match="is not a safetensors file"):
        read_weights("w.safetensors")


def test_weights_of_a_hugging_face_folder_run_no_code(folder):
    pytest.importorskip("transformers")
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(
        '{"model_type": "vit", "architectures": ["ViTForImageClassification"]}'
    )
    torch.save({"weight": Harmful()}, "model/pytorch_model.bin")
    with pytest.raises(JostleError):
        load("hf:model")


FORBIDDEN = {"pickle.load", "pickle.loads", "os.system", "os.popen", "yaml.load", "eval", "exec", "marshal.loads"}
HARMLESS = {"exec('')"}


def dangerous(source: str) -> list[str]:
    """Calls that could run code from data."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name, named = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
            is_open = name in ("torch.load",) and named.get("weights_only") != "True"
            is_open |= name.endswith("np.load") and named.get("allow_pickle") != "False"
            is_open |= named.get("allow_pickle") == "True" or named.get("shell") == "True"
            is_open |= named.get("trust_remote_code", "False") != "False"
            if (name in FORBIDDEN and ast.unparse(node) not in HARMLESS) or is_open:
                found.append(ast.unparse(node))
    return found


def test_no_line_of_the_source_loads_a_pickle_or_evaluates_text_or_starts_a_shell():
    between_processes = {ROOT / "src" / "jostle" / name for name in ("engines/payload.py", "sampling/units.py")}
    paths = sorted({*(ROOT / "src").rglob("*.py")} - between_processes)
    assert {str(path): found for path in paths if (found := dangerous(path.read_text()))} == {}
    for line in ("torch.load(x)", "np.load(x)", "eval(x)", "f(x, shell=True)", "m(trust_remote_code=yes)"):
        assert dangerous(line) == [line]


def test_measuring_opens_no_connection(capsys, folder, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was asked for")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    words = ("--model", "sample:mlp", "--data", "drawn-digits", "--tokens", "patches:7", "--limit", 4, "--draws", 1)
    assert run(capsys, "measure", *words, "--quiet", "--report", "r.html", "--examples", 0)[0] == 0


def test_a_model_of_the_hub_is_not_downloaded(folder):
    pytest.importorskip("transformers")
    with pytest.raises(UsageError, match="jostle downloads no models"):
        load("hf:google/vit-base-patch16-224")


def test_a_download_has_its_published_checksum_or_is_not_kept(folder, server):  # noqa: F811
    right = b"right" * 100
    server.answers = {"/a": b"wrong" * 100}
    file = OfficialFile("a.bin", len(right), hashlib.sha256(right).hexdigest(), (server.url("/a"),))
    with pytest.raises(FailureError, match="sha256"):
        download_file(file, folder / "a.bin", reporter(False, ""))
    assert list(folder.iterdir()) == []


def test_an_archive_gives_only_the_files_that_are_wanted(folder):
    (folder / "inner").mkdir()
    with tarfile.open("a.tar.gz", "w:gz") as archive:
        for name in ("../../outside.bin", "/absolute.bin", "x/wanted.bin", "x/other.bin"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("x/link.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    _extract(folder / "a.tar.gz", {"wanted.bin", "outside.bin", "link.bin"}, folder / "inner")
    assert sorted(path.name for path in folder.rglob("*.bin")) == ["outside.bin", "wanted.bin"]
    assert {path.parent for path in folder.rglob("*.bin")} == {folder / "inner"}


def test_the_bench_listens_on_this_machine_only():
    with _listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


@pytest.fixture
def client(monkeypatch):
    starlette = pytest.importorskip("starlette.testclient")
    from jostle.play.kinds import make_bench
    from jostle.play.server import make_app

    monkeypatch.undo()  # the client speaks to the application in this process, without a network
    bench = make_bench({EVIL: lambda x: x.flatten(1)[:, :2]}, torch.randn(2, 1, 4, 4), patch=2)
    return starlette.TestClient(make_app(bench, "secret", ("127.0.0.1:1",)), base_url="http://127.0.0.1:1")


def test_the_bench_refuses_other_hosts_and_other_pages_and_addresses_without_its_token(client):
    assert client.get("/secret/bench").status_code == 200
    assert client.get("/bench").status_code == client.get("/secre/bench").status_code == 403
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}):
        assert client.get("/secret/bench", headers=headers).status_code == 403


def test_the_bench_allows_no_script_but_its_own(client):
    policy = client.get("/secret/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy


def evil_page() -> str:
    section = Section(EVIL, EVIL, caption=EVIL, alt=EVIL)
    return render(Page(title=EVIL, lead=EVIL, sections=[section], data={EVIL: EVIL}))


def test_a_page_escapes_names_and_texts(capsys, folder):
    assert "<img" not in evil_page()
    assert evil_page().count("<script") == render(Page(title="a", lead="b", sections=[])).count("<script")
    words = ("--data", "drawn-digits", "--tokens", "patches:7", "--limit", 4, "--draws", 1, "--quiet")
    assert (
        run(capsys, "measure", "--model", "<script>alert(1)</script>=sample:mlp", *words, "--report", "r.html")[0] == 0
    )
    assert "<script>alert" not in Path("r.html").read_text()
    assert "&lt;script&gt;alert" in Path("r.html").read_text()


def test_a_page_loads_nothing_and_runs_no_script_but_its_own():
    text = evil_page()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[^']+'$", policy)
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", text)


def test_data_in_a_page_cannot_end_their_element(folder):
    write(Page(title="a", lead="b", sections=[], data={"x": "</script><script>alert(1)</script>"}), "p.html")
    assert recover("p.html")["x"] == "</script><script>alert(1)</script>"


def test_files_that_jostle_did_not_write_are_not_replaced(capsys, folder):
    Path("mine.py").write_text("x = 1\n")
    words = ("measure", "--model", "sample:mlp", "--data", "drawn-digits", "--tokens", "patches:7", "--limit", 4)
    code, _, err = run(capsys, *words, "--draws", 1, "--quiet", "-o", "mine.py")
    assert (code, "--force to replace it" in err) == (2, True)
    assert Path("mine.py").read_text() == "x = 1\n"
    assert run(capsys, *words, "--draws", 1, "--quiet", "-o", "mine.py", "--force")[0] == 0


def test_a_file_is_whole_or_absent(folder):
    with pytest.raises(ZeroDivisionError), replacing("a.txt") as part:  # noqa: PT012
        part.write_text("half")
        raise ZeroDivisionError
    assert list(folder.iterdir()) == []


def test_a_changed_bit_in_a_record_is_noticed(folder):
    store = Store("records.jsonl")
    store.append("a", {"x": 0.25, "name": "vit"})
    before = store["a"]
    line = Path("records.jsonl").read_bytes()
    for place in range(len(line) - 1):
        for bit in range(8):
            changed = line[:place] + bytes([line[place] ^ (1 << bit)]) + line[place + 1 :]
            Path("records.jsonl").write_bytes(changed)
            try:
                found = Store("records.jsonl")
            except KeptFileError:
                continue
            assert "a" not in found or found["a"] == before
