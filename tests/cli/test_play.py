"""``jostle try`` and ``jostle play`` as a person meets them."""

import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from jostle.report import recover
from tests.cli.test_cli import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_try_ends_in_a_page(capsys, folder):
    code, out, err = run(capsys, "try", "--no-open")
    assert code == 0, err
    for name in ("vit", "mlp", "cnn"):
        assert name in out
    found = recover(folder / "jostle-try.html")
    assert len(found["examples"]) == 6
    assert min(found["accuracy"].values()) > 0.9  # they are trained
    assert all(0 < one["value"] < 0.5 for one in found["result"]["measurements"])
    assert f"open {(folder / 'jostle-try.html').as_uri()}" in out  # where there is no screen it says where the page is


def test_samples_are_models_like_others(capsys, folder):
    words = ("--data", "drawn-digits", "--split", "test", "--tokens", "patches:4", "--half-width", "0.05", "--quiet")
    assert run(capsys, "measure", "--model", "sample:mlp", *words)[0] == 0
    code, _, err = run(capsys, "measure", "--model", "sample:vut", *words)
    assert (code, err) == (2, "jostle: unknown sample 'vut'; did you mean vit?\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "99999"), "--port 99999 cannot be used"),
        (("--model", "zoo:mlp:image_size=8,channels=1"), "--data is missing"),
        (("--model", "sample:vit", "--data", "nowhere.npy"), "does not exist"),
        (("--model", "sample:vit", "--text", "a film"), "--text is for models of texts"),
        (("--model", "sample:vit", "--patch", "3"), "the side 3 must divide height 28"),
        (("--model", "sample:vit", "--patch", "0"), "size=0 must be a whole number"),
        (("--model", "sample:vit", "--data", "nan.npy"), "images hold NaN or infinity"),
        (("--model", "py:maps.py:make", "--data", "digits.npy"), "outputs have shape (1, 1, 28, 28)"),
    ],
)
def test_wrong_use_is_one_line_and_nothing_is_served(capsys, folder, words, said, monkeypatch):
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: pytest.fail("it is served"))
    np.save("digits.npy", np.zeros((2, 1, 28, 28), dtype=np.float32))
    np.save("nan.npy", np.full((2, 1, 28, 28), np.nan, dtype=np.float32))
    (folder / "maps.py").write_text("def make(): return lambda x: x\n")
    code, _, err = run(capsys, "play", "--no-open", *words)
    assert (code, err.strip().splitlines()[-1].startswith("jostle: ")) == (2, True)
    assert said in err


def test_play_serves_a_page_until_ctrl_c(folder, monkeypatch):
    monkeypatch.undo()  # it asks a server on this machine
    command = [sys.executable, "-m", "jostle", "play", "--no-open"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(address, timeout=10) as answer:
                    assert b"Jostle one token" in answer.read()
                break
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.rsplit("/", 2)[0] + "/wrong/", timeout=10)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert process.returncode in (0, 130)
