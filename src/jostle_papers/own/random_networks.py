"""What networks compute before they are trained: the sensitivity of random weights, by architecture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.base.store import Record
from jostle.boolean import random_functions, random_networks
from jostle.figures import Series, curves
from jostle.intervals import fixed
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds, proportion, unpaired
from jostle.studies.records import Records
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
# The sizes of Bhattamishra et al. 2023.
PUBLISHED: dict[str, dict[str, Any]] = {
    "transformer": {"dim": 64, "depth": 4, "heads": 1, "mlp_dim": 128, "positions": "added", "norm": "pre"},
    "lstm": {"dim": 64, "hidden": 64, "depth": 2},
}
CONTROL = "random function"
_STANDARD = "uniform 10"  # the initialisation of the sweeps, and of the published protocol
_CONTROL_SHARE = 1 - np.exp(-1)  # of random functions that have an input of sensitivity 0, for large n


@dataclass(frozen=True, kw_only=True)
class Choices(Settings):
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


@register
class RandomNetworks(Study[Choices]):
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
        "smoke": Choices(seeds=1, count=5, n=6, width=16, lengths=(4, 6), depths=(1, 2)),
        "small": Choices(),
        "paper": Choices(seeds=5, count=200, width=64, lengths=(4, 6, 8, 10, 12, 14), depths=(1, 2, 4, 8)),
    }
    deviations = (
        "All 2^n inputs of up to 12 bits are evaluated, so that sensitivities are exact; the published protocol "
        "samples inputs beyond 12 bits.",
        "Besides its sign, the logit is also compared with its median over the inputs: the signs of random logits "
        "are often constant, and a constant is trivially insensitive.",
        "Beyond the papers: MLPs, a state-space model and an MLP-Mixer, of equal width and depth.",
    )

    def cells(self, settings: Choices, seeds: Sequence[int]) -> list[Cell]:
        points = [(name, settings.depth, settings.n) for name in INITS]
        points += [(_STANDARD, depth, settings.n) for depth in settings.depths if depth != settings.depth]
        points += [(_STANDARD, settings.depth, n) for n in settings.lengths if n != settings.n]
        swept = [
            Cell.of(architecture=architecture, init=init, depth=depth, n=n, seed=seed)
            for architecture in settings.architectures
            for init, depth, n in points
            for seed in seeds
        ]
        published = [
            Cell.of(architecture=f"published {name}", init=_STANDARD, depth=sizes["depth"], n=settings.n, seed=seed)
            for name, sizes in PUBLISHED.items()
            for seed in seeds
        ]
        lengths = sorted({*settings.lengths, settings.n})
        control = [
            Cell.of(architecture=CONTROL, init="none", depth=0, n=n, seed=seed) for n in lengths for seed in seeds
        ]
        return [*swept, *published, *control]

    def measure(self, cell: Cell, settings: Choices, context: Context) -> Record:
        return {threshold: _drawn(cell.values, settings, threshold) for threshold in ("zero", "median")}

    def figures(self, records: Records[Choices]) -> list[Drawing]:
        standard = records.where(init=_STANDARD)
        n, depth = records.settings.n, records.settings.depth
        return [
            _sweep(records, "n", standard.where(depth=depth), "number of bits n"),
            _sweep(records, "depth", standard.where(n=n), "layers"),
            _profiles(records),
        ]

    def expectations(self, records: Records[Choices]) -> list[Expectation]:
        s = records.settings
        at: dict[str, Any] = {"depth": s.depth, "n": s.n}
        totals = [_values(records, f"published {name}", n=s.n) for name in ("transformer", "lstm")]
        found = [is_below("published sizes, U(-10, 10): S of transformers - S of LSTMs", unpaired(*totals), 0.0)]
        for init in INITS:
            zeros = _values(records, "transformer", field="has_zero", init=init, **at)
            share = proportion(int(sum(zeros)), len(zeros))
            found.append(is_above(f"{init}: share of transformers with an input of sensitivity 0", share, 0.95))
        control = _values(records, CONTROL, field="has_zero", n=s.n)
        share = proportion(int(sum(control)), len(control))
        found.append(within("share of random functions with one, as in theory", share, _CONTROL_SHARE, 0.15))
        return [*found, *(beyond(asked) for asked in self._further(records, at))]

    def _further(self, records: Records[Choices], at: dict[str, Any]) -> list[Expectation]:
        """Equal widths, other initialisations, and functions that are not trivially insensitive."""
        found = []
        for init in INITS:
            totals = [_values(records, name, init=init, **at) for name in ("transformer", "lstm")]
            found.append(is_below(f"{init}, equal width: S of transformers - S of LSTMs", unpaired(*totals), 0.0))
        ours = _values(records, "transformer", "median", init=_STANDARD, **at)
        for name in records.settings.architectures[1:]:
            other = _values(records, name, "median", init=_STANDARD, **at)
            statement = f"{_STANDARD}, balanced at the median: S of transformers - S of {name}"
            found.append(is_below(statement, unpaired(ours, other), 0.0))
        gap = over_seeds([total - at["n"] / 2 for total in ours])
        return [
            *found,
            is_below(f"{_STANDARD}, balanced: S of transformers - n / 2, that of random functions", gap, 0.0),
        ]


def _drawn(values: Mapping[str, Any], settings: Choices, threshold: str) -> Record:
    """One ensemble: what each network has, and the mean profile."""
    name, n, seed = values["architecture"], values["n"], values["seed"]
    if name == CONTROL:
        ensemble = random_functions(n, settings.count, seed=seed)
    else:
        init, scale = INITS[values["init"]]
        base = name.removeprefix("published ")
        widths = dict.fromkeys(WIDTHS[base], settings.width)
        sizes = PUBLISHED[base] if base != name else {**widths, "depth": values["depth"]}
        ensemble = random_networks(
            base, n, settings.count, init=init, scale=scale, seed=seed, threshold=threshold, **sizes
        )
    return {
        "total_sensitivity": ensemble.total_sensitivity.tolist(),
        "zero_share": ensemble.zero_share.tolist(),
        "has_zero": [bool(flag) for flag in ensemble.has_zero],
        "is_constant": [bool(flag) for flag in ensemble.is_constant],
        "profile": (ensemble.profiles.mean(axis=0) / 2**n).tolist(),
    }


def _values(
    records: Records[Choices],
    architecture: str,
    threshold: str = "zero",
    field: str = "total_sensitivity",
    **where: Any,
) -> list[float]:
    """One number a network, of all ensembles of a kind."""
    part = records.where(architecture=architecture, **where)
    return [value for record in part.column(threshold) for value in record[field]]


def _mean(records: Records[Choices], architecture: str, **where: Any) -> tuple[float, float, float]:
    """The mean sensitivity S / n of balanced functions over networks, between the ends of Gaffke's 95 % interval."""
    n = records.where(architecture=architecture, **where).distinct("n")[0]
    values = [total / n for total in _values(records, architecture, "median", **where)]
    return float(np.mean(values)), *fixed.bounded_mean(*fixed.histogram(values), 0.95)


def _sweep(records: Records[Choices], swept: str, part: Records[Choices], axis: str) -> Drawing:
    """Normalised sensitivity of balanced functions against one size."""
    names = [*records.settings.architectures, *([CONTROL] if swept == "n" else [])]
    whole = {name: part if name != CONTROL else records.where(architecture=CONTROL) for name in names}
    series = []
    for name in names:
        own = whole[name].where(architecture=name)
        sizes = sorted(own.distinct(swept))
        means, lows, highs = zip(*(_mean(own, name, **{swept: size}) for size in sizes), strict=True)
        series.append(Series(name, sizes, means, lows, highs))
    return Drawing(
        f"over-{swept}",
        curves(series, x_label=axis, y_label="sensitivity S / n of functions balanced at the median"),
        f"Mean sensitivity of networks with weights U(-10, 10), balanced at the median logit, against the {axis}; "
        "bands are 95 % intervals over networks.",
        f"Curves of sensitivity against the {axis}, one for each architecture.",
    )


def _profiles(records: Records[Choices]) -> Drawing:
    s = records.settings
    names = [*s.architectures, CONTROL]
    series = []
    for name in names:
        where = {} if name == CONTROL else {"init": _STANDARD, "depth": s.depth}
        part = records.where(architecture=name, n=s.n, **where)
        series.append(
            Series(name, list(range(s.n + 1)), np.mean([r["profile"] for r in part.column("median")], axis=0))
        )
    return Drawing(
        "profiles",
        curves(series, x_label="sensitivity s", y_label=f"share of the 2^{s.n} inputs with sensitivity s"),
        "The sensitivity profile, averaged over networks with weights U(-10, 10) balanced at the median logit.",
        "Curves of the share of inputs over their sensitivity; random functions peak in the middle.",
    )
