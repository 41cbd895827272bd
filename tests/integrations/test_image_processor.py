"""Image classifiers of transformers get the pixels that their own processors make, bit for bit."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import jostle
from jostle import integrations
from jostle.base.errors import UsageError
from jostle.data.image_folder import open_images
from jostle.data.preprocessing import Preprocessing
from jostle.integrations import ImageClassifier, prepare_images
from jostle.integrations.huggingface import read_image_processor

SMALL = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16}
FAMILIES = {  # model type: (sizes of its network, options of its processor, the pixels that it makes)
    "vit": (SMALL | {"patch_size": 8, "image_size": 32}, {"size": {"height": 32, "width": 32}}, (3, 32, 32)),
    "deit": (
        SMALL | {"patch_size": 8, "image_size": 32},
        {"size": {"height": 40, "width": 40}, "crop_size": {"height": 32, "width": 32}},
        (3, 32, 32),
    ),
    "swin": (
        {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
        {"size": {"height": 32, "width": 32}, "resample": 3},
        (3, 32, 32),
    ),
    "convnext": (
        {"hidden_sizes": [8, 8, 12, 12], "depths": [1, 1, 1, 1]},
        {"size": {"shortest_edge": 32}, "crop_pct": 0.8},
        (3, 32, 32),
    ),
    "convnextv2": (
        {"hidden_sizes": [8, 8, 12, 12], "depths": [1, 1, 1, 1]},
        {"size": {"shortest_edge": 384}},
        (3, 384, 384),
    ),
    "resnet": (
        {"embedding_size": 8, "hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]},
        {"size": {"shortest_edge": 48}, "resample": 2, "image_mean": [0.485, 0.456, 0.406]},
        (3, 48, 48),
    ),
    "mobilevit": (
        {"image_size": 64, "hidden_sizes": [8, 12, 16], "neck_hidden_sizes": [4, 4, 8, 8, 8, 8, 16]},
        {"size": {"shortest_edge": 72}, "crop_size": {"height": 64, "width": 64}},
        (3, 64, 64),
    ),
    "efficientnet": (
        {"image_size": 32, "width_coefficient": 0.2, "depth_coefficient": 0.2, "hidden_dim": 256},
        {"size": {"height": 32, "width": 32}, "rescale_factor": 1 / 127.5, "rescale_offset": True},
        (3, 32, 32),
    ),
}
PROCESSORS = {"swin": "vit", "convnextv2": "convnext", "resnet": "convnext"}  # families that use another one's


def photograph(width=90, height=61, seed=0):
    """Smooth colours, as photographs have, with some grain."""
    rows, columns = np.mgrid[:height, :width]
    waves = [np.sin(rows / (7 + colour)) * np.cos(columns / (9 - colour)) for colour in range(3)]
    grain = np.random.default_rng(seed).normal(scale=0.05, size=(height, width, 3))
    return Image.fromarray(((np.stack(waves, axis=2) + grain).clip(-1, 1) * 127 + 127).astype(np.uint8))


def own_processor(family, **changes):
    """A processor of transformers itself, with the family's options."""
    import importlib

    name = PROCESSORS.get(family, family)
    module = importlib.import_module(f"transformers.models.{name}.image_processing_pil_{name}")
    [processor] = [getattr(module, each) for each in module.__all__ if each.endswith("ImageProcessorPil")]
    return processor(**(FAMILIES[family][1] | changes))


def save(folder, family, **changes):
    """Network and processor in a folder; returns both."""
    from transformers import AutoConfig, AutoModelForImageClassification

    config = AutoConfig.for_model(family, num_labels=5, **FAMILIES[family][0])
    if family == "deit":  # which has two kinds of classifiers
        config.architectures = ["DeiTForImageClassification"]
    network = AutoModelForImageClassification.from_config(config).float().eval()
    processor = own_processor(family, **changes)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return network, processor


def pixels_of(processor, image):
    return torch.from_numpy(np.asarray(processor(image, return_tensors="np")["pixel_values"][0]))


def maker(folder, family="vit", is_grey=False, **changes):
    import transformers
    from transformers import AutoConfig

    own_processor(family, **changes).save_pretrained(folder)
    AutoConfig.for_model(family).save_pretrained(folder)
    return read_image_processor(transformers, folder, is_grey)


@pytest.mark.parametrize("family", FAMILIES)
def test_pixels_and_logits_are_those_of_the_deployed_pipeline(tmp_path, family):
    from transformers import pipeline

    network, processor = save(tmp_path, family)
    loaded = integrations.load(f"hf:{tmp_path}")
    assert loaded.preprocessing.shape == FAMILIES[family][2]
    deployed = pipeline("image-classification", model=network, image_processor=processor, top_k=5)
    for size in ((90, 61), (50, 77), (64, 64)):
        image = photograph(*size)
        ours = loaded.preprocessing.pixels(image)
        assert ours.dtype == torch.float32
        assert torch.equal(ours, pixels_of(processor, image))
        expected = {one["label"]: one["score"] for one in deployed(image)}
        found = loaded(ours[None])[0].softmax(dim=0).tolist()
        for number, name in network.config.id2label.items():
            assert found[number] == pytest.approx(expected[name], abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_mean_std_and_order_describe_the_pixels(tmp_path, family):
    """A picture of one colour becomes (p / 255 - mean) / std, in the channel that holds the colour."""
    found = maker(tmp_path, family)
    colour = (200, 100, 50)
    values = found.pixels(Image.new("RGB", (70, 50), colour))[:, 5, 5]
    expected = [(colour[c] / 255 - m) / s for c, m, s in zip(found.order, found.mean, found.std, strict=True)]
    assert values.tolist() == pytest.approx(expected, abs=2e-6)
    assert found.order == ((2, 1, 0) if family == "mobilevit" else (0, 1, 2))


def test_usual_means_are_found_to_all_their_digits(tmp_path):
    found = maker(tmp_path, "resnet", image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
    assert (found.mean, found.std) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    plain = maker(tmp_path, "vit", do_normalize=False)
    assert (plain.mean, plain.std) == ((0.0,) * 3, (1.0,) * 3)


def test_pictures_of_every_kind_are_read_as_a_pipeline_reads_them(tmp_path):
    found, processor = maker(tmp_path, "vit"), own_processor("vit")
    image = photograph()
    for mode in ("L", "RGBA", "P", "CMYK"):
        other = image.convert(mode)
        assert torch.equal(found.pixels(other), pixels_of(processor, other.convert("RGB")))
    turned = Image.Exif()
    turned[0x0112] = 6  # taken with the camera on its side
    image.save(tmp_path / "turned.jpg", exif=turned, quality=100)
    with Image.open(tmp_path / "turned.jpg") as file:
        file.load()
        assert torch.equal(found.pixels(file), pixels_of(processor, file.convert("RGB").rotate(-90, expand=True)))
    deep = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) << 8)
    assert torch.equal(found.pixels(deep), pixels_of(processor, image.convert("L").convert("RGB")))
    with pytest.raises(UsageError, match="image deep has pixels of mode F"):
        found.pixels(Image.new("F", (9, 9)), "deep")


def test_grey_networks_get_grey_pixels(tmp_path):
    found = maker(tmp_path, "vit", is_grey=True, image_mean=[0.5], image_std=[0.25])
    assert (found.shape, found.mean, found.std, found.order) == ((1, 32, 32), (0.5,), (0.25,), (0,))
    image = photograph()
    assert torch.equal(
        found.pixels(image), pixels_of(own_processor("vit", image_mean=[0.5], image_std=[0.25]), image.convert("L"))
    )


class TestOptions:
    """Parts of the processor that the spec of the images replaces."""

    @pytest.mark.parametrize("family", ["vit", "deit", "swin", "convnext", "mobilevit"])
    def test_size_multiplies_the_sizes_of_the_processor(self, tmp_path, family):
        found, side = maker(tmp_path, family), 2 * FAMILIES[family][2][1]
        larger = found.with_options({"size": side})
        assert larger.shape == (3, side, side)
        doubled = {
            key: {name: 2 * length for name, length in sizes.items()}
            for key, sizes in FAMILIES[family][1].items()
            if key in ("size", "crop_size")
        }
        image = photograph()
        assert torch.equal(larger.pixels(image), pixels_of(own_processor(family, **doubled), image))

    def test_interpolation_is_the_filter(self, tmp_path):
        image, found = photograph(), maker(tmp_path, "vit").with_options({"interpolation": "bicubic"})
        assert torch.equal(found.pixels(image), pixels_of(own_processor("vit", resample=3), image))
        with pytest.raises(UsageError, match="unknown interpolation 'cubic'; did you mean bicubic"):
            found.with_options({"interpolation": "cubic"})

    def test_mean_and_std_normalise_anew(self, tmp_path):
        image, found = photograph(), maker(tmp_path, "vit")
        other = found.with_options({"mean": [0.1, 0.2, 0.3], "std": 0.25})
        assert (other.mean, other.std) == ((0.1, 0.2, 0.3), (0.25,) * 3)
        expected = pixels_of(own_processor("vit", image_mean=[0.1, 0.2, 0.3], image_std=[0.25] * 3), image)
        assert (other.pixels(image) - expected).abs().max() < 1e-5
        again = other.with_options({"size": 64})
        assert (again.mean, again.std) == (other.mean, other.std)

    def test_colours_of_options_are_red_green_and_blue_whatever_the_order_of_the_channels(self, tmp_path):
        image, found = Image.new("RGB", (70, 50), (200, 100, 50)), maker(tmp_path, "mobilevit")
        options = {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}
        blue, green, red = found.with_options(options).pixels(image)[:, 5, 5].tolist()
        expected = [(p / 255 - m) / s for p, m, s in zip((200, 100, 50), *options.values(), strict=True)]
        assert [red, green, blue] == pytest.approx(expected, abs=1e-5)
        plain = found.with_options(options | {"resize": 80})
        assert plain.pixels(image)[:, 5, 5].tolist() == pytest.approx(expected, abs=1e-5)

    def test_resize_asks_for_jostles_own_crop(self, tmp_path):
        found = maker(tmp_path, "mobilevit")
        assert found.with_options({"resize": 80}) == Preprocessing(64, 80, (0.0,) * 3, (1.0,) * 3, "bicubic")

    def test_no_options_change_nothing(self, tmp_path):
        image, found = photograph(), maker(tmp_path, "convnext")
        assert torch.equal(found.with_options({}).pixels(image), found.pixels(image))


class TestSeveralModels:
    """Networks that are compared get the same pixels, and normalise them inside as their own."""

    @pytest.fixture(autouse=True)
    def float32(self):
        torch.set_default_dtype(torch.float32)
        yield
        torch.set_default_dtype(torch.float64)

    @pytest.fixture
    def images(self, tmp_path):
        (tmp_path / "photos").mkdir()
        for number in range(4):
            photograph(seed=number).save(tmp_path / "photos" / f"{number}.png")
        return f"images:{tmp_path / 'photos'}"

    @staticmethod
    def network():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 5))

    def test_a_network_alone_gets_its_own_pixels(self, tmp_path, images):
        _, processor = save(tmp_path, "deit")
        model = integrations.load(f"hf:{tmp_path}")
        files = prepare_images(open_images(images), [model])
        for number, path in enumerate(files.paths):
            assert torch.equal(files[number][0], pixels_of(processor, Image.open(path)))
        assert model.gain is None
        assert json.loads(json.dumps(files.preprocessing.describe()))["processor"] == "DeiTImageProcessorPil"

    def test_another_normalisation_and_another_order_of_colours(self, tmp_path, images):
        """The second network gets the first one's pixels; inside they are what its own processor makes of the crop."""
        first, second = tmp_path / "first", tmp_path / "second"
        first.mkdir()
        second.mkdir()
        sizes = {"size": {"height": 32, "width": 32}}
        given = maker(first, "vit", resample=3, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4], **sizes)
        flipped = maker(second, "mobilevit", do_resize=False, do_center_crop=False)
        assert (flipped.shape, flipped.order) == (None, (2, 1, 0))
        flipped.shape = (3, 32, 32)
        seen = []
        own, other = ImageClassifier(self.network(), given), ImageClassifier(self.network(), flipped)
        other.network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        files = prepare_images(open_images(images), [own, other])
        pixels = files[0][0]
        other(pixels[None])
        squashed = Image.open(files.paths[0]).resize((32, 32), Image.Resampling.BICUBIC)
        expected = pixels_of(own_processor("mobilevit", do_resize=False, do_center_crop=False), squashed)
        assert (seen[0][0] - expected).abs().max() < 1e-5

    def test_they_are_measured_on_the_same_noise(self, tmp_path, images):
        save(tmp_path, "vit")
        twin = integrations.load(f"hf:{tmp_path}")
        models = {"first": integrations.load(f"hf:{tmp_path}"), "second": twin}
        files = prepare_images(open_images(images + ":mean=0.3,std=0.2"), models.values())
        assert twin.gain is not None
        compared = jostle.compare(models, files, tokens="patches:8", perturbation="gaussian-noise:3", plan="grid:2")
        assert compared.difference("first", "second").value == 0.0

    def test_pixels_whose_shape_follows_the_picture_need_a_size(self, tmp_path, images):
        model = ImageClassifier(self.network(), maker(tmp_path, "mobilevit", do_center_crop=False), "hf:model")
        with pytest.raises(UsageError, match=r"images of hf:model get the proportions of their file: choose one size"):
            prepare_images(open_images(images), [model])
        files = prepare_images(open_images(images + ":size=32"), [model])
        assert files[0][0].shape == (3, 32, 32)
        assert model.channels == [2, 1, 0]


def test_no_processor(tmp_path):
    import transformers

    assert read_image_processor(transformers, tmp_path, False) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": {"longest": 3}}, "cannot be"),
        ({"image_std": [0.0, 1.0, 1.0]}, "cannot be|not one colour"),
        ({"resample": 77}, "cannot be"),
        ({"image_processor_type": "NoSuchProcessor"}, "cannot be understood"),
    ],
)
def test_a_processor_that_cannot_be_followed_is_one_line(tmp_path, changes, message):
    import transformers

    maker(tmp_path, "vit")
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(UsageError, match=message) as error:
        read_image_processor(transformers, tmp_path, False)
    assert "preprocessor_config.json" in str(error.value)
    assert "\n" not in str(error.value)
