"""What a study of trained networks can choose: networks and their training, data, and noise."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from jostle import data
from jostle.data import Dataset
from jostle.studies.schema import IfGiven, OrEmpty, Struct
from jostle.studies.settings import Settings
from jostle.tokens import Patches, TokenView

Size = bool | int | float | str | tuple[int, ...]  # what ``jostle.models.create`` takes for one of its sizes
Sizes = dict[str, Size]

SELF_MADE, OFFICIAL = "self-made", "CIFAR-10-C"  # where corrupted images come from

# What may take the place of a token: a token of the training inputs, wherever it stands there; standard normal numbers;
# numbers that are uniform from -1 to 1, as pixels.
VOCABULARIES = FROM_DATA, NORMAL, UNIFORM = ("tokens of the data", "standard normal tokens", "uniform tokens")


@dataclass(frozen=True, kw_only=True)
class PenaltyTerm(Struct):
    """A network is trained on (1 - strength) * loss + strength * the squared change under noise in one patch.

    Arguments:
        strength: in [0, 1].
        std: of the noise.
    """

    strength: float
    std: float = 1.0


@dataclass(frozen=True, kw_only=True)
class NoisyImages(Struct):
    """A network is trained on images with noise of this std all over."""

    std: float


@dataclass(frozen=True, kw_only=True)
class Network(Struct):
    """An architecture of ``jostle.models`` and how it is trained.

    >>> Network.of("mlp", 0.1, hidden=(16,)).with_penalty(0.5).penalty
    PenaltyTerm(strength=0.5, std=1.0)

    Arguments:
        model: a name of ``jostle.models``.
        sizes: of the model.
        lr, optimizer, schedule: as in ``jostle.training.fit``.
        max_epochs: instead of the study's.
        penalty: a term of the loss that lowers sensitivity.
        augment: noise on the training images.
        frozen: names of modules that keep the weights they were drawn with.
        weight_decay: as in ``jostle.training.fit``; None for none.
    """

    model: str
    sizes: Sizes
    lr: float
    optimizer: str = "sgd"
    schedule: str = "constant"
    max_epochs: int | None = None
    penalty: IfGiven[PenaltyTerm | None] = None
    augment: IfGiven[NoisyImages | None] = None
    frozen: IfGiven[tuple[str, ...]] = ()
    weight_decay: IfGiven[float | None] = None

    @classmethod
    def of(cls, model: str, lr: float, /, **sizes: Size) -> "Network":
        """The network with these sizes, trained by SGD at a constant learning rate."""
        return cls(model=model, sizes=sizes, lr=lr)

    def with_sizes(self, **sizes: Size) -> "Network":
        """The same network with some sizes replaced."""
        return replace(self, sizes={**self.sizes, **sizes})

    def with_penalty(self, strength: float, std: float = 1.0) -> "Network":
        """The same network trained with a penalty on its sensitivity."""
        return replace(self, penalty=PenaltyTerm(strength=strength, std=std))

    def with_noise(self, std: float) -> "Network":
        """The same network trained on images with noise of this std all over."""
        return replace(self, augment=NoisyImages(std=std))

    def with_frozen(self, *modules: str) -> "Network":
        """The same network of which these modules keep the weights they were drawn with."""
        return replace(self, frozen=modules)


Networks = dict[str, Network]


@dataclass(frozen=True)
class Noise(Struct):
    """Noise in one token, to which sensitivity is measured.

    Arguments:
        std: of Gaussian noise.
        tokens: a spec of tokens; empty for the study's own.
        perturbation: a spec of what is done to the token instead; then ``std`` is only a label.
        replaced_by: one of ``VOCABULARIES``, from which a token is drawn that takes the place of the present one, as in
            paper 1's Def. 4.1; then nothing is added, and ``std`` is only a label.
    """

    std: float
    tokens: str = ""
    perturbation: IfGiven[str] = ""
    replaced_by: IfGiven[str] = ""


def at_variances(*variances: float) -> dict[str, Noise]:
    """Noise of these variances in the study's own tokens, by name."""
    return {f"variance {variance:g}": Noise(variance**0.5) for variance in variances}


@dataclass(frozen=True, kw_only=True)
class CorruptedImages(Struct):
    """Corrupted images on which accuracy is measured.

    Arguments:
        names: of corruptions.
        severities: of each corruption.
        images: the number of unseen images on the way; five times as many at the end.
        source: ``SELF_MADE`` or ``OFFICIAL``.
    """

    names: tuple[str, ...]
    severities: tuple[int, ...] = (1, 2)
    images: int = 200
    source: str = SELF_MADE


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Settings):
    """Data, training and noise of a study of trained networks: of images, unless a subclass reads other inputs.

    Arguments:
        networks: by name.
        dataset: a name of ``jostle.data``.
        relabel: a new label for each class, e.g. 0 and 1 for a binary task; empty for the classes as they are.
        limit, test_limit: the number of training and unseen images; None for all.
        batch_size, max_epochs: of training.
        target_accuracy: training ends as soon as this share of the training images is classified right, so that
            networks are compared at matched accuracy; None to go on to ``max_epochs``.
        patch: height and width of the token.
        std: of the Gaussian noise; pixels lie in [-1, 1].
        passes: most forward passes for one number on the way; five times as many at the end.
        over_training: whether there are numbers on the way, or at the end only.
        milestones: training accuracies; where one is first reached, there is a number too.
        final: further measurements of the trained network, by name.
        corrupted: accuracy on corrupted images on the way and at the end; None for no such images.
        predictions: whether the share of the class that is predicted most is recorded on the way and at the end: a
            network that answers almost always the same is insensitive for a dull reason.
        replaced_by: as in ``Noise``: what takes the place of a token on the way and at the end, instead of Gaussian
            noise of ``std``.
        data_by_seed: whether the seed also draws which ``limit`` training inputs a network sees, so that the spread
            over seeds includes that of the data. Without it all seeds have the same training inputs.
        evaluate_every: epochs from one evaluation on all training inputs to the next, each with numbers on the way;
            None for an evaluation after every epoch and numbers after some.
    """

    networks: Networks = field(default_factory=dict)
    dataset: str = "mnist-5000"
    relabel: tuple[int, ...] = ()
    limit: int | None = None
    test_limit: int | None = None
    batch_size: int = 100
    max_epochs: int = 2
    target_accuracy: float | None = 1.0
    patch: int = 4
    std: float = 1.0
    passes: int = 4000
    over_training: bool = True
    milestones: tuple[float, ...] = (0.9, 0.95, 0.97, 0.99)
    final: dict[str, Noise] = field(default_factory=dict)
    corrupted: OrEmpty[CorruptedImages] = None
    predictions: IfGiven[bool | None] = None
    replaced_by: IfGiven[str] = ""
    data_by_seed: IfGiven[bool | None] = None
    evaluate_every: IfGiven[int | None] = None

    def load(self, split: str, folder: Path | None, seed: int) -> Dataset:
        """The training inputs of a seed, which are jostled too, or the unseen inputs, which all seeds share."""
        limit = self.limit if split == "train" else self.test_limit
        chosen = seed if self.data_by_seed and split == "train" else None
        images = data.load(self.dataset, split, limit, seed=chosen, folder=folder, progress=False)
        if not self.relabel:
            return images
        return images.relabelled(list(self.relabel), f"{self.dataset}, relabelled")

    @property
    def tokens(self) -> TokenView:
        """The tokens, where a measurement does not name others."""
        return Patches(self.patch)

    @property
    def noise(self) -> Noise:
        """What is done to a token on the way and at the end, where a measurement does not name something else."""
        return Noise(self.std, replaced_by=self.replaced_by)

    @property
    def averaging(self) -> str:
        """What sensitivity is the mean over: ``macro``, over inputs, or ``micro``, over all their tokens."""
        return "macro"
