"""Random weights: how many transformers compute a constant, and how many have strings where no bit matters."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jostle import figures
from jostle.boolean import random_functions, random_networks
from jostle.figures import Series
from jostle.intervals import fixed
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    over_sample,
    proportion,
    unpaired,
)
from jostle.studies.records import Records
from jostle.studies.schema import IfGiven, Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below, within

INITS: dict[str, tuple[str, float]] = {
    "default": ("default", 1.0),
    "xavier uniform": ("xavier-uniform", 1.0),
    "xavier normal": ("xavier-normal", 1.0),
    "gaussian 1": ("gaussian", 1.0),
    "uniform 1": ("uniform", 1.0),
}
READS = {"end": "read at an end symbol", "last": "read at the last bit"}
THRESHOLDS = {"zero": "sign of the logit", "median": "split at its median"}
CONTROL = "random function"
ALMOST_ALL = 0.95
_CONTROL_SHARE = 1 - float(np.exp(-1))  # of random functions that have a string of sensitivity 0, for large n


@dataclass(frozen=True, kw_only=True)
class RandomInitSettings(Settings):
    """Which networks are drawn.

    Arguments:
        seeds: ensembles of each kind.
        count: networks of an ensemble.
        n: bits, all 2^n strings of which are tried.
        dim, depth: of the networks.
    """

    seeds: int = 3
    count: int = 50
    n: int = 10
    dim: int = 64
    depth: int = 2


@dataclass(frozen=True)
class RandomInitCell(Cell):
    """An ensemble of networks, or of random functions."""

    init: str
    read: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class EnsembleRecord(Struct):
    """Sensitivity and constancy of each member of an ensemble."""

    total_sensitivity: tuple[float, ...]
    zero_share: tuple[float, ...]
    has_zero: tuple[bool, ...]
    is_constant: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class RandomInitRecord(Struct):
    """The same ensemble with its outputs split at 0, and networks also at the median of their outputs."""

    zero: EnsembleRecord
    median: IfGiven[EnsembleRecord | None] = None

    def split_at(self, threshold: str) -> EnsembleRecord:
        """The ensemble split at ``zero`` or at the ``median``."""
        found = self.median if threshold == "median" else self.zero
        assert found is not None, "random functions are not split at a median"
        return found


RandomInitRecords = Records[RandomInitSettings, RandomInitCell, RandomInitRecord]
Flags = Callable[[EnsembleRecord], tuple[bool, ...]]


@register
class RandomInit(Study[RandomInitSettings, RandomInitCell, RandomInitRecord]):
    """Constant functions and strings of sensitivity 0 among transformers with random weights, exactly."""

    name = "2402.09963/random-init"
    title = "What transformers compute before they are trained"
    claim = (
        "Transformers with random weights compute functions of low sensitivity; read at an end symbol, practically "
        "each of them has strings at which no single bit changes the output."
    )
    source = "2402.09963, on random initialisation; 2606.08768, Theorem 4.5 and its experiments"
    version = 1
    scales = {
        "smoke": RandomInitSettings(seeds=1, count=4, n=5, dim=8),
        "small": RandomInitSettings(),
        "paper": RandomInitSettings(seeds=10, count=200),
    }
    deviations = (
        "The follow-up samples its sizes and does not state them; here dim 64, two layers and two heads, post-norm.",
        "Besides the sign of the logit, its split at the median over all strings: with the sign most networks of "
        "torch's own initialisation are constant, and a constant is trivially insensitive.",
        "Paper 2's code reads at the last bit, which networks with torch's own weights lean on; the follow-up appends "
        "an end symbol.",
        "The follow-up's theorem is about layer norms with eps = 0 and long strings; here eps = 1e-5, n = 10. Blocks "
        "have weights of their own, where paper 2's start from equal ones.",
    )

    def cells(self, settings: RandomInitSettings, seeds: Sequence[int]) -> list[RandomInitCell]:
        networks = [RandomInitCell(init, read, seed) for init in INITS for read in READS for seed in seeds]
        return [*networks, *(RandomInitCell(CONTROL, "none", seed) for seed in seeds)]

    def measure(self, cell: RandomInitCell, settings: RandomInitSettings, context: Context) -> RandomInitRecord:
        if cell.init == CONTROL:
            ensembles = {"zero": random_functions(settings.n, settings.count, seed=cell.seed)}
        else:
            rule, scale = INITS[cell.init]
            ensembles = {
                threshold: random_networks(
                    "transformer", settings.n, settings.count, init=rule, scale=scale, seed=cell.seed,
                    threshold=threshold, dim=settings.dim, depth=settings.depth, read=cell.read,
                )
                for threshold in THRESHOLDS
            }  # fmt: skip
        return RandomInitRecord(
            **{
                threshold: EnsembleRecord(
                    total_sensitivity=tuple(ensemble.total_sensitivity.tolist()),
                    zero_share=tuple(ensemble.zero_share.tolist()),
                    has_zero=tuple(bool(flag) for flag in ensemble.has_zero),
                    is_constant=tuple(bool(flag) for flag in ensemble.is_constant),
                )
                for threshold, ensemble in ensembles.items()
            }
        )

    def figures(self, records: RandomInitRecords) -> list[Drawing]:
        return [
            _draw(records, "has-zero", _has_zero, "zero", "share of networks with a string of sensitivity 0"),
            _draw(
                records, "has-zero", _has_zero, "median", "share with a string of sensitivity 0, split at the median"
            ),
            _draw(records, "is-constant", _is_constant, "zero", "share of networks that compute a constant"),
        ]

    def expectations(self, records: RandomInitRecords) -> list[Expectation]:
        found = []
        for init in INITS:
            statement = f"{init}, {READS['end']}: share with a string of sensitivity 0"
            share = proportion(*_count(records, init, "end", _has_zero))
            found.append(is_above(statement, share, ALMOST_ALL))
            totals = [
                total for ensemble in _ensembles(records, init, "end", "zero") for total in ensemble.total_sensitivity
            ]
            gap = over_sample([total - records.settings.n / 2 for total in totals], "networks")
            found.append(is_below(f"{init}: average sensitivity - n / 2, that of random functions", gap, 0.0))
        return [*found, *(beyond(each) for each in _further(records))]


def _further(records: RandomInitRecords) -> list[Expectation]:
    """The control, constants, balanced functions, and where the network is read."""
    asked = [
        within(
            "random functions: share with a string of sensitivity 0",
            proportion(*_count(records, CONTROL, "none", _has_zero)), _CONTROL_SHARE, 0.15,
        ),
        is_above(
            "default: share of constant functions", proportion(*_count(records, "default", "end", _is_constant)), 0.5
        ),
    ]  # fmt: skip
    for init in INITS:
        share = proportion(*_count(records, init, "end", _has_zero, "median"))
        asked.append(is_above(f"{init}, split at the median: share with a string of sensitivity 0", share, ALMOST_ALL))
    ends = [[float(flag) for flag in _flags(records, "default", read, _has_zero, "median")] for read in READS]
    statement = "default, split at the median: share with such a string, read at the end - at the last bit"
    return [*asked, is_above(statement, unpaired(*ends), 0.0)]


def _ensembles(records: RandomInitRecords, init: str, read: str, threshold: str) -> list[EnsembleRecord]:
    """All ensembles of a kind."""
    return records.where(init=init, read=read).column(lambda record: record.split_at(threshold))


def _flags(records: RandomInitRecords, init: str, read: str, has: Flags, threshold: str = "zero") -> list[bool]:
    """One flag for each network of a kind."""
    return [flag for ensemble in _ensembles(records, init, read, threshold) for flag in has(ensemble)]


def _count(records: RandomInitRecords, init: str, read: str, has: Flags, threshold: str = "zero") -> tuple[int, int]:
    """The number of networks of a kind that have something, and of all."""
    flags = _flags(records, init, read, has, threshold)
    return sum(flags), len(flags)


def _draw(records: RandomInitRecords, stem: str, has: Flags, threshold: str, label: str) -> Drawing:
    rows: dict[str, list[Series]] = {init: [] for init in INITS}
    for init in INITS:
        for read, name in READS.items():
            successes, trials = _count(records, init, read, has, threshold)
            low, high = fixed.clopper_pearson(successes, trials, 0.95)
            rows[init].append(Series(name, [0.0], [successes / trials], [float(low)], [float(high)]))
    return Drawing(
        f"{stem}-{threshold}",
        figures.dots(rows, x_label=label),
        f"The {label} among {trials} transformers of each kind on {records.settings.n} bits ({THRESHOLDS[threshold]}), "
        "with 95 % intervals of Clopper and Pearson.",
        "Shares with whiskers, by initialisation.",
    )


def _has_zero(ensemble: EnsembleRecord) -> tuple[bool, ...]:
    return ensemble.has_zero


def _is_constant(ensemble: EnsembleRecord) -> tuple[bool, ...]:
    return ensemble.is_constant
