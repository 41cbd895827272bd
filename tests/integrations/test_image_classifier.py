"""Classifiers that take pixels of another normalisation, and images that fit several classifiers."""

from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from torch import nn

import jostle
from jostle.base.errors import UsageError
from jostle.data.image_folder import open_images
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import ImageClassifier, prepare_images

OWN = Preprocessing(size=8, resize=8, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
OTHER = Preprocessing(size=8, resize=8, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))


@pytest.fixture(autouse=True)
def float32():
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


@pytest.fixture
def images(tmp_path):
    for number in range(4):
        pixels = torch.randint(256, (9, 11, 3), generator=torch.Generator().manual_seed(number), dtype=torch.uint8)
        Image.fromarray(pixels.numpy()).save(tmp_path / f"{number}.png")
    return f"images:{tmp_path}"


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5), nn.Dropout(0.5))


def stacked(files):
    return torch.stack([files[index][0] for index in range(len(files))])


def test_logits_of_tensors_and_of_objects_with_logits():
    class Wrapped(nn.Module):
        def forward(self, pixel_values):
            return SimpleNamespace(logits=inner(pixel_values))

    inner, pixels = network(), torch.randn(2, 3, 8, 8)
    plain, wrapped = ImageClassifier(inner), ImageClassifier(Wrapped())
    assert not inner.training
    assert torch.equal(plain(pixels), inner(pixels))
    assert torch.equal(wrapped(pixels), inner(pixels))


def test_another_normalisation_of_the_same_image_gives_the_same_logits(images):
    classifier, files = ImageClassifier(network(), OWN), open_images(images)
    expected = classifier(stacked(files.with_preprocessing(OWN)))
    other = stacked(files.with_preprocessing(OTHER))
    assert (classifier(other) - expected).abs().max() > 0.1
    assert classifier.accept(OTHER) is classifier
    assert torch.allclose(classifier(other), expected, atol=1e-5)
    classifier.accept(OWN)
    assert torch.equal(classifier(stacked(files.with_preprocessing(OWN))), expected)
    assert set(classifier.state_dict()) == {f"network.{name}" for name in network().state_dict()}


def test_noise_of_one_std_is_the_same_noise_in_the_picture_for_both(images):
    """Twins that were trained with different normalisation agree on every jostled image."""
    own = ImageClassifier(network(), OWN, "own")
    first, second = network(), network()
    scale = torch.tensor(OTHER.std) / torch.tensor(OWN.std)
    shift = (torch.tensor(OTHER.mean) - torch.tensor(OWN.mean)) / torch.tensor(OWN.std)
    with torch.no_grad():  # the same function of the picture, but of pixels normalised as OTHER
        second[0].bias += (first[0].weight * shift.view(1, 3, 1, 1)).sum(dim=(1, 2, 3))
        second[0].weight *= scale.view(1, 3, 1, 1)
    twin = ImageClassifier(second, OTHER, "twin")
    files = prepare_images(open_images(images), [own, twin])
    assert files.preprocessing == OWN
    choices = {"tokens": "patches:4", "perturbation": "gaussian-noise:2", "plan": "grid:20"}
    compared = jostle.compare({"own": own, "twin": twin}, files, **choices)
    assert compared["own"].value > 0.05
    assert compared.difference("own", "twin").value == 0.0


def test_fitted_takes_the_first_classifier_that_says_what_it_wants(images):
    silent, own, other = ImageClassifier(network()), ImageClassifier(network(), OWN), ImageClassifier(network(), OTHER)
    assert prepare_images(open_images(images), [silent, other, own]).preprocessing == OTHER
    assert own.gain is not None
    assert other.gain is None
    assert prepare_images(open_images(images + ":mean=0.5,std=0.5"), [other]).preprocessing.mean == (0.5,) * 3
    assert other.gain is not None


def test_a_size_is_never_guessed(images):
    large = ImageClassifier(network(), OWN.with_options({"size": 16}), "large")
    small = ImageClassifier(network(), OWN, "small")
    with pytest.raises(UsageError, match=r"images of different sizes \(small 8, large 16\): choose one in the data"):
        prepare_images(open_images(images), [small, large])
    assert prepare_images(open_images(images + ":size=16"), [small, large]).preprocessing.size == 16


@pytest.mark.parametrize(
    ("options", "missing"), [("", "size, mean, std"), (":size=8", "mean, std"), (":size=8,mean=0.5", "std")]
)
def test_a_model_that_does_not_say_needs_it_said(images, options, missing):
    with pytest.raises(UsageError, match=f"the model does not say which pixels it takes: give {missing} in the data"):
        prepare_images(open_images(images + options), [network()])


def test_a_model_that_does_not_say_gets_what_is_said(images):
    files = prepare_images(open_images(images + ":size=8,mean=0.5,std=0.25"), [network(), ImageClassifier(network())])
    assert files.preprocessing.mean == (0.5,) * 3


def test_grey_pixels_for_a_network_of_colours_are_refused():
    with pytest.raises(UsageError, match="takes 3 colours, not 1"):
        ImageClassifier(network(), OWN, "own").accept(Preprocessing(size=8, mean=(0.5,), std=(0.5,)))
