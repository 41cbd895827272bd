"""Figures 3, 12 and 13: sharpness, blow-up and norm while PARITY is learnt, aligned on convergence."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from jostle import figures
from jostle.base.errors import UsageError
from jostle.boolean import functions
from jostle.figures import Series
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    over_sample,
    unpaired,
)
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, is_below
from jostle_papers.p2402_09963 import bounds, hardness
from jostle_papers.p2402_09963.bounds import CorollaryCase
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.course import FITTED, HardnessLook, at, converged_at, drop, follow
from jostle_papers.trained import mean_and_range

SENSITIVE = "parity"
DECAY = 0.1  # that of Figure 3
_SHARE = 0.25  # of the runs that must be there for a mean to be drawn

Read = Callable[[HardnessLook], float]


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Settings):
    """What is trained, and when it is looked at.

    Arguments:
        n: bits.
        decays: weight decays for PARITY; 0.1 is one of them.
        controls: other functions, with weight decay 0.1.
        dim, batch_size, lr, steps: of training, as in ``HardnessPlan``.
        every, later: steps from one look to the next, before convergence and after it.
        soon, late: steps after convergence at which what comes after fitting is compared.
        directions, strings: on which sharpness is measured.
    """

    seeds: int = 5
    n: int = 8
    decays: tuple[float, ...] = (0.0, DECAY, 0.3)
    controls: tuple[str, ...] = ("majority",)
    dim: int = 128
    batch_size: int = 1024
    lr: float = 3e-4
    steps: int = 2000
    every: int = 25
    later: int = 100
    soon: int = 200
    late: int = 1500
    directions: int = 48
    strings: int = 256

    def __post_init__(self) -> None:
        if self.soon % self.later or self.late % self.later:
            raise UsageError(f"soon={self.soon} and late={self.late} must be multiples of later={self.later}")

    def runs(self) -> list[tuple[str, float]]:
        """Functions with their weight decays."""
        return [*((SENSITIVE, decay) for decay in self.decays), *((name, DECAY) for name in self.controls)]


@dataclass(frozen=True)
class LearningCell(Cell):
    """A network on a function, with a weight decay."""

    target: str
    decay: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class LearningRecord(Struct):
    """All looks at a network, a column for each field of ``HardnessLook``.

    Arguments:
        constant: the loss of the best constant.
    """

    constant: float
    step: tuple[int, ...]
    loss: tuple[float, ...]
    accuracy: tuple[float, ...]
    sharpness: tuple[float, ...]
    blowup: tuple[float, ...]
    released_blowup: tuple[float, ...]
    norm: tuple[float, ...]

    def looks(self) -> list[HardnessLook]:
        """The looks, one by one."""
        columns = (getattr(self, field.name) for field in dataclasses.fields(HardnessLook))
        return [HardnessLook(*numbers) for numbers in zip(*columns, strict=True)]


LearningRecords = Records[LearningSettings, LearningCell, LearningRecord]


@dataclass(frozen=True)
class DroppedRun:
    """The looks of a run that counts.

    Arguments:
        looks: all of them.
        before, converged: the two between which the loss drops.
    """

    looks: list[HardnessLook]
    before: HardnessLook
    converged: HardnessLook

    def after(self, steps: int) -> HardnessLook | None:
        """The look so many steps after convergence; None if there is none."""
        return at(self.looks, steps)


@register
class Figure3(Study[LearningSettings, LearningCell, LearningRecord]):
    """Loss, sharpness, blow-up and parameter norm of networks along their training on PARITY."""

    name = "2402.09963/figure-3"
    title = "Sharpness while PARITY is learnt"
    claim = (
        "When the loss on PARITY drops, sharpness rises; afterwards it falls slowly but stays at a value that is not "
        "trivial, while weight decay exchanges parameter norm for blow-up."
    )
    source = "Figures 3, 12 and 13"
    version = 1
    scales = {
        "smoke": LearningSettings(
            seeds=1, n=3, decays=(DECAY,), dim=8, batch_size=64, lr=1e-2, steps=160, every=10, later=20, soon=20,
            late=60, directions=4,
        ),
        "small": LearningSettings(),
        "paper": LearningSettings(
            seeds=101, n=25, decays=(0.0, DECAY, 0.2, 0.3), steps=20_000, every=100, soon=1000, late=10_000,
            directions=500, strings=1024,
        ),
    }  # fmt: skip
    deviations = (
        "8 bits, 5 seeds, three weight decays and 2,000 steps at small scale; the paper has 25 bits, 101 seeds, four "
        "and 20,000. With 8 bits the loss leaves that of a constant after about a hundred steps; with 25 there is a "
        "long plateau before.",
        f"Convergence is the first look with a loss below {FITTED:g}, as in the paper, on all strings where the paper "
        "has a batch; looks are 25 steps apart before it and 100 after.",
        "The drop begins at the last look before convergence whose loss is at least nine tenths of that of the best "
        "constant; the paper has a fixed number of steps for each weight decay.",
        "What comes after fitting is compared at fixed numbers of steps after convergence (`soon` and `late`), not at "
        "the highest value, which would be above the others by its choice.",
        "Sharpness is the paper's squared change of the function on the sphere, along 48 directions that are the same "
        "at all looks at a network and fresh for every seed; the released code has the increase of the loss.",
        "Runs that do not converge, or too late for `late` steps after it, are recorded, counted and left out.",
        "MAJORITY is not in the paper's figure.",
    )

    def cells(self, settings: LearningSettings, seeds: Sequence[int]) -> list[LearningCell]:
        return [LearningCell(target, decay, seed) for seed in seeds for target, decay in settings.runs()]

    def measure(self, cell: LearningCell, settings: LearningSettings, context: Context) -> LearningRecord:
        return follow_cell(cell, settings, context)

    def figures(self, records: LearningRecords) -> list[Drawing]:
        return [
            draw_over_steps(records, "sharpness", "average direction sharpness", lambda look: look.sharpness),
            draw_over_steps(records, "loss", "mean squared error", lambda look: look.loss, log_y=True),
            draw_over_steps(
                records, "released-blowup", "blow-up, as in the released code", lambda look: look.released_blowup
            ),
            draw_over_steps(records, "norm", "parameter norm", lambda look: look.norm),
            *_draw_exchange(records),
        ]

    def expectations(self, records: LearningRecords) -> list[Expectation]:
        found = []
        for target, decay in records.settings.runs():
            asked = _expect_course(records, target, decay)
            found += asked if (target, decay) == (SENSITIVE, DECAY) else [beyond(each) for each in asked]
        found += [beyond(each) for each in _compare(records)]
        return [*found, beyond(bounds.expect_corollary(looked_at(records))), *expect_convergence(records)]


def looked_at(records: LearningRecords) -> list[CorollaryCase]:
    """Every network at every look, trained or not; the square of the mean blow-up is below the mean square."""
    n = records.settings.n
    return [
        CorollaryCase(
            n, float(functions.create(cell.target, n).exact.total_sensitivity or 0), look.loss, look.blowup**2
        )
        for cell, record in records
        for look in record.looks()
    ]


def follow_cell(cell: LearningCell, settings: LearningSettings, context: Context) -> LearningRecord:
    """Train a network and look at it on the way."""
    task = hardness.named_task(cell.target, settings.n)
    plan = HardnessPlan(
        batch_size=settings.batch_size, lr=settings.lr, weight_decay=cell.decay, steps=settings.steps,
        fit_loss=0.0,
    )  # fmt: skip
    looks = follow(
        task, HardnessDesign(dim=settings.dim), plan, seed=cell.seed, every=settings.every,
        later=settings.later, directions=settings.directions, strings=settings.strings, folder=context.folder,
        progress=context.report,
    )  # fmt: skip
    rows = [asdict(look) for look in looks]
    return LearningRecord(constant=task.scale() / 4, **{name: tuple(row[name] for row in rows) for name in rows[0]})


def counting_runs(records: LearningRecords, target: str, decay: float) -> list[DroppedRun]:
    """The runs that count: converged, and early enough for a look ``late`` steps after it."""
    found = []
    for _, record in records.where(target=target, decay=decay):
        looks = record.looks()
        between = drop(looks, record.constant)
        if between is not None and at(looks, records.settings.late) is not None:
            found.append(DroppedRun(looks, *between))
    return found


def _expect_course(records: LearningRecords, target: str, decay: float) -> list[Expectation]:
    """What happens across the drop and after it, as changes within a run."""
    soon, late = records.settings.soon, records.settings.late
    held = counting_runs(records, target, decay)
    where = f"{target}, weight decay {decay:g}"

    def change(
        read: Read, choose: Callable[[DroppedRun], tuple[HardnessLook | None, HardnessLook | None]]
    ) -> list[float]:
        return [read(last) - read(first) for first, last in map(choose, held) if first and last]

    rise = change(_sharpness, lambda run: (run.before, run.converged))
    decline = change(_sharpness, lambda run: (run.after(soon), run.after(late)))
    left = change(_sharpness, lambda run: (run.before, run.after(late)))
    norm = change(lambda look: look.norm, lambda run: (run.converged, run.after(late)))
    blowup = change(lambda look: look.released_blowup, lambda run: (run.converged, run.after(late)))
    span = f"convergence to {late} steps after it"
    found = [is_above(f"{where}: change of sharpness across the drop of the loss", over_sample(rise, "runs"), 0.0)]
    if target == SENSITIVE:
        found += [
            is_below(
                f"{where}: change of sharpness from {soon} to {late} steps after it", over_sample(decline, "runs"), 0.0
            ),
            is_above(
                f"{where}: sharpness {late} steps after convergence - before the drop", over_sample(left, "runs"), 0.0
            ),
        ]
        if decay > 0:  # without it nothing makes the weights smaller
            found.append(is_below(f"{where}: change of the norm from {span}", over_sample(norm, "runs"), 0.0))
            found.append(is_above(f"{where}: change of the blow-up from {span}", over_sample(blowup, "runs"), 0.0))
    return found


def _compare(records: LearningRecords) -> list[Expectation]:
    """PARITY beside the controls, and where the rise is among all changes of a run."""
    late, held = records.settings.late, counting_runs(records, SENSITIVE, DECAY)
    rises, lasts = _rises(held), _levels(held, late)
    asked = []
    for control in records.settings.controls:
        others = counting_runs(records, control, DECAY)
        asked += [
            is_above(
                f"change of sharpness across the drop, {SENSITIVE} - {control}", unpaired(rises, _rises(others)), 0.0
            ),
            is_above(
                f"sharpness {late} steps after, {SENSITIVE} - {control}", unpaired(lasts, _levels(others, late)), 0.0
            ),
        ]
    shares = [
        (last.sharpness - run.before.sharpness) / (run.converged.sharpness - run.before.sharpness)
        for run in held
        if (last := run.after(late)) and run.converged.sharpness > run.before.sharpness
    ]
    asked.append(
        is_above(
            f"{SENSITIVE}: share of the rise, where there is one, that is left {late} steps after",
            over_sample(shares, "runs"),
            0.5,
        )
    )
    elsewhere = sum(not _is_steepest(run) for run in held)
    statement = f"{SENSITIVE}: sharpness rises fastest between two looks of the drop, in every run"
    return [*asked, holds_for_all(statement, elsewhere, len(held))]


def _rises(runs: list[DroppedRun]) -> list[float]:
    return [run.converged.sharpness - run.before.sharpness for run in runs]


def _levels(runs: list[DroppedRun], steps: int) -> list[float]:
    """The sharpness of each run so many steps after convergence."""
    return [look.sharpness for run in runs if (look := run.after(steps))]


def _is_steepest(run: DroppedRun) -> bool:
    """Whether the fastest rise of sharpness from one look to the next is within the drop."""
    pairs = list(itertools.pairwise(run.looks))
    first, last = max(pairs, key=lambda pair: (pair[1].sharpness - pair[0].sharpness) / (pair[1].step - pair[0].step))
    return run.before.step <= first.step and last.step <= run.converged.step


def expect_convergence(records: LearningRecords) -> list[Expectation]:
    """That every run counts, as questions beyond a claim."""
    found = []
    for target, decay in records.settings.runs():
        every, held = records.where(target=target, decay=decay), counting_runs(records, target, decay)
        statement = (
            f"{target}, weight decay {decay:g}: every run converged {records.settings.late} steps before its end"
        )
        found.append(beyond(holds_for_all(statement, len(every) - len(held), len(every))))
    return found


def _say_left_out(records: LearningRecords) -> str:
    held = sum(len(counting_runs(records, *run)) for run in records.settings.runs())
    return f"{len(records) - held} of {len(records)} runs did not converge in time and are left out."


def draw_over_steps(records: LearningRecords, stem: str, label: str, read: Read, *, log_y: bool = False) -> Drawing:
    """A measure against the steps after convergence, a curve for each function and weight decay."""
    series = []
    for target, decay in records.settings.runs():
        by_offset: dict[int, list[float]] = {}
        runs = counting_runs(records, target, decay)
        for run in runs:
            start = converged_at(run.looks) or 0
            for look in run.looks:
                by_offset.setdefault(look.step - start, []).append(read(look))
        offsets = sorted(offset for offset, values in by_offset.items() if len(values) >= _SHARE * len(runs))
        if offsets:
            name = f"{target}, weight decay {decay:g}"
            series.append(mean_and_range(name, [float(o) for o in offsets], [by_offset[o] for o in offsets]))
    return Drawing(
        stem,
        figures.curves(
            series or [Series("no run converged", [], [])], x_label="steps after convergence", y_label=label,
            log_y=log_y and bool(series),
        ),
        f"The {label} against the steps after the first look with a loss below {FITTED:g}, at {records.settings.n} "
        f"bits; the mean and the range over the runs that are there, at least a quarter. {_say_left_out(records)}",
        f"Curves of {label} over steps, one for each function and weight decay.",
    )  # fmt: skip


def _draw_exchange(records: LearningRecords) -> list[Drawing]:
    """Blow-up against norm after convergence, if any run converged."""
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for decay in records.settings.decays:
        runs = counting_runs(records, SENSITIVE, decay)
        looks = [look for run in runs for look in run.looks if look.step >= run.converged.step]
        if looks:
            groups[f"weight decay {decay:g}"] = [look.released_blowup for look in looks], [look.norm for look in looks]
    if not groups:
        return []
    return [
        Drawing(
            "exchange",
            figures.scatter(groups, x_label="blow-up, as in the released code", y_label="parameter norm", log_x=True),
            f"Blow-up and parameter norm of {SENSITIVE} at all looks from convergence on. {_say_left_out(records)}",
            "Points in a plane, coloured by weight decay.",
        )
    ]


def _sharpness(look: HardnessLook) -> float:
    return look.sharpness
