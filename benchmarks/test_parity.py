"""A step of training on 40 bits: the transformer as sparse parity trains it against the plain encoder.

The plain encoder is that of ``jostle.boolean.networks``, which already leaves out the last block at all tokens but the
one that is read. Both have the same weights and the same losses. Printed as training examples a second of CPU time and
as the ratio of the two, the median of interleaved rounds.
"""

import statistics
import time

import pytest
import torch
from torch import nn
from torch.nn import functional

from benchmarks.records import record
from jostle.boolean.networks.transformer import BooleanTransformer
from jostle_papers.p2403_06925.parity import BitTransformer, SparseParity

BATCH, ROUNDS, STEPS = 250, 7, 3

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_transformer_against_the_plain_encoder() -> None:
    task = SparseParity()
    data = task.sample(BATCH, seed=0)
    torch.manual_seed(0)
    fast = BitTransformer(n=40, dim=32)
    plain = BooleanTransformer(n=40, depth=2, dim=32, heads=4, mlp_dim=64, norm="pre", positions="added")
    plain.load_state_dict(fast.state_dict())
    losses: dict[nn.Module, list[float]] = {fast: [], plain: []}
    optimizers = {network: torch.optim.Adam(network.parameters(), lr=1e-3, foreach=True) for network in losses}

    def seconds(network: nn.Module) -> float:
        started = time.process_time()  # of this process: others on the machine do not count
        for _ in range(STEPS):
            optimizers[network].zero_grad()
            loss = functional.binary_cross_entropy_with_logits(network(data.inputs), data.labels.float())
            torch.autograd.backward(loss)
            optimizers[network].step()
            losses[network].append(loss.item())
        return time.process_time() - started

    rounds = [(seconds(plain), seconds(fast)) for _ in range(ROUNDS + 1)][1:]
    assert losses[fast][:STEPS] == pytest.approx(losses[plain][:STEPS], abs=1e-3)
    ratio = statistics.median(before / after for before, after in rounds)
    rates = [STEPS * BATCH / statistics.median(times) for times in zip(*rounds, strict=True)]
    record("parity-transformer", {"ratio": ratio, "examples_a_second": rates[1], "plain_examples_a_second": rates[0]})
    print(f"\n{rates[1]:.0f} examples a second of CPU time, plain {rates[0]:.0f}, {ratio:.1f} x")
    assert ratio > 1.3
