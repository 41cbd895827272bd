"""Randomness of training: order of examples and dropout, as functions of seed and epoch."""

import contextlib
import hashlib
import random
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from jostle.data import length_order

_POOL = 20  # batches sorted together: on QQP 9 % of the tokens computed are padding, 56 % in batches drawn at random


def order(examples: int, seed: int, epoch: int) -> Tensor:
    """The order of the examples in an epoch: a permutation of 0 .. ``examples`` - 1."""
    return torch.randperm(examples, generator=torch.Generator().manual_seed(_derive("order", seed, epoch)))


def order_by_length(lengths: Tensor, batch_size: int, seed: int, epoch: int) -> tuple[Tensor, ...]:
    """The examples of each batch of an epoch, in batches of texts of about the same length.

    Texts are dealt at random into pools of ``_POOL`` batches and sorted within them; see ``jostle.data.length_order``.

    Arguments:
        lengths: (examples,).
        batch_size: of all batches but the last of each pool.
        seed, epoch: the order is a function of these.
    """
    dealt = length_order(lengths, batch_size, _derive("order", seed, epoch), pool=_POOL)
    return tuple(torch.from_numpy(batch) for batch in dealt.batches)


@contextlib.contextmanager
def own_randomness(purpose: str, seed: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Inside, torch's global generators are a function of purpose, seed and epoch; afterwards they are as before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        # Not torch.manual_seed, which would also reseed devices that are not restored.
        torch.default_generator.manual_seed(_derive(purpose, seed, epoch))
        if devices:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(_derive(purpose, seed, epoch))
        yield


@contextlib.contextmanager
def random_numbers(seed: int) -> Iterator[None]:
    """Inside, the global generators of torch, numpy and Python are functions of ``seed``; then they are put back."""
    # A CUDA device that nobody has used has no state to keep, and asking for it would set the device up.
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global one is what others use
    try:
        with torch.random.fork_rng(devices=devices):
            torch.default_generator.manual_seed(
                seed % 2**63
            )  # torch.manual_seed would reach devices that are not restored
            for device in devices:
                torch.cuda.default_generators[device].manual_seed(seed % 2**63)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            random.seed(seed)
            yield
    finally:
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)


def _derive(purpose: str, seed: int, epoch: int) -> int:
    # Hashed, so that neighbouring seeds and epochs share no stream, as seed + epoch would.
    digest = hashlib.blake2b(f"jostle.training {purpose} {seed} {epoch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes 63 bits
