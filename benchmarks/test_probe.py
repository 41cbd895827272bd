"""What a probe costs a training loop, with and without it measured in one run, in turns, and held against its share.

The loop is what a tutorial shows: Adam, batches of 100 images of 28 x 28, small networks of the zoo. Two copies train
on the same batches, 50 steps of one and then 50 of the other, so that both see the same machine. The probe measures
every 50 steps, within 5 % of the training time. All times are CPU times of this process, also by the probe's own clock,
which stands still while the other copy trains.
"""

import copy
import time

import pytest
import torch
from torch import Tensor, nn

import jostle
from benchmarks.records import record
from jostle.probe import Probe

SHARE, EVERY = 0.05, 50
SIZES = {"patch_size": 7, "dim": 32, "depth": 2, "heads": 2, "dim_head": 16, "mlp_dim": 64}
MODELS = {"mlp": ("mlp", {"hidden": (64,)}, 4000), "vit": ("vit-simple", SIZES, 600)}

pytestmark = pytest.mark.usefixtures("one_thread")


class Loop:
    """A model in training, its probe if it has one, and the CPU seconds of both together."""

    def __init__(self, model: nn.Module, probe: Probe | None = None) -> None:
        self.model, self.probe, self.seconds = model, probe, 0.0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self._began: float | None = None
        if probe is not None:
            probe._budget.clock = self.clock

    def clock(self) -> float:
        return self.seconds + (0.0 if self._began is None else time.process_time() - self._began)

    def train(self, start: int, batches: list[tuple[Tensor, Tensor]]) -> None:
        self._began = time.process_time()
        for step, (images, labels) in enumerate(batches, start):
            if self.probe is not None:
                self.probe(self.model, step)
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(images), labels).backward()
            self.optimizer.step()
        self.seconds, self._began = self.clock(), None


@pytest.mark.parametrize("name", MODELS)
def test_a_probe_against_the_same_loop_without(name: str) -> None:
    kind, sizes, steps = MODELS[name]
    model = jostle.models.create(kind, image_size=28, channels=1, seed=0, **sizes)
    images, labels = torch.randn(2000, 1, 28, 28), torch.randint(10, (2000,))
    tokens, noise = jostle.Patches(7), jostle.GaussianNoise(2.0)
    probe = Probe(images[:500], tokens=tokens, perturbation=noise, every=EVERY, share=SHARE)
    alone, watched = Loop(copy.deepcopy(model)), Loop(copy.deepcopy(model), probe)
    for start in range(0, steps, EVERY):
        rows = [torch.randint(len(images), (100,)) for _ in range(EVERY)]
        for loop in (alone, watched):
            loop.train(start, [(images[each], labels[each]) for each in rows])
    pairs = zip(alone.model.parameters(), watched.model.parameters(), strict=True)
    assert all(torch.equal(*pair) for pair in pairs)
    overhead, budget, measured = watched.seconds / alone.seconds - 1, probe._budget, len(probe.history["step"])
    numbers = {
        "overhead": overhead,
        "share_by_its_own_book": budget.probe_seconds / budget.training_seconds,
        "measured": measured,
        "due": steps / EVERY,
        "milliseconds_a_step": alone.seconds / steps * 1e3,
        "milliseconds_a_measurement": budget.probe_seconds / measured * 1e3,
    }
    record(f"probe-{name}", numbers)
    print(
        f"\n{name}: {numbers['milliseconds_a_step']:.1f} ms a step; with the probe {overhead:+.1%}, by its own book "
        f"{numbers['share_by_its_own_book']:.1%}; {measured} of {steps // EVERY} due steps measured, "
        f"{numbers['milliseconds_a_measurement']:.0f} ms each"
    )
    assert overhead < SHARE + 0.05
