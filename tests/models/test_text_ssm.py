"""The state-space model against the plain recurrence, and against the one-way blocks for images."""

import math

import pytest
import torch

from jostle import models
from jostle.models import ssm
from jostle.models.norms import Norms
from jostle.models.ssm import scan_from
from jostle.models.text_ssm import select
from tests.models.test_text_create import small, texts


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_default_size():
    """By hand, with 512 channels of the recurrence, 16 states and steps of rank 16."""
    selective = (4 * 512 + 512) + 512 * (16 + 16 + 16) + (16 * 512 + 512) + 16 * 512 + 512
    block = 2 * 256 + 256 * 1024 + selective + 512 * 256
    expected = 8000 * 256 + 512 + 4 * block + 512 + (256 * 2 + 2)
    model = models.create("text-ssm")
    assert sum(weight.numel() for weight in model.parameters()) == expected == 3_802_626


def test_scan_is_the_plain_recurrence():
    """Number by number, from a memory that is not empty."""
    driven, enter, leave = normal(2, 5, 3), normal(2, 5, 4, seed=1), normal(2, 5, 4, seed=2)
    step, rates, start = normal(2, 5, 3, seed=3).exp() / 4, -normal(4, 3, seed=4).exp(), normal(2, 4, 3, seed=5)
    outputs, memory = scan_from(start, driven, step, enter, leave, rates)
    for example in range(2):
        for channel in range(3):
            held = start[example, :, channel].tolist()
            for now in range(5):
                d, u = float(step[example, now, channel]), float(driven[example, now, channel])
                for number in range(4):
                    kept = math.exp(d * float(rates[number, channel])) * held[number]
                    held[number] = kept + d * float(enter[example, now, number]) * u
                read = sum(float(leave[example, now, number]) * held[number] for number in range(4))
                assert outputs[example, now, channel].item() == pytest.approx(read, rel=1e-9, abs=1e-12)
            assert memory[example, :, channel].tolist() == pytest.approx(held, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kernel_size", [1, 3, 6])
def test_reading_on_is_reading_at_once(kernel_size):
    """In pieces shorter and longer than the kernel; and at once it is what the layer for images computes."""
    layer, inputs = ssm.SelectiveStateSpace(inner=4, rank=2, state=3, kernel_size=kernel_size).double(), normal(2, 9, 4)
    whole, (window, memory) = select(layer, inputs, None)
    torch.testing.assert_close(whole, layer(inputs), rtol=1e-10, atol=1e-12)
    past, pieces = None, []
    for piece in inputs.split([1, 2, 5, 1], dim=1):
        read, past = select(layer, piece, past)
        pieces.append(read)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(past, (window, memory), rtol=1e-10, atol=1e-12)
    assert window.shape == (2, kernel_size - 1, 4)


def test_the_blocks_for_images_give_the_same_logits():
    model, ids = small("text-ssm", state=3, kernel_size=3), texts(7)
    tokens = model.embeddings(ids)
    for block in model.blocks:
        twin = ssm.VisionStateSpaceBlock(8, 16, 3, 3, is_two_way=False, norms=Norms("layer", "blocks")).double()
        state = {key.replace("selective", "onward"): weight for key, weight in block.state_dict().items()}
        twin.load_state_dict(state)
        tokens = twin(tokens)
    expected = model.classifier(model.norm(tokens[:, -1]))
    torch.testing.assert_close(model(ids), expected, rtol=1e-10, atol=1e-12)
