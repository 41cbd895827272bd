import math

import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.boolean import networks
from jostle.landscape import layernorm_blowup
from jostle.models.convnext import MapNorm
from tests.landscape.toys import images, zoo

TOKENS = torch.tensor([[[0.0, 2.0, 4.0], [1.0, 1.0, 4.0]], [[0.0, 0.0, 3.0], [6.0, 0.0, 0.0]]], dtype=torch.float64)


class Normed(nn.Module):
    def __init__(self, *norms):
        super().__init__()
        self.norms = nn.Sequential(*norms)

    def forward(self, x):
        return self.norms(x).flatten(1)


def test_one_norm_by_hand():
    """Variances 8/3 and 2, then 2 and 8; eps counts; the smallest variance of an input is what is blown up."""
    found = layernorm_blowup(Normed(nn.LayerNorm(3, eps=0.25)), TOKENS)
    expected = 1 + 1 / math.sqrt(2 + 0.25)
    assert found.per_input.tolist() == pytest.approx([expected, expected], rel=1e-15)
    other = layernorm_blowup(Normed(nn.LayerNorm(3, eps=0.25, elementwise_affine=False)), TOKENS)
    assert other.value == found.value
    assert found.norms == ["norms.0"]
    assert found.per_norm.shape == (2, 1)


def test_norms_multiply_in_the_order_they_are_called():
    first, second = nn.LayerNorm(3, eps=1.0), nn.LayerNorm(3, eps=0.5)
    found = layernorm_blowup(Normed(first, second, first), TOKENS)
    assert found.norms == ["norms.0", "norms.1", "norms.0"]
    y, product = TOKENS, torch.ones(2)
    for norm in (part.requires_grad_(False) for part in (first, second, first)):
        product = product * (1 + 1 / (y.var(dim=-1, correction=0) + norm.eps).sqrt()).amax(dim=1)
        y = norm(y)
    assert found.per_input.tolist() == pytest.approx(product.tolist(), rel=1e-12)
    assert found.value == pytest.approx(float(product.mean()))
    assert found.mean_square == pytest.approx(float(product.square().mean()))
    assert found.high == math.inf  # both inputs have the same blow-up, which says nothing about others
    spread = layernorm_blowup(Normed(first), torch.randn(20, 2, 3))
    assert 1 <= spread.low < spread.value < spread.high < 10
    assert found.interval.target == "population"


def test_constant_tokens_reach_the_bound():
    found = layernorm_blowup(Normed(nn.LayerNorm(3), nn.LayerNorm(3)), torch.ones(4, 2, 3))
    assert found.value == pytest.approx((1 + 1 / math.sqrt(1e-5)) ** 2)


def test_root_mean_squares():
    mean_square = torch.tensor([18 / 3, 3.0])  # the smaller of each input: 20/3 and 18/3, 9/3 and 36/3
    for norm, eps in ((nn.RMSNorm(3, eps=0.5), 0.5), (nn.RMSNorm(3), torch.finfo(torch.float64).eps)):
        found = layernorm_blowup(Normed(norm), TOKENS)
        assert found.per_input.tolist() == pytest.approx((1 + 1 / (mean_square + eps).sqrt()).tolist(), rel=1e-12)


def test_norms_of_other_packages_are_known_by_name():
    class MyRMSNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.variance_epsilon = nn.Parameter(torch.ones(3)), 0.5

        def forward(self, hidden):
            return hidden * self.weight * (hidden.square().mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()

    class MyLayerNorm(MyRMSNorm):
        def forward(self, hidden):
            return super().forward(hidden - hidden.mean(-1, keepdim=True))

    rms, centred = (layernorm_blowup(Normed(norm()), TOKENS) for norm in (MyRMSNorm, MyLayerNorm))
    assert rms.per_input[1] == pytest.approx(1 + 1 / math.sqrt(3.5))
    assert centred.per_input[1] == pytest.approx(1 + 1 / math.sqrt(2.5))


def test_maps_are_normed_over_their_channels():
    maps = torch.randn(2, 3, 3, 3)  # height and width as large as the channels: the axis must not be guessed
    found = layernorm_blowup(Normed(MapNorm(3)), maps)
    expected = (1 + 1 / (maps.var(dim=1, correction=0) + 1e-5).sqrt()).flatten(1).amax(dim=1)
    assert found.per_input.tolist() == pytest.approx(expected.tolist())
    assert len(layernorm_blowup(zoo("convnext"), images()).norms) > 3


class TestReleased:
    def test_by_hand(self):
        norm = nn.LayerNorm(3, eps=0.25)
        found = layernorm_blowup(Normed(norm), TOKENS, protocol="released", last_layer_norms=0)
        assert found.per_input.tolist() == pytest.approx([1 / math.sqrt(3)] * 2)  # the unbiased variance 3, no eps
        at_the_end = layernorm_blowup(Normed(norm), TOKENS, protocol="released")
        assert at_the_end.per_input.tolist() == pytest.approx([1 / math.sqrt(3), 1 / math.sqrt(12)])

    def test_the_last_layer_is_read_at_the_last_position(self):
        norms = [nn.LayerNorm(3) for _ in range(4)]
        found = layernorm_blowup(Normed(*norms), TOKENS, protocol="released")
        y, product = TOKENS, torch.ones(2)
        for place, norm in enumerate(part.requires_grad_(False) for part in norms):
            inverse = 1 / y.std(dim=2)
            product = product * (inverse[:, -1:] if place >= 2 else inverse).amax(dim=1)
            y = norm(y)
        assert found.per_input.tolist() == pytest.approx(product.tolist())

    def test_a_constant_token_is_infinite(self):
        found = layernorm_blowup(Normed(nn.LayerNorm(3)), torch.ones(2, 2, 3), protocol="released")
        assert found.value == math.inf
        assert found.high == math.inf


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3, eps=0.25)

    def forward(self, embedded, attention_mask):
        return self.norm(embedded).sum(dim=(1, 2))


def test_masked_positions_do_not_count():
    mapping = {"embedded": TOKENS, "attention_mask": torch.tensor([[1, 0], [0, 1]])}
    found = layernorm_blowup(Text(), mapping)
    assert found.per_input.tolist() == pytest.approx([1 + 1 / math.sqrt(8 / 3 + 0.25), 1 + 1 / math.sqrt(8.25)])


@pytest.mark.parametrize("sides", ["right", "left", "both"])
def test_padding_changes_nothing(sides):
    """The last position is the last one that is not masked, wherever the padding is."""
    torch.manual_seed(1)
    real, pad = torch.randn(5, 4, 3), torch.zeros(5, 2, 3)
    parts = [(pad, 0)] * (sides != "right") + [(real, 1)] + [(pad, 0)] * (sides != "left")
    padded = torch.cat([part for part, _ in parts], dim=1)
    mask = torch.cat([torch.full(part.shape[:2], is_real) for part, is_real in parts], dim=1)
    for protocol in ("paper", "released"):
        plain = layernorm_blowup(Text(), {"embedded": real, "attention_mask": torch.ones(5, 4)}, protocol=protocol)
        found = layernorm_blowup(Text(), {"embedded": padded, "attention_mask": mask}, protocol=protocol)
        assert found.per_input.tolist() == pytest.approx(plain.per_input.tolist())
    by_hand = 1 / real[:, -1].std(dim=1)
    assert found.per_input.tolist() == pytest.approx(by_hand.tolist())


@pytest.mark.parametrize("length", [4, 5, 6])
@pytest.mark.parametrize("batch_size", [2, 5, 128])
def test_norms_that_receive_the_sequence_first_are_refused(length, batch_size):
    """Also those of as many positions as inputs, which have the right shape."""

    class SequenceFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(3)

        def forward(self, x):
            return self.norm(x.transpose(0, 1)).sum(dim=(0, 2))

    x = torch.randn(5, length, 3)
    with pytest.raises(
        UsageError, match=r"the norm norm receives \(\d, \d, 3\) for \d inputs; expected the batch first"
    ):
        layernorm_blowup(SequenceFirst(), x, batch_size=batch_size)
    assert layernorm_blowup(Normed(nn.LayerNorm(3)), x, batch_size=batch_size).per_norm.shape == (5, 1)


def test_every_norm_of_an_encoder_is_seen_and_no_hook_stays():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train()
    whole = layernorm_blowup(model, torch.randn(5, 4, 8))
    assert whole.norms == [f"layers.{place}.norm{norm}" for place in range(2) for norm in (1, 2)]
    assert model.training
    assert all(not module._forward_pre_hooks for module in model.modules())
    bits = torch.randint(2, (7, 4)) * 2.0 - 1.0
    transformer = networks.create("transformer", n=4, dim=8)
    parts, together = (layernorm_blowup(transformer, bits, batch_size=size) for size in (3, 128))
    assert parts.per_input.tolist() == pytest.approx(together.per_input.tolist(), rel=1e-9)
    assert "4 norms" in str(parts)


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (nn.Linear(3, 1), TOKENS, "model has no LayerNorm or RMSNorm"),
        (torch.relu, TOKENS, "expected a torch.nn.Module with layer norms"),
        (Normed(nn.LayerNorm(3).double()), TOKENS[:0], "inputs are empty"),
        (nn.Sequential(nn.Flatten(0, 1), nn.LayerNorm(3).double()), TOKENS, r"receives \(4, 3\) for 2 inputs"),
    ],
)
def test_wrong_use_is_one_clear_line(model, inputs, message):
    with pytest.raises(UsageError, match=message):
        layernorm_blowup(model, inputs)


def test_norms_that_are_not_called_are_one_clear_line():
    class Idle(nn.Linear):
        def __init__(self):
            super().__init__(3, 1)
            self.norm = nn.LayerNorm(3)

    with pytest.raises(UsageError, match="calls none of its 1 norms"):
        layernorm_blowup(Idle(), TOKENS)


def test_no_hook_stays_after_an_error():
    model = nn.Sequential(nn.LayerNorm(3), nn.Linear(4, 1))
    with pytest.raises(Exception, match="model raised RuntimeError"):
        layernorm_blowup(model, TOKENS)
    assert not model[0]._forward_pre_hooks


def test_a_norm_of_a_single_number_has_no_unbiased_deviation():
    inputs = torch.randn(4, 1)
    with pytest.raises(UsageError, match=r"no unbiased standard deviation; give protocol='paper'"):
        layernorm_blowup(nn.LayerNorm(1), inputs, protocol="released")
    assert layernorm_blowup(nn.LayerNorm(1, eps=0.25), inputs).value == 3.0  # 1 + 1 / sqrt(0 + eps)


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_a_number_of_norms_is_checked_whether_or_not_it_is_used(protocol):
    with pytest.raises(UsageError, match="last_layer_norms=-1 must be a whole number, at least 0"):
        layernorm_blowup(nn.LayerNorm(3), TOKENS, protocol=protocol, last_layer_norms=-1)
