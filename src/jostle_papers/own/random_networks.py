"""What networks compute before they are trained: the sensitivity of networks with random weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jostle import figures
from jostle.boolean import random_functions, random_networks
from jostle.figures import Series
from jostle.intervals import fixed
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    Measured,
    over_sample,
    proportion,
    unpaired,
)
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, is_above, is_below, within

WIDTHS: dict[str, tuple[str, ...]] = {  # the sizes that an architecture calls its width
    "transformer": ("dim",),
    "lstm": ("dim", "hidden"),
    "mlp": ("width",),
    "state-space": ("dim",),
    "mixer": ("dim",),
}
INITS: dict[str, tuple[str, float]] = {
    "uniform 10": ("uniform", 10.0),
    "uniform 1": ("uniform", 1.0),
    "gaussian 1": ("gaussian", 1.0),
    "xavier": ("xavier-uniform", 1.0),
    "default": ("default", 1.0),
}
# The sizes of Bhattamishra et al. 2023, and their depths.
PUBLISHED: dict[str, dict[str, Any]] = {
    "transformer": {"dim": 64, "depth": 4, "heads": 1, "mlp_dim": 128, "positions": "added", "norm": "pre"},
    "lstm": {"dim": 64, "hidden": 64, "depth": 2},
}
PUBLISHED_DEPTHS = {"transformer": 4, "lstm": 2}
CONTROL = "random function"
Threshold = Literal["zero", "median"]  # where a logit becomes a sign
_STANDARD = "uniform 10"  # the initialisation of the sweeps, and of the published protocol
_CONTROL_SHARE = 1 - np.exp(-1)  # of random functions that have an input of sensitivity 0, for large n


@dataclass(frozen=True, kw_only=True)
class RandomNetworkSettings(Settings):
    """Which networks are drawn.

    Arguments:
        seeds: ensembles of each kind.
        count: networks in an ensemble.
        n: bits, unless swept.
        width, depth: of all architectures, unless swept.
        lengths, depths: the sweeps.
        architectures: by name.
    """

    seeds: int = 5
    count: int = 40
    n: int = 10
    width: int = 32
    depth: int = 2
    lengths: tuple[int, ...] = (4, 6, 8, 10, 12)
    depths: tuple[int, ...] = (1, 2, 4)
    architectures: tuple[str, ...] = ("transformer", "lstm", "mlp", "state-space", "mixer")


@dataclass(frozen=True)
class WeightsCell(Cell):
    """An ensemble of networks of one kind, or of random functions."""

    architecture: str
    init: str
    depth: int
    n: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class WeightsRecord(Struct):
    """What an ensemble of networks computes.

    Arguments:
        total_sensitivity, zero_share, has_zero, is_constant: (networks,) S, the share of inputs of sensitivity 0,
            whether there is one, and whether the function is constant.
        profile: (n + 1,) the share of inputs with each sensitivity, mean over networks.
    """

    total_sensitivity: tuple[float, ...]
    zero_share: tuple[float, ...]
    has_zero: tuple[bool, ...]
    is_constant: tuple[bool, ...]
    profile: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ThresholdsRecord(Struct):
    """The same ensemble with signs of the logits, and with logits compared with their median over the inputs."""

    zero: WeightsRecord
    median: WeightsRecord

    def at(self, threshold: Threshold) -> WeightsRecord:
        """The ensemble at one threshold."""
        return self.zero if threshold == "zero" else self.median


RandomNetworkRecords = Records[RandomNetworkSettings, WeightsCell, ThresholdsRecord]


@register
class RandomNetworks(Study[RandomNetworkSettings, WeightsCell, ThresholdsRecord]):
    """Total sensitivity, and inputs of sensitivity 0, of networks with random weights on all 2^n inputs."""

    name = "jostle/random-networks"
    title = "The sensitivity of networks with random weights"
    claim = (
        "Transformers with random weights compute less sensitive functions than LSTMs with random weights "
        "(Bhattamishra et al. 2023), and practically all of them have inputs of sensitivity 0 (2606.08768)."
    )
    source = "Bhattamishra et al. 2023, random transformers and LSTMs; 2606.08768, sensitivity profiles"
    version = 1
    scales = {
        "smoke": RandomNetworkSettings(seeds=1, count=5, n=6, width=16, lengths=(4, 6), depths=(1, 2)),
        "small": RandomNetworkSettings(),
        "paper": RandomNetworkSettings(
            seeds=5, count=200, width=64, lengths=(4, 6, 8, 10, 12, 14), depths=(1, 2, 4, 8)
        ),
    }
    deviations = (
        "All 2^n inputs of up to 12 bits are evaluated, so that sensitivities are exact; the published protocol "
        "samples inputs beyond 12 bits.",
        "Besides its sign, the logit is also compared with its median over the inputs: the signs of random logits "
        "are often constant, and a constant is trivially insensitive.",
        "Beyond the papers: MLPs, a state-space model and an MLP-Mixer, of equal width and depth.",
    )

    def cells(self, settings: RandomNetworkSettings, seeds: Sequence[int]) -> list[WeightsCell]:
        points = [(name, settings.depth, settings.n) for name in INITS]
        points += [(_STANDARD, depth, settings.n) for depth in settings.depths if depth != settings.depth]
        points += [(_STANDARD, settings.depth, n) for n in settings.lengths if n != settings.n]
        swept = [
            WeightsCell(architecture, init, depth, n, seed)
            for architecture in settings.architectures
            for init, depth, n in points
            for seed in seeds
        ]
        published = [
            WeightsCell(f"published {name}", _STANDARD, depth, settings.n, seed)
            for name, depth in PUBLISHED_DEPTHS.items()
            for seed in seeds
        ]
        lengths = sorted({*settings.lengths, settings.n})
        control = [WeightsCell(CONTROL, "none", 0, n, seed) for n in lengths for seed in seeds]
        return [*swept, *published, *control]

    def measure(self, cell: WeightsCell, settings: RandomNetworkSettings, context: Context) -> ThresholdsRecord:
        zero, median = _draw_ensemble(cell, settings, "zero"), _draw_ensemble(cell, settings, "median")
        return ThresholdsRecord(zero=zero, median=median)

    def figures(self, records: RandomNetworkRecords) -> list[Drawing]:
        standard = records.where(init=_STANDARD)
        n, depth = records.settings.n, records.settings.depth
        return [
            _sweep(records, "n", standard.where(depth=depth), "number of bits n"),
            _sweep(records, "depth", standard.where(n=n), "layers"),
            _profiles(records),
        ]

    def expectations(self, records: RandomNetworkRecords) -> list[Expectation]:
        s = records.settings
        usual = records.where(depth=s.depth, n=s.n)
        totals = [_totals(records.where(n=s.n), f"published {name}") for name in ("transformer", "lstm")]
        found = [is_below("published sizes, U(-10, 10): S of transformers - S of LSTMs", unpaired(*totals), 0.0)]
        for init in INITS:
            share = _share_with_zero(usual.where(init=init), "transformer")
            found.append(is_above(f"{init}: share of transformers with an input of sensitivity 0", share, 0.95))
        share = _share_with_zero(records.where(n=s.n), CONTROL)
        found.append(within("share of random functions with one, as in theory", share, _CONTROL_SHARE, 0.15))
        return [*found, *(beyond(asked) for asked in self._further(usual))]

    def _further(self, usual: RandomNetworkRecords) -> list[Expectation]:
        """Equal widths, other initialisations, and functions that are not trivially insensitive."""
        found = []
        for init in INITS:
            totals = [_totals(usual.where(init=init), name) for name in ("transformer", "lstm")]
            found.append(is_below(f"{init}, equal width: S of transformers - S of LSTMs", unpaired(*totals), 0.0))
        standard = usual.where(init=_STANDARD)
        ours = _totals(standard, "transformer", "median")
        for name in usual.settings.architectures[1:]:
            other = _totals(standard, name, "median")
            statement = f"{_STANDARD}, balanced at the median: S of transformers - S of {name}"
            found.append(is_below(statement, unpaired(ours, other), 0.0))
        gap = over_sample([total - usual.settings.n / 2 for total in ours], "networks")
        return [
            *found,
            is_below(f"{_STANDARD}, balanced: S of transformers - n / 2, that of random functions", gap, 0.0),
        ]


def _draw_ensemble(cell: WeightsCell, settings: RandomNetworkSettings, threshold: Threshold) -> WeightsRecord:
    """One ensemble: numbers of each network, and the mean profile."""
    if cell.architecture == CONTROL:
        ensemble = random_functions(cell.n, settings.count, seed=cell.seed)
    else:
        init, scale = INITS[cell.init]
        base = cell.architecture.removeprefix("published ")
        own = {**dict.fromkeys(WIDTHS[base], settings.width), "depth": cell.depth}
        sizes = own if base == cell.architecture else PUBLISHED[base]
        ensemble = random_networks(
            base, cell.n, settings.count, init=init, scale=scale, seed=cell.seed, threshold=threshold, **sizes
        )
    return WeightsRecord(
        total_sensitivity=tuple(ensemble.total_sensitivity.tolist()),
        zero_share=tuple(ensemble.zero_share.tolist()),
        has_zero=tuple(bool(flag) for flag in ensemble.has_zero),
        is_constant=tuple(bool(flag) for flag in ensemble.is_constant),
        profile=tuple((ensemble.profiles.mean(axis=0) / 2**cell.n).tolist()),
    )


def _totals(records: RandomNetworkRecords, architecture: str, threshold: Threshold = "zero") -> list[float]:
    """S of every network of a kind, of all ensembles."""
    part = records.where(architecture=architecture)
    return [total for _, record in part for total in record.at(threshold).total_sensitivity]


def _share_with_zero(records: RandomNetworkRecords, architecture: str) -> Measured:
    """The share of networks of a kind that have an input of sensitivity 0."""
    flags = [flag for _, record in records.where(architecture=architecture) for flag in record.zero.has_zero]
    return proportion(sum(flags), len(flags))


def _mean(records: RandomNetworkRecords, architecture: str) -> tuple[float, float, float]:
    """The mean sensitivity S / n of balanced functions over networks, between the ends of Gaffke's 95 % interval."""
    n = records.where(architecture=architecture).distinct("n")[0]
    values = [total / n for total in _totals(records, architecture, "median")]
    return float(np.mean(values)), *fixed.bounded_mean(*fixed.histogram(values), 0.95)


def _sweep(records: RandomNetworkRecords, swept: str, part: RandomNetworkRecords, axis: str) -> Drawing:
    """Normalised sensitivity of balanced functions against one size."""
    names = [*records.settings.architectures, *([CONTROL] if swept == "n" else [])]
    whole = {name: part if name != CONTROL else records.where(architecture=CONTROL) for name in names}
    series = []
    for name in names:
        own = whole[name].where(architecture=name)
        sizes = sorted(own.distinct(swept))
        means, lows, highs = zip(*(_mean(own.where(**{swept: size}), name) for size in sizes), strict=True)
        series.append(Series(name, sizes, means, lows, highs))
    return Drawing(
        f"over-{swept}",
        figures.curves(series, x_label=axis, y_label="sensitivity S / n of functions balanced at the median"),
        f"Mean sensitivity of networks with weights U(-10, 10), balanced at the median logit, against the {axis}; "
        "bands are 95 % intervals over networks.",
        f"Curves of sensitivity against the {axis}, one for each architecture.",
    )


def _profiles(records: RandomNetworkRecords) -> Drawing:
    s = records.settings
    names = [*s.architectures, CONTROL]
    series = []
    for name in names:
        where = {} if name == CONTROL else {"init": _STANDARD, "depth": s.depth}
        part = records.where(architecture=name, n=s.n, **where)
        profiles = [record.median.profile for _, record in part]
        series.append(Series(name, list(range(s.n + 1)), np.mean(profiles, axis=0)))
    return Drawing(
        "profiles",
        figures.curves(series, x_label="sensitivity s", y_label=f"share of the 2^{s.n} inputs with sensitivity s"),
        "The sensitivity profile, averaged over networks with weights U(-10, 10) balanced at the median logit.",
        "Curves of the share of inputs over their sensitivity; random functions peak in the middle.",
    )
