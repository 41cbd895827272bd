import math

import pytest
import torch

from jostle import models
from jostle.base.errors import UsageError
from jostle.models.ssm import FASTEST, SLOWEST, SelectiveStateSpace, scan
from jostle.models.vit import cut_patches

SMALL = {"image_size": 8, "channels": 1, "patch_size": 2, "dim": 6, "depth": 2, "state": 3}


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_default_size():
    """By hand, with 128 channels of the recurrence, 8 states and steps of rank 4."""
    selective = (4 * 128 + 128) + 128 * (4 + 8 + 8) + (4 * 128 + 128) + 8 * 128 + 128
    block = 2 * 64 + 64 * 256 + 2 * selective + 128 * 64
    expected = (48 * 64 + 64) + 64 * 64 + 4 * block + 128 + 650
    assert sum(weight.numel() for weight in models.create("vision-ssm").parameters()) == expected == 146_762


def test_scan_is_the_sum_over_earlier_tokens():
    """y_t = sum over s <= t of C_t . exp(A (d_{s+1} + ... + d_t)) d_s B_s u_s: no recurrence."""
    driven, enter, leave = normal(2, 5, 3), normal(2, 5, 4, seed=1), normal(2, 5, 4, seed=2)
    step, rates = normal(2, 5, 3, seed=3).exp() / 4, -normal(4, 3, seed=4).exp()
    found = scan(driven, step, enter, leave, rates)
    for example in range(2):
        for channel in range(3):
            for now in range(5):
                total = 0.0
                for then in range(now + 1):
                    passed = float(step[example, then + 1 : now + 1, channel].sum())
                    written = float(step[example, then, channel] * driven[example, then, channel])
                    for number in range(4):
                        kept = math.exp(float(rates[number, channel]) * passed)
                        total += float(leave[example, now, number] * enter[example, then, number]) * kept * written
                assert found[example, now, channel].item() == pytest.approx(total, rel=1e-9, abs=1e-12)


def test_selective_by_its_formula():
    layer = SelectiveStateSpace(inner=4, rank=2, state=3, kernel_size=3).double()
    inputs = normal(2, 5, 4)
    padded = torch.cat([torch.zeros(2, 2, 4), inputs], dim=1)
    kernel = layer.convolution.weight[:, 0]  # (inner, kernel_size)
    seen = sum(padded[:, lag : lag + 5] * kernel[:, lag] for lag in range(3)) + layer.convolution.bias
    u = seen / (1 + (-seen).exp())
    choices = u @ layer.to_choices.weight.T
    step = (1 + (choices[..., :2] @ layer.to_step.weight.T + layer.to_step.bias).exp()).log()
    memory, outputs = torch.zeros(2, 4, 3), []  # (batch, inner, state)
    for t in range(5):
        decay = torch.exp(-step[:, t, :, None] * torch.arange(1, 4))  # The rates start at 1, 2, 3.
        memory = decay * memory + (step * u)[:, t, :, None] * choices[:, t, None, 2:5]
        outputs.append((memory * choices[:, t, None, 5:]).sum(dim=-1) + u[:, t])
    torch.testing.assert_close(layer(inputs), torch.stack(outputs, dim=1))


def test_steps_start_between_the_slowest_and_the_fastest():
    steps = torch.nn.functional.softplus(SelectiveStateSpace(inner=4000, rank=1, state=1, kernel_size=1).to_step.bias)
    assert SLOWEST <= steps.min() < 1.02 * SLOWEST
    assert 0.98 * FASTEST < steps.max() <= FASTEST
    # Evenly in the logarithm: a mean of 4000 uniform numbers has the standard error 1 / sqrt(12 * 4000).
    shares = (steps / SLOWEST).log() / math.log(FASTEST / SLOWEST)
    assert abs(shares.mean() - 0.5) < 4 / math.sqrt(12 * 4000)


@pytest.mark.parametrize("directions", ["both", "forward"])
def test_forward_step_by_step(directions):
    """The whole network once more; the recurrences by the class tested above."""
    model = models.create("vision-ssm", **SMALL, classes=3, directions=directions, seed=0).double()
    images = normal(2, 1, 8, 8)

    def norm(x, layer):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / (centred.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias

    x = cut_patches(images, 2) @ model.embed.weight.T + model.embed.bias + model.positions
    backward = torch.arange(15, -1, -1)
    for block in model.blocks:
        wide = norm(x, block.norm) @ block.to_inner.weight.T
        inputs, gates = wide[..., :12], wide[..., 12:]
        read = block.onward(inputs)
        if directions == "both":
            read = read + block.back(inputs[:, backward])[:, backward]
        x = x + read * gates / (1 + (-gates).exp()) @ block.to_out.weight.T
    pooled = norm(x, model.norm).sum(dim=1) / 16
    torch.testing.assert_close(model(images), pooled @ model.classifier.weight.T + model.classifier.bias)


@pytest.mark.parametrize(("directions", "moved"), [("forward", range(9, 16)), ("both", range(16))])
def test_which_tokens_a_patch_can_reach(directions, moved):
    model = models.create("vision-ssm", **SMALL, directions=directions, seed=0).double()
    images = normal(1, 1, 8, 8)
    changed = images.clone()
    changed[..., 4:6, 2:4] += 1  # Row 2, column 1 of the patches: token 9.
    before, after = (model.blocks(model.embed(cut_patches(each, 2))) for each in (images, changed))
    assert (before != after).any(dim=-1)[0].nonzero().flatten().tolist() == list(moved)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"image_size": 30}, "image_size=30 must be a multiple of patch_size=4"),
        ({"directions": "foward"}, r"unknown directions 'foward'; did you mean forward\?"),
    ],
)
def test_sizes_that_do_not_go_together(sizes, message):
    with pytest.raises(UsageError, match=message):
        models.create("vision-ssm", **sizes)
