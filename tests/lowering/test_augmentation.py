import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.lowering import NoiseAugmentation

LABELS = torch.arange(400) % 10


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_noise_is_everywhere_and_of_the_std_asked_for():
    x = torch.randn(400, 3, 4, 4)
    noise = NoiseAugmentation(std=0.3)(x) - x
    assert (noise != 0).all()
    assert abs(float(noise.mean())) < 4 * 0.3 / noise.numel() ** 0.5
    assert abs(float(noise.square().mean()) - 0.09) < 4 * 0.09 * (2 / noise.numel()) ** 0.5


def test_noise_in_one_token():
    x = torch.randn(400, 3, 4, 4)
    moved = (NoiseAugmentation(std=0.3, tokens=jostle.Patches(2))(x) != x).sum(dim=(1, 2, 3))
    assert (moved == 3 * 2 * 2).all()


def test_replace_keeps_labels_and_the_share_is_a_probability():
    x, augment = torch.randn(400, 5), NoiseAugmentation(std=1.0, share=0.3)
    inputs, labels = augment(x, LABELS)
    assert labels is LABELS
    noisy = (inputs != x).all(dim=1)
    assert torch.equal((inputs == x).all(dim=1), ~noisy)
    assert abs(float(noisy.double().mean()) - 0.3) < 4 * (0.3 * 0.7 / 400) ** 0.5
    assert torch.equal(augment(x, generator=generator()), augment(x, LABELS, generator=generator())[0])


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_append_puts_noisy_copies_with_their_labels_behind(share):
    x = torch.randn(400, 5)
    inputs, labels = NoiseAugmentation(std=1e-3, share=share, mode="append")(x, LABELS)
    assert torch.equal(inputs[:400], x)
    assert torch.equal(labels[:400], LABELS)
    copies = inputs[400:]
    assert abs(len(copies) / 400 - share) <= 4 * (share * (1 - share) / 400) ** 0.5
    sources = torch.cdist(copies, x).argmin(dim=1)
    assert torch.equal(labels[400:], LABELS[sources])
    assert (copies != x[sources]).all()


@pytest.mark.parametrize("settings", [{"std": 0}, {"std": 0.0, "mode": "append"}, {"std": 1.0, "share": 0}])
def test_std_0_and_share_0_are_exactly_nothing(settings):
    x, augment, state = torch.randn(4, 5), NoiseAugmentation(**settings), torch.random.get_rng_state()
    inputs, labels = augment(x, LABELS[:4])
    assert inputs is x
    assert len(labels) == 4
    assert torch.equal(torch.random.get_rng_state(), state)
    if augment.mode == "replace":
        assert augment(x) is x


@pytest.mark.parametrize("mode", ["replace", "append"])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_mappings_keep_their_padding(mode, share):
    mask = (torch.arange(6) < torch.tensor([2, 6, 4, 1])[:, None]).long()
    batch = {"x": torch.randn(4, 6, 3), "mask": mask}
    inputs, labels = NoiseAugmentation(std=1.0, share=share, mode=mode)(batch, LABELS[:4])
    assert set(inputs) == {"x", "mask"}
    assert len(inputs["x"]) == len(inputs["mask"]) == len(labels)
    rows = torch.cat([torch.arange(4), labels[4:]])  # the labels number the inputs
    assert torch.equal(inputs["mask"], mask[rows])
    padding = ~mask[rows].bool()
    assert torch.equal(inputs["x"][padding], batch["x"][rows][padding])
    assert not torch.equal(NoiseAugmentation(std=1.0)(batch)["x"], batch["x"])


def test_a_seeded_loop_is_reproducible():
    x, augment = torch.randn(50, 5), NoiseAugmentation(std=1.0, share=0.5)
    torch.manual_seed(2)
    first, second = augment(x), augment(x)
    assert not torch.equal(first, second)
    torch.manual_seed(2)
    assert torch.equal(augment(x), first)
    assert torch.equal(augment(x, generator=generator()), augment(x, generator=generator()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"std": 1.0, "mode": "appended"}, "unknown mode 'appended'; did you mean append"),
        ({"std": 1.0, "tokens": "wholes"}, "unknown token view 'wholes'; did you mean whole"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(UsageError, match=message):
        NoiseAugmentation(**settings)


@pytest.mark.parametrize(
    ("settings", "inputs", "labels", "message"),
    [
        ({"mode": "append"}, torch.zeros(2, 3), None, r"makes more inputs: call augment\(inputs, labels\)"),
        ({}, torch.zeros(2, 3), torch.zeros(3), "there are 3 labels for 2 inputs"),
        ({"share": 0}, torch.zeros(2, 3), torch.zeros(3), "there are 3 labels for 2 inputs"),
        ({}, torch.zeros(2, 3), torch.tensor(1), r"labels=tensor\(1\) must be one for each input"),
        ({}, torch.zeros(2, 3), 3, "labels=3 must be one for each input"),
        ({"mode": "append"}, torch.zeros(2, 3), [0, 1], "labels of type list cannot be appended to; give a tensor"),
        ({}, torch.zeros(2, 3, 8, 8).byte(), None, r"inputs are uint8, .* inputs.float\(\) / 255"),
        ({}, (torch.zeros(2, 3), torch.zeros(2)), None, "inputs of type tuple are no batch"),
        ({}, torch.zeros(2, 3, dtype=torch.int64), None, "needs real-valued tokens, but they are int64"),
        ({"tokens": "patches:2"}, torch.zeros(2, 1, 3, 4), None, "the side 2 must divide height 3 and width 4"),
    ],
)
def test_what_does_not_fit_is_one_clear_line(settings, inputs, labels, message):
    with pytest.raises(UsageError, match=message) as caught:
        NoiseAugmentation(std=1.0, **settings)(inputs, labels)
    assert "\n" not in str(caught.value)


def test_descriptions_tell_augmentations_apart():
    settings = [{}, {"std": 0.2}, {"share": 0.5}, {"tokens": "patches:4"}, {"mode": "append"}]
    described = {NoiseAugmentation(**({"std": 0.1} | each)).describe() for each in settings}
    assert len(described) == len(settings)
    assert repr(NoiseAugmentation(std=0.1)) == "noise-augmentation(std=0.1, share=1, tokens=whole, mode=replace)"
