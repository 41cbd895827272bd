"""What is measured of a network on its way and at the end: questions, each with a key for its answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.model import device_of, eval_mode, logits_of
from jostle.corruptions import accuracy_under
from jostle.data import Dataset
from jostle.data.cifar_10_c import load_corrupted
from jostle.estimates import measure
from jostle.perturbations import GaussianNoise, Perturbation, UniformToken
from jostle.sampling import Until
from jostle.studies.schema import Struct
from jostle.studies.study import Context
from jostle.tokens import TokenView
from jostle.training import evaluate
from jostle.training.evaluation import predictions
from jostle_papers.trained.records import CorruptedAccuracy, PredictedShare, Sensitivity
from jostle_papers.trained.settings import (
    FROM_DATA,
    NORMAL,
    OFFICIAL,
    VOCABULARIES,
    CorruptedImages,
    Noise,
    TrainingSettings,
)

Answer = TypeVar("Answer", bound=Struct)

_AT_ONCE = 256  # inputs that a network is asked about
_DRAWN = 10_000  # tokens of a vocabulary that is drawn; more than there are trials at small scale


@dataclass(frozen=True)
class NetworkQuestion(Generic[Answer]):
    """A question to a network.

    Arguments:
        key: of the answer: the same key and the same network give the same answer.
        kind: the type of the answer.
        ask: puts the question to a network.
    """

    key: str
    kind: type[Answer]
    ask: Callable[[nn.Module], Answer]


def ask_sensitivity(
    when: str, noise: Noise, passes: int, settings: TrainingSettings, images: Dataset, seed: int
) -> NetworkQuestion[Sensitivity]:
    """Sensitivity to noise in one token of the training images, or to another token in its place.

    Paper 1 (2403.06925): Section 5 for noise, Def. 4.1 for replacement.
    """
    tokens: str | TokenView = noise.tokens or settings.tokens
    moved: str | Perturbation = noise.perturbation or GaussianNoise(noise.std)
    named = [each if isinstance(each, str) else each.describe() for each in (tokens, moved)]
    if noise.replaced_by:
        named[1] = f"replaced by {noise.replaced_by}"

    def ask(model: nn.Module) -> Sensitivity:
        replacement = noise.replaced_by and UniformToken(vocabulary(noise.replaced_by, settings.tokens, images, seed))
        m = measure(
            model,
            images.inputs,
            tokens=tokens,
            perturbation=replacement or moved,
            average=settings.averaging,
            plan=Until(relative=0.05, max_passes=passes),
            seed=seed,
        )
        return Sensitivity(value=m.value, low=m.low, high=m.high, level=m.settings.level, passes=m.passes)

    return NetworkQuestion(f"{when}, {', '.join(named)}, {passes} passes", Sensitivity, ask)


def vocabulary(name: str, view: TokenView, images: Dataset, seed: int) -> Tensor:
    """The tokens (tokens, dim) that may take the place of another one.

    Arguments:
        name: of ``VOCABULARIES``.
        view: what a token is.
        images: in which tokens are replaced.
        seed: of the tokens that are drawn and not found in the images.
    """
    checks.choice("replaced_by", name, VOCABULARIES)
    found = view.grid(images.inputs).reshape(len(images) * view.num_tokens(tuple(images.inputs.shape[1:])), -1)
    if name == FROM_DATA:
        return found
    numbers = torch.Generator().manual_seed(seed)
    like: dict[str, Any] = {"generator": numbers, "dtype": found.dtype}
    if name == NORMAL:
        return torch.randn(_DRAWN, found.shape[1], **like)
    return 2 * torch.rand(_DRAWN, found.shape[1], **like) - 1


def ask_corrupted_accuracy(
    when: str, asked: CorruptedImages, count: int, unseen: Dataset, seed: int, context: Context
) -> NetworkQuestion[CorruptedAccuracy]:
    """Accuracy on the first ``count`` unseen images, clean and corrupted."""
    few = unseen.subset(min(count, len(unseen)))

    def ask(model: nn.Module) -> CorruptedAccuracy:
        if asked.source == OFFICIAL:
            accuracy = _official(model, asked, len(few), context)
            return CorruptedAccuracy(images=len(few), clean=evaluate(model, few).accuracy, accuracy=accuracy)
        found = accuracy_under(model, few.inputs, few.labels, asked.names, asked.severities, seed)
        accuracy = {
            severity: {name: found.accuracy(name, severity).value for name in asked.names}
            for severity in asked.severities
        }
        return CorruptedAccuracy(images=len(few), clean=found.clean.value, accuracy=accuracy)

    listed = f"{asked.source} {', '.join(asked.names)}; severities {', '.join(map(str, asked.severities))}"
    return NetworkQuestion(f"{when}, accuracy on {len(few)} corrupted images, {listed}", CorruptedAccuracy, ask)


def ask_largest_share(when: str, seen: Dataset) -> NetworkQuestion[PredictedShare]:
    """The share of the training inputs that get the class which is predicted most."""

    def ask(model: nn.Module) -> PredictedShare:
        device = device_of(model)
        with eval_mode(model), torch.no_grad():
            answers = [
                predictions(logits_of(model(inputs.to(device)))) for inputs in torch.split(seen.inputs, _AT_ONCE)
            ]
        counts = torch.bincount(torch.cat(answers).cpu(), minlength=seen.classes)
        return PredictedShare(value=float(counts.max() / counts.sum()))

    return NetworkQuestion(f"{when}, share of the class predicted most of {len(seen)}", PredictedShare, ask)


def _official(model: nn.Module, asked: CorruptedImages, count: int, context: Context) -> dict[int, dict[str, float]]:
    """The same from the published files of CIFAR-10-C, whose images are the test images in their order."""
    return {
        severity: {
            name: evaluate(model, load_corrupted(name, severity, count, folder=context.data)).accuracy
            for name in asked.names
        }
        for severity in asked.severities
    }
