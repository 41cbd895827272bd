"""Epochs of networks that learn modular addition: several at once against a plain loop.

The plain loop is what a paper's script has: the network as a module, all three positions through attention and neurons,
``cross_entropy``, ``torch.optim.AdamW``, the full batch, and no loader. Both train the same network from the same
weights and have the same losses. Printed as networks' epochs a second of CPU time and as the ratio of the two, the
median of interleaved rounds, and held against the project's goal of 5.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from benchmarks.records import record
from jostle_papers.p2403_06925.grokking import DESIGNS, Addition, initial_network, split
from jostle_papers.p2403_06925.grokking.gradients import loss_and_gradient
from jostle_papers.p2403_06925.grokking.passes import Pairs
from jostle_papers.p2403_06925.grokking.plain import layout_of
from jostle_papers.stacked.adamw import StackedAdamW

TASK, SEEDS, ROUNDS = Addition(modulus=113), (42, 43, 44), 7

pytestmark = pytest.mark.usefixtures("one_thread")


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()  # of this process: others on the machine do not count
    work()
    return time.process_time() - started


@pytest.mark.parametrize("name", DESIGNS.names())
def test_several_networks_against_a_plain_loop(name: str) -> None:
    design = DESIGNS.get(name)
    layout = layout_of(TASK, design)
    weights = layout.stack([initial_network(TASK, design, seed) for seed in SEEDS])
    trained = torch.stack([split(TASK, design.train_fraction, seed)[0].sort().values for seed in SEEDS])
    pairs, gradient, mine = (
        Pairs.of(TASK, trained, design.heads),
        torch.zeros_like(weights),
        StackedAdamW.start(weights),
    )

    network = initial_network(TASK, design, SEEDS[0])
    inputs, labels = TASK.pairs()[trained[0]], TASK.answers()[trained[0]]
    settings = {"lr": design.lr, "weight_decay": design.weight_decay, "betas": design.betas, "eps": design.eps}
    optimizer = torch.optim.AdamW(network.parameters(), **settings)
    losses: list[list[float]] = [[], []]

    def together() -> None:
        losses[0].append(float(loss_and_gradient(weights, pairs, layout, design, gradient)[0]))
        mine.step(weights, gradient, **settings)

    def plain() -> None:
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(inputs), labels)
        loss.backward()
        optimizer.step()
        losses[1].append(loss.item())

    rounds = [(seconds(plain), seconds(together) / len(SEEDS)) for _ in range(ROUNDS + 1)][1:]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    ratio = statistics.median(before / after for before, after in rounds)
    rates = [1 / statistics.median(times) for times in zip(*rounds, strict=True)]
    record(f"grokking-{name}", {"ratio": ratio, "epochs_a_second": rates[1], "plain_epochs_a_second": rates[0]})
    print(f"\n{name}: {rates[1]:.1f} epochs of a network a second of CPU time, plain {rates[0]:.1f}, {ratio:.1f} x")
    assert ratio > 5
