"""Lemma 9, Theorem 4 and Corollary 5 on networks, at all their strings: sensitivity needs blow-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jostle.base.progress import part_of
from jostle.studies.catalogue import register
from jostle.studies.evidence import exact
from jostle.studies.records import Records
from jostle.studies.study import Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_below
from jostle_papers.p2402_09963 import bounds, hardness, runs
from jostle_papers.p2402_09963.bounds import CONSTANT, LeastConstants
from jostle_papers.p2402_09963.hardness import TARGETS, HardnessDesign
from jostle_papers.p2402_09963.hardness.tasks import derive_seed
from jostle_papers.p2402_09963.runs import RunCell, RunRecord, RunSettings, keep_converged

SENSITIVE = "parity"


@dataclass(frozen=True, kw_only=True)
class Theorem4Settings(RunSettings):
    """What is trained.

    Arguments:
        targets: functions by name; parity is one of them.
    """

    targets: tuple[str, ...] = TARGETS

    def __post_init__(self) -> None:
        runs.check_named("targets", self.targets, SENSITIVE)


@dataclass(frozen=True, kw_only=True)
class Theorem4Record(RunRecord):
    """What is measured of a network, with the least constants before training and after it."""

    before: LeastConstants
    after: LeastConstants


Theorem4Records = Records[Theorem4Settings, RunCell, Theorem4Record]
Read = Callable[[LeastConstants], float]

READ: dict[str, Read] = {
    "Lemma 9": lambda found: found.lemma,
    "Theorem 4": lambda found: found.theorem,
    "Corollary 5": lambda found: found.corollary,
}


@register
class Theorem4(Study[Theorem4Settings, RunCell, Theorem4Record]):
    """The least constants of three inequalities, for networks that compute functions and for untrained ones."""

    name = "2402.09963/theorem-4"
    title = "Sensitivity needs blow-up: the inequalities of the paper at all strings"
    claim = (
        "The sensitivity of a transformer is bounded by its layer-norm blow-up: Lemma 9, Theorem 4 and Corollary 5 "
        "hold with the constant 1 (our choice; the paper's depends on the weights) for networks of dim 32, trained or "
        "not, at all strings of 4 to 10 bits."
    )
    source = "Lemma 9, Theorem 4 and Corollary 5"
    version = 1
    scales = {
        "smoke": Theorem4Settings(seeds=1, targets=("parity", "majority"), **runs.TINY),
        "small": Theorem4Settings(lengths=(4, 6, 8, 10), dim=32, lr=1e-3, steps=5000, settle=600),
        "paper": Theorem4Settings(seeds=10, lengths=tuple(range(4, 13)), steps=10_000, fit_loss=0.0, strings=1024),
    }
    deviations = (
        "The paper's text was not at hand; the inequalities are those of notes on it. Its constant is a function of "
        "the weights that is not known here exactly, and would be too large for anything to violate it. What is "
        "computed is the least constant with which an inequality holds.",
        "The theorem allows a share of 2 / n^2 of the strings to violate it; here all of them count.",
        "The paper's layers have one norm, those of its experiments two. Blow-up is the product over all of them.",
        "The paper has no experiment on this. Networks have dim 32 at small scale, and 4 to 10 bits.",
        runs.STOPPED,
        "Networks that do not fit count too: the inequalities are about all weights.",
    )

    def cells(self, settings: Theorem4Settings, seeds: Sequence[int]) -> list[RunCell]:
        return [
            RunCell(target, n, seed)
            for seed in seeds
            for n in sorted(settings.lengths, reverse=True)
            for target in settings.targets
        ]

    def measure(self, cell: RunCell, settings: Theorem4Settings, context: Context) -> Theorem4Record:
        task, own = hardness.named_task(cell.target, cell.n), derive_seed(f"a run on {cell.target}", cell.n, cell.seed)
        design = HardnessDesign(dim=settings.dim)
        trained = hardness.train(
            task, design, settings.plan(), seeds=[own], folder=context.folder,
            progress=part_of(context.report, 0.0, runs.TRAINED),
        )  # fmt: skip
        (network,) = trained.networks
        found = hardness.observe(network, task, directions=settings.directions, strings=settings.strings, seed=own)
        return Theorem4Record(
            fitted=trained.fitted[0],
            steps=trained.steps,
            **vars(found),
            before=bounds.least_constants(design.create(cell.n, own), cell.n),
            after=bounds.least_constants(network, cell.n),
        )

    def figures(self, records: Theorem4Records) -> list[Drawing]:
        return [_draw(records, name, read) for name, read in READ.items() if name != "Corollary 5"]

    def expectations(self, records: Theorem4Records) -> list[Expectation]:
        claimed, asked = [], []
        for name, read in READ.items():
            constants = [read(found) for _, record in records for found in (record.before, record.after)]
            missed = sum(not constant <= CONSTANT for constant in constants)  # NaN too
            statement = f"{name} holds with the constant {CONSTANT:g} for every network, before training and after it"
            claimed.append(holds_for_all(statement, missed, len(constants)))
            for target in records.settings.targets:
                worst = max((read(record.after) for _, record in records.where(target=target)), default=0.0)
                what = f"{target}: the least constant of {name}, the largest over trained networks"
                asked.append(is_below(what, exact(worst), CONSTANT))
        asked += [runs.expect_convergence(records, target) for target in records.settings.targets]
        return [*claimed, *(beyond(each) for each in asked)]


def _draw(records: Theorem4Records, name: str, read: Read) -> Drawing:
    lines = {
        target: [
            (float(cell.n), read(record.after)) for cell, record in keep_converged(records.where(target=target))
        ]
        for target in records.settings.targets
    }  # fmt: skip
    lines["untrained"] = [(float(cell.n), read(record.before)) for cell, record in records]
    return Drawing(
        name.lower().replace(" ", "-"),
        runs.over_lengths(lines, f"least constant of {name}", log_y=True),
        f"The least constant with which {name} holds for a network at all its strings; the mean and the range over "
        f"networks. Below 1 the inequality holds with the constant 1. {runs.say_left_out(records)}",
        "Curves over the number of bits, one for each function, and one for networks before training.",
    )
