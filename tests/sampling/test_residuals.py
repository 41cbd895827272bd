"""Of the first maps of a ResNet only boxes are computed again, and nobody can tell from the answers."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle import Grid, Until
from jostle.models.resnet import ResNet
from jostle.sampling import memory, readers, residuals
from jostle.sampling.plans import Batching
from jostle.sampling.residuals import ResidualReader
from jostle.tokens import Inputs, TokenFunction
from tests.sampling.test_first_blocks import both, same

NOISE = jostle.GaussianNoise(2.0)


def images(size, count=5):
    return torch.randn(count, 2, size, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def network(size=16, blocks=(2, 1), kind=ResNet, width=3):
    torch.manual_seed(1)
    model = kind(image_size=size, channels=2, classes=3, width=width, blocks=blocks).double()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                for each in (module.weight, module.bias, module.running_mean):
                    each.normal_()
                module.running_var.uniform_(0.5, 2)
        model.classifier.weight *= 5
        model.classifier.bias -= model.eval()(images(size)).mean(dim=0)
    return model


@pytest.fixture
def trials_read(monkeypatch):
    """How many trials were answered from what was remembered."""
    count, own = [], ResidualReader._of_images

    def outputs(self, trials, jostled):
        found = own(self, trials, jostled)
        count.append(len(found))
        return found

    monkeypatch.setattr(ResidualReader, "_of_images", outputs)
    monkeypatch.setattr(residuals, "_WORTH_IT", 9.0)  # wherever it can be used
    return count


@pytest.mark.parametrize("tokens", ["patches:4", "patches:2", "coordinates"])
@pytest.mark.parametrize(("size", "blocks"), [(16, (2, 1)), (12, (1, 1, 1)), (20, (1,))])
@pytest.mark.parametrize("least", [0, 1, 9])
def test_the_answers_are_those_of_whole_images(size, blocks, tokens, least, trials_read, monkeypatch):
    own = residuals._best
    monkeypatch.setattr(residuals, "_best", lambda *given: (min(least, sum(blocks)), own(*given)[1]))
    model, inputs = network(size, blocks), images(size, 2 if tokens == "coordinates" else 5)
    # Single pixels may change nothing: rounding then decides when ``Until`` stops.
    plans = (Grid(1),) if tokens == "coordinates" else (Grid(1), Until(half_width=0.2))
    for response, plan in itertools.product(("flip", "logit-change"), plans):
        trials_read.clear()
        found, expected = both(model, inputs, tokens, plan=plan, response=response, batch_size=7)
        same(found, expected)
        assert sum(trials_read) == found.trials + len(inputs)  # the check
    assert found.value > 0.0005


def test_an_odd_size_is_halved_as_the_network_does(trials_read):
    model, inputs = network(15, (1, 1, 1)), images(15)
    same(*both(model, inputs, "patches:3", response="logit-change"))
    same(*both(model, inputs, "patches:5", response="logit-change"))
    assert sum(trials_read) > 2 * 5 * 25


def test_boxes_hold_all_that_a_token_reaches_and_little_more():
    model, inputs = network(20, (1, 1)), images(20, 1)
    steps = residuals.steps_of(model)
    boxes = residuals.Boxes(steps, (20, 20), [((8, 12), (0, 4)), ((0, 4), (16, 20))])
    assert boxes.shapes == [(4, 4), (6, 5), (8, 6), (10, 7), (6, 4), (8, 5)]  # both are at a side
    assert [corners.tolist() for corners in boxes.corners] == [
        [[8, 0], [0, 16]], [[7, 0], [0, 15]], [[6, 0], [0, 14]], [[5, 0], [0, 13]], [[2, 0], [0, 6]], [[1, 0], [0, 5]],
    ]  # fmt: skip
    with torch.inference_mode():
        regions, moved = residuals.Regions(steps, 5, boxes, 1), inputs.clone()
        clean = regions.remember(np.arange(1), inputs).clone()
        assert clean[0].permute(2, 0, 1).numpy() == pytest.approx(
            model.blocks(model.stem(inputs))[0].numpy(), abs=1e-12
        )
        moved[:, :, 8:12, :4] += 9
        found = regions.last(torch.tensor([0]), moved, torch.tensor([0]))[0].permute(2, 0, 1)
        assert found.numpy() == pytest.approx(model.blocks(model.stem(moved))[0].numpy(), abs=1e-12)


class Twisted(ResNet):
    def forward(self, images):
        return super().forward(images).flip(1)


def test_what_is_not_the_network_that_its_parts_say_is_asked_plainly(trials_read):
    same(*both(network(kind=Twisted), images(16), "patches:4", response="logit-change"))
    assert not trials_read
    hooked, seen = network(), []
    hooked.blocks[0].register_forward_hook(lambda *given: seen.append(len(given[1][0])))
    both(hooked, images(16), "patches:4", plan=Grid(1))
    assert sum(seen) >= 5 * 16
    assert not trials_read


def reader_of(model, inputs, view):
    held = Inputs(inputs, view)
    return readers.find(TokenFunction(model, held), NOISE, Batching(held, 8))


@pytest.mark.parametrize(
    ("make", "inputs", "view", "is_read"),
    [
        (network, images(16), jostle.Patches(4), True),
        (lambda: network(blocks=(1, 1, 2, 3)), images(16), jostle.Patches(4), False),
        (network, images(16), jostle.Whole(), False),
        (network, {"x": images(16)}, jostle.Patches(4), False),
        (network, images(16), jostle.tokens.Inside("blocks.0", count=256), False),
    ],
)
def test_it_is_used_where_it_pays(make, inputs, view, is_read):
    assert (reader_of(make(), inputs, view) is not None) == is_read
    with readers.switched_off():
        assert reader_of(make(), inputs, view) is None


def test_without_room_for_the_maps_of_all_inputs_none_are_remembered(monkeypatch):
    reader = reader_of(network(), images(16), jostle.Patches(4))
    numbers = 5 * sum(map(math.prod, reader.regions.shapes))
    assert len(reader.regions.shapes) > 2
    for room, is_read in ((numbers - 1, False), (numbers, True)):
        monkeypatch.setattr(memory, "REMEMBERED_NUMBERS", room)
        assert (reader_of(network(), images(16), jostle.Patches(4)) is not None) == is_read
