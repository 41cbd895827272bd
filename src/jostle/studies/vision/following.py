"""Train one network, measure its sensitivity on the way and at the end, and record both."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from jostle import data, models
from jostle.data import Dataset
from jostle.errors import FailureError
from jostle.estimates import measure
from jostle.lowering import NoiseAugmentation, SensitivityPenalty
from jostle.perturbations import GaussianNoise
from jostle.progress import State
from jostle.results import Record, Store
from jostle.sampling import Until
from jostle.studies.study import Context
from jostle.studies.vision import networks
from jostle.studies.vision.settings import Network, Noise, Training, noise
from jostle.tokens import Patches
from jostle.training import Epoch, History, evaluate, fit

MEASURED_AFTER = frozenset(
    (0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400)
)  # epochs, and after the last one
AT_END = 5  # times as many passes


Further = Callable[[nn.Module, Dataset, Dataset], Record]  # of a trained network, training and unseen images


def follow(chosen: Network, settings: Training, seed: int, context: Context, further: Further | None = None) -> Record:
    """Train a network and measure its sensitivity after some epochs and at the end.

    The seed decides the weights, the order of the images and the noise; all networks of one seed see the same images
    and the same noise. Network and measurements are kept in ``context.networks``, so that a killed cell goes on where
    it was and another study finds what it needs. What ``further`` finds about the trained network joins the record.
    """
    images = load(settings, "train", context)
    made = networks.recipe(chosen, settings, images, seed, context.device)
    with networks.kept(context.networks or context.folder, made) as place:
        following = _Following(chosen, settings, images, seed, context, place)
        model, history = following.train()
        finals = {
            name: following.measured(model, "end", wanted, AT_END * settings.passes)
            for name, wanted in settings.final.items()
        }
    epochs, unseen = following.epochs, load(settings, "test", context)
    end = epochs[-1]["sensitivity"]
    return {
        "epochs": epochs,
        "stopped": history.stopped,
        "train_accuracy": history.accuracies[-1],
        "test_accuracy": evaluate(model, unseen).accuracy,
        **{key: end[key] for key in ("low", "high")},
        "sensitivity": end["value"],
        "final": finals,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "data": following.images.note,
        **(further(model, following.images, unseen) if further else {}),
    }


def load(settings: Training, split: str, context: Context) -> Dataset:
    """The training images, which are also those that are jostled, or the unseen ones."""
    limit = settings.limit if split == "train" else settings.test_limit
    images = data.load(settings.dataset, split, limit, folder=context.data, progress=False)
    if not settings.relabel:
        return images
    return images.relabelled(list(settings.relabel), f"{settings.dataset}, relabelled")


class _Following:
    """One network on its way, and what is measured of it; nothing is measured twice."""

    def __init__(
        self, chosen: Network, settings: Training, images: Dataset, seed: int, context: Context, place: Path
    ) -> None:
        self.chosen, self.settings, self.images, self.seed, self.context = chosen, settings, images, seed, context
        self.last = chosen["max_epochs"] or settings.max_epochs
        self.checkpoint = place / "training.safetensors"
        self.store = Store(networks.measurements(place))
        self.epochs: list[Record] = []

    def train(self) -> tuple[nn.Module, History]:
        """The trained network. One that is kept is trained again if a number from the way there is missing."""
        model, history = self._fit()
        if not self._recall(history):
            self.checkpoint.unlink()
            model, history = self._fit()
            if not self._recall(history):
                raise self._other_numbers("a number from the way is missing although it was trained again")
        return model, history

    def measured(self, model: nn.Module, when: str, wanted: Noise, passes: int) -> Record:
        """Sensitivity to Gaussian noise in one token of the training images: paper 1 (2403.06925), section 5."""
        key = self._key(when, wanted, passes)
        if key not in self.store:
            self.store.append(key, self._measure(model, wanted, passes))
        return dict(self.store[key])

    def _fit(self) -> tuple[nn.Module, History]:
        model = models.create(self.chosen["model"], seed=self.seed, **_sizes(self.chosen))
        history = fit(
            model,
            self.images,
            **{key: self.chosen[key] for key in ("optimizer", "lr", "schedule")},
            **_lowering(self.chosen, self.settings),
            batch_size=self.settings.batch_size,
            max_epochs=self.last,
            target_accuracy=self.settings.target_accuracy,
            seed=self.seed,
            checkpoint=self.checkpoint,
            on_epoch=self._on_epoch,
            device=self.context.device,
        )
        return model, history

    def _on_epoch(self, epoch: Epoch) -> None:
        number, accuracy = epoch.number, epoch.accuracy
        before = [self.store[f"epoch {n}"]["accuracy"] for n in range(number) if f"epoch {n}" in self.store]
        asked = self._asked(number, accuracy, before)
        found = self.measured(epoch.model, *asked)["value"] if asked else None
        if f"epoch {number}" not in self.store:
            self.store.append(f"epoch {number}", {"accuracy": accuracy})
        elif (known := self.store[f"epoch {number}"]["accuracy"]) != accuracy:
            raise self._other_numbers(f"accuracy was {known} after epoch {number}, is {accuracy}")
        text = f"loss {epoch.loss:.3f}  accuracy {accuracy:.1%}"
        text += f"  sensitivity {found:.4f}" if found is not None else ""
        self.context.report(State(number / self.last, number * len(self.images), text, "examples"))

    def _other_numbers(self, what: str) -> FailureError:
        place = self.checkpoint.parent
        return FailureError(f"network {place}: {what}; it is from another machine, delete it to train it here")

    def _recall(self, history: History) -> bool:
        """Put together what was found after each epoch, by this process or an earlier one; False if some is missing."""
        self.epochs = []
        for position, number in enumerate(history.evaluated):
            loss, accuracy = history.losses[position], history.accuracies[position]
            record: Record = {"epoch": number, "loss": loss, "accuracy": accuracy}
            if asked := self._asked(number, accuracy, history.accuracies[:position]):
                if self._key(*asked) not in self.store:
                    return False
                record["sensitivity"] = dict(self.store[self._key(*asked)])
            self.epochs.append(record)
        return True

    def _asked(self, number: int, accuracy: float, before: Sequence[float]) -> tuple[str, Noise, int] | None:
        """What is to be measured after an epoch: when, which noise, how many passes."""
        wanted = noise(self.settings.std)
        target = self.settings.target_accuracy
        if number == self.last or (target is not None and accuracy >= target):
            return "end", wanted, AT_END * self.settings.passes
        best = max(before, default=0.0)
        crosses = any(best < milestone <= accuracy for milestone in self.settings.milestones)
        if self.settings.over_training and (number in MEASURED_AFTER or crosses):
            return f"after {number} epochs", wanted, self.settings.passes
        return None

    def _key(self, when: str, wanted: Noise, passes: int) -> str:
        tokens = wanted["tokens"] or f"patches of {self.settings.patch}"
        return f"{when}, {tokens}, std {wanted['std']!r}, {passes} passes"

    def _measure(self, model: nn.Module, wanted: Noise, passes: int) -> Record:
        m = measure(
            model,
            self.images.inputs,
            tokens=wanted["tokens"] or Patches(self.settings.patch),
            perturbation=GaussianNoise(wanted["std"]),
            plan=Until(relative=0.05, max_passes=passes),
            seed=self.seed,
        )
        return {"value": m.value, "low": m.low, "high": m.high, "level": m.settings.level, "passes": m.passes}


def _lowering(chosen: Network, settings: Training) -> dict[str, Any]:
    """What lowers sensitivity while the network is trained, as ``fit`` takes it."""
    terms: dict[str, Any] = {}
    if "penalty" in chosen:
        terms["penalty"] = SensitivityPenalty(tokens=Patches(settings.patch), mix=True, **chosen["penalty"])
    if "augment" in chosen:
        terms["augment"] = NoiseAugmentation(**chosen["augment"])
    return terms


def _sizes(chosen: Network) -> dict[str, Any]:
    """Sizes as they were before they were written down: lists are tuples again."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in chosen["sizes"].items()}
