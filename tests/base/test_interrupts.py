"""Ctrl-C waits for the end of what torch must do whole; a second one does not."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from jostle.base import interrupts
from jostle.base.interrupts import Uninterrupted, is_usual, listening


def _press():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(100):  # Python looks for signals between two steps
        pass


def test_ctrl_c_waits_for_the_end_of_the_outer_block():
    done = []

    def work():
        with Uninterrupted():
            with Uninterrupted():
                _press()
                done.append("inner")
            done.append("outer")

    with listening():
        with pytest.raises(KeyboardInterrupt):
            work()
        assert done == ["inner", "outer"]
        with Uninterrupted():  # it was heard once
            pass
        with pytest.raises(KeyboardInterrupt):  # elsewhere at once
            _press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _press_twice(done):
    with Uninterrupted():
        _press()
        done.append("first")
        _press()
        done.append("second")


def test_a_second_one_does_not_wait():
    done = []
    with listening(), pytest.raises(KeyboardInterrupt):
        _press_twice(done)
    assert done == ["first"]


def test_it_is_as_usual_where_nobody_listens():
    done = []
    with pytest.raises(KeyboardInterrupt):
        _press_twice(done)
    assert not done


def test_who_handles_signals_keeps_them():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with listening(), Uninterrupted():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert not is_usual()
            _press()
    finally:
        signal.signal(signal.SIGINT, before)


def test_blocks_of_other_threads_do_not_count():
    entered, over = threading.Event(), threading.Event()

    def work():
        with Uninterrupted():
            entered.set()
            over.wait(20)

    thread = threading.Thread(target=work)
    with listening():
        thread.start()
        entered.wait(20)
        with pytest.raises(KeyboardInterrupt):
            _press()
        over.set()
        thread.join()


def _of(package, function):
    """``function``, called by a function of a package that has parts in C++ or Rust."""
    scope = {"__name__": f"{package}.part", "function": function}
    exec("def call():\n    function()\n", scope)
    return scope["call"]


def _press_and_wait(done, seconds=0.1):
    _press()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    done.append("inner")


@pytest.mark.parametrize("package", ["torch", "matplotlib", "pydantic", "importlib"])
def test_ctrl_c_waits_while_a_function_is_under_way_whose_native_code_may_have_called_the_present_one(package):
    done = []

    def work():
        _of(package, lambda: _press_and_wait(done))()
        done.append("outer")
        _press_and_wait(done, 20)

    with listening(), pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]


def test_there_too_a_second_one_does_not_wait():
    done = []

    def press_again():
        _press()
        done.append("first")
        _press()
        done.append("second")

    with listening(), pytest.raises(KeyboardInterrupt):
        _of("torch", press_again)()
    assert done == ["first"]
    with listening():  # and it left nothing behind
        time.sleep(0.05)


def test_it_waits_there_for_some_seconds_only(monkeypatch):
    monkeypatch.setattr(interrupts, "_LONGEST", 0.2)
    done = []
    with listening(), pytest.raises(KeyboardInterrupt):
        _of("torch", lambda: _press_and_wait(done, 20))()
    assert not done


def test_a_function_decorated_by_torch_is_not_one_of_torch():
    done = []

    @torch.no_grad()
    def work():
        _press()
        done.append("inner")

    with listening(), pytest.raises(KeyboardInterrupt):
        work()
    assert not done


_MODEL = """
import os, signal, torch
class Net(torch.nn.Module):
    calls = 0
    def forward(self, x):
        type(self).calls += 1
        if type(self).calls == {call}:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
            open("whole", "w").close()  # not reached if Ctrl-C is raised in here
        return x.flatten(1)[:, :3]
def net():
    return Net()
"""


@pytest.mark.parametrize(
    ("command", "call", "said"),
    [
        (
            "measure --perturbation gaussian-noise:1",
            1,
            "before the first draws were done: nothing is known yet",
        ),
        ("measure --perturbation gaussian-noise:1", 30, "interrupted"),
        ("sweep --stds 0 1 2", 60, "before std 1, the first, was measured: nothing is known yet"),
    ],
)
def test_a_network_is_never_interrupted_in_the_midst(tmp_path, command, call, said):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((500, 6)).astype(np.float32))
    (tmp_path / "net.py").write_text(_MODEL.format(call=call))
    ask = f"{command} --model py:net.py:net --data x.npy --tokens coordinates"
    ended = subprocess.run(
        [sys.executable, "-m", "jostle", *ask.split(), "--half-width", "0.002", "--batch-size", "64", "--quiet"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (ended.returncode, (tmp_path / "whole").exists()) == (130, True), ended.stderr
    assert said in ended.stdout + ended.stderr
