"""What one token cannot change is not computed again, and nobody can tell from the answers."""

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.models.mlp import MLP
from jostle.sampling import chains, memory, readers
from jostle.sampling.plans import Batching
from jostle.tokens import Inputs, TokenFunction

NOISE = jostle.GaussianNoise(2.0)
IMAGES = torch.randn(9, 2, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SIZES = {
    "cnn": {"width": 3, "hidden": 4},
    "convmixer": {"dim": 4, "depth": 1},
    "convnext": {"widths": (4, 8), "depths": (1, 1)},
    "densenet-121": {"growth": 2, "blocks": (1, 1)},
    "mlp": {"hidden": (8, 4)},
    "mlp-mixer": {"dim": 4, "depth": 1, "tokens_dim": 4, "mlp_dim": 4},
    "resnet-18": {"width": 2, "blocks": (1, 1)},
    "vision-ssm": {"dim": 4, "depth": 1},
    "vit-simple": {"dim": 8, "depth": 2, "heads": 2, "dim_head": 4, "mlp_dim": 8},
    "vit-small": {"dim": 8, "depth": 2, "heads": 2, "dim_head": 4, "mlp_dim": 8},
}


def create(name):
    model = jostle.models.create(name, image_size=12, channels=2, classes=3, seed=0, **SIZES[name]).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)  # so that predictions differ
        model.classifier.weight -= model.classifier.weight.mean(dim=0)
    return model


def measured(model, inputs=IMAGES, tokens="patches:4", **options):
    return jostle.measure(
        model,
        inputs,
        tokens=tokens,
        perturbation=NOISE,
        seed=1,
        **{"plan": "grid:4", "response": "logit-change"} | options,
    )


def plainly(*arguments, **options):
    with readers.switched_off():
        return measured(*arguments, **options)


def reader_of(model, inputs=IMAGES, tokens="patches:4"):
    held = Inputs(inputs, jostle.Patches(4) if tokens == "patches:4" else jostle.Coordinates())
    return readers.find(TokenFunction(model, held), NOISE, Batching(held, 8))


@pytest.fixture
def trials_read(monkeypatch):
    """How many trials were answered from what was remembered."""
    count, own = [], chains.ChainReader._outputs

    def outputs(self, trials, change, slots):
        count.append(len(trials))
        return own(self, trials, change, slots)

    monkeypatch.setattr(chains.ChainReader, "_outputs", outputs)
    monkeypatch.setattr(chains, "_WORTH_IT", 9.0)  # wherever it can be used
    return count


def same(found, expected):
    assert found.per_input == pytest.approx(expected.per_input, rel=1e-9, abs=1e-9)
    assert found.profile.values == pytest.approx(expected.profile.values, rel=1e-9, abs=1e-9)
    assert (found.trials, found.passes, found.warnings) == (expected.trials, expected.passes, expected.warnings)


@pytest.mark.parametrize("name", jostle.models.names())
def test_every_network_of_images_gives_the_answers_of_whole_images(name, trials_read):
    model = create(name)
    for response in ("logit-change", "flip"):
        for plan in ("grid:4", "until:half_width=0.05"):
            options = {"plan": plan, "response": response}
            same(measured(model, **options), plainly(model, **options))
    assert (sum(trials_read) > 9 * 9 * 8) == (name in ("cnn", "mlp"))
    assert measured(model).value > 0.01


CHAINS = {
    "linear": nn.Sequential(nn.Flatten(), nn.Linear(288, 3)),
    "padded": nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Dropout(), nn.Linear(4 * 36, 5), nn.Tanh(), nn.Linear(5, 3),
    ),
    "strided, dilated, grouped": nn.Sequential(
        nn.Sequential(nn.Conv2d(2, 4, (3, 1), stride=(2, 1), padding=(2, 0)), nn.SiLU()),
        nn.Conv2d(4, 4, 3, dilation=(1, 2), groups=2), nn.AvgPool2d(2, 1), nn.Flatten(), nn.Linear(112, 3, bias=False),
    ),
    "some pixels are never seen": nn.Sequential(nn.Conv2d(2, 3, 1, stride=3), nn.Flatten(), nn.Linear(48, 3)),
    "one layer sees all": nn.Sequential(nn.Identity(), nn.Flatten(), nn.Linear(288, 3)),
}  # fmt: skip


@pytest.mark.parametrize("tokens", ["patches:4", "patches:2", "coordinates"])
@pytest.mark.parametrize("name", CHAINS)
def test_every_chain_gives_the_answers_of_whole_images(name, tokens, trials_read):
    torch.manual_seed(0)
    chain = CHAINS[name].double()
    for layer in chain.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_()
    options = {"tokens": tokens, "plan": "grid:2", "batch_size": 16}
    same(measured(chain, **options), plainly(chain, **options))
    assert sum(trials_read) > 9 * 9


def test_with_little_room_the_inputs_seen_last_are_remembered(monkeypatch, trials_read):
    model, options = create("cnn"), {"plan": "until:relative=0.2", "batch_size": 2}
    expected = plainly(model, **options)
    for room, least, most in ((0, 0, 0), (3 * (4 + 3 * 16), 0.2, 0.45), (10**6, 1, 1.1)):
        trials_read.clear()
        monkeypatch.setattr(memory, "REMEMBERED_NUMBERS", room)
        same(measured(model, **options), expected)
        assert least <= sum(trials_read) / expected.trials <= most


def test_models_compared_and_swept_are_read_each_in_its_way(trials_read):
    models = {name: create(name) for name in ("mlp", "resnet-18", "cnn")}
    options = {"tokens": "patches:4", "perturbation": NOISE, "plan": "grid:1", "response": "logit-change"}
    found = jostle.compare(models, IMAGES, **options)
    for name, model in models.items():
        alone = jostle.measure(model, IMAGES, **options)
        assert found[name].per_input == pytest.approx(alone.per_input, rel=1e-9)
    assert sum(trials_read) >= 2 * 2 * 81


class Twisted(MLP):
    def forward(self, images):
        return super().forward(images).flip(1)


def test_what_is_not_the_network_that_its_chain_says_is_asked_plainly(trials_read):
    twisted = Twisted(image_size=12, channels=2, classes=3, hidden=(4,)).double()
    same(measured(twisted), plainly(twisted))
    assert sum(trials_read) == 9  # the check
    trials_read.clear()
    hooked = create("mlp")
    seen = []
    hooked.layers[0].register_forward_hook(lambda *given: seen.append(len(given[1][0])))
    measured(hooked)
    assert sum(seen) >= 9 * 9 * 4
    assert not trials_read


@pytest.mark.parametrize(
    "model",
    [
        lambda images: images.sum(dim=(1, 2, 3)),
        nn.Sequential(nn.Flatten(), nn.LayerNorm(288), nn.Linear(288, 3)),  # the norm mixes all tokens
        nn.Sequential(nn.Conv2d(2, 3, 3, padding="same"), nn.Flatten(), nn.Linear(432, 3)),
        nn.Sequential(nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(432, 3)),
        nn.Sequential(nn.Conv2d(2, 2, 9), nn.Flatten(), nn.Linear(32, 3)),  # a token reaches nearly all
    ],
)
def test_a_plain_module_takes_the_plain_path(model):
    assert reader_of(model) is None


def test_a_wrong_model_is_told_so_as_without_a_reader():
    model = create("mlp").float()
    with pytest.raises(jostle.JostleError, match=r"convert the inputs with \.to\(torch\.float32\)"):
        measured(model)


def test_regions_hold_all_that_a_token_reaches_and_little_more():
    chain = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(108, 3)).double()
    reader = reader_of(chain)
    with torch.inference_mode():
        clean = reader.chain.maps(IMAGES)
        for token in range(9):
            moved = IMAGES.clone()
            jostle.Patches(4).put(moved, torch.full((9,), token), torch.ones(9, 32, dtype=torch.float64))
            changed = (reader.chain.maps(moved) != clean).any(dim=0).nonzero()[:, 0]
            assert np.isin(changed, reader.regions[token]).all()
    assert reader.regions.shape == (9, 3 * 4 * 4)  # a patch of 4 is seen by 6 x 6, which are 4 x 4 after the pooling
