"""Randomness of training: the order of the examples and dropout, as functions of the seed and the epoch."""

import contextlib
import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor


def order(examples: int, seed: int, epoch: int) -> Tensor:
    """In which order an epoch takes its examples: a permutation of 0 .. ``examples`` - 1."""
    return torch.randperm(examples, generator=torch.Generator().manual_seed(_derive("order", seed, epoch)))


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


def _derive(purpose: str, seed: int, epoch: int) -> int:
    # Hashed, so that neighbouring seeds and epochs share no stream, as seed + epoch would.
    digest = hashlib.blake2b(f"jostle.training {purpose} {seed} {epoch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes 63 bits
