"""Train one network, measure its sensitivity on the way and at the end, and record both."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from jostle import models
from jostle.base.errors import FailureError
from jostle.base.progress import State
from jostle.base.store import Record, Store
from jostle.data import Dataset
from jostle.lowering import NoiseAugmentation, SensitivityPenalty
from jostle.studies.study import Context
from jostle.training import Epoch, History, evaluate, fit
from jostle_papers.trained import networks
from jostle_papers.trained.questions import Question, accuracy_on_corrupted, sensitivity
from jostle_papers.trained.settings import Network, Noise, Training, noise

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
    images = settings.load("train", context.data)
    made = networks.recipe(chosen, settings, images, seed, context.device)
    unseen = settings.load("test", context.data)
    with networks.kept(context.networks or context.folder, made) as place:
        following = _Following(chosen, settings, (images, unseen), seed, context, place)
        model, history = following.train()
        finals = {name: following.answer(model, following.final(wanted)) for name, wanted in settings.final.items()}
    epochs = following.epochs
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
        "data": images.note,
        **({"corrupted": epochs[-1]["corrupted"]} if settings.corrupted else {}),
        **(further(model, images, unseen) if further else {}),
    }


class _Following:
    """One network on its way, and what is measured of it; nothing is measured twice."""

    def __init__(
        self,
        chosen: Network,
        settings: Training,
        images: tuple[Dataset, Dataset],
        seed: int,
        context: Context,
        place: Path,
    ) -> None:
        self.chosen, self.settings, self.seed, self.context = chosen, settings, seed, context
        self.images, self.unseen = images
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

    def answer(self, model: nn.Module, question: Question) -> Record:
        """What the network answers, by this process or an earlier one."""
        if question.key not in self.store:
            self.store.append(question.key, question.ask(model))
        return dict(self.store[question.key])

    def final(self, wanted: Noise) -> Question:
        """Sensitivity of the trained network to some noise."""
        return self._sensitivity("end", wanted, AT_END * self.settings.passes)

    def _fit(self) -> tuple[nn.Module, History]:
        model = models.create(self.chosen["model"], seed=self.seed, **_sizes(self.chosen))
        for name in self.chosen.get("frozen", ()):
            model.get_submodule(name).requires_grad_(False)
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
        found = {name: self.answer(epoch.model, question) for name, question in self._asked(number, accuracy, before)}
        if f"epoch {number}" not in self.store:
            self.store.append(f"epoch {number}", {"accuracy": accuracy})
        elif (known := self.store[f"epoch {number}"]["accuracy"]) != accuracy:
            raise self._other_numbers(f"accuracy was {known} after epoch {number}, is {accuracy}")
        text = f"loss {epoch.loss:.3f}  accuracy {accuracy:.1%}"
        text += f"  sensitivity {found['sensitivity']['value']:.4f}" if found else ""
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
            for name, question in self._asked(number, accuracy, history.accuracies[:position]):
                if question.key not in self.store:
                    return False
                record[name] = dict(self.store[question.key])
            self.epochs.append(record)
        return True

    def _asked(self, number: int, accuracy: float, before: Sequence[float]) -> list[tuple[str, Question]]:
        """What is to be asked after an epoch, each with the field of the record that the answer is for."""
        target, best = self.settings.target_accuracy, max(before, default=0.0)
        crosses = any(best < milestone <= accuracy for milestone in self.settings.milestones)
        if number == self.last or (target is not None and accuracy >= target):
            when, times = "end", AT_END
        elif self.settings.over_training and (number in MEASURED_AFTER or crosses):
            when, times = f"after {number} epochs", 1
        else:
            return []
        asked = [("sensitivity", self._sensitivity(when, noise(self.settings.std), times * self.settings.passes))]
        if self.settings.corrupted:
            count = times * self.settings.corrupted["images"]
            settings, unseen = self.settings, self.unseen
            question = accuracy_on_corrupted(when, count, settings, unseen, self.seed, self.context)
            asked.append(("corrupted", question))
        return asked

    def _sensitivity(self, when: str, wanted: Noise, passes: int) -> Question:
        return sensitivity(when, wanted, passes, self.settings, self.images, self.seed)


def _lowering(chosen: Network, settings: Training) -> dict[str, Any]:
    """What lowers sensitivity while the network is trained, as ``fit`` takes it."""
    terms: dict[str, Any] = {}
    if "penalty" in chosen:
        terms["penalty"] = SensitivityPenalty(tokens=settings.tokens, mix=True, **chosen["penalty"])
    if "augment" in chosen:
        terms["augment"] = NoiseAugmentation(**chosen["augment"])
    return terms


def _sizes(chosen: Network) -> dict[str, Any]:
    """Sizes as they were before they were written down: lists are tuples again."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in chosen["sizes"].items()}
