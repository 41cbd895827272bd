"""A study small enough for tests: what a careless author would write, with global random numbers and no seeding."""

import os
import random
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from jostle.base.progress import State
from jostle.studies import STUDIES, Cell, Drawing, Settings, Struct, Study, holds_for_all, is_less


@dataclass(frozen=True, kw_only=True)
class ToySettings(Settings):
    models: tuple[str, ...] = ("vit", "mlp")
    gap: float = 10.0
    size: int = 4
    stds: tuple[float, ...] = (0.5, 1.0)
    label: str = "toy"
    verbose: bool = False
    delay: float = 0.0
    broken: tuple[str, ...] = ("",)
    deadly: str = ""
    interrupting: str = ""


@dataclass(frozen=True)
class ToyCell(Cell):
    model: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class ToyRecord(Struct):
    sensitivity: float
    dtype: str
    threads: int
    other: tuple[float, float]


class Toy(Study[ToySettings, ToyCell, ToyRecord]):
    """Two made-up networks; the first is less sensitive by ``gap``."""

    name = "toy/noise"
    title = "A toy"
    claim = "The first is less sensitive than the second."
    source = "nowhere, Table 0"
    version = 1
    scales = {"smoke": ToySettings(seeds=2), "small": ToySettings(), "paper": ToySettings(seeds=5, size=8)}  # noqa: RUF012
    deviations = ("It is made up.",)

    def cells(self, settings, seeds):
        return [ToyCell(model, seed) for model in settings.models for seed in seeds]

    def measure(self, cell, settings, context) -> ToyRecord:
        attempts = context.folder / "attempts.txt"
        with attempts.open("a") as file:
            file.write(f"{os.getpid()}\n")
        context.report(State(0.5, 1, "half way"))
        time.sleep(settings.delay)
        if cell.key in settings.broken:
            raise ValueError(f"cannot do {cell.key},\nsorry")
        if cell.key == settings.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if cell.key == settings.interrupting:
            os.kill(os.getpid(), signal.SIGINT)
        if settings.verbose:
            warnings.warn(f"mind {cell.model}", UserWarning, stacklevel=1)
        noise = torch.rand(settings.size)
        return ToyRecord(
            sensitivity=float(noise.mean()) + settings.gap * (cell.model != "vit"),
            dtype=str(noise.dtype),
            threads=torch.get_num_threads(),
            other=(random.random(), float(np.random.rand())),  # noqa: NPY002
        )

    def figures(self, records):
        figure = Figure(figsize=(2, 1))  # bare, because axes cost more than everything else here
        for place, model in enumerate(records.distinct("model")):
            mean = np.mean(records.where(model=model).column(lambda record: record.sensitivity))
            figure.text(0.1, 0.2 + 0.4 * place, f"{model} has {mean:.4f}")
        return [
            Drawing("by-seed", figure, "Sensitivity by seed.", "Two numbers."),
            Drawing("again", figure, "The same once more.", "The same two numbers."),
        ]

    def expectations(self, records):
        first, second = (
            records.where(model=model).by("seed", lambda record: record.sensitivity) for model in ("vit", "mlp")
        )
        high = sum(record.sensitivity > 11 for _, record in records)
        return [
            is_less("vit is less sensitive than mlp", first, second),
            holds_for_all("no sensitivity exceeds 11", high, len(records)),
        ]


def make_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy is the only study during one test; the others are not even imported."""
    monkeypatch.setitem(vars(STUDIES), "_published", {})
    monkeypatch.setattr(STUDIES, "_things", {Toy.name: Toy})


def alone_in_process(argument: str, **options: object) -> str:
    """A program that runs the toy in the folder given as its first argument."""
    root = Path(__file__).parent.parent.parent
    return f"""
import sys
sys.path.insert(0, {str(root)!r})
from jostle import studies
from tests.studies.toys import Toy
if __name__ == "__main__":
    studies.register(Toy)
    studies.run(Toy.name, "small", {argument}, progress=False, **{options!r})
"""
