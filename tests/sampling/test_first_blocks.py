"""The first attention of a clean input serves its trials too, and nobody can tell from the answers."""

import itertools

import numpy as np
import pytest
import torch

import jostle
from jostle import Deletion, Embeddings, GaussianNoise, Grid, ReplaceBy, Until, Words
from jostle.models.text_encoder import TextEncoder
from jostle.models.vit_small import SmallVisionTransformer
from jostle.sampling import first_blocks, memory, readers
from jostle.sampling.first_blocks import Sums
from jostle.sampling.plans import Batching
from jostle.tokens import Inputs, TokenFunction
from tests.sampling import test_prefixes as texts
from tests.sampling import test_readers as images

IMAGES = ("vit-small", "vit-simple")
NOISE = GaussianNoise(2.0)


@pytest.fixture
def trials_read(monkeypatch):
    """How many trials were answered from what was remembered."""
    count, own = [], Sums.outputs

    def outputs(self, changed):
        found = own(self, changed)
        count.append(len(found))
        return found

    monkeypatch.setattr(Sums, "outputs", outputs)
    monkeypatch.setattr(first_blocks, "_WORTH_IT", 9.0)  # wherever it can be used
    return count


@pytest.fixture(params=[32.0, 0.0, 1.05])
def most_lost(request, monkeypatch):
    """Sums are exchanged, made anew, or both."""
    monkeypatch.setattr(first_blocks, "_MOST_LOST", request.param)


def measured(model, inputs, tokens, perturbation=NOISE, plan=Grid(2), **options):  # noqa: B008
    return texts.measured(model, inputs, tokens, perturbation, plan, **options)


def both(*arguments, **options):
    """The same measurement with readers and without."""
    found = measured(*arguments, **options)
    with readers.switched_off():
        return found, measured(*arguments, **options)


def same(found, expected):
    assert found.per_input == pytest.approx(expected.per_input, rel=1e-9, abs=1e-9, nan_ok=True)
    assert found.profile.values == pytest.approx(expected.profile.values, rel=1e-9, abs=1e-9, nan_ok=True)
    assert (found.trials, found.passes, found.warnings) == (expected.trials, expected.passes, expected.warnings)


@pytest.mark.parametrize("tokens", ["patches:4", "patches:2", "coordinates"])
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.usefixtures("most_lost")
def test_the_answers_are_those_of_whole_images(name, tokens, trials_read):
    model = images.create(name)
    for response, plan in itertools.product(("flip", "logit-change"), (Grid(1), Until(half_width=0.2))):
        trials_read.clear()
        found, expected = both(model, images.IMAGES, tokens, plan=plan, response=response, batch_size=7)
        same(found, expected)
        assert sum(trials_read) == found.trials + 9  # the check
    assert found.value > 0.001


@pytest.mark.parametrize(("tokens", "perturbation"), texts.VIEWS)
@pytest.mark.usefixtures("most_lost")
def test_the_answers_are_those_of_whole_texts(tokens, perturbation, trials_read):
    model = texts.small("text-encoder")
    for side, response in itertools.product(("left", "right"), ("flip", "logit-change")):
        for inputs, plan in ((texts.given(side), Grid(2)), (texts.given(side)["input_ids"], Until(half_width=0.1))):
            trials_read.clear()
            found, expected = both(model, inputs, tokens, perturbation, plan, response=response)
            same(found, expected)
            assert sum(trials_read) > 0.8 * found.trials  # a word may stay as it was
    assert found.value > 0


@pytest.mark.parametrize("depth", [2, 3])
def test_parts_of_every_size_fit_together(depth, trials_read):
    sizes = {"image_size": 12, "channels": 2, "classes": 3, "dim": 8, "depth": depth, "heads": 3, "dim_head": 2}
    for name, more in (("vit-small", {"shift": 3}), ("vit-small", {}), ("vit-simple", {"norm": "dyt"})):
        model = jostle.models.create(name, seed=0, **sizes, **more).double()
        same(*both(model, images.IMAGES, "patches:4", response="logit-change"))
    model = TextEncoder(vocabulary=90, dim=12, depth=depth, heads=3, mlp_dim=8, norm_place="tokens").double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()  # biases too
    same(*both(model, texts.given(), Embeddings(), response="logit-change", batch_size=5))
    assert sum(trials_read) > 4 * 81


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_where_one_token_had_all_of_the_attention_nothing_is_lost(size):
    """In float32, with scores of up to hundreds: a token that is taken away may have had all the weight."""
    generator = torch.Generator().manual_seed(0)
    model = SmallVisionTransformer(image_size=12, channels=1, dim=8, depth=2, heads=2, dim_head=4, mlp_dim=8).eval()
    with torch.inference_mode():
        for part in model.blocks[0].attention[1].to_qkv.parameters():
            part.mul_(size)
        inputs = torch.randn(4, 1, 12, 12, generator=generator)
        held = Inputs(inputs, jostle.Patches(4))
        reader = first_blocks.FirstBlockReader(TokenFunction(model, held), model.first_attention(), Batching(held, 8))
        reader._keep_images(np.arange(4), inputs)
        for token in range(9):
            moved = inputs.clone()
            jostle.Patches(4).put(moved, torch.full((4,), token), 3 * torch.randn(4, 16, generator=generator))
            trials = first_blocks.Trials(np.arange(4), np.full(4, token), np.zeros(4, dtype=np.int64))
            assert reader._of_images(trials, moved).numpy() == pytest.approx(model(moved).numpy(), abs=2e-5)


def test_with_little_room_the_inputs_seen_last_are_remembered(monkeypatch, trials_read):
    model = images.create("vit-simple")
    numbers = 9 * (8 + 2 * 8 + 4)
    for room, least, most in ((0, 0, 0), (3 * numbers, 0.2, 0.45), (10**6, 1, 1.1)):
        trials_read.clear()
        monkeypatch.setattr(memory, "REMEMBERED_NUMBERS", room)
        found, expected = both(
            model, images.IMAGES, "patches:4", plan=Until(relative=0.2), response="logit-change", batch_size=2
        )
        same(found, expected)
        assert least <= sum(trials_read) / expected.trials <= most


def test_models_are_compared_each_in_its_way(trials_read):
    models = {name: images.create(name) for name in ("mlp", "vit-simple", "vit-small", "resnet-18")}
    options = {"tokens": "patches:4", "perturbation": NOISE, "plan": "grid:1", "response": "logit-change"}
    found = jostle.compare(models, images.IMAGES, **options)
    for name, model in models.items():
        alone = jostle.measure(model, images.IMAGES, **options)
        assert found[name].per_input == pytest.approx(alone.per_input, rel=1e-9)
    assert sum(trials_read) >= 4 * 81


class Warm(TextEncoder):
    """Answers otherwise than its parts say."""

    def forward(self, input_ids, attention_mask=None):
        return super().forward(input_ids, attention_mask) * torch.tensor([1.0, 3.0])


class Twisted(SmallVisionTransformer):
    def forward(self, images):
        return super().forward(images).flip(1)


def test_what_is_not_the_network_that_its_parts_say_is_asked_plainly(trials_read):
    sizes = {"dim": 8, "depth": 2, "heads": 2, "mlp_dim": 8}
    warm = Warm(vocabulary=texts.VOCABULARY + 3, **sizes).double()
    same(*both(warm, texts.given(), Embeddings(), response="logit-change"))
    twisted = Twisted(image_size=12, channels=2, classes=3, dim_head=4, **sizes).double()
    same(*both(twisted, images.IMAGES, "patches:4", response="logit-change"))
    assert not trials_read
    hooked, seen = images.create("vit-small"), []
    hooked.blocks[0].register_forward_hook(lambda *given: seen.append(len(given[1][0])))
    measured(hooked, images.IMAGES, "patches:4", plan=Grid(1))
    assert sum(seen) >= 81
    assert not trials_read


def reader_of(model, inputs, view, perturbation=NOISE):
    held = Inputs(inputs, view)
    return readers.find(TokenFunction(model, held), perturbation, Batching(held, 8))


def vit(**sizes):
    return lambda: jostle.models.create("vit-simple", image_size=12, channels=2, **{"depth": 2, "heads": 8} | sizes)


@pytest.mark.parametrize(
    ("make", "inputs", "view", "perturbation", "is_read"),
    [
        (vit(), images.IMAGES, jostle.Patches(4), NOISE, True),
        (vit(depth=1), images.IMAGES, jostle.Patches(4), NOISE, False),
        (vit(depth=9), images.IMAGES, jostle.Patches(4), NOISE, False),
        (vit(attention="relu"), images.IMAGES, jostle.Patches(4), NOISE, False),
        (vit(), images.IMAGES, jostle.Whole(), NOISE, False),
        (vit(), images.IMAGES, jostle.tokens.Inside("blocks.0", count=9), NOISE, False),
        (vit(), {"x": images.IMAGES}, jostle.Patches(4), NOISE, False),
        (lambda: vit()().to(torch.bfloat16), images.IMAGES, jostle.Patches(4), NOISE, False),
    ],
)
def test_images_are_read_this_way_where_it_pays(make, inputs, view, perturbation, is_read):
    assert (reader_of(make(), inputs, view, perturbation) is not None) == is_read


@pytest.mark.parametrize(
    ("inputs", "view", "perturbation", "is_read"),
    [
        (texts.given, Embeddings(), NOISE, True),
        (texts.given, Words(), ReplaceBy(5), True),
        (texts.given, Words(), Deletion(), False),
        (texts.given, Embeddings(whole=True), NOISE, False),
        (texts.given, Embeddings(module="blocks.0.attention_norm"), NOISE, False),
        (texts.with_a_gap, Embeddings(), NOISE, False),
        (lambda: texts.given()["input_ids"][:, :2], Words(), ReplaceBy(5), False),  # 0 would be padding
    ],
)
def test_texts_are_read_this_way_where_it_holds(inputs, view, perturbation, is_read, monkeypatch):
    monkeypatch.setattr(first_blocks, "_WORTH_IT", 9.0)
    assert (reader_of(texts.small("text-encoder"), inputs(), view, perturbation) is not None) == is_read
    with readers.switched_off():
        assert reader_of(texts.small("text-encoder"), inputs(), view, perturbation) is None
