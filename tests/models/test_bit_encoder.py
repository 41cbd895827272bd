import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.landscape import POSITIONS, layernorm_blowup, parameter_norm
from jostle.models import BIT_MODELS
from jostle.models.bit_encoder import BitEncoder


def shaken(model):
    """Biases, gains and blocks away from their first values."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def load_attention(theirs, ours):
    theirs.in_proj_weight.data = torch.cat([ours.to_query.weight, ours.to_key.weight, ours.to_value.weight]).detach()
    theirs.in_proj_bias.data = torch.cat([ours.to_query.bias, ours.to_key.bias, ours.to_value.bias]).detach()
    theirs.out_proj.load_state_dict(ours.to_out.state_dict())


def load_encoder(theirs, blocks):
    """Put the weights of our blocks into torch's encoder."""
    for layer, block in zip(theirs.layers, blocks, strict=True):
        load_attention(layer.self_attn, block.attention)
        layer.linear1.load_state_dict(block.mlp[0].state_dict())
        layer.linear2.load_state_dict(block.mlp[2].state_dict())
        layer.norm1.load_state_dict(block.attention_norm.state_dict())
        layer.norm2.load_state_dict(block.mlp_norm.state_dict())


def test_it_is_the_encoder_of_torch(bits):
    model = shaken(BitEncoder(max_length=9, dim=12, depth=3, heads=3, mlp_dim=20))
    layer = nn.TransformerEncoderLayer(12, 3, 20, 0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    load_encoder(encoder, model.blocks)
    table = torch.cat([model.symbols[(bits > 0).long()], model.positions[:7].expand(len(bits), 7, 6)], dim=2)
    theirs = model.readout(encoder(table)[:, -1])[:, 0]
    assert torch.allclose(model(bits), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dim", "count", "norm"), [(128, 199_425, 35.87), (64, 50_561, 24.93), (32, 12_993, 18.02)])
def test_sizes_and_first_norms_of_the_paper(dim, count, norm):
    """The sum of squares is 10 dim on average: 4 gains and 5 of matrices, and dim of symbols, with std sqrt(2 dim)."""
    model = BitEncoder(max_length=10, dim=dim)
    positions = model.positions.numel()
    assert sum(parameter.numel() for parameter in model.parameters()) == count + positions
    error = (2 * dim) ** 0.5 / (2 * (10 * dim) ** 0.5)  # 0.22 at every dim
    assert parameter_norm(model, skip=POSITIONS) == pytest.approx((10 * dim) ** 0.5, abs=4 * error)
    assert norm == pytest.approx((10 * dim) ** 0.5, abs=4 * error)  # of one network of the released code


def test_blocks_start_from_the_same_weights_unless_told_otherwise():
    first, second = BitEncoder(dim=8).blocks
    assert torch.equal(first.mlp[0].weight, second.mlp[0].weight)
    assert first.mlp[0].weight is not second.mlp[0].weight
    first, second = BitEncoder(dim=8, equal_blocks=False).blocks
    assert not torch.equal(first.mlp[0].weight, second.mlp[0].weight)


def test_bits_of_0_and_of_minus_1_are_the_same_and_every_bit_matters(bits):
    model = shaken(BitEncoder(max_length=7, dim=8))
    outputs = model(bits)
    assert torch.equal(outputs, model((bits > 0).double()))
    for place in range(7):
        flipped = bits.clone()
        flipped[:, place] *= -1
        assert (model(flipped) - outputs).abs().max() > 1e-6


def test_every_norm_sees_every_token(bits):
    found = layernorm_blowup(BitEncoder(max_length=7, dim=8), bits)
    assert found.norms == [f"blocks.{block}.{name}_norm" for block in (0, 1) for name in ("attention", "mlp")]


def test_it_is_in_the_zoo():
    assert BIT_MODELS.names() == ["bit-encoder", "bit-scratchpad"]
    assert BIT_MODELS.get("bit-encoder") is BitEncoder


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"dim": 9}, "dim=9 must be even"),
        ({"dim": 8, "heads": 3}, "dim=8 must be a multiple of heads=3"),
    ],
)
def test_wrong_sizes_are_one_clear_line(sizes, message):
    with pytest.raises(UsageError, match=message):
        BitEncoder(**sizes)


def test_strings_that_are_too_long_are_one_clear_line(bits):
    with pytest.raises(UsageError, match=r"bits of shape \(128, 7\) must be \(batch, tokens\) with 1 to 6 tokens"):
        BitEncoder(max_length=6, dim=8)(bits)
