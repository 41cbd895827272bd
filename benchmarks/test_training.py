"""What ``fit`` costs on top of a training loop written by hand, both measured in one run, interleaved.

Both train the same model on the same examples with Adam, in batches of 100, and evaluate it before and after. The loop
by hand is what a tutorial shows: a permutation, batches by indexing, torch's default optimiser. Printed as a ratio of
CPU times, the median of interleaved rounds, and held against the project's goal of 10 %.
"""

import copy
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import jostle
from benchmarks.records import record
from jostle.data import Dataset
from jostle.training import fit

BATCH, EPOCHS, ROUNDS = 100, 2, 9


pytestmark = pytest.mark.usefixtures("one_thread")


def mlp() -> nn.Module:
    return jostle.models.create("mlp", image_size=28, channels=1, seed=0)


def vit() -> nn.Module:
    sizes = {"patch_size": 7, "dim": 32, "depth": 2, "heads": 2, "dim_head": 16, "mlp_dim": 64}
    return jostle.models.create("vit-simple", image_size=28, channels=1, seed=0, **sizes)


MODELS = {"mlp": mlp, "vit": vit}


def digits(examples: int) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(examples, 1, 28, 28, generator=generator)
    return Dataset("noise", inputs, torch.randint(10, (examples,), generator=generator), classes=10)


def by_hand(model: nn.Module, dataset: Dataset) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    look(model, dataset)
    for _ in range(EPOCHS):
        model.train()
        for rows in torch.randperm(len(dataset)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(dataset.inputs[rows]), dataset.labels[rows]).backward()
            optimizer.step()
    look(model, dataset)


@torch.no_grad()
def look(model: nn.Module, dataset: Dataset) -> None:
    model.eval()
    for inputs, labels in zip(dataset.inputs.split(500), dataset.labels.split(500), strict=True):
        logits = model(inputs)
        nn.functional.cross_entropy(logits, labels, reduction="sum").item()
        (logits.argmax(dim=1) == labels).sum().item()


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()  # of this process: others on the machine do not count
    work()
    return time.process_time() - started


@pytest.mark.parametrize("name", MODELS)
def test_fit_against_a_loop_by_hand(name: str, tmp_path: Path) -> None:
    start, dataset = MODELS[name](), digits(2500)
    settings = {"lr": 1e-3, "batch_size": BATCH, "max_epochs": EPOCHS, "evaluate_every": EPOCHS}

    def written(model: nn.Module, place: Path) -> None:
        place.unlink(missing_ok=True)
        fit(model, dataset, **settings, checkpoint=place)

    def one_round() -> tuple[float, float, float]:
        plain, mine, saved = (copy.deepcopy(start) for _ in range(3))
        return (
            seconds(lambda: by_hand(plain, dataset)),
            seconds(lambda: fit(mine, dataset, **settings)),
            seconds(lambda: written(saved, tmp_path / "c.safetensors")),
        )

    one_round()
    rounds = [one_round() for _ in range(ROUNDS)]
    ratio = statistics.median(mine / plain for plain, mine, _ in rounds)
    with_checkpoints = statistics.median(saved / plain for plain, _, saved in rounds)
    steps = EPOCHS * len(dataset) / BATCH
    per_step = statistics.median(plain for plain, _, _ in rounds) / steps * 1e3
    numbers = {
        "overhead": ratio - 1,
        "overhead_with_checkpoints": with_checkpoints - 1,
        "milliseconds_a_step": per_step,
    }
    record(f"training-{name}", numbers)
    print(
        f"\n{name}: {per_step:.1f} ms a step by hand, evaluations included; fit {ratio - 1:+.1%}, "
        f"{with_checkpoints - 1:+.1%} with a checkpoint every {len(dataset) // BATCH} steps"
    )
    assert ratio < 1.10
