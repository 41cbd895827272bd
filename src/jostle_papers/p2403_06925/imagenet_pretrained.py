"""Section 5, ImageNet: a pretrained vision transformer against a pretrained ConvNeXt, on the same noise."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from jostle import data, figures, integrations
from jostle.base.errors import UsageError
from jostle.base.progress import State
from jostle.base.store import Record
from jostle.data.image_folder import PREFIX, ImageFiles, open_images
from jostle.estimates import Measurement, measure
from jostle.integrations.python import call_factory
from jostle.perturbations import GaussianNoise
from jostle.sampling import Grid, Until
from jostle.studies.catalogue import register
from jostle.studies.evidence import Measured, over_seeds
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below, is_less, within
from jostle.tokens import Patches
from jostle_papers.trained import mean_and_range

CONVNEXT, VIT = "convnext-v2-tiny", "vit-l-16"
PAPER = {CONVNEXT: 0.0342, VIT: 0.0191}
_STD = 15**0.5
_TINY = "image_size=28,channels=1,classes=10"
_NEXT_MODEL = re.compile(r",(?=[^,:=]+=[a-z]+:)")  # a comma that ends a spec, not one between its options
_LEFT_OUT = ("seconds", "provenance", "warnings")  # parts of a measurement that differ between runs


@dataclass(frozen=True, kw_only=True)
class PretrainedSettings(Settings):
    """Networks, images and noise.

    Arguments:
        models: NAME=SPEC each, a spec of ``jostle.integrations.load``.
        transformer: the name, among them, of the one that the paper says is less sensitive than all others.
        images: ``images:DIR[:options]``, a ``py:`` spec that gives such images, or the name of a dataset. If the
            options give mean and std, all models get the same pixels and the same noise; otherwise each gets pixels
            normalised as it was trained with, and the noise is in units of these.
        limit: how many images.
        patch: height and width of a token, a patch of the pixels that the models are given.
        std: of the noise, in units of normalised pixels.
        further: other stds, measured too.
        passes: most inputs a model is asked about for one number.
        draws: instead, jostle every patch of every image so many times; 0 for random patches.
        batch_size: how many inputs a model answers at once.
    """

    models: tuple[str, ...] = ("model=zoo:mlp",)
    transformer: str = VIT
    images: str = "mnist-5000"
    limit: int = 100
    patch: int = 16
    std: float = _STD
    further: tuple[float, ...] = ()
    passes: int = 1000
    draws: int = 0
    batch_size: int = 32


@dataclass(frozen=True)
class PretrainedCell(Cell):
    """One network, with noise of its own for each seed."""

    model: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class PretrainedRecord(Struct):
    """Sensitivity of one network, and which network and images it is of.

    Arguments:
        sensitivity, low, high, level: at the study's own std.
        by_std: the measurement at each std, as ``Measurement.to_dict`` gives it, without what differs between runs.
        accuracy: on the images; None if their labels are not the network's classes.
        parameters, weights: number and digest of the weights; None if the model is no module.
        num_images, images: number and digest, or name, of the images.
        preprocessing: of the images; empty if they are no files.
        note: of the images.
    """

    sensitivity: float
    low: float
    high: float
    level: float
    by_std: dict[str, Record]
    accuracy: float | None
    parameters: int | None
    weights: str | None
    num_images: int
    images: str
    preprocessing: Record
    note: str

    def measurement(self, std: float) -> Measurement:
        """The measurement at one std."""
        rest: Record = {"seconds": 0.0, "provenance": {}, "warnings": []}
        return Measurement.from_dict({**self.by_std[f"{std:g}"], **rest})


PretrainedRecords = Records[PretrainedSettings, PretrainedCell, PretrainedRecord]


@register
class ImagenetPretrained(Study[PretrainedSettings, PretrainedCell, PretrainedRecord]):
    """Sensitivity of pretrained networks to noise in one patch of an image; nothing is trained."""

    name = "2403.06925/imagenet-pretrained"
    title = "ImageNet: a pretrained vision transformer against a pretrained ConvNeXt"
    claim = "At noise of variance 15, a pretrained ViT-L/16 is less sensitive than a pretrained ConvNeXt V2-Tiny."
    source = "Section 5, ImageNet"
    version = 1
    scales = {
        "smoke": PretrainedSettings(
            seeds=1,
            models=(
                f"convnext=zoo:convnext:{_TINY},patch_size=4,widths=8/12,depths=1/1,layer_scale=1.0",
                f"vit-small=zoo:vit-small:{_TINY},patch_size=7,dim=16,depth=1,heads=2,dim_head=8,mlp_dim=16",
            ),
            transformer="vit-small",
            images="mnist-5000",
            limit=50,
            patch=7,
            further=(1.0,),
            passes=400,
        ),
        "small": PretrainedSettings(
            seeds=3,
            models=("efficientnet-lite0=py:jostle.integrations.efficientnet_lite:lite0",),
            images="py:jostle.integrations.photographs:photographs",
            limit=6,
            further=(1.0, 5**0.5, 50**0.5),
            draws=1,
        ),
        "paper": PretrainedSettings(
            seeds=3,
            models=(f"{CONVNEXT}=hf:convnextv2-tiny-22k-224", f"{VIT}=hf:vit-large-patch16-224"),
            images="images:imagenet:size=224,resize=256,mean=0.485/0.456/0.406,std=0.229/0.224/0.225,seed=0",
            limit=20_000,
            passes=40_000,
        ),
    }
    deviations = (
        "The paper does not say which checkpoints, patches, draws and normalisation it used. Here a token is an "
        "aligned patch of 16 x 16 of 224 x 224 pixels, and std = sqrt(15) is in units of normalised pixels: at paper "
        "scale with ImageNet's mean and std for both networks, so that both get the same noise; sampling stops at "
        "40,000 passes a seed instead of 5 draws for each patch of each image. Seeds are seeds of the noise.",
        "Small scale: weights of neither network can be had without a download. One ImageNet network that comes by "
        "pip, EfficientNet-lite0, is measured on six photographs of scikit-image, with noise in units of its own "
        "normalised pixels, (p - 127) / 128; without a transformer the claim stays undecided, and six photographs say "
        "nothing about ImageNet.",
        "Smoke scale: two small networks with random weights, on digits.",
    )

    def cells(self, settings: PretrainedSettings, seeds: Sequence[int]) -> list[PretrainedCell]:
        return [PretrainedCell(name, seed) for seed in seeds for name in specs_by_name(settings.models)]

    def measure(self, cell: PretrainedCell, settings: PretrainedSettings, context: Context) -> PretrainedRecord:
        spec = specs_by_name(settings.models)[cell.model]
        model = integrations.load(spec)
        images = _images(settings, model, context)
        stds = tuple(dict.fromkeys((settings.std, *settings.further)))
        measured: dict[float, Measurement] = {}
        for number, std in enumerate(stds):
            context.report(State(number / len(stds), number, f"std {std:.3g}", f"of {len(stds)} stds"))
            measured[std] = _measure(model, images, std, cell.seed, settings, context)
        first = measured[settings.std]
        module = model if isinstance(model, nn.Module) else None
        is_files = isinstance(images, ImageFiles)
        return PretrainedRecord(
            sensitivity=first.value,
            low=first.low,
            high=first.high,
            level=first.settings.level,
            by_std={f"{std:g}": _plain_measurement(m, len(images)) for std, m in measured.items()},
            accuracy=_accuracy(model, images, settings.batch_size, context.device),
            parameters=None if module is None else sum(parameter.numel() for parameter in module.parameters()),
            weights=None if module is None else _digest(module),
            num_images=len(images),
            images=images.fingerprint() if is_files else images.name,
            preprocessing=_plain_preprocessing(images) if is_files else {},
            note=images.note,
        )

    def figures(self, records: PretrainedRecords) -> list[Drawing]:
        return [_against_std(records), *(_positions(records, name) for name in specs_by_name(records.settings.models))]

    def expectations(self, records: PretrainedRecords) -> list[Expectation]:
        names = list(specs_by_name(records.settings.models))
        found = {name: records.where(model=name).by("seed", lambda record: record.sensitivity) for name in names}
        transformer = records.settings.transformer
        others = [name for name in names if name != transformer]
        if transformer not in found or not others:
            lacking = transformer if transformer not in found else "another network"
            doubt = f"no weights of {lacking} at hand, so there is nothing to compare"
            nothing = Measured(math.nan, lambda _: (-math.inf, math.inf), doubt)
            claimed = [is_below(f"sensitivity of {transformer} - sensitivity of others", nothing, 0.0)]
        else:
            claimed = [
                is_less(f"sensitivity of {transformer} - sensitivity of {name}", found[transformer], found[name])
                for name in others
            ]
        near = [
            within(f"sensitivity of {name} is near the paper's", over_seeds(found[name]), PAPER[name], 0.005)
            for name in names
            if name in PAPER
        ]
        return [*claimed, *map(beyond, [*near, *_more_noise_more_flips(records, names)])]


def specs_by_name(models: Sequence[str]) -> dict[str, str]:
    """Specs of models by name, from NAME=SPEC; commas that were taken for ends of specs are put back.

    >>> specs_by_name(("a=zoo:mlp:depth=2", "image_size=8", "b=hf:folder"))
    {'a': 'zoo:mlp:depth=2,image_size=8', 'b': 'hf:folder'}
    """
    named: dict[str, str] = {}
    for text in _NEXT_MODEL.split(",".join(models)):
        name, equals, spec = text.strip().partition("=")
        if not equals or not name or ":" not in spec:
            raise UsageError(f"setting models={text!r} must read NAME=SPEC, for example {VIT}=hf:vit-large-patch16-224")
        if name in named:
            raise UsageError(f"setting models names {name!r} twice")
        named[name] = spec
    return named


def _images(settings: PretrainedSettings, model: Any, context: Context) -> Any:
    """The images in the form that this model takes."""
    if settings.images.startswith(PREFIX):
        return integrations.prepare_images(open_images(settings.images, limit=settings.limit), [model])
    if not settings.images.startswith("py:"):
        return data.load(settings.images, limit=settings.limit, folder=context.data, progress=False)
    images = call_factory(settings.images)
    if not isinstance(images, ImageFiles):
        raise UsageError(f"setting images={settings.images!r} gave {type(images).__name__}; expected ImageFiles")
    return integrations.prepare_images(images.first(settings.limit), [model])


def _measure(
    model: Any, images: Any, std: float, seed: int, settings: PretrainedSettings, context: Context
) -> Measurement:
    """Sensitivity to Gaussian noise in one patch: paper 1 (2403.06925), Eq. 2, with its profile by position."""
    plan = Grid(settings.draws) if settings.draws else Until(relative=0.01, max_passes=settings.passes)
    return measure(
        model,
        images,
        tokens=Patches(settings.patch),
        perturbation=GaussianNoise(std),
        plan=plan,
        seed=seed,
        batch_size=settings.batch_size,
        device=context.device,
    )


def _plain_measurement(measurement: Measurement, num_images: int) -> Record:
    """The measurement as a record holds it: without run times and, for more than 100 images, without single images."""
    record = {key: value for key, value in measurement.to_dict().items() if key not in _LEFT_OUT}
    return record if num_images <= 100 else record | {"per_input": []}


def _accuracy(model: Any, images: Any, batch_size: int, device: str) -> float | None:
    """Share of images whose label the model gives; None if the labels are not the model's classes."""
    right, seen = 0, 0
    with torch.inference_mode():
        for start in range(0, len(images), batch_size):
            rows = range(start, min(start + batch_size, len(images)))
            if isinstance(images, ImageFiles):
                inputs = torch.stack([images[row][0] for row in rows])
            else:
                inputs = images.inputs[start : rows.stop]
            logits = model(inputs.to(device))
            known = images.classes if isinstance(images.classes, int) else len(images.classes)
            if logits.ndim != 2 or logits.shape[1] != known:
                return None
            right += int((logits.argmax(dim=1).cpu() == images.labels[start : rows.stop]).sum())
            seen += len(rows)
    return right / seen


def _plain_preprocessing(images: ImageFiles) -> Record:
    """How files become pixels, enough to tell whether two records are of the same images."""
    shown = vars(images.preprocessing)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in shown.items()}


def _digest(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def _more_noise_more_flips(records: PretrainedRecords, names: Sequence[str]) -> list[Expectation]:
    """That each network is more sensitive to the largest noise than to the smallest."""
    stds = sorted({records.settings.std, *records.settings.further})
    if len(stds) < 2:
        return []
    low, high = stds[0], stds[-1]

    def growth(record: PretrainedRecord) -> float:
        return record.measurement(high).value - record.measurement(low).value

    return [
        is_above(
            f"sensitivity of {name} to std {high:g} - to std {low:g}",
            over_seeds(records.where(model=name).by("seed", growth)),
            0.0,
        )
        for name in names
    ]


def _against_std(records: PretrainedRecords) -> Drawing:
    stds = sorted({records.settings.std, *records.settings.further})
    series = []
    for name in specs_by_name(records.settings.models):
        runs = [record for _, record in records.where(model=name)]
        values = [[record.measurement(std).value for record in runs] for std in stds]
        series.append(mean_and_range(name, stds, values))
    return Drawing(
        "against-std",
        figures.curves(series, x_label="std of the noise, in normalised pixels", y_label="sensitivity", log_x=True),
        f"Sensitivity to noise in one patch of {records.settings.patch} x {records.settings.patch} pixels against the "
        "std of the noise; the mean and the range over seeds of the noise.",
        "Curves of sensitivity against the standard deviation of the noise, one for each network.",
    )


def _positions(records: PretrainedRecords, name: str) -> Drawing:
    std = records.settings.std
    found = records.where(model=name).column(lambda record: record.measurement(std))
    return Drawing(
        f"positions-{name}",
        figures.profile_figure(_join(found, name)),
        f"Flip rate of {name} by the patch that is jostled, at std {std:g}; all images and seeds of the noise "
        "together.",
        f"A grid of patches, darker where noise changes the prediction of {name} more often.",
    )


def _join(measurements: Sequence[Measurement], name: str) -> Measurement:
    """One measurement with the profile of all seeds: for each position the mean over all its trials."""
    profiles = [m.profile for m in measurements]
    counts = sum(profile.counts for profile in profiles)
    totals = sum(np.nan_to_num(profile.values) * profile.counts for profile in profiles)
    with np.errstate(invalid="ignore", divide="ignore"):
        profile = replace(profiles[0], values=np.asarray(totals / counts), counts=np.asarray(counts))
    return replace(measurements[0], name=name, profile=profile)
