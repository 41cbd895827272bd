"""Works and networks that other processes can import."""

import contextlib
import io
import itertools
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from jostle.engines import Crew, Engine, Outcome, payload
from jostle.engines.worker import do_bytes, open_work
from tests.engines.toy import die_once


@dataclass(frozen=True)
class Copies(Engine):
    """Workers that are copies of the work in this process, as they would be in others; units end in a random order."""

    workers: int
    cpus: int = 1
    log: list = field(default_factory=list, compare=False)

    @contextlib.contextmanager
    def crew(self, work):
        self.log.append("crew")
        written = payload_bytes(work)
        with torch.inference_mode(False):  # as in a process of its own: an LSTM rounds otherwise with inference tensors
            works = [open_work(written, self.cpus) for _ in range(self.workers)]
        yield _CopiesCrew(works, self.log)


def payload_bytes(work) -> bytes:
    file = io.BytesIO()
    payload.dump(work, file, "work")
    return file.getvalue()


@dataclass
class _CopiesCrew(Crew):
    works: list
    log: list
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def outcomes(self, units, show):
        units, held = enumerate(units), []
        while True:
            held += itertools.islice(units, len(self.works) - len(held))
            if not held:
                return
            number, unit = held.pop(self.chance.randrange(len(held)))
            self.log.append(type(unit).__name__)
            dtype = torch.get_default_dtype()
            outcome: Outcome = payload.loads(
                do_bytes(self.chance.choice(self.works), payload.dumps(unit, "unit"), lambda state: None)
            )
            torch.set_default_dtype(dtype)
            yield number, outcome


class Net(nn.Module):
    """A small network that is read as a whole, since its layers are no chain."""

    def __init__(self, seed: int = 0, mark: Path | None = None, after: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.first, self.last = nn.Linear(64, 96), nn.Linear(96, 10)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float32) * 0.3
        self.mark, self.home, self.calls, self.after = mark, os.getpid(), 0, after

    def forward(self, images):
        self.calls += 1
        if self.mark is not None and os.getpid() != self.home and self.calls > self.after:
            die_once(self.mark)
        return self.last(torch.tanh(self.first(images.flatten(1).float())))


def pictures(count: int = 300) -> torch.Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float32)
