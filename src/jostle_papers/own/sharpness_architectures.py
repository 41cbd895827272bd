"""Our own question: is the law that sensitive functions make sharp networks one of transformers?"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.base.progress import part_of
from jostle.landscape import average_direction_sharpness
from jostle.studies.catalogue import register
from jostle.studies.evidence import difference
from jostle.studies.records import Records
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above
from jostle_papers.p2402_09963 import bounds, hardness, runs
from jostle_papers.p2402_09963.hardness import CONVERGED, HardnessDesign
from jostle_papers.p2402_09963.hardness.observation import draw_strings
from jostle_papers.p2402_09963.hardness.tasks import derive_seed
from jostle_papers.p2402_09963.regression import height, slope
from jostle_papers.p2402_09963.runs import RunRecord, RunSettings, keep_converged
from jostle_papers.trained import NetworkStudy

THEIRS = "transformer"  # the paper's network
SENSITIVE, MODERATE, LEAST = "parity", "majority", "first"
NETWORKS = (THEIRS, "transformer-without-norm", "mlp", "mlp-with-norm", "lstm", "state-space")
READS_SHORTER = ("lstm", "state-space")  # trained on shorter strings first

Points = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class ArchitectureSettings(RunSettings):
    """What is trained.

    Arguments:
        networks: architectures by name; the transformer is one of them.
        targets: functions by name; parity, majority and first.
        recurrent_lr: of networks that read shorter strings first, by ``curriculum``; the others have ``lr`` and none.
        share: the relative step's length, as a share of the norm of the weights that are moved.
    """

    networks: tuple[str, ...] = NETWORKS
    targets: tuple[str, ...] = (SENSITIVE, MODERATE, LEAST)
    lengths: tuple[int, ...] = (4, 6, 8, 10)
    dim: int = 32
    batch_size: int = 512
    lr: float = 1e-3
    recurrent_lr: float = 2e-3
    steps: int = 3000
    fit_loss: float = 0.003
    settle: int = 400
    curriculum: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 9)
    directions: int = 50
    share: float = 0.1

    def __post_init__(self) -> None:
        runs.check_named("networks", self.networks, THEIRS)
        runs.check_named("targets", self.targets, SENSITIVE, MODERATE, LEAST)


@dataclass(frozen=True)
class ArchitectureCell(Cell):
    """A network on a function of n bits."""

    network: str
    target: str
    n: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class ArchitectureRecord(RunRecord):
    """What is measured of a network, with its sharpness under a step that is a share of its norm."""

    relative_sharpness: float
    relative_rho: float


ArchitectureRecords = Records[ArchitectureSettings, ArchitectureCell, ArchitectureRecord]
Read = Callable[[ArchitectureRecord], float]


@register
class SharpnessOfArchitectures(Study[ArchitectureSettings, ArchitectureCell, ArchitectureRecord]):
    """Sharpness against the number of bits for transformers, MLPs, an LSTM and a state-space model."""

    name = "jostle/sharpness-architectures"
    title = "Is it a law of transformers? Sharpness against the number of bits in other networks"
    claim = (
        "Transformers that compute PARITY are the sharper the more bits there are, and ever more so than ones that "
        "compute MAJORITY. Whether other networks are too is asked beyond the paper."
    )
    source = "Theorem 6 and Figure 1 of 2402.09963; the other networks are ours"
    version = 1
    scales = {
        "smoke": ArchitectureSettings(
            seeds=1, networks=(THEIRS, "mlp", "lstm"), **runs.TINY | {"steps": 40, "curriculum": (2,)}
        ),
        "small": ArchitectureSettings(),
        "paper": ArchitectureSettings(
            seeds=10, lengths=(4, 6, 8, 10, 12, 14, 16), dim=128, batch_size=1024, lr=3e-4, recurrent_lr=1e-3,
            steps=10_000, curriculum=tuple(range(2, 16)), directions=100, strings=1024,
        ),
    }  # fmt: skip
    deviations = (
        "The paper has transformers of dim 128 and 4 to 30 bits, with layer norms. Here dim 32 and 4 to 10 bits at "
        "small scale, other networks of about as many weights, and transformers and MLPs with and without LayerNorm.",
        "Levels of sharpness cannot be compared across networks, as rho = 0.02 sqrt(weights) means another thing in "
        "each. Fair are slopes over the number of bits within a network, and across networks the ratio PARITY / FIRST "
        "(or MAJORITY) at the same number of bits, in which the step cancels as long as it is short. Everything is "
        "measured with a step that is the same share of the parameter norm too.",
        "In an MLP the first layer has more weights for more bits, so that rho grows by 2 percent from 4 to 10 bits "
        "at small scale; in the others it is the same for all lengths, as positions are not moved.",
        "The LSTM and the state-space model read shorter strings first, each length until it is fitted: on six bits at "
        "once, the state-space model was still at the loss of a coin after more than a thousand steps. The others have "
        "no curriculum, as in the paper.",
        "A network that fits is settled and left alone. " + runs.FILTERED,
        "Seeds beyond the first three are only for what the claim compares: transformers that compute PARITY and "
        "MAJORITY.",
    )

    def cells(self, settings: ArchitectureSettings, seeds: Sequence[int]) -> list[ArchitectureCell]:
        return [
            ArchitectureCell(network, target, n, seed)
            for seed in seeds
            for network in reversed(settings.networks)  # what takes longest first
            for n in sorted(settings.lengths, reverse=True)
            for target in settings.targets
            if seed < NetworkStudy.complete_seeds or (network == THEIRS and target in (SENSITIVE, MODERATE))
        ]

    def measure(self, cell: ArchitectureCell, settings: ArchitectureSettings, context: Context) -> ArchitectureRecord:
        own: dict[str, Any] = {"curriculum": ()}
        if cell.network in READS_SHORTER:
            own = {"lr": settings.recurrent_lr}
        # The same for all functions, whose ratios are taken.
        own_seed = derive_seed(f"runs of {cell.network}", cell.n, cell.seed)
        task = hardness.named_task(cell.target, cell.n)
        trained = hardness.train(
            task, HardnessDesign(dim=settings.dim, architecture=cell.network), settings.plan(**own), seeds=[own_seed],
            folder=context.folder, progress=part_of(context.report, 0.0, runs.TRAINED),
        )  # fmt: skip
        common: dict[str, Any] = {"directions": settings.directions, "seed": own_seed}
        found = hardness.observe(trained.networks[0], task, strings=settings.strings, **common)
        strings, rho = draw_strings(cell.n, settings.strings, own_seed), settings.share * found.norm
        relative = average_direction_sharpness(
            trained.networks[0], strings, rho=rho, label_values=(0.0, 1.0), **common
        )  # fmt: skip
        return ArchitectureRecord(
            fitted=trained.fitted[0],
            steps=trained.steps,
            **vars(found),
            relative_sharpness=relative.value,
            relative_rho=rho,
        )

    def figures(self, records: ArchitectureRecords) -> list[Drawing]:
        networks = records.settings.networks
        ending = f"The mean and the range over seeds. {runs.say_left_out(records)}"
        found = [
            Drawing(
                target,
                runs.over_lengths(
                    {network: _values(records, network, target, _sharpness) for network in networks},
                    "average direction sharpness", log_y=True,
                ),
                f"Sharpness of networks that compute {target}, std 0.02 on each weight, against the number of bits; "
                f"compare slopes, not levels. {ending}",
                "Curves over the number of bits, one for each network.",
            )
            for target in records.settings.targets
        ]  # fmt: skip
        return [
            *found,
            _draw_ratios(records, "sharpness", _sharpness, "std 0.02 on each weight", ending),
            _draw_ratios(records, "relative-sharpness", _relative, "a share of the parameter norm", ending),
        ]

    def expectations(self, records: ArchitectureRecords) -> list[Expectation]:
        found = []
        for network in records.settings.networks:
            rises = slope(_values(records, network, SENSITIVE, _sharpness))
            gain, relative = (
                slope(_logs(_ratios(records, network, MODERATE, read))) for read in (_sharpness, _relative)
            )
            asked = [
                is_above(f"{network}: slope of sharpness over bits, {SENSITIVE}", rises, 0.0),
                is_above(f"{network}: slope of log {SENSITIVE} / {MODERATE} over bits", gain, 0.0),
            ]
            found += asked if network == THEIRS else [beyond(each) for each in asked]
            statement = f"{network}: slope of log {SENSITIVE} / {MODERATE} over bits, relative step"
            found.append(beyond(is_above(statement, relative, 0.0)))
        return [*found, *(beyond(each) for each in _across(records))]


def _across(records: ArchitectureRecords) -> list[Expectation]:
    """Networks beside each other, at the middle of the lengths; and how many runs do not count."""
    middle = (min(records.settings.lengths) + max(records.settings.lengths)) / 2
    networks = records.settings.networks
    logs = {network: height(_logs(_ratios(records, network, LEAST, _sharpness)), middle) for network in networks}
    what = f"log {SENSITIVE} / {LEAST} at {middle:g} bits"
    asked = [is_above(f"{network}: {what}", logs[network], 0.0) for network in networks]
    asked += [
        is_above(f"{what}, {THEIRS} - {network}", difference(logs[THEIRS], logs[network], independent=True), 0.0)
        for network in networks
        if network != THEIRS
    ]
    for network in networks:
        every = records.where(network=network)
        statement = f"{network}: every run converged, loss below {CONVERGED:g}"
        asked.append(holds_for_all(statement, len(every) - len(keep_converged(every)), len(every)))
    held = keep_converged(records.where(network=THEIRS))  # the theorem is about transformers with layer norms
    asked.append(bounds.expect_corollary(bounds.case_of(cell.target, cell.n, record) for cell, record in held))
    return asked


def _draw_ratios(records: ArchitectureRecords, stem: str, read: Read, step: str, ending: str) -> Drawing:
    lines: Mapping[str, Points] = {
        network: _ratios(records, network, LEAST, read) for network in records.settings.networks
    }
    return Drawing(
        f"ratio-{stem}",
        runs.over_lengths(lines, f"sharpness of {SENSITIVE} / {LEAST}", log_y=True),
        f"How much sharper a network is if it computes {SENSITIVE} instead of {LEAST}; the step is {step}. {ending}",
        "Curves of ratios over the number of bits, one for each network.",
    )


def _logs(points: Points) -> Points:
    return [(n, math.log(ratio)) for n, ratio in points]


def _values(records: ArchitectureRecords, network: str, target: str, read: Read) -> Points:
    """The number of bits and a value of each run that counts."""
    part = keep_converged(records.where(network=network, target=target))
    return [(float(cell.n), read(record)) for cell, record in part]


def _ratios(records: ArchitectureRecords, network: str, other: str, read: Read) -> Points:
    """The number of bits and the value for parity divided by that for another function, of the same seed.

    Both runs must be there and count.
    """
    by_run = {(cell.target, cell.n, cell.seed): record for cell, record in records.where(network=network)}
    found = []
    for (target, n, seed), record in by_run.items():
        beside = by_run.get((other, n, seed))  # further seeds have not all functions
        if target == SENSITIVE and record.has_converged and beside is not None and beside.has_converged:
            found.append((float(n), read(record) / read(beside)))
    return found


def _sharpness(record: ArchitectureRecord) -> float:
    return record.sharpness


def _relative(record: ArchitectureRecord) -> float:
    return record.relative_sharpness
