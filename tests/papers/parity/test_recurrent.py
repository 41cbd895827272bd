import pytest
import torch

from jostle.base.errors import UsageError
from jostle.boolean.networks.lstm import BooleanLSTM
from jostle.boolean.networks.state_space import BooleanStateSpace
from jostle_papers.p2403_06925.parity import BitLSTM, BitStateSpace


def pair(kind):
    torch.manual_seed(1)
    if kind == "lstm":
        fast, plain = BitLSTM(n=7, depth=2, dim=5, hidden=6), BooleanLSTM(n=7, depth=2, dim=5, hidden=6)
    else:
        fast, plain = BitStateSpace(n=7, depth=2, dim=8, state=3), BooleanStateSpace(n=7, depth=2, dim=8, state=3)
    plain.load_state_dict(fast.state_dict())
    return fast, plain


@pytest.mark.parametrize("kind", ["lstm", "state-space"])
def test_they_are_the_plain_networks_and_so_are_their_gradients(bits, kind):
    fast, plain = pair(kind)
    mine, theirs = fast(bits), plain(bits)
    assert mine.std() > 1e-3
    assert torch.allclose(mine, theirs, rtol=0, atol=1e-12)
    for outputs in (mine, theirs):
        outputs.square().sum().backward()
    for first, second in zip(fast.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(first.grad, second.grad, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["lstm", "state-space"])
def test_wrong_use_is_one_clear_line(kind):
    with pytest.raises(UsageError, match="built for a batch of 7 bits"):
        pair(kind)[0](torch.ones(3, 6))
