"""The selective state-space model: the recurrence in pure Python, and causality."""

import math

import torch
from torch import nn

from jostle.boolean import networks
from jostle.boolean.networks.state_space import BooleanSelective, RMSNorm
from tests.boolean.networks.test_create import cube_of


@torch.no_grad()
def test_the_recurrence_written_number_by_number():
    mixer = BooleanSelective(dim=3, inner=4, state=2, kernel=2)
    with torch.no_grad():
        mixer.skip += torch.randn(4)
    tokens = torch.randn(1, 5, 3)
    inputs, gates = (mixer.to_inner.weight @ tokens[0].T).T.split(4, dim=1)  # each (steps, inner)
    memory = [[0.0, 0.0] for _ in range(4)]
    expected = []
    for now in range(5):
        convolved = mixer.convolution[:, 0, 1] * inputs[now]
        if now:
            convolved = convolved + mixer.convolution[:, 0, 0] * inputs[now - 1]
        driven = convolved * convolved.sigmoid()
        choices = mixer.to_choices.weight @ driven  # one number for the step, two to enter, two to leave
        raw = mixer.to_step.weight @ choices[:1] + mixer.step_offset
        outputs = []
        for channel in range(4):
            step, u = math.log1p(math.exp(raw[channel])), float(driven[channel])
            y = float(mixer.skip[channel]) * u
            for place in range(2):
                rate = -math.exp(mixer.log_decay[channel, place])
                kept = math.exp(step * rate) * memory[channel][place]
                memory[channel][place] = kept + step * float(choices[1 + place]) * u
                y += float(choices[3 + place]) * memory[channel][place]
            outputs.append(y * float(gates[now, channel] * gates[now, channel].sigmoid()))
        expected.append(mixer.to_out.weight @ torch.tensor(outputs))
    torch.testing.assert_close(mixer(tokens)[0], torch.stack(expected))


def test_no_token_sees_what_comes_after_it():
    mixer, tokens = BooleanSelective(dim=3, inner=4, state=2, kernel=3), torch.randn(2, 6, 3)
    changed = tokens.clone()
    changed[:, 4:] += 1
    assert torch.equal(mixer(changed)[:, :4], mixer(tokens)[:, :4])
    assert not torch.allclose(mixer(changed)[:, 4:], mixer(tokens)[:, 4:])


def test_the_memory_reaches_back_beyond_the_convolution():
    network, bits = networks.create("state-space", n=9, depth=1, dim=4, state=2, kernel=2), cube_of(9)
    flipped = bits.clone()
    flipped[:, 0] *= -1
    assert (network(flipped) - network(bits)).abs().max() > 1e-8


def test_the_start_is_the_papers():
    mixer = BooleanSelective(dim=32, inner=64, state=3, kernel=4)
    steps = nn.functional.softplus(mixer.step_offset)
    assert steps.min() >= 1e-3
    assert steps.max() <= 1e-1
    assert (steps < 1e-2).double().mean() > 0.25  # log-uniform: half of them
    torch.testing.assert_close(mixer.log_decay.exp(), torch.tensor([1.0, 2.0, 3.0]).repeat(64, 1))
    assert torch.equal(mixer.skip, torch.ones(64))


def test_the_norm_is_that_of_torch_and_survives_large_numbers():
    ours, theirs = RMSNorm(5, 1e-3), nn.RMSNorm(5, 1e-3)
    gain = torch.randn(5)
    with torch.no_grad():
        ours.gain.copy_(gain)
        theirs.weight.copy_(gain)
    for scale in (1e-3, 1.0, 1e4):
        vectors = scale * torch.randn(7, 5)
        torch.testing.assert_close(ours(vectors), theirs(vectors))
    vectors = torch.randn(7, 5, dtype=torch.float32)
    with torch.no_grad():
        huge = ours(vectors * 1e25)
        torch.testing.assert_close(huge, ours(vectors * 1e5), rtol=1e-5, atol=1e-5, check_dtype=False)
        assert not theirs.float()(vectors * 1e25).any()  # why torch's own is not used


def test_the_norm_has_the_gradient_of_torchs():
    ours, theirs, vectors = RMSNorm(5, 1e-3), nn.RMSNorm(5, 1e-3), 3 * torch.randn(4, 5)
    gradients = []
    for norm in (ours, theirs):
        leaf = vectors.clone().requires_grad_()
        (norm(leaf) ** 3).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)
