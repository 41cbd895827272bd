"""What the studies of paper 2 share: networks trained on one function of n bits, measured, and filtered by one rule."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from matplotlib.figure import Figure

from jostle.base.errors import UsageError
from jostle.base.progress import State
from jostle.base.store import Record
from jostle.figures import Series, curves
from jostle.studies.records import Records
from jostle.studies.settings import Settings
from jostle.studies.study import Context
from jostle.studies.verdict import Expectation, beyond, holds_for_all
from jostle_papers.p2402_09963 import hardness
from jostle_papers.p2402_09963.hardness import CONVERGED, HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.tasks import derive_seed
from jostle_papers.trained import mean_and_range

TRAINED = 0.85  # share of a cell's time

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
class Training(Settings):
    """How networks are trained and measured; the rest is the study's.

    Arguments:
        lengths: numbers of bits n.
        dim: of the network's tokens.
        batch_size, lr, weight_decay, steps, fit_loss, settle, curriculum: see ``hardness.Plan``.
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
        """The training, with some of it changed."""
        fields = {field.name for field in dataclasses.fields(HardnessPlan)}
        return HardnessPlan(**{name: value for name, value in vars(self).items() if name in fields} | changed)


AnyTraining = TypeVar("AnyTraining", bound=Training)
AnySettings = TypeVar("AnySettings", bound=Settings)

TINY: dict[str, Any] = {
    "lengths": (3, 4), "dim": 8, "batch_size": 64, "lr": 3e-3, "steps": 120, "settle": 20, "directions": 4,
    "strings": 16,
}  # fmt: skip


def run(target: str, n: int, seed: int, settings: Training, context: Context, **changed: Any) -> Record:
    """Train one network on a function by name and measure it.

    First weights, strings and directions are those of no other function, length or seed: runs are independent, as
    lines through them take them to be.
    """
    task, own = hardness.named_task(target, n), derive_seed(f"a run on {target}", n, seed)
    trained = hardness.train(
        task,
        HardnessDesign(dim=settings.dim),
        settings.plan(**changed),
        seeds=[own],
        folder=context.folder,
        progress=within(context.report, 0.0, TRAINED),
    )
    found = hardness.observe(
        trained.networks[0],
        task,
        directions=settings.directions,
        strings=settings.strings,
        seed=own,
    )
    return {"fitted": trained.fitted[0], "steps": trained.steps, **found.to_dict()}


def check_named(setting: str, given: Sequence[str], *needed: str) -> None:
    """Raise unless a setting names what the verdict is about, before hours are spent on the rest."""
    missing = [name for name in needed if name not in given]
    if missing:
        raise UsageError(f"{setting}={','.join(given)} must have {' and '.join(missing)}, which the verdict is about")


def converged(records: Records[AnyTraining], target: str) -> list[tuple[int, Record]]:
    """Length and record of the runs on a function that count."""
    return [(cell.values["n"], record) for cell, record in records.where(target=target) if record["has_converged"]]


def counted(records: Records[AnyTraining], target: str) -> Expectation:
    """How many of the runs on a function do not count."""
    every = records.where(target=target)
    missing = len(every) - len(converged(records, target))
    return beyond(holds_for_all(f"{target}: every run converged, loss below {CONVERGED:g}", missing, len(every)))


def left_out(records: Records[AnySettings]) -> str:
    """How many runs are not drawn, for a caption."""
    missing = [cell.key for cell, record in records if not record["has_converged"]]
    said = f"{len(missing)} of {len(records)} runs did not converge and are left out"
    return f"{said}: {', '.join(missing)}." if missing else f"All {len(records)} runs converged."


def over_lengths(
    lines: Mapping[str, Sequence[tuple[float, float]]], label: str, *, log_x: bool = False, log_y: bool = False
) -> Figure:
    """Curves over the number of bits with the mean and the range of the runs of each length.

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
        return curves([Series("no run converged", [], [])], x_label="number of bits n", y_label=label)
    return curves(series, x_label="number of bits n", y_label=label, log_x=log_x, log_y=log_y)


def within(report: Callable[[State], None], start: float, end: float) -> Callable[[State], None]:
    """``report`` for a part of the work that goes from one share to another."""
    return lambda state: report(dataclasses.replace(state, share=start + (end - start) * state.share))
