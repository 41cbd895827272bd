"""Length generalisation: what networks trained on short strings make of longer ones, with a scratchpad and without."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from jostle import figures
from jostle.base.progress import part_of
from jostle.figures import Series
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    Measured,
    bounded,
    over_sample,
    unpaired,
)
from jostle.studies.records import Records
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, is_below, within
from jostle_papers.p2402_09963.hardness import HardnessDesign, HardnessPlan
from jostle_papers.p2402_09963.hardness.lengths import BitNetwork, Span, accuracy, train_encoder, train_writer
from jostle_papers.p2402_09963.runs import TRAINED, FitRecord

SCRATCHPAD, SENSITIVE = "scratchpad", "parity"
LEARNT = 0.99
"""A run counts if its accuracy, on average over the lengths of training, is larger."""

_CHANCE = 0.5
HALFWAY = -0.25  # from right answers to those of a coin


@dataclass(frozen=True, kw_only=True)
class LengthSettings(Settings):
    """What is trained.

    Arguments:
        controls: functions beside PARITY that are learnt without a scratchpad.
        shortest, longest: lengths of training; longer ones are tried up to twice the longest.
        dim, batch_size, lr, steps, settle: of networks without a scratchpad, as in ``HardnessPlan``.
        groups: into which their strings of a step are divided, each at an offset of its own.
        pad_dim, pad_batch_size, pad_lr, pad_steps, pad_settle: of networks with one.
        fit_loss, weight_decay: of both.
        tests, places: strings of each length, and offsets in the table of positions.
    """

    seeds: int = 5
    controls: tuple[str, ...] = ("majority", "first")
    shortest: int = 4
    longest: int = 6
    dim: int = 64
    batch_size: int = 256
    groups: int = 8
    lr: float = 1e-3
    steps: int = 8000
    settle: int = 300
    pad_dim: int = 32
    pad_batch_size: int = 128
    pad_lr: float = 2e-3
    pad_steps: int = 3000
    pad_settle: int = 300
    fit_loss: float = 0.02
    weight_decay: float = 0.1
    tests: int = 512
    places: int = 4

    @property
    def span(self) -> Span:
        """Lengths of training, and twice as many positions as its longest string has bits."""
        return Span(shortest=self.shortest, longest=self.longest, table=2 * self.longest)

    def kinds(self) -> list[str]:
        """The scratchpad, and the functions that are learnt without one."""
        return [SCRATCHPAD, SENSITIVE, *self.controls]


@dataclass(frozen=True)
class LengthCell(Cell):
    """A network with a scratchpad, or one without that learns a function."""

    kind: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class LengthRecord(FitRecord):
    """The accuracy at each of some lengths."""

    lengths: tuple[int, ...]
    accuracy: tuple[float, ...]

    def trained_accuracy(self, longest: int) -> float:
        """The mean over the lengths of training."""
        pairs = zip(self.lengths, self.accuracy, strict=True)
        return statistics.fmean(value for length, value in pairs if length <= longest)

    def longer_accuracy(self, longest: int) -> float:
        """The mean over the longer ones."""
        pairs = zip(self.lengths, self.accuracy, strict=True)
        return statistics.fmean(value for length, value in pairs if length > longest)


LengthRecords = Records[LengthSettings, LengthCell, LengthRecord]


@register
class LengthGeneralisation(Study[LengthSettings, LengthCell, LengthRecord]):
    """Accuracy on strings up to twice as long as those of training."""

    name = "2402.09963/length-generalisation"
    title = "PARITY on longer strings than those of training"
    claim = (
        "Low sensitivity is what training prefers, so that PARITY learnt from short strings does not carry over to "
        "longer ones; with a scratchpad each step has low sensitivity, and that obstacle is gone."
    )
    source = "Discussion of length generalisation and Theorem 7"
    version = 2
    scales = {
        "smoke": LengthSettings(
            seeds=1, controls=("first",), shortest=2, longest=3, dim=8, batch_size=32, lr=5e-3, steps=60, settle=20,
            pad_dim=8, pad_batch_size=32, pad_lr=5e-3, pad_steps=60, pad_settle=20, tests=16, places=2,
        ),
        "small": LengthSettings(),
        "paper": LengthSettings(
            seeds=10, longest=20, dim=128, batch_size=1024, lr=3e-4, steps=10_000, fit_loss=0.0, pad_lr=3e-4,
            pad_steps=10_000, tests=4096,
        ),
    }  # fmt: skip
    deviations = (
        "The paper has no such experiment: it explains with its theory what others have found. Lengths, positions and "
        "sizes are ours.",
        "Every step has strings of one length, at a random offset into a table of positions that is twice as long as "
        "the longest string of training, so that every position of a longer string was trained; without a scratchpad "
        "the strings of a step are in eight groups with offsets of their own.",
        "Both kinds learn from fresh strings until their smoothed loss is below fit_loss, and then for `settle` steps "
        "in which the learning rate goes down to 0; at paper scale for 10,000.",
        f"A run counts if its accuracy is above {LEARNT:g} on average over the lengths of training; with a scratchpad "
        "the network writes all symbols itself and the last is its answer. Others are recorded, counted and left out.",
        "Lengths 4 to 6 are trained on and 7 to 12 tried at small scale; networks have dim 64 without a scratchpad "
        "and 32 with one.",
    )

    def cells(self, settings: LengthSettings, seeds: Sequence[int]) -> list[LengthCell]:
        return [LengthCell(kind, seed) for seed in seeds for kind in settings.kinds()]

    def measure(self, cell: LengthCell, settings: LengthSettings, context: Context) -> LengthRecord:
        span = settings.span
        network, fitted, steps = _train(cell, settings, context)
        target = SENSITIVE if cell.kind == SCRATCHPAD else cell.kind
        lengths = tuple(range(span.shortest, span.table + 1))
        accuracies = tuple(
            accuracy(network, target, length, tests=settings.tests, places=settings.places, seed=cell.seed)
            for length in lengths
        )
        return LengthRecord(fitted=fitted, steps=steps, lengths=lengths, accuracy=accuracies)

    def figures(self, records: LengthRecords) -> list[Drawing]:
        series = [line for kind in records.settings.kinds() if (line := _by_length(records, kind))]
        longest = records.settings.longest
        missing = len(records) - sum(len(counting(records, kind)) for kind in records.settings.kinds())
        return [
            Drawing(
                "accuracy",
                figures.curves(
                    series or [Series("no run has learnt", [], [])], x_label="number of bits n", y_label="accuracy"
                ),
                f"Accuracy on strings of each length after training on {records.settings.shortest} to {longest} bits; "
                "the mean over seeds with its 95 % interval (Student), or their range where seeds are few or equal. "
                f"{missing} of {len(records)} runs did not learn the lengths of training and are left out.",
                "Curves of accuracy over the number of bits, one for the scratchpad and one for each function.",
            )
        ]

    def expectations(self, records: LengthRecords) -> list[Expectation]:
        settings = records.settings
        longer = f"{settings.longest + 1} to {2 * settings.longest} bits"
        plain, pad = (_longer(records, kind) for kind in (SENSITIVE, SCRATCHPAD))
        learnt = [record.trained_accuracy(settings.longest) for record in counting(records, SENSITIVE)]
        fall = [after - before for after, before in zip(plain, learnt, strict=True)]
        return [
            is_below(f"{SENSITIVE}: accuracy on {longer} - on those of training", over_sample(fall, "runs"), HALFWAY),
            is_above(f"accuracy on {longer}, {SCRATCHPAD} - none", unpaired(pad, plain), 0.0),
            *(beyond(each) for each in _further(records, longer)),
        ]


def counting(records: LengthRecords, kind: str) -> list[LengthRecord]:
    """The records of a kind whose networks have learnt the lengths of training."""
    longest = records.settings.longest
    return [record for _, record in records.where(kind=kind) if record.trained_accuracy(longest) > LEARNT]


def _longer(records: LengthRecords, kind: str) -> list[float]:
    return [record.longer_accuracy(records.settings.longest) for record in counting(records, kind)]


def _at(records: LengthRecords, kind: str, length: int) -> list[float]:
    return [record.accuracy[record.lengths.index(length)] for record in counting(records, kind)]


def _further(records: LengthRecords, longer: str) -> list[Expectation]:
    """Chance, the ends of the range, the controls, and the runs that do not count."""
    longest = records.settings.longest
    plain, pad = (_longer(records, kind) for kind in (SENSITIVE, SCRATCHPAD))

    def share(values: list[float]) -> Measured:
        return bounded(over_sample(values, "runs"), 0.0, 1.0)

    found = [
        within(f"{SENSITIVE}: accuracy on {longer}", over_sample(plain, "runs"), _CHANCE, 0.1),
        is_above(f"{SCRATCHPAD}: accuracy on {longer}", share(pad), 0.9),
        *(
            is_above(f"{SCRATCHPAD}: accuracy on {n} bits", share(_at(records, SCRATCHPAD, n)), 0.9)
            for n in (longest + 1, 2 * longest)
        ),
    ]
    for control in records.settings.controls:
        statement = f"accuracy on {longer}, {control} - {SENSITIVE}, both without a scratchpad"
        found.append(is_above(statement, unpaired(_longer(records, control), plain), 0.0))
    for kind in records.settings.kinds():
        every, held = records.where(kind=kind), counting(records, kind)
        statement = f"{kind}: every run has learnt the lengths of training"
        found.append(holds_for_all(statement, len(every) - len(held), len(every)))
    return found


def _train(cell: LengthCell, settings: LengthSettings, context: Context) -> tuple[BitNetwork, int | None, int]:
    progress = part_of(context.report, 0.0, TRAINED)
    if cell.kind == SCRATCHPAD:
        plan = _plan(settings, settings.pad_batch_size, settings.pad_lr, settings.pad_steps, settings.pad_settle)
        return train_writer(
            settings.span, plan, dim=settings.pad_dim, seed=cell.seed, folder=context.folder, progress=progress
        )
    plan = _plan(settings, settings.batch_size, settings.lr, settings.steps, settings.settle)
    design = HardnessDesign(dim=settings.dim)
    return train_encoder(
        cell.kind,
        settings.span,
        design,
        plan,
        groups=settings.groups,
        seed=cell.seed,
        folder=context.folder,
        progress=progress,
    )


def _plan(settings: LengthSettings, batch_size: int, lr: float, steps: int, settle: int) -> HardnessPlan:
    return HardnessPlan(
        batch_size=batch_size, lr=lr, weight_decay=settings.weight_decay, steps=steps, fit_loss=settings.fit_loss,
        settle=settle,
    )  # fmt: skip


def _by_length(records: LengthRecords, kind: str) -> Series | None:
    held = counting(records, kind)
    if not held:
        return None
    means, lows, highs = [], [], []
    for values in zip(*(record.accuracy for record in held), strict=True):
        found = over_sample(values, "runs")
        low, high = (min(values), max(values)) if found.doubt else found.ends(0.95)
        means.append(found.value)
        lows.append(max(low, 0.0))
        highs.append(min(high, 1.0))
    return Series(kind, [float(length) for length in held[0].lengths], means, lows, highs)
