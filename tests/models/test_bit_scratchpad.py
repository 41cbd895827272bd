import pytest
import torch
from torch import nn

from jostle.base.errors import UsageError
from jostle.models import BIT_MODELS
from jostle.models.bit_scratchpad import BitScratchpad
from tests.models.test_bit_encoder import load_attention, load_encoder, shaken


def prefixes(bits):
    """The parities of all beginnings, as products of signs."""
    return bits.cumprod(dim=1)


def torch_transformer(model, dim, heads, mlp_dim):
    theirs = nn.Transformer(dim, heads, 2, 2, mlp_dim, 0.0, batch_first=True)
    load_encoder(theirs.encoder, model.encoder)
    theirs.encoder.norm.load_state_dict(model.encoder_norm.state_dict())
    theirs.decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    for layer, block in zip(theirs.decoder.layers, model.decoder, strict=True):
        load_attention(layer.self_attn, block.attention)
        load_attention(layer.multihead_attn, block.reading)
        layer.linear1.load_state_dict(block.mlp[0].state_dict())
        layer.linear2.load_state_dict(block.mlp[2].state_dict())
        for norm, own in ((layer.norm1, block.attention_norm), (layer.norm2, block.reading_norm)):
            norm.load_state_dict(own.state_dict())
        layer.norm3.load_state_dict(block.mlp_norm.state_dict())
    return theirs.eval()


def test_it_is_the_transformer_of_torch(bits):
    model, scratchpad = shaken(BitScratchpad(max_length=7, dim=8, mlp_dim=10)), prefixes(bits)
    theirs = torch_transformer(model, 8, 2, 10)

    def tokens(ids):
        return torch.cat([model.symbols[ids], model.positions[: ids.shape[1]].expand(len(ids), -1, -1)], dim=2)

    written = torch.cat([torch.full((len(bits), 1), 2), (scratchpad[:, :-1] > 0).long()], dim=1)
    mask = torch.ones(7, 7, dtype=torch.bool).triu(1)
    decoded = theirs(tokens((bits > 0).long()), tokens(written), tgt_mask=mask)
    assert torch.allclose(model(bits, scratchpad), model.readout(decoded)[..., 0], rtol=0, atol=1e-12)


def test_size_of_the_paper():
    model = BitScratchpad(max_length=39)
    assert sum(parameter.numel() for parameter in model.parameters()) - model.positions.numel() == 34_641
    assert model.positions.shape == (40, 16)
    assert BIT_MODELS.get("bit-scratchpad") is BitScratchpad


def test_a_place_depends_on_what_is_written_before_it_only(bits):
    model, scratchpad = shaken(BitScratchpad(max_length=7, dim=8)), prefixes(bits)
    numbers = model(bits, scratchpad)
    for place in range(7):
        changed = scratchpad.clone()
        changed[:, place] *= -1
        moved = (model(bits, changed) - numbers).abs().amax(dim=0)
        assert (moved[: place + 1] == 0).all()
        assert (moved[place + 1 :] > 1e-9).all()


def test_what_it_writes_is_what_it_would_be_given(bits):
    """A symbol is 1 where the number is above 0.5, given the symbols that were written before."""
    model = shaken(BitScratchpad(max_length=7, dim=8))
    written = model.generate(bits)
    assert set(written.unique().tolist()) <= {-1.0, 1.0}
    assert torch.equal(written > 0, model(bits, written) > 0.5)


def test_it_learns_prefix_parities():
    """A few hundred steps at two bits: teacher forcing in training, its own symbols at the end."""
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    model = BitScratchpad(max_length=2, dim=16)
    bits = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(300):
        loss = (model(bits, prefixes(bits)) - (prefixes(bits) + 1) / 2).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal(model.generate(bits), prefixes(bits))


def test_wrong_use_is_one_clear_line(bits):
    model = BitScratchpad(max_length=7, dim=8)
    with pytest.raises(UsageError, match="expected one symbol for each bit"):
        model(bits, bits[:, 1:])
    with pytest.raises(UsageError, match="with 1 to 7 tokens"):
        model.generate(torch.ones(2, 8))
