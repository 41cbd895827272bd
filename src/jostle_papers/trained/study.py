"""A study whose cells are networks trained from several seeds."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from jostle.studies.evidence import proportion
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, doubted, holds_for_all, is_above, is_smaller
from jostle_papers.trained.course import TrainedNetwork, follow
from jostle_papers.trained.figures import against_accuracy, against_loss, over_training
from jostle_papers.trained.records import NetworkCell, TrainedRecord, TrainedRecords, sensitivity_at_end
from jostle_papers.trained.settings import TrainingSettings

OwnRecord = TypeVar("OwnRecord", bound=TrainedRecord)
AnyTraining = TypeVar("AnyTraining", bound=TrainingSettings)
AnyNetworkCell = TypeVar("AnyNetworkCell", bound=NetworkCell)


@dataclass(frozen=True)
class TrainingCell(NetworkCell):
    """One network trained from one seed."""

    network: str
    seed: int


class NetworkStudy(Study[TrainingSettings, TrainingCell, OwnRecord]):
    """A study whose cells are networks trained from several seeds, and which measures more than ``TrainingStudy``.

    A subclass has the settings, ``measure`` and the expectations. Its record is a subclass of ``TrainedRecord``:
    ``MyRecord(**vars(trained.record), more=...)`` with ``trained = self.train(cell, settings, context)``.

    Attributes:
        claimed_networks: names of the networks that further seeds train, which are there to decide the claim. Empty
            for all networks.
        complete_seeds: the number of seeds that every network has; from then on seeds are further ones.
    """

    claimed_networks: ClassVar[tuple[str, ...]] = ()
    complete_seeds: ClassVar[int] = 3

    def cells(self, settings: TrainingSettings, seeds: Sequence[int]) -> list[TrainingCell]:
        return [
            TrainingCell(name, seed)
            for seed in seeds
            for name in settings.networks
            if seed < self.complete_seeds or not self.claimed_networks or name in self.claimed_networks
        ]

    def train(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> TrainedNetwork:
        """The network of a cell, trained and followed."""
        return follow(settings.networks[cell.network], settings, cell.seed, context)

    @abstractmethod
    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> OwnRecord:
        """The record of one network."""

    def figures(self, records: Records[TrainingSettings, NetworkCell, OwnRecord]) -> list[Drawing]:
        return [over_training(records), against_accuracy(records), against_loss(records)]


class TrainingStudy(NetworkStudy[TrainedRecord]):
    """A study whose cells are networks trained from several seeds. A subclass has the settings and expectations."""

    def measure(self, cell: TrainingCell, settings: TrainingSettings, context: Context) -> TrainedRecord:
        return self.train(cell, settings, context).record


def at_matched_accuracy(
    records: TrainedRecords, claims: Sequence[Expectation], accuracy: float = 0.99, networks: Sequence[str] = ()
) -> list[Expectation]:
    """Claims about networks of the same accuracy, undecided if a network did not reach it; and whether all did.

    Arguments:
        records: of a study.
        claims: what is expected.
        accuracy: on the training inputs, that every network must have.
        networks: those that the claims are about; all, if none is named.
    """
    about = [(cell, record) for cell, record in records if not networks or cell.network in networks]
    short = [cell.key for cell, record in about if record.train_accuracy < accuracy]
    whose = f"each of {', '.join(networks)}" if networks else "every network"
    is_reached = holds_for_all(f"{whose} has {accuracy:.0%} of its training inputs right", len(short), len(about))
    if short:
        reason = f"{', '.join(short)} did not reach {accuracy:.0%} training accuracy"
        claims = [doubted(claim, reason) for claim in claims]
    return [*claims, beyond(is_reached)]


def learnt(
    records: Records[AnyTraining, AnyNetworkCell, OwnRecord], accuracy: float
) -> tuple[Records[AnyTraining, AnyNetworkCell, OwnRecord], list[Expectation]]:
    """The records of the networks that reached this training accuracy, and how many of all did.

    A network that did not learn says nothing about those that did: it is counted, as a question beyond the claim, and
    left out of comparisons.

    Arguments:
        records: of a study.
        accuracy: on the training inputs.
    """
    kept = records.keep(lambda _, record: record.train_accuracy >= accuracy)
    right = f"has {100 * accuracy:g} % of its training inputs right"
    if len(kept) == len(records):
        return kept, [beyond(holds_for_all(f"every network {right}", 0, len(records)))]
    counts = {name: (len(kept.where(network=name)), len(records.where(network=name))) for name in _names(records)}
    shares = [
        is_above(f"share of seeds from which {name} {right}", proportion(count, tried), 0.5)
        for name, (count, tried) in counts.items()
        if count < tried
    ]
    return kept, [beyond(share) for share in shares]


def not_constant(records: Records[AnyTraining, AnyNetworkCell, OwnRecord], share: float = 0.95) -> Expectation:
    """That no network gives one class to this share of its training inputs, which would make it insensitive.

    Arguments:
        records: of a study whose settings have ``predictions``.
        share: from which on a network counts as constant.
    """
    last = [record.epochs[-1].largest_share for _, record in records]
    found = [one.value for one in last if one is not None]
    statement = f"no network gives one class to {share:.0%} of its training inputs"
    return beyond(holds_for_all(statement, sum(value >= share for value in found), len(found)))


def less_sensitive(
    records: TrainedRecords, first: str, second: str, final: str = "", when: str = "", factor: float = 1.0
) -> Expectation:
    """That the first network is less sensitive than the second one, or less than ``factor`` times as sensitive.

    Arguments:
        records: of the networks that learnt.
        first, second: names of networks.
        final: one of the further measurements; by default the study's own noise.
        when: added to the statement; by default ``final``.
        factor: the largest ratio that agrees.
    """
    ours, theirs = (sensitivity_at_end(records, name, final) for name in (first, second))
    said = when or final
    return is_smaller(f"sensitivity of {first} / of {second}{', ' if said else ''}{said}", ours, theirs, factor)


def _names(records: Records[AnyTraining, AnyNetworkCell, OwnRecord]) -> list[str]:
    return list(records.distinct("network"))
