"""Our own question: is it attention that makes vision transformers insensitive to noise in a patch?"""

import math
from dataclasses import replace

from jostle import figures
from jostle.studies.catalogue import register
from jostle.studies.evidence import paired
from jostle.studies.study import Drawing
from jostle.studies.verdict import Expectation, beyond, is_above, is_less, within
from jostle_papers.trained import (
    BySeed,
    Network,
    Networks,
    Sizes,
    TrainedRecords,
    TrainingSettings,
    TrainingStudy,
    against_variance,
    at_end,
    at_matched_accuracy,
    at_variances,
    final_value,
    mean_and_range,
)

SOFTMAX, UNIFORM, MIXER = "softmax attention", "uniform attention", "mlp-mixer"
TOKENWISE = (SOFTMAX, UNIFORM, MIXER)  # with norms and without
OTHER_MIXING = (UNIFORM, MIXER, "vision-ssm")
WITHOUT_TOKENS = ("convmixer", "cnn", "mlp")
LEAST, MOST = "variance 1", "variance 15"
ALIKE = 0.01  # a difference of sensitivities that does not matter
_STD = 5**0.5
_RATE = 1e-3


def without_norms(name: str) -> str:
    """The name of the variant of a network that has no LayerNorm."""
    return f"{name}, no norms"


def networks(*, dim: int, depth: int, heads: int, mlp_dim: int, hidden: tuple[int, ...], width: int) -> Networks:
    """All networks of the study: tokens mixed in five ways, in three of them without norms too, and three others.

    Arguments:
        dim, depth, heads, mlp_dim: of the networks that cut an image into patches.
        hidden: widths of the MLP.
        width: channels of the CNN, whose hidden layer has eight times as many numbers.
    """
    image: Sizes = {"image_size": 28, "channels": 1, "classes": 10}
    patches: Sizes = image | {"patch_size": 4, "dim": dim, "depth": depth}
    vit = Network.of("vit-simple", _RATE, **patches, heads=heads, dim_head=dim // heads, mlp_dim=mlp_dim)
    mixer = Network.of("mlp-mixer", _RATE, **patches, tokens_dim=dim, mlp_dim=mlp_dim)
    made = {f"{kind} attention": vit.with_sizes(attention=kind) for kind in ("softmax", "uniform", "relu")}
    made |= {
        MIXER: mixer,
        "vision-ssm": Network.of("vision-ssm", _RATE, **patches, expand=1, state=4),
        without_norms(SOFTMAX): vit.with_sizes(norm="none"),
        without_norms(UNIFORM): vit.with_sizes(attention="uniform", norm="none"),
        without_norms(MIXER): mixer.with_sizes(norm="none"),
        "convmixer": Network.of("convmixer", _RATE, **patches, kernel_size=5),
        "cnn": Network.of("cnn", _RATE, **image, width=width, hidden=8 * width),
        "mlp": Network.of("mlp", _RATE, **image, hidden=hidden),
    }
    return {name: replace(network, optimizer="adam") for name, network in made.items()}


@register
class Architectures(TrainingStudy):
    """Sensitivity of networks that differ in how they mix tokens, and in whether they normalise them."""

    name = "jostle/architectures"
    title = "Fashion-MNIST: is it attention?"
    claim = (
        "Vision transformers are insensitive because of attention: with tokens that are averaged, or mixed by an MLP "
        "or a recurrence, a network that is otherwise alike is more sensitive at the same training accuracy."
    )
    source = "our own question, after Section 5 of 2403.06925"
    version = 1
    scales = {
        "smoke": TrainingSettings(
            seeds=1, networks=networks(dim=8, depth=1, heads=2, mlp_dim=8, hidden=(16,), width=2),
            limit=100, test_limit=50, batch_size=20, max_epochs=2, std=_STD, passes=200, over_training=False,
            final=at_variances(1.0, 15.0),
        ),
        "small": TrainingSettings(
            networks=networks(dim=64, depth=2, heads=4, mlp_dim=128, hidden=(256, 256), width=16),
            dataset="fashion-mnist", limit=2_000, test_limit=2_000, batch_size=50, max_epochs=100, std=_STD,
            passes=4_000, over_training=False, final=at_variances(0.25, 1.0, 15.0, 50.0),
        ),
        "paper": TrainingSettings(
            seeds=5, networks=networks(dim=128, depth=4, heads=8, mlp_dim=512, hidden=(512, 512), width=32),
            dataset="fashion-mnist", max_epochs=100, std=_STD, passes=40_000, over_training=False,
            final=at_variances(0.25, 1.0, 15.0, 50.0),
        ),
    }  # fmt: skip
    deviations = (
        "All networks are trained by Adam at learning rate 1e-3, until every training image is classified right.",
        "Uniform attention gives every token the mean of all values: nothing depends on what tokens have to do with "
        "each other. Networks without norms have none on patches, in blocks or at the end.",
        "Small scale: 2,000 training images, batches of 50, and networks of two blocks of width 64.",
        "There is no paper's own size: paper scale has all images and networks twice as deep and wide.",
    )

    def figures(self, records: TrainedRecords) -> list[Drawing]:
        return [_by_network(records), against_variance(records)]

    def expectations(self, records: TrainedRecords) -> list[Expectation]:
        claimed = [_less(records, SOFTMAX, other) for other in OTHER_MIXING]
        normed = [_less(records, name, without_norms(name)) for name in TOKENWISE]
        others = [_less(records, name, other) for name in TOKENWISE for other in WITHOUT_TOKENS]
        close = [_close(records, SOFTMAX, other) for other in (*OTHER_MIXING, "relu attention")]
        further = [*close, *normed, *_growth(records), *others, *at_matched_accuracy(records, [])]
        return [*claimed, *map(beyond, further)]


def _less(records: TrainedRecords, first: str, second: str) -> Expectation:
    asked = is_less(f"sensitivity of {first} - of {second}", at_end(records, first), at_end(records, second))
    return _matched(records, asked, first, second)


def _close(records: TrainedRecords, first: str, second: str) -> Expectation:
    """Whether two networks are equally sensitive, up to ``ALIKE``."""
    apart = paired(at_end(records, first), at_end(records, second))
    return _matched(records, within(f"sensitivity of {first} - of {second}, in size", apart, 0.0, ALIKE), first, second)


def _matched(records: TrainedRecords, asked: Expectation, *names: str) -> Expectation:
    """The expectation, undecided if one of these networks did not reach the training accuracy that they must have."""
    return at_matched_accuracy(records, [asked], networks=names)[0]


def _growth(records: TrainedRecords) -> list[Expectation]:
    """Whether sensitivity grows less with the noise if tokens are normalised, which gives every token one length."""

    def doublings(name: str) -> BySeed:
        low, high = (final_value(records, name, final) for final in (LEAST, MOST))
        return {seed: math.log2(high[seed] / low[seed]) if low[seed] * high[seed] else math.nan for seed in low}

    found = []
    for name in TOKENWISE:
        bare = without_norms(name)
        statement = f"doublings of sensitivity from {LEAST} to {MOST}, {bare} - with norms"
        asked = is_above(statement, paired(doublings(bare), doublings(name)), 0.0)
        found.append(_matched(records, asked, name, bare))
    return found


def _by_network(records: TrainedRecords) -> Drawing:
    rows = {
        name: [mean_and_range("sensitivity", [0.0], [list(at_end(records, name).values())])]
        for name in records.settings.networks
    }
    return Drawing(
        "by-network",
        figures.dots(rows, x_label="sensitivity", log_x=True),
        f"Sensitivity of the trained networks to noise of variance {records.settings.std**2:g} in one patch of 4 x 4 "
        "pixels; the mean and the range over seeds.",
        "One point with a range for each network.",
    )
