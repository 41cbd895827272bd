import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.probe import Probe
from jostle.probe.model import fingerprint, unwrap, weight_norm
from tests.probe.toys import CHOICES, network, points


class Compiled(nn.Module):
    """What ``torch.compile`` makes of a module, as far as it matters here; importing its compiler takes seconds."""

    def __init__(self, module):
        super().__init__()
        self._orig_mod = module


def test_wrappers_come_off():
    model = network()
    assert unwrap(nn.DataParallel(model)) is model
    assert unwrap(Compiled(model)) is model
    assert unwrap(Compiled(nn.DataParallel(model))) is model
    assert unwrap(len) is len


def test_weights_that_are_elsewhere_are_refused():
    class FullyShardedDataParallel(nn.Module):
        pass

    class Mine(FullyShardedDataParallel):
        pass

    with pytest.raises(UsageError, match="model of type Mine has its weights spread over processes"):
        Probe(points(), **CHOICES)(Mine(), 0)


def test_a_single_changed_weight_is_another_fingerprint():
    model = network()
    before = fingerprint(model)
    assert before == fingerprint(network()) != fingerprint(network(seed=1))
    model[4].bias.data[1] += 1e-6
    assert fingerprint(model) != before
    assert fingerprint(nn.Linear(2, 1).bfloat16()) is not None
    assert fingerprint(len) is fingerprint(nn.ReLU()) is None


def test_a_norm_that_is_none():
    model = network()
    assert weight_norm(nn.ReLU()) is weight_norm(len) is None
    model[0].bias.data[0] = torch.nan
    assert weight_norm(model) is None
