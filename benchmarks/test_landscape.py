"""Draws of the weights at once against one after the other: where the rule of ``Network.groups`` should switch.

The rule is parameters times inputs of a batch, at most 2^20. Cases lie on both sides of it; printed and recorded is how
many times as fast 32 draws at once are, as the median ratio of CPU times of interleaved rounds.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from benchmarks.records import record
from jostle import models
from jostle.boolean import networks
from jostle.landscape import sharpness
from jostle.landscape.network import _SMALL

pytestmark = pytest.mark.usefixtures("one_thread")

DRAWS, ROUNDS = 32, 5


def bits(count: int, n: int) -> Tensor:
    return torch.randint(2, (count, n)) * 2.0 - 1.0


CASES: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "transformer-dim16-16": lambda: (networks.create("transformer", n=4, dim=16), bits(16, 4)),
    "transformer-dim32-64": lambda: (networks.create("transformer", n=6, dim=32), bits(64, 6)),
    "transformer-dim64-256": lambda: (networks.create("transformer", n=8, dim=64), bits(256, 8)),
    "resnet-width4-16": lambda: (
        models.create("resnet-18", image_size=8, width=4, blocks=(1, 2)),
        torch.randn(16, 3, 8, 8),
    ),
    "vit-dim8-16": lambda: (
        models.create("vit-simple", image_size=8, dim=8, depth=2, heads=2, dim_head=4, mlp_dim=8),
        torch.randn(16, 3, 8, 8),
    ),
    "mlp-100-128": lambda: (models.create("mlp", hidden=(100,)), torch.randn(128, 1, 28, 28)),
    "cnn-width8-128": lambda: (models.create("cnn", width=8, hidden=16), torch.randn(128, 1, 28, 28)),
}


@pytest.mark.parametrize("case", CASES)
def test_draws_at_once(case):
    model, inputs = CASES[case]()
    size = sum(parameter.numel() for parameter in model.parameters()) * len(inputs)

    def seconds(at_once: int | None) -> float:
        started = time.process_time()  # of this process: others on the machine do not count
        sharpness(model, inputs, draws=DRAWS, batch_size=len(inputs), draws_at_once=at_once)
        return time.process_time() - started

    seconds(DRAWS)
    seconds(1)
    rounds = [(seconds(1), seconds(DRAWS), seconds(None)) for _ in range(ROUNDS)]
    at_once = statistics.median(loop / mapped for loop, mapped, _ in rounds)
    by_rule = statistics.median(loop / chosen for loop, _, chosen in rounds)
    milliseconds = statistics.median(loop for loop, _, _ in rounds) / DRAWS * 1e3
    record(f"landscape-{case}", {"at_once": at_once, "by_rule": by_rule, "milliseconds_a_draw": milliseconds})
    print(f"\n{case}: {milliseconds:.2f} ms a draw; {at_once:.2f} times as fast at once, {by_rule:.2f} by the rule")
    if size <= _SMALL:
        assert at_once > 1
    assert by_rule > 0.8  # the rule never costs much
