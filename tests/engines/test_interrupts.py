"""Ctrl-C while worker processes are being started."""

import signal
import sys

import pytest

from jostle.engines import processes


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no masks of signals")
def test_ctrl_c_while_a_worker_is_started_is_heard_afterwards():
    is_inside = True

    def press() -> None:
        nonlocal is_inside
        with processes._deaf_to_interrupts():
            signal.raise_signal(signal.SIGINT)
            is_inside = False  # nothing was raised inside

    with pytest.raises(KeyboardInterrupt):
        press()
    assert not is_inside
