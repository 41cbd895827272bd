"""What a study of trained networks can choose: networks, data, training and noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle import data
from jostle.data import Dataset
from jostle.studies.settings import Settings
from jostle.tokens import Patches, TokenView

Network = Mapping[str, Any]  # what network() returns: plain, so that settings can be written down
Noise = Mapping[str, Any]  # what noise() returns

SELF_MADE, OFFICIAL = "self-made", "CIFAR-10-C"  # where corrupted images come from


def network(
    model: str,
    lr: float,
    optimizer: str = "sgd",
    schedule: str = "constant",
    max_epochs: int | None = None,
    **sizes: Any,
) -> dict[str, Any]:
    """An architecture of ``jostle.models`` and how it is trained; ``max_epochs`` where the study's are too few."""
    training = {"lr": lr, "optimizer": optimizer, "schedule": schedule, "max_epochs": max_epochs}
    return {"model": model, "sizes": sizes, **training}


def penalised(chosen: Network, strength: float, std: float = 1.0, **changes: Any) -> dict[str, Any]:
    """The same network trained on (1 - strength) * loss + strength * the squared change under noise in one patch."""
    return {**chosen, **changes, "penalty": {"strength": strength, "std": std}}


def augmented(chosen: Network, std: float, **changes: Any) -> dict[str, Any]:
    """The same network trained on images with noise of this std all over."""
    return {**chosen, **changes, "augment": {"std": std}}


def partly_trained(chosen: Network, *frozen: str) -> dict[str, Any]:
    """The same network of which the modules ``frozen`` keep the weights they were drawn with."""
    return {**chosen, "frozen": list(frozen)}


def noise(std: float, tokens: str = "", perturbation: str = "") -> dict[str, Any]:
    """Gaussian noise of this std in one token; the study's own tokens unless ``tokens`` is another spec.

    With ``perturbation``, another spec, that is done to the token instead; ``std`` only labels it then.
    """
    return {"std": std, "tokens": tokens, **({"perturbation": perturbation} if perturbation else {})}


def corrupted(
    names: Sequence[str], severities: Sequence[int] = (1, 2), images: int = 200, source: str = SELF_MADE
) -> dict[str, Any]:
    """Accuracy on corrupted images: which corruptions, how severe, of how many unseen images, made by whom."""
    return {"names": list(names), "severities": list(severities), "images": images, "source": source}


def at_variances(*variances: float) -> dict[str, dict[str, Any]]:
    """Noise of these variances in the study's own patches, by name."""
    return {f"variance {variance:g}": noise(variance**0.5) for variance in variances}


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    """Data, training and noise of a study of trained networks: of images, unless a subclass reads other inputs.

    Arguments:
        networks: by name, each made by ``network``.
        dataset: a name of ``jostle.data``.
        relabel: a new label for each class, e.g. 0 and 1 for a binary task; empty for the classes as they are.
        limit, test_limit: how many training and unseen images; None for all.
        batch_size, max_epochs: of training.
        target_accuracy: training ends as soon as this share of the training images is classified right, so that
            networks are compared at matched accuracy; None to go on to ``max_epochs``.
        patch: height and width of the token.
        std: of the Gaussian noise; pixels lie in [-1, 1].
        passes: most inputs a network is asked about for one number on the way; five times as many at the end.
        over_training: whether there are numbers on the way, or at the end only.
        milestones: training accuracies; where one is first reached, there is a number too.
        final: further measurements of the trained network by name, each made by ``noise``.
        corrupted: accuracy on corrupted images on the way and, with five times as many images, at the end; made by
            ``corrupted``, or empty for none.
    """

    networks: dict[str, dict[str, Any]] = field(default_factory=dict)
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
    final: dict[str, dict[str, Any]] = field(default_factory=dict)
    corrupted: dict[str, Any] = field(default_factory=dict)

    def load(self, split: str, folder: Path | None) -> Dataset:
        """The training inputs, which are also those that are jostled, or the unseen ones."""
        limit = self.limit if split == "train" else self.test_limit
        images = data.load(self.dataset, split, limit, folder=folder, progress=False)
        if not self.relabel:
            return images
        return images.relabelled(list(self.relabel), f"{self.dataset}, relabelled")

    @property
    def tokens(self) -> TokenView:
        """What a token is, where a measurement does not say."""
        return Patches(self.patch)

    @property
    def averaging(self) -> str:
        """What sensitivity is the mean over: ``macro``, over inputs, or ``micro``, over all their tokens."""
        return "macro"
