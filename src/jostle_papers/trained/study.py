"""A study whose cells are networks trained from several seeds."""

from collections.abc import Sequence

from torch import nn

from jostle.base.store import Record
from jostle.data import Dataset
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, doubted, holds_for_all
from jostle_papers.trained.course import follow
from jostle_papers.trained.figures import against_accuracy, against_loss, over_training
from jostle_papers.trained.settings import Training


class TrainingStudy(Study[Training]):
    """A study whose cells are networks trained from several seeds. A subclass has the settings and expectations."""

    def cells(self, settings: Training, seeds: Sequence[int]) -> list[Cell]:
        return [Cell.of(network=name, seed=seed) for seed in seeds for name in settings.networks]

    def measure(self, cell: Cell, settings: Training, context: Context) -> Record:
        chosen, seed = settings.networks[cell.values["network"]], cell.values["seed"]

        def further(model: nn.Module, seen: Dataset, unseen: Dataset) -> Record:
            return self.further(model, seen, unseen, settings, seed)

        return follow(chosen, settings, seed, context, further)

    def further(self, model: nn.Module, seen: Dataset, unseen: Dataset, settings: Training, seed: int) -> Record:
        """What else a study wants to know of a trained network, from training images and unseen ones."""
        return {}

    def figures(self, records: Records[Training]) -> list[Drawing]:
        return [over_training(records), against_accuracy(records), against_loss(records)]


def at_matched_accuracy(
    records: Records[Training], claims: Sequence[Expectation], accuracy: float = 0.99, networks: Sequence[str] = ()
) -> list[Expectation]:
    """What a paper says of networks of the same accuracy, which is undecided where one of them did not get there.

    Arguments:
        records: of a study.
        claims: what is expected.
        accuracy: on the training inputs, that every network must have.
        networks: those that the claims are about; all, if none is named.
    """
    about = [(cell, record) for cell, record in records if not networks or cell.values["network"] in networks]
    short = [cell.key for cell, record in about if record["train_accuracy"] < accuracy]
    whose = f"each of {', '.join(networks)}" if networks else "every network"
    is_reached = holds_for_all(f"{whose} has {accuracy:.0%} of its training inputs right", len(short), len(about))
    if short:
        reason = f"{', '.join(short)} did not reach {accuracy:.0%} training accuracy"
        claims = [doubted(claim, reason) for claim in claims]
    return [*claims, beyond(is_reached)]


def where_all_learnt(records: Records[Training], accuracy: float) -> Records[Training]:
    """The records of those seeds from which every network got to this training accuracy; of all, if there are none."""
    cells = [cell for cell, _ in records]
    short = {cell.values["seed"] for cell, record in records if record["train_accuracy"] < accuracy}
    kept = [cell for cell in cells if cell.values["seed"] not in short]
    return Records(kept or cells, {cell.key: records[cell.key] for cell in cells}, records.settings, records.scale)
