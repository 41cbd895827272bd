"""What the studies of paper 2 share: networks trained on one function of n bits, measured, and filtered by one rule."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jostle import figures
from jostle.base.errors import UsageError
from jostle.base.progress import part_of
from jostle.figures import Series
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context
from jostle.studies.verdict import Expectation, beyond, holds_for_all
from jostle_papers.p2402_09963 import hardness
from jostle_papers.p2402_09963.hardness import CONVERGED, HardnessDesign, HardnessPlan, Observation
from jostle_papers.p2402_09963.hardness.tasks import derive_seed
from jostle_papers.trained import mean_and_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINED = 0.85  # share of a cell's time that training takes

STOPPED = (
    "A network that fits (smoothed loss below fit_loss times 4 Var(label)) is trained for another `settle` steps, in "
    "which the learning rate goes down to 0, instead of 10,000 steps at a constant one; at paper scale it is as in the "
    "paper. Levels of sharpness are those of networks that have just fitted; compare slopes."
)
FILTERED = (
    f"Runs with a mean squared error of {CONVERGED:g} or more (labels 0 and 1; on all strings up to 12 bits, on 4,096 "
    "fresh ones beyond) are recorded and left out of figures and slopes, as in the paper; how many is a finding."
)
FRESH = (
    "Sharpness is the paper's: squared change of the function over 100 directions on the sphere, others for every run. "
    "The released code's increase of the loss under Gaussian steps, there along ten directions that never change, is "
    "recorded too."
)


@dataclass(frozen=True, kw_only=True)
class RunSettings(Settings):
    """How networks are trained and measured; a study adds what it trains.

    Arguments:
        lengths: numbers of bits n.
        dim: of the network's tokens.
        batch_size, lr, weight_decay, steps, fit_loss, settle, curriculum: as in ``HardnessPlan``.
        directions, strings: on which sharpness is measured.
    """

    lengths: tuple[int, ...] = (4, 8, 12, 16)
    dim: int = 128
    batch_size: int = 1024
    lr: float = 3e-4
    weight_decay: float = 0.1
    steps: int = 2500
    fit_loss: float = 0.02
    settle: int = 300
    curriculum: tuple[int, ...] = ()
    directions: int = 100
    strings: int = 256

    def plan(self, **changed: Any) -> HardnessPlan:
        """The training, with some of its fields changed."""
        return plan_of(self, **changed)


@dataclass(frozen=True)
class RunCell(Cell):
    """A network on a function of n bits."""

    target: str
    n: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class FitRecord(Struct):
    """The step after which a network had fitted, if it had, and all steps."""

    fitted: int | None
    steps: int


@dataclass(frozen=True, kw_only=True)
class RunRecord(Observation, FitRecord):
    """How a network was trained, then what was measured of it."""


class Converging(Protocol):
    """A record that says whether its run counts."""

    @property
    def has_converged(self) -> bool:
        """Whether it does."""


SomeSettings = TypeVar("SomeSettings", bound=Settings)
SomeCell = TypeVar("SomeCell", bound=Cell)
SomeRecord = TypeVar("SomeRecord", bound=Converging)

TINY: dict[str, Any] = {
    "lengths": (3, 4), "dim": 8, "batch_size": 64, "lr": 3e-3, "steps": 120, "settle": 20, "directions": 4,
    "strings": 16,
}  # fmt: skip


def plan_of(settings: Settings, **changed: Any) -> HardnessPlan:
    """The plan whose fields are those of ``settings`` with the same names, with some of them changed."""
    fields = {field.name for field in dataclasses.fields(HardnessPlan)}
    return HardnessPlan(**{name: value for name, value in vars(settings).items() if name in fields} | changed)


def train_and_observe(cell: RunCell, settings: RunSettings, context: Context, **changed: Any) -> RunRecord:
    """Train one network on a function by name and measure it.

    First weights, strings and directions are those of no other function, length or seed: runs are independent, as
    regressions over runs assume.

    Arguments:
        cell: which function, length and seed.
        settings: of the study.
        context: of the cell.
        changed: fields of the plan that differ from the settings.
    """
    task, own = hardness.named_task(cell.target, cell.n), derive_seed(f"a run on {cell.target}", cell.n, cell.seed)
    trained = hardness.train(
        task,
        HardnessDesign(dim=settings.dim),
        settings.plan(**changed),
        seeds=[own],
        folder=context.folder,
        progress=part_of(context.report, 0.0, TRAINED),
    )
    found = hardness.observe(
        trained.networks[0], task, directions=settings.directions, strings=settings.strings, seed=own
    )
    return RunRecord(fitted=trained.fitted[0], steps=trained.steps, **vars(found))


def check_named(setting: str, given: Sequence[str], *needed: str) -> None:
    """Raise unless a setting names what the verdict is about, before hours are spent on the rest."""
    missing = [name for name in needed if name not in given]
    if missing:
        raise UsageError(f"{setting}={','.join(given)} must have {' and '.join(missing)}, which the verdict is about")


def keep_converged(records: Records[SomeSettings, SomeCell, SomeRecord]) -> Records[SomeSettings, SomeCell, SomeRecord]:
    """The runs that count."""
    return records.keep(lambda _, record: record.has_converged)


def expect_convergence(records: Records[RunSettings, RunCell, RunRecord], target: str) -> Expectation:
    """That every run on a function counts."""
    every = records.where(target=target)
    missing = len(every) - len(keep_converged(every))
    return beyond(holds_for_all(f"{target}: every run converged, loss below {CONVERGED:g}", missing, len(every)))


def say_left_out(records: Records[SomeSettings, SomeCell, SomeRecord]) -> str:
    """How many runs are not drawn, for a caption."""
    missing = [cell.key for cell, record in records if not record.has_converged]
    text = f"{len(missing)} of {len(records)} runs did not converge and are left out"
    return f"{text}: {', '.join(missing)}." if missing else f"All {len(records)} runs converged."


def over_lengths(
    lines: Mapping[str, Sequence[tuple[float, float]]], label: str, *, log_x: bool = False, log_y: bool = False
) -> "Figure":
    """Curves over the number of bits: the mean and the range of the runs of each length.

    Arguments:
        lines: number of bits and value of each run that counts, by the name of its line; empty ones are left out.
        label: of the values.
        log_x, log_y: logarithmic axes, if there is anything to show.
    """
    series = []
    for name, points in lines.items():
        by_length: dict[float, list[float]] = {}
        for n, value in points:
            by_length.setdefault(float(n), []).append(value)
        if lengths := sorted(by_length):
            series.append(mean_and_range(name, lengths, [by_length[n] for n in lengths]))
    if not series:
        return figures.curves([Series("no run converged", [], [])], x_label="number of bits n", y_label=label)
    return figures.curves(series, x_label="number of bits n", y_label=label, log_x=log_x, log_y=log_y)
