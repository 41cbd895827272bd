"""Strict defaults for the whole suite: float64, one thread, no network, a fixed seed, Ctrl-C that interrupts."""

import signal
import socket

import pytest
import torch

from jostle.base.randomness import Stream

# A shell that starts a program in the background, and nohup, let it ignore Ctrl-C, and so would every program that a
# test starts. With a handler of its own here, programs started from here have the usual one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("tests must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def stream() -> Stream:
    """A named stream for tests that need random numbers."""
    return Stream(seed=20240601, name="tests")


@pytest.fixture
def bits() -> torch.Tensor:
    """All 2^7 inputs of the cube {-1, 1}^7."""
    numbers = torch.arange(2**7)
    return ((numbers[:, None] >> torch.arange(7)) & 1).double() * 2 - 1
