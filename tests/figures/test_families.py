"""One colour, line and marker for each network family, in every figure."""

import colorsys
import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from jostle.figures.style import COLORS, FAMILIES, family_of, looks

# The names of series in the studies and the demo, by family.
NAMES = {
    "transformer": [
        "vit-small", "vit-simple", "vit-small + penalty", "vit-small + noise", "vit-small, SGD", "ViT",
        "vit-small, strength 0.25", "vision transformer", "vision transformer, worst", "transformer",
        "transformer, average", "transformer-without-norm", "random transformer", "encoder", "encoder-relu",
        "encoder-linear", "encoder, 12 layers", "scratchpad, encoder", "softmax attention",
        "uniform attention, no norms",
        "relu attention", "ReLU attention, worst", "linear attention", "one-token linear attention NTK, relu layers",
        "raf", "raf-relu, fine-tuned", "raf-linear", "raf-qk", "raf worst", "bert-base-uncased", "distilbert",
        "google/vit-base-patch16-224",
    ],
    "decoder": ["decoder", "scratchpad, decoder", "gpt2"],
    "cnn": ["cnn", "CNN", "CNN, worst", "cnn + penalty", "efficientnet-lite0"],
    "resnet": ["resnet-18", "resnet-18, Adam", "resnet-18 + penalty", "resnet50"],
    "densenet": ["densenet-121"],
    "convmixer": ["convmixer", "ConvMixer", "convmixer + penalty"],
    "convnext": ["convnext", "convnext-tiny"],
    "mlp": ["mlp", "MLP", "MLP, average", "mlp-leaky-relu", "mlp-sigmoid", "mlp-with-norm", "mlp-leaky-relu + penalty",
            "MLP CK, relu", "MLP NTK, erf", "random mlp"],
    "mixer": ["mixer", "mlp-mixer", "mlp-mixer, no norms", "random mixer"],
    "state-space": ["ssm", "state-space", "vision-ssm", "random state-space"],
    "lstm": ["lstm", "LSTM", "LSTM, worst", "lstm, 8 layers", "random lstm"],
    "gru": ["gru"],
    "bag": ["bag"],
    "random-features": [
        "rf", "rf, re-trained", "rf worst", "drf 2", "drf 4", "random features", "random features, worst",
    ],
    "parity": ["parity", "parity, weight decay 0.1"],
    "majority": ["majority", "majority, weight decay 0.1"],
    "first": ["first"],
    "mean": ["mean"],
    None: [
        "4 bits", "12 bits", "weight decay 0.3", "the random function itself", "learned by a network",
        "completed by coins", "scratchpad", "no-scratchpad", "scratchpad, last place", "read at an end symbol",
        "depth 2, heads 4", "train accuracy", "test accuracy", "sensitivity / (p / d)", "p / d", "learnt",
        "relevant sensitivity", "output correlation", "case 1, out of distribution", "test, all cases", "sparse tokens",
        "irrelevant tokens", "after training", "case 2", "seed 42", "test loss", "restricted loss", "released",
        "after LayerNorm", "after, mean over texts", "median and range over seeds", "mean and range over seeds",
        "first token", "separators", "words", "linear 2 x 4", "softmax 4 x 2", "functions of the library",
        "random functions", "random function", "sparse", "sparse, printed", "frequent", "sensitivity",
        "sparse parities", "juntas", "thresholds", "formulas", "times parity", "random", "std 0.02", "model", "a", "",
    ],
}  # fmt: skip

# Families that a committed figure compares.
COMPARED = [
    ["densenet", "resnet", "convmixer", "transformer"],
    ["transformer", "mlp", "cnn", "convmixer"],
    ["transformer", "mixer", "state-space", "convmixer", "cnn", "mlp"],
    ["transformer", "decoder", "lstm", "gru", "state-space", "bag"],
    ["transformer", "lstm", "mlp", "state-space", "mixer"],
    ["transformer", "random-features"],
    ["parity", "majority", "first", "mean"],
]

# Machado, Oliveira and Fernandes (2009), on linear RGB: no blindness, protanopia, deuteranopia.
EYES = [
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
]
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color):
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(color, eye):
    """CIELAB of a colour as someone sees it."""
    x, y, z = np.cbrt(TO_XYZ @ np.clip(eye @ linear(color), 1e-4, 1) / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast_with_white(color):
    return 1.05 / (TO_XYZ[1] @ linear(color) + 0.05)


@pytest.mark.parametrize(("name", "family"), [(name, family) for family, names in NAMES.items() for name in names])
def test_the_family_in_a_name(name, family):
    assert family_of(name) == family


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_looks_the_same_in_every_figure(family):
    first, last = NAMES[family][0], NAMES[family][-1]
    assert looks([first])[first] == looks(["seed 1", "test loss", last])[last] == FAMILIES[family]


def test_members_of_a_family_share_a_hue_and_differ_in_all_else():
    found = looks(["vit-small", "vit-simple", "vit-small + penalty", "encoder", "transformer"])
    hues = [colorsys.rgb_to_hsv(*to_rgb(look.color))[0] for look in found.values()]
    assert max(hues) - min(hues) < 0.01
    assert len({look.color for look in found.values()}) == 5
    assert len({look.marker for look in found.values()}) == 5
    assert all(one.line != other.line for one, other in itertools.pairwise(found.values()))


def test_names_without_a_family_leave_the_colours_of_families_alone():
    found = looks(["test loss", "vit-small", "train loss", "mlp", "seed 1"])
    assert found["vit-small"] == FAMILIES["transformer"]
    assert found["mlp"] == FAMILIES["mlp"]
    others = [found[name] for name in ("test loss", "train loss", "seed 1")]
    assert [look.color for look in others] == [color for color in COLORS if color not in ("#0072b2", "#009e73")][:3]
    assert len({look.marker for look in found.values()}) == 5
    assert list(found) == ["test loss", "vit-small", "train loss", "mlp", "seed 1"]


def test_names_without_a_family_go_by_first_appearance():
    two = looks(["b", "a", "b"])
    assert list(two) == ["b", "a"]
    assert two["b"] == looks(["b"])["b"] == looks(["something else"])["something else"]
    assert all(x != y for x, y in zip(two["a"][:3], two["b"][:3], strict=True))  # colour, line and marker all differ


def test_many_looks_are_distinct():
    assert len(set(looks(str(i) for i in range(56)).values())) == 56
    mixed = [name for names in NAMES.values() for name in names]
    assert len(set(looks(mixed).values())) > 0.9 * len(mixed)


def test_families_have_looks_of_their_own():
    assert len(set(FAMILIES.values())) == len(FAMILIES)


@pytest.mark.parametrize("families", COMPARED, ids="-".join)
def test_compared_families_are_told_apart_without_full_colour_vision(families):
    for one, other in itertools.combinations(families, 2):
        first, second = FAMILIES[one], FAMILIES[other]
        for eye in EYES:
            assert np.linalg.norm(lab(first.color, eye) - lab(second.color, eye)) > 17, (one, other)
        assert (first.line, first.marker) != (second.line, second.marker)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_shade_is_readable_on_white(family):
    found = looks([f"{NAMES[family][0]}, seed {number}" for number in range(5)])
    assert all(contrast_with_white(look.color) > 1.8 for look in found.values())
