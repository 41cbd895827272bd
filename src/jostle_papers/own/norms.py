"""Our own question: is it the norms, and not attention, that make transformers insensitive to strong noise in a token?

A norm keeps the direction of a token and drops its length. A token t with noise e, of a variance that is s^2 times the
token's, keeps of its direction the cosine 1 / sqrt(1 + s^2): however strong the noise, what comes out of the norm has
moved by at most sqrt(2) times its length. So sensitivity must stop growing with the noise, whatever mixes the tokens.
Without a norm the same noise moves the token by s, without end.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from jostle import figures
from jostle.figures import Series
from jostle.models.text_model import TextModel
from jostle.models.vit import SimpleVisionTransformer, cut_patches
from jostle.studies.catalogue import register
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_smaller, is_within_factor
from jostle_papers.language import TextTrainingSettings
from jostle_papers.trained import (
    BySeed,
    Network,
    NetworkCell,
    Networks,
    NetworkStudy,
    Noise,
    Size,
    Sizes,
    TrainedRecord,
    TrainingCell,
    TrainingSettings,
    at_variances,
    follow,
    mean_and_range,
)
from jostle_papers.trained.records import smoothed

SOFTMAX, UNIFORM = "softmax attention", "uniform attention"
IMAGE_MIXINGS = (SOFTMAX, UNIFORM, "relu attention", "linear attention", "mlp-mixer", "state-space")
TEXT_MIXINGS = (SOFTMAX, UNIFORM, "relu attention", "linear attention", "state-space")
LAYER, NONE = "LayerNorm", "no norms"
NORMS: dict[str, Sizes] = {
    LAYER: {"norm": "layer", "norm_place": "everywhere"},
    NONE: {"norm": "none", "norm_place": "everywhere"},
    "RMSNorm": {"norm": "rms", "norm_place": "everywhere"},
    "DyT": {"norm": "dyt", "norm_place": "everywhere"},
    "LayerNorm on tokens only": {"norm": "layer", "norm_place": "tokens"},
    "LayerNorm in blocks only": {"norm": "layer", "norm_place": "blocks"},
}
VARIANCES = (0.05, 0.25, 1.0, 5.0, 25.0, 125.0)
WEAK, STRONGEST = VARIANCES[0], VARIANCES[-1]
ALIKE = 1.5  # a factor that does not matter
LEARNT = 0.99  # training accuracy
FRESH = 100  # added to the seed: sizes were chosen on seeds from 0 on
_TOKENS = 2_000  # inputs, at most, whose tokens the norm is asked about
_EPS = 1e-5  # of LayerNorm


def named(mixing: str, norms: str) -> str:
    """The name of the network that mixes tokens and normalises them in these ways."""
    return f"{mixing}, {norms}"


@dataclass(frozen=True, kw_only=True)
class NormsRecord(TrainedRecord):
    """A trained network, and what its first norm makes of the noise, by variance.

    Arguments:
        moved: how far the first norm lets a token move, the mean over tokens, in units of the root of its width; empty
            where tokens have no norm.
        predicted: the same of a LayerNorm without learned weights, by ``displacement``, from the tokens alone.
    """

    moved: dict[str, float] = field(default_factory=dict)
    predicted: dict[str, float] = field(default_factory=dict)


NormsRecords = Records[TrainingSettings, NetworkCell, NormsRecord]


def displacement(variances: Tensor, noise: Tensor | float) -> Tensor:
    """How far noise moves a token behind a LayerNorm, in units of the root of the width: (tokens,) -> (tokens,).

    A token of variance v becomes one of squared length v / (v + eps), with noise of variance n one of
    (v + n) / (v + n + eps), and the inner product of the two is v / sqrt((v + eps) (v + n + eps)) on average. Where v
    is far above eps this is sqrt(2 - 2 cos) with cos = 1 / sqrt(1 + s^2) and s^2 = n / v. A blank token, v = 0, has no
    direction to keep: it moves by 1, at the faintest noise.

    >>> displacement(torch.tensor([1.0, 0.0]), 3.0).round(decimals=2).tolist()
    [1.0, 1.0]

    Arguments:
        variances: of the numbers of each token.
        noise: its variance.
    """
    after = variances + noise
    inner = variances / ((variances + _EPS) * (after + _EPS)).sqrt()
    squared = variances / (variances + _EPS) + after / (after + _EPS) - 2 * inner
    return squared.clamp_min(0).sqrt()


def first_norm(model: nn.Module) -> nn.Module:
    """What stands where tokens are made, before any token meets another; ``nn.Identity`` if there is no norm."""
    if isinstance(model, TextModel):
        return model.embeddings.norm
    made = model.embed[0] if isinstance(model, SimpleVisionTransformer) else model.patch_norm
    assert isinstance(made, nn.Module)
    return made


def tokens_of(model: nn.Module, inputs: Tensor, patch: int) -> tuple[Tensor, Tensor]:
    """The tokens that enter the first norm, (tokens, dim), and the length that noise of variance 1 is measured in.

    Noise in a patch has the unit of pixels, for every token 1. Noise in a word has the unit of the word's own vector:
    the root mean square of its numbers, (tokens,).
    """
    if not isinstance(model, TextModel):
        patches = cut_patches(inputs, patch).flatten(0, 1)
        return patches, torch.ones(len(patches))
    real = inputs != model.pad
    words = model.embeddings.words(inputs)
    vectors = words
    if model.embeddings.positions is not None:
        vectors = words + model.embeddings.positions((real.cumsum(dim=1) - 1).clamp(min=0))
    return vectors[real], words[real].square().mean(dim=1).sqrt()


class _Norms(NetworkStudy[NormsRecord]):
    """Networks that differ in how they mix tokens and in how they normalise them, under noise from weak to strong."""

    mixings: ClassVar[Sequence[str]]
    claimed: ClassVar[Sequence[str]]  # the mixings of which the claim says that norms matter
    noise: ClassVar[str]  # what a variance is of, as the label of an axis
    at: ClassVar[float]  # the variance at which networks are compared
    start: ClassVar[float]  # the variance from which the growth of sensitivity is predicted, up to the strongest
    claimed_networks: ClassVar[tuple[str, ...]] = (named(SOFTMAX, LAYER), named(UNIFORM, LAYER))

    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> NormsRecord:
        trained = follow(settings.networks[cell.network], settings, FRESH + cell.seed, context)
        norm = first_norm(trained.model)
        moved, predicted = {}, {}
        with torch.no_grad():
            tokens, units = tokens_of(trained.model, trained.seen.inputs[:_TOKENS], settings.patch)
            noise = torch.randn(tokens.shape, generator=torch.Generator().manual_seed(cell.seed))
            for variance in VARIANCES:
                noisy = tokens + variance**0.5 * units[:, None] * noise
                far = (norm(noisy) - norm(tokens)).square().mean(dim=1).sqrt()
                moved[_label(variance)] = float(far.mean())
                form = displacement(tokens.double().var(dim=1, correction=0), variance * units.double() ** 2)
                predicted[_label(variance)] = float(form.mean())
        has_norm = not isinstance(norm, nn.Identity)
        return NormsRecord(**vars(trained.record), moved=moved if has_norm else {}, predicted=predicted)

    def figures(self, records: NormsRecords) -> list[Drawing]:
        return [
            _by_norms(records, self.mixings, self.noise),
            _by_network(records, self.mixings, self.at),
            _saturation(records, self.noise),
            _by_growth(records, self.mixings, self.start),
        ]

    def expectations(self, records: NormsRecords) -> list[Expectation]:
        others = self.mixings[2:]
        claimed = [self._alike(records, (SOFTMAX, LAYER), (UNIFORM, LAYER))]
        claimed += [self._less(records, (mixing, LAYER), (mixing, NONE)) for mixing in self.claimed]
        claimed += [self._as_predicted(records, mixing, LAYER) for mixing in (SOFTMAX, UNIFORM)]
        unclaimed = [mixing for mixing in self.mixings if mixing not in self.claimed]
        further = [self._less(records, (mixing, LAYER), (mixing, NONE)) for mixing in unclaimed]
        further += [self._alike(records, (SOFTMAX, LAYER), (mixing, LAYER)) for mixing in others]
        further += [self._as_predicted(records, mixing, LAYER) for mixing in others]
        further += [self._as_predicted(records, mixing, NONE) for mixing in (SOFTMAX, UNIFORM)]
        further += [self._as_moved(records, SOFTMAX, norms) for norms in ("RMSNorm", "DyT", NONE)]
        for norms in NORMS:
            if norms not in (LAYER, NONE):
                further += [self._less(records, (mixing, norms), (mixing, NONE)) for mixing in (SOFTMAX, UNIFORM)]
                further.append(self._alike(records, (SOFTMAX, norms), (SOFTMAX, LAYER)))
        further += [_less(records, (mixing, NONE), (mixing, LAYER), WEAK, 1.0) for mixing in (SOFTMAX, UNIFORM)]
        short = sum(record.train_accuracy < LEARNT for _, record in records)
        learnt = f"every network has {LEARNT:.0%} of its training inputs right; the others are left out"
        further.append(holds_for_all(learnt, short, len(records)))
        return [*claimed, *map(beyond, further)]

    def _less(self, records: NormsRecords, first: tuple[str, str], second: tuple[str, str]) -> Expectation:
        return _less(records, first, second, self.at, 1 / ALIKE)

    def _alike(self, records: NormsRecords, first: tuple[str, str], second: tuple[str, str]) -> Expectation:
        return is_within_factor(*_compared(records, first, second, self.at), factor=ALIKE)

    def _as_predicted(self, records: NormsRecords, mixing: str, norms: str) -> Expectation:
        """Whether sensitivity grows with the noise as a LayerNorm lets a token move; refuted outside the factor."""
        name, start = named(mixing, norms), self.start
        moved = f"{_label(start)} to {STRONGEST:g} / of the distance that a LayerNorm lets a token move"
        statement = f"growth of sensitivity from {moved}, {name}"
        found, expected = growth(records, name, start), predicted_growth(records, name, start)
        return is_within_factor(statement, found, expected, factor=ALIKE)

    def _as_moved(self, records: NormsRecords, mixing: str, norms: str) -> Expectation:
        """The same with the distance behind the network's own first norm, or of the noise itself if it has none."""
        name, start = named(mixing, norms), self.start
        moved = f"{_label(start)} to {STRONGEST:g} / of the distance that its own tokens move"
        found, expected = growth(records, name, start), own_growth(records, name, start)
        return is_within_factor(f"growth of sensitivity from {moved}, {name}", found, expected, factor=ALIKE)


def _label(variance: float) -> str:
    return f"variance {variance:g}"


def _learnt(records: NormsRecords, name: str) -> NormsRecords:
    """The records of one network, of the seeds from which it learnt; at smoke scale, where none does, of all."""
    least = 0.0 if records.scale == "smoke" else LEARNT
    return records.where(network=name).keep(lambda _, record: record.train_accuracy >= least)


def level(records: NormsRecords, name: str, variance: float) -> BySeed:
    """Sensitivity at noise of this variance by seed, above 0, of the seeds from which the network learnt."""
    return _learnt(records, name).by("seed", lambda record: smoothed(record.final[_label(variance)]))


def growth(records: NormsRecords, name: str, start: float) -> BySeed:
    """Sensitivity at the strongest noise over that at another variance, by seed."""
    low, high = (level(records, name, variance) for variance in (start, STRONGEST))
    return {seed: high[seed] / low[seed] for seed in low}


def predicted_growth(records: NormsRecords, name: str, start: float) -> BySeed:
    """The same of the distance that a LayerNorm lets a token move, from the tokens alone."""
    part = _learnt(records, name)
    return part.by("seed", lambda record: record.predicted[_label(STRONGEST)] / record.predicted[_label(start)])


def own_growth(records: NormsRecords, name: str, start: float) -> BySeed:
    """The same behind the network's own first norm; where tokens have none, they move by the noise itself."""

    def grown(record: NormsRecord) -> float:
        if not record.moved:
            return math.sqrt(STRONGEST / start)
        return record.moved[_label(STRONGEST)] / record.moved[_label(start)]

    return _learnt(records, name).by("seed", grown)


def _compared(
    records: NormsRecords, first: tuple[str, str], second: tuple[str, str], variance: float
) -> tuple[str, BySeed, BySeed]:
    """What is compared, in words and by seed."""
    statement = f"sensitivity of {named(*first)} / of {named(*second)}, {_label(variance)}"
    return statement, level(records, named(*first), variance), level(records, named(*second), variance)


def _less(
    records: NormsRecords, first: tuple[str, str], second: tuple[str, str], variance: float, factor: float
) -> Expectation:
    return is_smaller(*_compared(records, first, second, variance), factor=factor)


def _mean_level(records: NormsRecords, name: str, variance: float) -> float:
    """The geometric mean over seeds; NaN if the network learnt from none."""
    found = level(records, name, variance).values()
    return math.exp(sum(map(math.log, found)) / len(found)) if found else math.nan


def _by_norms(records: NormsRecords, mixings: Sequence[str], noise: str) -> Drawing:
    """Sensitivity over the noise, a line for each kind of norms with all ways of mixing in its band."""
    series = []
    for norms in NORMS:
        found = [
            [
                value
                for mixing in mixings
                if math.isfinite(value := _mean_level(records, named(mixing, norms), variance))
            ]
            for variance in VARIANCES
        ]
        if all(found):
            means = [math.exp(sum(map(math.log, values)) / len(values)) for values in found]
            series.append(Series(norms, list(VARIANCES), means, list(map(min, found)), list(map(max, found))))
    return Drawing(
        "by-norms",
        figures.curves(series, x_label=noise, y_label="sensitivity", log_x=True, log_y=True),
        "Sensitivity against the strength of the noise in one token. Each line is the mean of networks that mix tokens "
        f"in {len(mixings)} ways ({', '.join(mixings)}); its band goes from the least to the most sensitive of them.",
        "Without norms sensitivity grows with the noise; with norms it is flat, whatever mixes the tokens.",
    )


def _by_network(records: NormsRecords, mixings: Sequence[str], at: float) -> Drawing:
    """Every network at one strength of the noise."""
    rows = {}
    for mixing in mixings:
        values = {norms: list(level(records, named(mixing, norms), at).values()) for norms in NORMS}
        rows[mixing] = [mean_and_range(norms, [0.0], [found]) for norms, found in values.items() if found]
    return Drawing(
        "by-network",
        figures.dots({mixing: row for mixing, row in rows.items() if row}, x_label="sensitivity", log_x=True),
        f"Sensitivity of the trained networks to noise of {_label(at)}; the mean and the range over seeds.",
        "A row for each way to mix tokens, with a point for each kind of norms.",
    )


def _saturation(records: NormsRecords, noise: str) -> Drawing:
    """How far the curve of a network has come, against the curve that a LayerNorm predicts."""
    predicted = records.where(network=named(SOFTMAX, LAYER)).column(lambda record: record.predicted)
    expected = [[one[_label(variance)] / one[_label(STRONGEST)] for one in predicted] for variance in VARIANCES]
    series = [mean_and_range("predicted from the tokens alone", list(VARIANCES), expected)]
    shown = [(LAYER, SOFTMAX), (LAYER, UNIFORM), ("DyT", SOFTMAX), (NONE, SOFTMAX), (NONE, UNIFORM)]
    for norms, mixing in shown:
        by_variance = [level(records, named(mixing, norms), variance) for variance in VARIANCES]
        if by_variance[-1]:
            shares = [[found[seed] / by_variance[-1][seed] for seed in found] for found in by_variance]
            series.append(mean_and_range(f"{norms}, {mixing.split()[0]}", list(VARIANCES), shares))
    return Drawing(
        "saturation",
        figures.curves(series, x_label=noise, y_label="share of the value at the strongest noise", log_x=True),
        "Sensitivity as a share of its value at the strongest noise, and the same of the distance by which a LayerNorm "
        "lets a token move, sqrt(2 - 2 cos) with cos = 1 / sqrt(1 + s^2), which is computed without any network; the "
        "mean and the range over seeds.",
        "Curves that flatten for networks with norms as predicted, and one that does not for networks without.",
    )


def _by_growth(records: NormsRecords, mixings: Sequence[str], start: float) -> Drawing:
    """A point for each network whose tokens have a norm or none at all: growth of the distance, and of sensitivity."""
    groups = {}
    for norms, sizes in NORMS.items():
        if sizes["norm_place"] == "blocks":
            continue  # its first norm sees the patch only through a linear map
        names = [named(mixing, norms) for mixing in mixings]
        pairs = [(own_growth(records, name, start), growth(records, name, start)) for name in names]
        means = [[sum(side.values()) / len(side) for side in pair] for pair in pairs if pair[0]]
        if means:
            groups[norms] = ([x for x, _ in means], [y for _, y in means])
    ends = [1.0, math.sqrt(STRONGEST / start)]
    return Drawing(
        "by-growth",
        figures.scatter(
            groups,
            x_label=f"growth of the distance that a token moves, {_label(start)} to {STRONGEST:g}",
            y_label="growth of sensitivity",
            log_x=True,
            log_y=True,
            lines={"equal": (ends, ends)},
        ),
        f"Growth of sensitivity from {_label(start)} to {STRONGEST:g} against that of the distance by which noise "
        "moves a token behind the network's first norm; without norms, by the noise itself. A point is one way to mix "
        "tokens, the mean over seeds.",
        "Points along the line of equal growth: LayerNorm grows least, no norms most.",
    )


def _networks(mixings: Sequence[str], base: Callable[[str], Network]) -> Networks:
    """All networks: every mixing with every kind of norms."""
    return {
        named(mixing, norms): replace(base(mixing).with_sizes(**sizes), optimizer="adam")
        for mixing in mixings
        for norms, sizes in NORMS.items()
    }


def image_networks(*, patch: int, dim: int, depth: int, heads: int, lr: float) -> Networks:
    """Networks of images of 28 x 28 pixels.

    Arguments:
        patch: height and width of a patch.
        dim, depth: width of a token, and number of blocks.
        heads: of attention.
        lr: the learning rate.
    """
    common: dict[str, Size] = {"image_size": 28, "channels": 1, "classes": 10, "patch_size": patch, "dim": dim}

    def base(mixing: str) -> Network:
        if mixing == "mlp-mixer":
            return Network.of("mlp-mixer", lr, **common, depth=depth, tokens_dim=dim, mlp_dim=2 * dim)
        if mixing == "state-space":
            return Network.of("vision-ssm", lr, **common, depth=depth, expand=1, state=4, directions="forward")
        return Network.of(
            "vit-simple", lr, **common, depth=depth, heads=heads, dim_head=dim // heads, mlp_dim=2 * dim,
            attention=mixing.removesuffix(" attention"),
        )  # fmt: skip

    return _networks(IMAGE_MIXINGS, base)


def text_networks(*, vocabulary: int, max_length: int, dim: int, depth: int, heads: int, lr: float) -> Networks:
    """Networks of texts.

    Arguments:
        vocabulary, max_length: of the token ids.
        dim, depth: width of a token, and number of blocks.
        heads: of attention.
        lr: the learning rate.
    """
    common: dict[str, Size] = {"vocabulary": vocabulary, "classes": 2, "max_length": max_length, "dropout": 0.0}

    def base(mixing: str) -> Network:
        if mixing == "state-space":
            return Network.of("text-ssm", lr, **common, dim=dim, depth=depth, expand=1, state=4)
        kind = mixing.removesuffix(" attention")
        own: dict[str, Size] = {"normalise": True} if kind == "relu" else {}
        return Network.of(
            "text-encoder", lr, **common, dim=dim, depth=depth, heads=heads, mlp_dim=2 * dim, attention=kind, **own
        )

    return _networks(TEXT_MIXINGS, base)


_COMMON_DEVIATIONS = (
    f"All networks are trained by Adam at one learning rate until every training image, or {LEARNT:.0%} of the texts, "
    f"is right; one that ends with less than {LEARNT:.0%} is counted and left out.",
    "The seed chooses the training inputs as well as weights, order and noise. Sizes, learning rate and the strengths "
    f"of the noise were chosen on seeds 0 and 1, with a look at sensitivities; {FRESH} is added to each seed here.",
    "Uniform attention gives every token the mean of all values: nothing depends on what tokens have to do with each "
    "other. RMSNorm divides by the root mean square and keeps the mean; DyT is tanh(alpha x) in place of each norm.",
    "The prediction takes sensitivity to be in proportion to the distance that a LayerNorm lets a token move, "
    "sqrt(2 - 2 cos), the mean over tokens. It has no free number. It is refuted where the interval of the ratio of "
    f"the two growths lies outside a factor of {ALIKE:g}.",
    f"Every network has {NetworkStudy.complete_seeds} seeds. Further ones are only for softmax and uniform attention "
    "with LayerNorm, and for texts also without norms, since that these are alike needs most seeds. So it was chosen "
    f"after a look at {NetworkStudy.complete_seeds}, which counts as a look.",
    "The comparison with the distance behind a network's own norm was added after the first seed of images was seen; "
    "it is beyond the claim.",
)


@register
class NormsStudy(_Norms):
    """Images: six ways to mix tokens, six kinds of norms, six strengths of noise."""

    name = "jostle/norms"
    title = "Why: norms, not attention (images)"
    claim = (
        "On Fashion-MNIST, with networks of two blocks, norms and not attention decide the sensitivity to strong noise "
        "in a patch: with LayerNorm, softmax attention is as sensitive as a plain mean over tokens, within a factor of "
        "1.5; without norms each of six ways to mix tokens is more than 1.5 times as sensitive; and with LayerNorm "
        "sensitivity grows from variance 1 to 125 as the cosine 1 / sqrt(1 + s^2) says, within a factor of 1.5."
    )
    source = "our own question, after Section 5 of 2403.06925"
    version = 1
    mixings = claimed = IMAGE_MIXINGS
    noise = "variance of the noise (pixels lie in [-1, 1])"
    at, start = 5.0, 1.0
    scales = {
        "smoke": TrainingSettings(
            seeds=1, networks=image_networks(patch=14, dim=8, depth=1, heads=2, lr=4e-3), limit=50, test_limit=50,
            batch_size=25, max_epochs=1, patch=14, std=5**0.5, passes=20, over_training=False,
            data_by_seed=True, final=at_variances(*VARIANCES),
        ),
        "small": TrainingSettings(
            networks=image_networks(patch=7, dim=32, depth=2, heads=4, lr=4e-3), dataset="fashion-mnist", limit=400,
            test_limit=1_000, batch_size=50, max_epochs=200, patch=7, std=5**0.5, passes=800, over_training=False,
            data_by_seed=True, final=at_variances(*VARIANCES),
        ),
        "paper": TrainingSettings(
            seeds=10, networks=image_networks(patch=4, dim=128, depth=4, heads=8, lr=1e-3), dataset="fashion-mnist",
            max_epochs=100, patch=4, std=5**0.5, passes=40_000, over_training=False,
            data_by_seed=True, final=at_variances(*VARIANCES),
        ),
    }  # fmt: skip
    deviations = (
        *_COMMON_DEVIATIONS,
        "Small scale: 400 images in batches of 50, 16 patches of 7 x 7 pixels, two blocks of width 32, at most 200 "
        "epochs. There is no paper's own size: paper scale has all images, and networks that are deeper and wider.",
    )


def _relative_noise(variance: float) -> Noise:
    """Noise in a word vector, before positions and norm; its squared length is ``variance`` times the vector's own."""
    radius = variance**0.5
    return Noise(radius, "embeddings:before", f"sphere:radius={radius!r},relative=true")


@register
class NormsTextStudy(_Norms):
    """Texts: five ways to mix tokens, six kinds of norms, six strengths of noise."""

    name = "jostle/norms-texts"
    title = "Why: norms, not attention (texts)"
    claim = (
        "On short movie reviews, with networks of two blocks, norms and not attention decide the sensitivity to noise "
        "of 125 times a word vector's own variance: with LayerNorm, softmax attention is as sensitive as a plain mean "
        "over tokens, within a factor of 1.5; without norms both are more than 1.5 times as sensitive; and with "
        "LayerNorm sensitivity has stopped growing from variance 25 on, as the cosine 1 / sqrt(1 + s^2) says, within a "
        "factor of 1.5."
    )
    source = "our own question, after Section 6 of 2403.06925"
    version = 1
    mixings, claimed = TEXT_MIXINGS, (SOFTMAX, UNIFORM)
    claimed_networks = tuple(named(mixing, norms) for norms in (LAYER, NONE) for mixing in (SOFTMAX, UNIFORM))
    noise = "variance of the noise, in units of the word vector's own"
    at, start = 125.0, 25.0
    scales = {
        "smoke": TextTrainingSettings(
            seeds=1, networks=text_networks(vocabulary=300, max_length=8, dim=8, depth=1, heads=2, lr=4e-3), limit=50,
            test_limit=50, batch_size=25, max_epochs=1, vocabulary=300, max_length=8, passes=20, over_training=False,
            data_by_seed=True, final={_label(variance): _relative_noise(variance) for variance in VARIANCES},
        ),
        "small": TextTrainingSettings(
            networks=text_networks(vocabulary=1_000, max_length=12, dim=32, depth=2, heads=4, lr=4e-3), limit=400,
            test_limit=1_000, batch_size=50, max_epochs=200, target_accuracy=LEARNT, vocabulary=1_000, max_length=12,
            std=15**0.5, passes=800, over_training=False,
            data_by_seed=True, final={_label(variance): _relative_noise(variance) for variance in VARIANCES},
        ),
        "paper": TextTrainingSettings(
            seeds=10, networks=text_networks(vocabulary=8_000, max_length=128, dim=256, depth=4, heads=8, lr=1e-4),
            batch_size=32, max_epochs=40, target_accuracy=LEARNT, vocabulary=8_000, max_length=128,
            std=15**0.5, passes=8_000, over_training=False,
            data_by_seed=True, final={_label(variance): _relative_noise(variance) for variance in VARIANCES},
        ),
    }  # fmt: skip
    deviations = (
        *_COMMON_DEVIATIONS,
        "Noise is added to the word vector, before positions and norm, and in units of that vector's own length: word "
        "vectors of networks without norms have lengths of their own. The record's first number is paper 1's noise, of "
        "variance 15 after the norm, in which networks with and without norms cannot be compared.",
        "The other ways to mix tokens were moved beyond the claim after the first seed, from which ReLU attention "
        "without norms did not learn.",
        "Encoders of texts have their norms behind the attention and the MLP of a block, the others before them.",
        "Small scale: 400 reviews, cut after 12 tokens, 1,000 pieces of words, two blocks of width 32, no dropout.",
    )
