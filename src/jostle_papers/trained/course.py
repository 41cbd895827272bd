"""The course of a training: train one network, measure it on the way and at the end, and record both."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from jostle import models
from jostle.base.errors import KeptFileError, UsageError
from jostle.base.progress import State
from jostle.base.store import Store
from jostle.data import Dataset
from jostle.lowering import NoiseAugmentation, SensitivityPenalty
from jostle.studies.schema import Struct, from_plain, to_plain
from jostle.studies.study import Context
from jostle.training import Epoch, History, evaluate, fit
from jostle_papers.trained.networks import hold_network, make_recipe, measurement_file
from jostle_papers.trained.questions import (
    Answer,
    NetworkQuestion,
    ask_corrupted_accuracy,
    ask_largest_share,
    ask_sensitivity,
)
from jostle_papers.trained.records import CorruptedAccuracy, EpochRecord, PredictedShare, Sensitivity, TrainedRecord
from jostle_papers.trained.settings import Network, Noise, TrainingSettings

MEASURED_AFTER = frozenset(
    (0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400)
)  # epochs, and after the last one
AT_END = 5  # times as many passes


@dataclass(frozen=True)
class TrainedNetwork:
    """A network at the end of its training.

    Arguments:
        model: in eval mode.
        record: what was measured.
        seen, unseen: training inputs and test inputs.
    """

    model: nn.Module
    record: TrainedRecord
    seen: Dataset
    unseen: Dataset


def follow(network: Network, settings: TrainingSettings, seed: int, context: Context) -> TrainedNetwork:
    """Train a network and measure its sensitivity after some epochs and at the end.

    The seed decides the weights, the order of the images and the noise, and with ``data_by_seed`` which images these
    are; all networks of one seed see the same images and the same noise. Network and measurements are kept in
    ``context.networks``, so that a killed cell goes on where it was and another study finds what it needs.
    """
    seen = settings.load("train", context.data, seed)
    recipe = make_recipe(network, settings, seen, seed, context.device)
    unseen = settings.load("test", context.data, seed)
    with hold_network(context.networks or context.folder, recipe) as place:
        course = _Course(network, settings, seen, unseen, seed, context, place)
        model, history = course.train()
        final = {name: course.answer(model, course.final(noise)) for name, noise in settings.final.items()}
    last = course.epochs[-1]
    assert last.sensitivity is not None  # the last epoch is always measured
    record = TrainedRecord(
        epochs=tuple(course.epochs),
        stopped=history.stopped,
        train_accuracy=history.accuracies[-1],
        test_accuracy=evaluate(model, unseen).accuracy,
        low=last.sensitivity.low,
        high=last.sensitivity.high,
        sensitivity=last.sensitivity.value,
        final=final,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        data=seen.note,
        corrupted=last.corrupted,
    )
    return TrainedNetwork(model, record, seen, unseen)


@dataclass(frozen=True)
class _EpochLine(Struct):
    """What is kept of every epoch, to check that a kept network gives the same numbers on this machine."""

    accuracy: float


@dataclass(frozen=True)
class _Questions:
    """What is asked after an epoch; None where it is not."""

    sensitivity: NetworkQuestion[Sensitivity] | None = None
    corrupted: NetworkQuestion[CorruptedAccuracy] | None = None
    largest_share: NetworkQuestion[PredictedShare] | None = None


class _Course:
    """One network on its way, and what is measured of it; nothing is measured twice."""

    def __init__(
        self,
        network: Network,
        settings: TrainingSettings,
        seen: Dataset,
        unseen: Dataset,
        seed: int,
        context: Context,
        place: Path,
    ) -> None:
        self.network, self.settings, self.seed, self.context = network, settings, seed, context
        self.seen, self.unseen = seen, unseen
        self.last = network.max_epochs or settings.max_epochs
        self.checkpoint = place / "training.safetensors"
        self.store = Store(measurement_file(place))
        self.epochs: list[EpochRecord] = []

    def train(self) -> tuple[nn.Module, History]:
        """The trained network. A kept network is trained again if a number from the way there is missing."""
        model, history = self._fit()
        if not self._recall(history):
            self.checkpoint.unlink()
            model, history = self._fit()
            if not self._recall(history):
                raise self._other_numbers("a number from the way is missing although it was trained again")
        return model, history

    def answer(self, model: nn.Module, question: NetworkQuestion[Answer]) -> Answer:
        """The answer of the network, from this process or an earlier one."""
        if question.key not in self.store:
            self.store.append(question.key, to_plain(question.ask(model)))
        return self._read(question.kind, question.key)

    def final(self, noise: Noise) -> NetworkQuestion[Sensitivity]:
        """Sensitivity of the trained network to some noise."""
        return self._sensitivity("end", noise, AT_END * self.settings.passes)

    def _fit(self) -> tuple[nn.Module, History]:
        network = self.network
        model = models.create(network.model, seed=self.seed, **network.sizes)
        for name in network.frozen:
            model.get_submodule(name).requires_grad_(False)
        history = fit(
            model,
            self.seen,
            optimizer=network.optimizer,
            lr=network.lr,
            weight_decay=network.weight_decay or 0.0,
            schedule=network.schedule,
            penalty=_penalty(network, self.settings),
            augment=None if network.augment is None else NoiseAugmentation(std=network.augment.std),
            batch_size=self.settings.batch_size,
            max_epochs=self.last,
            target_accuracy=self.settings.target_accuracy,
            evaluate_every=self.settings.evaluate_every or 1,
            seed=self.seed,
            checkpoint=self.checkpoint,
            on_epoch=self._on_epoch,
            device=self.context.device,
        )
        return model, history

    def _on_epoch(self, epoch: Epoch) -> None:
        number, accuracy = epoch.number, epoch.accuracy
        before = [self._read(_EpochLine, key).accuracy for key in map(_key, range(number)) if key in self.store]
        asked = self._questions(number, accuracy, before)
        text = f"loss {epoch.loss:.3f}  accuracy {accuracy:.1%}"
        if asked.sensitivity is not None:
            text += f"  sensitivity {self.answer(epoch.model, asked.sensitivity).value:.4f}"
        if asked.corrupted is not None:
            self.answer(epoch.model, asked.corrupted)
        if asked.largest_share is not None:
            self.answer(epoch.model, asked.largest_share)
        if _key(number) not in self.store:
            self.store.append(_key(number), to_plain(_EpochLine(accuracy)))
        elif (known := self._read(_EpochLine, _key(number)).accuracy) != accuracy:
            raise self._other_numbers(f"accuracy was {known} after epoch {number}, is {accuracy}")
        self.context.report(State(number / self.last, number * len(self.seen), text, "examples"))

    def _other_numbers(self, what: str) -> KeptFileError:
        path = self.store.path
        return KeptFileError(f"{path}: {what}; it is about another network, or from another machine", path)

    def _recall(self, history: History) -> bool:
        """Put together what was found after each epoch, by this process or an earlier one; False if some is missing."""
        self.epochs = []
        for position, number in enumerate(history.evaluated):
            loss, accuracy = history.losses[position], history.accuracies[position]
            asked = self._questions(number, accuracy, history.accuracies[:position])
            every = (asked.sensitivity, asked.corrupted, asked.largest_share)
            if any(one is not None and one.key not in self.store for one in every):
                return False
            found = EpochRecord(
                epoch=number,
                loss=loss,
                accuracy=accuracy,
                sensitivity=self._known_answer(asked.sensitivity),
                corrupted=self._known_answer(asked.corrupted),
                largest_share=self._known_answer(asked.largest_share),
            )
            self.epochs.append(found)
        return True

    def _questions(self, number: int, accuracy: float, before: Sequence[float]) -> _Questions:
        """The questions after an epoch."""
        settings = self.settings
        target, best = settings.target_accuracy, max(before, default=0.0)
        crosses = any(best < milestone <= accuracy for milestone in settings.milestones)
        if number == self.last or (target is not None and accuracy >= target):
            when, times = "end", AT_END
        elif settings.over_training and (settings.evaluate_every or number in MEASURED_AFTER or crosses):
            when, times = f"after {number} epochs", 1
        else:
            return _Questions()
        sensitivity = self._sensitivity(when, settings.noise, times * settings.passes)
        share = ask_largest_share(when, self.seen) if settings.predictions else None
        if settings.corrupted is None:
            return _Questions(sensitivity, largest_share=share)
        count = times * settings.corrupted.images
        corrupted = ask_corrupted_accuracy(when, settings.corrupted, count, self.unseen, self.seed, self.context)
        return _Questions(sensitivity, corrupted, share)

    def _sensitivity(self, when: str, noise: Noise, passes: int) -> NetworkQuestion[Sensitivity]:
        return ask_sensitivity(when, noise, passes, self.settings, self.seen, self.seed)

    def _known_answer(self, question: NetworkQuestion[Answer] | None) -> Answer | None:
        return None if question is None else self._read(question.kind, question.key)

    def _read(self, kind: type[Answer], key: str) -> Answer:
        try:
            return from_plain(kind, self.store[key], f"record {key!r} of {self.store.path}")
        except UsageError as error:
            raise KeptFileError(str(error), self.store.path) from None


def _key(epoch: int) -> str:
    return f"epoch {epoch}"


def _penalty(network: Network, settings: TrainingSettings) -> SensitivityPenalty | None:
    """The term of the loss that lowers sensitivity while the network is trained."""
    term = network.penalty
    if term is None:
        return None
    return SensitivityPenalty(tokens=settings.tokens, mix=True, strength=term.strength, std=term.std)
