"""Words that a perturbation writes must be words that the model has; pixels must be real before noise is added."""

import pytest
import torch

import jostle
from jostle.base.errors import UsageError
from jostle.perturbations import GaussianNoise, SignFlip
from tests.tokens.made_up_texts import Bag, network, padded, sentences

TEXTS = padded(sentences())


@pytest.mark.parametrize(
    ("perturbation", "message"),
    [
        (
            "replace-by:5000",
            "perturbation=replace-by:5000 puts the id 5000 into texts, but model has words 0 to 39: give",
        ),
        ("replace-by:-3", "puts the id -3 into texts, but model has words 0 to 39"),
        (
            jostle.UniformToken(torch.arange(4, 41)),
            "puts ids from 4 to 40 into texts, but model has words 0 to 39: give it",
        ),
        ("deletion:pad=40", "perturbation=deletion:pad=40 puts the id 40 into texts, but model has words 0 to 39"),
    ],
)
@pytest.mark.parametrize("make", [Bag, lambda: network("bert")])
def test_ids_beyond_the_vocabulary_are_one_clear_line(make, perturbation, message):
    with pytest.raises(UsageError) as error:
        jostle.measure(make(), TEXTS, tokens="words", perturbation=perturbation, plan="grid:1")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_size_of_the_vocabulary_is_suggested():
    unpadded = torch.stack(sentences([5, 5, 5]))
    with pytest.raises(UsageError, match=r"words 0 to 39: .* e.g. uniform-token:40$"):
        jostle.measure(network("gpt2"), {"input_ids": unpadded}, tokens="words", perturbation="uniform-token:500")


def test_the_last_word_of_the_vocabulary_is_a_word():
    for perturbation in ("replace-by:39", jostle.UniformToken(torch.arange(2, 40)), "deletion:pad=39"):
        m = jostle.measure(Bag(), TEXTS, tokens="words", perturbation=perturbation, plan="grid:1")
        assert 0 <= m.value <= 1


@pytest.mark.parametrize("perturbation", [GaussianNoise(1.0), SignFlip()])
def test_images_of_bytes_are_told_how_to_become_real(perturbation):
    images = torch.zeros(3, 1, 8, 8, dtype=torch.uint8)
    with pytest.raises(UsageError, match=r"inputs are uint8, as images from 0 to 255: .* inputs.float\(\) / 255"):
        jostle.measure(lambda x: x.flatten(1), images, tokens="patches:4", perturbation=perturbation)


def test_a_long_vocabulary_is_described_by_its_size():
    ids, vectors = torch.arange(20)[:, None], torch.zeros(20, 3)
    assert jostle.UniformToken(ids).describe() == "uniform-token:<20 tokens>"
    assert jostle.UniformToken(vectors).describe() == "uniform-token:<20 tokens of 3 numbers>"
