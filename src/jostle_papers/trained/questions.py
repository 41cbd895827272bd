"""What is asked of a network on its way and at the end: each question has a key under which its answer is kept."""

from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from jostle.base.store import Record
from jostle.corruptions import accuracy_under
from jostle.data import Dataset
from jostle.data.cifar_10_c import load_corrupted
from jostle.estimates import measure
from jostle.perturbations import GaussianNoise
from jostle.sampling import Until
from jostle.studies.study import Context
from jostle.training import evaluate
from jostle_papers.trained.settings import OFFICIAL, Noise, Training


class Question(NamedTuple):
    """A question and the key of its answer: the same key, the same network, the same answer."""

    key: str
    ask: Callable[[nn.Module], Record]


def sensitivity(when: str, wanted: Noise, passes: int, settings: Training, images: Dataset, seed: int) -> Question:
    """Sensitivity to Gaussian noise in one token of the training images: paper 1 (2403.06925), section 5."""
    tokens, moved = wanted["tokens"] or settings.tokens, wanted.get("perturbation") or GaussianNoise(wanted["std"])

    def ask(model: nn.Module) -> Record:
        m = measure(
            model,
            images.inputs,
            tokens=tokens,
            perturbation=moved,
            average=settings.averaging,
            plan=Until(relative=0.05, max_passes=passes),
            seed=seed,
        )
        return {"value": m.value, "low": m.low, "high": m.high, "level": m.settings.level, "passes": m.passes}

    named = [each if isinstance(each, str) else each.describe() for each in (tokens, moved)]
    return Question(f"{when}, {', '.join(named)}, {passes} passes", ask)


def accuracy_on_corrupted(
    when: str, images: int, settings: Training, unseen: Dataset, seed: int, context: Context
) -> Question:
    """Accuracy on the first ``images`` unseen images, clean and corrupted: by severity, by corruption."""
    asked = settings.corrupted
    names, severities, source = tuple(asked["names"]), tuple(asked["severities"]), asked["source"]
    few = unseen.subset(min(images, len(unseen)))

    def ask(model: nn.Module) -> Record:
        if source == OFFICIAL:
            clean, accuracy = evaluate(model, few).accuracy, _official(model, names, severities, len(few), context)
        else:
            found = accuracy_under(model, few.inputs, few.labels, names, severities, seed)
            clean = found.clean.value
            accuracy = {
                str(severity): {name: found.accuracy(name, severity).value for name in names} for severity in severities
            }
        return {"images": len(few), "clean": clean, "accuracy": accuracy}

    listed = f"{source} {', '.join(names)}; severities {', '.join(map(str, severities))}"
    return Question(f"{when}, accuracy on {len(few)} corrupted images, {listed}", ask)


def _official(
    model: nn.Module, names: tuple[str, ...], severities: tuple[int, ...], count: int, context: Context
) -> dict[str, dict[str, float]]:
    """The same from the published files of CIFAR-10-C, whose images are the test images in their order."""
    return {
        str(severity): {
            name: evaluate(model, load_corrupted(name, severity, count, folder=context.data)).accuracy for name in names
        }
        for severity in severities
    }
