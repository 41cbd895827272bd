"""Special tokens are marked in profiles, and can be measured apart from the others."""

import math

import numpy as np
import pytest
import torch

import jostle
from jostle import Embeddings, GaussianNoise, Grid, UniformToken, Until, Words
from jostle.base.errors import UsageError
from tests.tokens.made_up_texts import LENGTHS, Bag, padded, sentences

TEXTS, IDS, STD = sentences(), (0, 2), 6.0  # the first and the last token of each text are special


def measured(model, inputs, tokens, perturbation=GaussianNoise(STD), plan=Grid(3), **options):  # noqa: B008
    return jostle.measure(model, inputs, tokens=tokens, perturbation=perturbation, plan=plan, seed=1, **options)


def shares(alignment, width=14):
    """By a loop over texts: of those that reach a position, the share with a special token there."""
    found = []
    for position in range(width):
        numbers = [position - (width - n if alignment == "right" else 0) for n in LENGTHS]
        there = [(t, n) for t, n in zip(numbers, LENGTHS, strict=True) if 0 <= t < n]
        found.append(np.mean([t in (0, n - 1) for t, n in there]) if there else np.nan)
    return found


@pytest.mark.parametrize("alignment", ["left", "right"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_profile_knows_where_special_tokens_are(side, alignment, tmp_path):
    mapping = padded(TEXTS, side, 14)
    cases = [
        (mapping, {}),
        (mapping["input_ids"], {"special_ids": IDS}),
        (mapping, {"special_ids": IDS, "special": False}),
    ]
    for inputs, options in cases:
        found = measured(Bag(), inputs, Embeddings(alignment=alignment, **options))
        assert found.profile.special.tolist() == pytest.approx(shares(alignment), nan_ok=True)
    found.save(tmp_path / "found.json")
    kept = jostle.load(tmp_path / "found.json")
    assert kept.profile.special.tolist() == pytest.approx(found.profile.special.tolist(), nan_ok=True)
    assert kept.settings.tokens.startswith("embeddings:after,special=false,special_ids=0/2")
    both = jostle.compare(
        {"a": Bag(), "b": Bag(seed=1)}, mapping, tokens="words", perturbation=UniformToken([5, 6]), plan="grid:1"
    )
    assert both.difference("b", "a").profile.special.tolist() == pytest.approx(shares("left"), nan_ok=True)


def test_where_nobody_says_which_tokens_are_special_nothing_is_marked():
    for tokens in (Embeddings(), Embeddings(whole=True)):
        profile = measured(Bag(), padded(TEXTS)["input_ids"], tokens).profile
        assert profile.special is None
        assert "special" not in profile.to_dict()
    assert measured(Bag(), padded(TEXTS), Embeddings(whole=True)).profile.special is None


@pytest.mark.parametrize("tokens", [Embeddings, Words])
def test_special_and_ordinary_tokens_add_up_to_all(tokens):
    perturbation = GaussianNoise(STD) if tokens is Embeddings else UniformToken(torch.arange(4, 12))
    every, ordinary, special = (
        measured(Bag(), padded(TEXTS, "left"), tokens(special=kind), perturbation) for kind in (True, False, "only")
    )
    lengths = np.array(LENGTHS)
    assert special.trials == 3 * 2 * len(LENGTHS)
    assert ordinary.per_input * (lengths - 2) + special.per_input * 2 == pytest.approx(every.per_input * lengths)
    assert 0 < special.value < 1
    assert special.low < special.value < special.high


class First(Bag):
    """Looks at the first token alone, a special one."""

    def forward(self, input_ids, attention_mask=None):
        real = input_ids != self.pad if attention_mask is None else attention_mask.bool()
        rows, first = torch.arange(len(real)), real.long().argmax(dim=1)
        return self.embeddings(input_ids, real)[rows, first] @ self.weights + self.bias


@pytest.mark.parametrize("plan", [Grid(40), Until(half_width=0.03)])
def test_the_mean_of_special_tokens_against_its_closed_form(plan):
    """Half of the special tokens flip with probability Phi(-|logit| / (std |w|)), ordinary ones never."""
    model, inputs = First(), padded(TEXTS)["input_ids"]
    with torch.no_grad():
        z = model(inputs).abs() / (STD * model.weights.norm())
    exact = float((0.25 * torch.erfc(z / math.sqrt(2))).mean())
    special = measured(model, inputs, Embeddings(special="only", special_ids=IDS), plan=plan)
    assert exact in special.dataset
    assert abs(special.value - exact) < 4 * math.sqrt(exact * (1 - exact) / special.trials)
    assert 0.05 < exact < 0.45
    assert measured(model, inputs, f"embeddings:special=false,special_ids={IDS[0]}/{IDS[1]}", plan=plan).value == 0.0


@pytest.mark.parametrize(
    ("make", "inputs", "message"),
    [
        (lambda: Words(special_ids="cls"), None, "special_ids=.* must be a list of whole numbers, each at least 0"),
        (lambda: Words(special_ids=()), None, r"special_ids=\(\) must be a list"),
        (lambda: Words(special_ids=(-1,)), None, r"special_ids=\(-1,\) must be a list of whole numbers"),
        (
            lambda: Words(special="only"),
            padded(TEXTS)["input_ids"],
            r"give their ids to the view: special_ids=\(2, 3\)",
        ),
        (lambda: Words(special="only", special_ids=2), padded([torch.tensor([5, 6])]), "1 of 1 inputs are without a"),
    ],
)
def test_wrong_use_is_one_clear_line(make, inputs, message):
    with pytest.raises(UsageError, match=message):
        measured(Bag(), inputs, make(), UniformToken([5, 6]))
