"""One module on a loss of its own: weights that have two names, and numbers that are no weights, stay right."""

import torch
from torch import nn
from torch.func import functional_call

from jostle_papers.p2402_09963.hardness import HardnessPlan, named_task
from jostle_papers.p2402_09963.hardness.training import train_single
from tests.papers.hardness.tied import Tied


def test_tied_weights_and_buffers_are_trained_as_torch_does():
    torch.set_default_dtype(torch.float32)
    task, plan = named_task("majority", 4), HardnessPlan(batch_size=8, lr=1e-2, steps=3, fit_loss=0.0)
    network, twin = Tied(4, 6), Tied(4, 6)
    twin.load_state_dict(network.state_dict())
    tables = {name: table.clone() for name, table in network.named_buffers()}

    def loss(weights, step):
        bits, labels, _ = task.batch(8, 0, step)
        return (functional_call(network, dict(weights), (bits,)) - labels).square().mean()

    assert train_single(network, loss, plan, {})[1] == 3
    optimizer = torch.optim.AdamW(twin.parameters(), lr=1e-2, weight_decay=0.1)
    for step in range(3):
        bits, labels, _ = task.batch(8, 0, step)
        optimizer.zero_grad()
        (twin(bits) - labels).square().mean().backward()
        optimizer.step()
    assert network.second.weight is network.first.weight
    assert isinstance(network.second.weight, nn.Parameter)
    for name, found in network.state_dict().items():
        assert torch.allclose(found, twin.state_dict()[name], rtol=0, atol=1e-5), name
    assert all(torch.equal(table, tables[name]) for name, table in network.named_buffers())
    assert not network.training
