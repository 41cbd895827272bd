"""A study whose cells are networks trained from several seeds."""

from collections.abc import Sequence

from torch import nn

from jostle.data import Dataset
from jostle.results import Record
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all
from jostle.studies.vision.drawings import against_accuracy, against_loss, over_training
from jostle.studies.vision.following import follow
from jostle.studies.vision.settings import Training


class TrainingStudy(Study[Training]):
    """A study whose cells are networks trained from several seeds. A subclass has the settings and expectations."""

    def cells(self, settings: Training, seeds: Sequence[int]) -> list[Cell]:
        return [Cell.of(network=name, seed=seed) for seed in seeds for name in settings.networks]

    def measure(self, cell: Cell, settings: Training, context: Context) -> Record:
        chosen, seed = settings.networks[cell.values["network"]], cell.values["seed"]

        def further(model: nn.Module, seen: Dataset, unseen: Dataset) -> Record:
            return self.further(model, seen, unseen, settings, seed)

        return follow(chosen, settings, seed, context, further)

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:  # noqa: ARG002
        """What else a study wants to know of a trained network, from training images and unseen ones."""
        return {}

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [over_training(records), against_accuracy(records), against_loss(records)]


def reached(records: Records[Training], accuracy: float = 0.99) -> Expectation:
    """That every network got to a training accuracy at which networks can be compared."""
    found = records.column("train_accuracy")
    short = sum(value < accuracy for value in found)
    return beyond(holds_for_all(f"every network has {accuracy:.0%} of its training images right", short, len(found)))
