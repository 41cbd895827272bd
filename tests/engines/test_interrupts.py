"""Ctrl-C while worker processes are being started."""

import signal
import socket
import subprocess
import sys

import pytest

from jostle.engines import payload, processes
from tests.engines.toy import Toy


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no masks of signals")
def test_ctrl_c_while_a_worker_is_started_is_heard_afterwards():
    is_inside = True

    def press() -> None:
        nonlocal is_inside
        with processes._deaf_to_interrupts():
            signal.raise_signal(signal.SIGINT)
            is_inside = False  # nothing was raised inside

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            press()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not is_inside


ORPHAN = """
import sys
from jostle.engines import worker
worker._receive = lambda *_: None  # which would see it too, most times earlier
worker.main(int(sys.argv[1]), sys.argv[2], 1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such engine")
def test_a_worker_whose_employer_was_killed_ends_without_a_word(tmp_path):
    path = tmp_path / "work"
    payload.write(Toy(), path, "work")
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        ended = subprocess.run(
            [sys.executable, "-c", ORPHAN, str(theirs.fileno()), str(path)],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "")
