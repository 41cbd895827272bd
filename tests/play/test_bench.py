"""The bench: estimates against a closed form, inputs of people, and limits."""

import io
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from jostle import UsageError
from jostle.data import Dataset
from jostle.play.bench import MOST_BYTES, MOST_TEXT
from jostle.play.kinds import make_bench
from jostle.play.pictures import PictureBench
from jostle.play.sentences import SentenceBench
from tests.integrations.text_folders import save


class Halfspace(nn.Module):
    """Class 1 where the sum of the pixels of the first patch exceeds a bound."""

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, images):
        above = images[:, 0, :2, :2].sum(dim=(1, 2)) - self.bound
        return torch.stack([-above, above], dim=1)


@pytest.fixture
def bench():
    images = torch.zeros(3, 1, 4, 4)
    images[1] = 1.0
    dataset = Dataset("blank", images, torch.tensor([0, 1, 0]), classes=2)
    return make_bench({"near": Halfspace(1.0), "far": Halfspace(100.0)}, dataset, patch=2)


def last(updates):
    *_, end = updates
    return end


def test_the_rate_of_one_token_is_that_of_the_closed_form(bench):
    end = last(bench.watch("0", 0, 1.0))
    truth = 0.5 * math.erfc(1.0 / (2 * math.sqrt(2)))  # P[N(0, 4) > 1]: four pixels with noise of std 1
    value, low, high = end.rates["near"]
    assert low <= truth <= high
    assert high - low < 0.08
    assert value == pytest.approx(truth, abs=0.03)
    assert end.rates["far"][0] == 0.0
    assert last(bench.watch("0", 3, 1.0)).rates["near"] == (0.0, 0.0, pytest.approx(0, abs=0.01))


def test_all_tokens_take_turns(bench):
    end = last(bench.watch("0", None, 1.0))
    truth = 0.5 * math.erfc(1.0 / (2 * math.sqrt(2)))
    assert end.maps["near"][0] == pytest.approx(truth, abs=0.05)
    assert end.maps["near"][1:] == [0.0, 0.0, 0.0]
    assert end.rates["near"][1] <= truth / 4 <= end.rates["near"][2]


def test_intervals_become_narrow_while_one_watches(bench):
    widths = [update.rates["near"][2] - update.rates["near"][1] for update in bench.watch("0", 0, 1.0)]
    assert widths[-1] < widths[0] / 5


def test_flips_say_what_they_lead_to(bench):
    assert last(bench.watch("0", 0, 1.0)).becomes == {"near": "1"}
    assert last(bench.watch("1", 0, 3.0)).becomes["near"] == "0"


@pytest.mark.slow
def test_the_interval_covers_at_all_times_together(bench):
    """Of 300 watched streams at most 5 % miss the truth at any of their updates, and 4 standard errors more."""
    truth = 0.5 * math.erfc(1.0 / (2 * math.sqrt(2)))
    misses = 0
    for seed in range(300):
        ends = [update.rates["near"][1:] for update in bench.watch("0", 0, 1.0, seed)]
        misses += any(not low <= truth <= high for low, high in ends)
    assert misses <= 15 + 4 * (300 * 0.05 * 0.95) ** 0.5


def test_patches_of_large_images_can_be_pressed():
    bench = make_bench({"m": lambda x: x.flatten(1)[:, :3]}, torch.randn(1, 3, 224, 224))
    assert bench.patch == 16


def test_what_is_no_network_has_no_slope():
    bench = make_bench({"m": lambda x: x.flatten(1)[:, :3]}, torch.randn(1, 1, 4, 4))
    with pytest.raises(UsageError, match="not a network of torch"):
        bench.search("0", 0, 1.0)


def test_no_noise_flips_nothing_and_shows_no_draw(bench):
    end = last(bench.watch("0", None, 0.0))
    assert end.rates["near"][0] == 0.0
    assert end.drawn is None


def test_what_is_shown_of_an_input(bench):
    found = bench.describe("1")
    assert found["label"] == "1"
    assert found["grid"] == [2, 2]
    assert found["tokens"] == [0, 1, 2, 3]
    assert found["models"]["near"]["class"] == "1"
    assert found["models"]["far"]["class"] == "0"
    assert 0 <= found["models"]["near"]["margin"] <= 1
    assert found["shown"]["picture"].startswith("data:image/png;base64,")


def test_the_worst_change_of_a_token(bench):
    found = bench.search("0", 0, 1.0)
    assert found["near"]["flips"]
    assert found["near"]["to"] == "1"
    assert found["near"]["length"] <= 2 * (1 + 1e-6)  # the usual length of noise of std 1 in four pixels
    assert not found["far"]["flips"]


def png(size=(9, 5), mode="RGB"):
    held = io.BytesIO()
    Image.new(mode, size, "white").save(held, format="png")
    return held.getvalue()


def test_an_image_of_ones_own(bench):
    number = bench.add(png())
    assert torch.equal(bench.example(number).given, torch.ones(1, 1, 4, 4))
    assert bench.describe(number)["models"]["near"]["class"] == "1"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"not an image", "not an image"), (b"", "not an image"), (b"x" * (MOST_BYTES + 1), "bytes; at most")],
)
def test_what_is_no_image_is_one_line(bench, content, said):
    with pytest.raises(UsageError, match=said):
        bench.add(content)


def test_an_image_of_too_many_pixels_is_not_opened(bench):
    with pytest.raises(UsageError, match="too many"):
        bench.add(png((6000, 6000), "1"))


def test_only_the_last_inputs_are_kept(bench):
    numbers = [bench.add(png()) for _ in range(60)]
    with pytest.raises(UsageError, match="no input"):
        bench.example(numbers[0])
    assert bench.example(numbers[-1]).name == "your image"


def test_a_token_that_is_not_there(bench):
    with pytest.raises(UsageError, match="token 9 cannot be jostled"):
        next(bench.watch("0", 9, 1.0))


@pytest.fixture
def sentences(tmp_path):
    from jostle import integrations

    model = integrations.load(f"hf:{save(tmp_path / 'model')[1]}")
    return SentenceBench({"model": model}, ["a good film", "a bad film"])


def test_sentences_are_shown_piece_by_piece(sentences):
    found = sentences.describe("0")
    text = "".join(piece["text"] for piece in found["shown"]["pieces"] if not piece["added"])
    assert text.strip() == "a good film"
    special = [piece["tokens"][0] for piece in found["shown"]["pieces"] if piece["added"]]
    assert not set(special) & set(found["tokens"])
    end = next(sentences.watch("0", found["tokens"][0], 1.0))
    assert 0 <= end.rates["model"][1] <= end.rates["model"][0] <= end.rates["model"][2] <= 1


def test_noise_in_texts_is_in_units_of_a_token(sentences):
    weak, strong = (sentences.noise(sentences.example("0"), strength).std for strength in (1.0, 3.0))
    assert strong == pytest.approx(3 * weak)
    assert weak > 0


@pytest.mark.parametrize(("text", "said"), [("  ", "a few words"), ("x" * (MOST_TEXT + 1), "characters; at most")])
def test_texts_that_cannot_be_used(sentences, text, said):
    with pytest.raises(UsageError, match=said):
        sentences.add(text.encode())


def test_pictures_are_the_default():
    images = torch.from_numpy(np.random.default_rng(0).random((2, 3, 4, 4)).astype(np.float32))
    bench = make_bench(
        {"m": lambda x: x.flatten(1)[:, :3]}, Dataset("x", images, torch.zeros(2, dtype=int), 1), patch=2
    )
    assert isinstance(bench, PictureBench)
    assert bench.show(images)["picture"].startswith("data:image/png")
