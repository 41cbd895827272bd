"""Proposition 3.1: the kernels of wide networks prefer functions of low degree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from jostle import figures
from jostle.boolean import cube, kernels
from jostle.figures import Series
from jostle.studies.catalogue import register
from jostle.studies.evidence import (
    over_sample,
)
from jostle.studies.records import Records
from jostle.studies.schema import Struct
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, within


@dataclass(frozen=True)
class ZonalKernel:
    """A kernel of infinite width that is a function of <x, y>; arguments as in ``kernels.kernel_spectrum``."""

    name: str
    activation: str | None = None
    bias_variance: float = 0.0


ZONAL = {
    "MLP CK, relu": ZonalKernel("mlp-ck", "relu"),
    "MLP NTK, relu": ZonalKernel("mlp-ntk", "relu"),
    "MLP CK, erf": ZonalKernel("mlp-ck", "erf", 0.1),
    "MLP NTK, erf": ZonalKernel("mlp-ntk", "erf", 0.1),
    "one-token linear attention CK": ZonalKernel("linear-attention-ck"),
    "one-token linear attention NTK": ZonalKernel("linear-attention-ntk"),
    "one-token linear attention NTK, relu layers": ZonalKernel("linear-attention-ntk", "relu"),
}
FINITE = ("mlp", "linear attention", "softmax attention")
SPLITS = ((1, 8), (2, 4), (4, 2), (8, 1))  # eight bits as (tokens, bits of a token)
_SHOWN_DEGREES = 10
_ROUNDING = 1e-9  # of logarithms of eigenvalues
_MARGIN = 0.02  # a difference of shares that does not matter


@dataclass(frozen=True, kw_only=True)
class KernelSettings(Settings):
    """Which kernels are computed.

    Arguments:
        seeds: finite networks of each kind.
        bits: n of the kernels of infinite width.
        depths: their numbers of layers.
        attention_depths: layers of linear attention over several tokens.
        width: of finite networks, on 8 bits.
    """

    seeds: int = 10
    bits: tuple[int, ...] = (16, 64)
    depths: tuple[int, ...] = (1, 2)
    attention_depths: tuple[int, ...] = (1, 2)
    width: int = 64


@dataclass(frozen=True, kw_only=True)
class ZonalCell(Cell):
    """A kernel of infinite width that is a function of <x, y>."""

    kind: Literal["function of <x, y>"] = "function of <x, y>"
    kernel: str
    depth: int
    n: int


@dataclass(frozen=True, kw_only=True)
class AttentionCell(Cell):
    """The kernel of linear attention over several tokens, of ``tokens`` times ``dim`` bits."""

    kind: Literal["linear attention over tokens"] = "linear attention over tokens"
    kernel: str
    depth: int
    tokens: int
    dim: int


@dataclass(frozen=True, kw_only=True)
class FiniteCell(Cell):
    """The empirical kernel of one network of finite width."""

    kind: Literal["finite width"] = "finite width"
    network: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class ZonalRecord(Struct):
    """The spectrum of a kernel by degree.

    Arguments:
        tested, violations: pairs mu_k, mu_(k+2), and those that are in the wrong order.
        trace: of the kernel.
        eigenvalues: mu_k of the lowest degrees.
        shares: the share of the trace on the lowest degrees.
    """

    tested: int
    violations: int
    trace: float
    eigenvalues: tuple[float, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class AttentionRecord(Struct):
    """What the kernel of linear attention over tokens is like.

    Arguments:
        values_by_product: the least and the largest value of the kernel for each <x, y>.
        largest_eigenvalues: of its matrix.
        premise_holds, is_function_of_product, relative_spread: whether it is a function of <x, y>, and how far not.
        is_weakly_biased: whether mu(U) >= mu(V) for all |V| = |U| + 2.
        off_diagonal_share: how far monomials are from being eigenfunctions.
        rank: of its matrix.
        minimum, mean, maximum: mu(U) over the sets U of each size.
    """

    values_by_product: dict[str, tuple[float, float]]
    largest_eigenvalues: tuple[float, ...]
    premise_holds: bool
    is_function_of_product: bool
    relative_spread: float
    is_weakly_biased: bool
    off_diagonal_share: float
    rank: int
    minimum: tuple[float, ...]
    mean: tuple[float, ...]
    maximum: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class FiniteRecord(Struct):
    """The empirical NTK of a network of finite width; fields as in the other records."""

    off_diagonal_share: float
    shares: tuple[float, ...]
    minimum: tuple[float, ...]
    mean: tuple[float, ...]
    maximum: tuple[float, ...]


KernelCell = ZonalCell | AttentionCell | FiniteCell
KernelRecord = ZonalRecord | AttentionRecord | FiniteRecord
KernelRecords = Records[KernelSettings, KernelCell, KernelRecord]


@register
class Proposition31(Study[KernelSettings, KernelCell, KernelRecord]):
    """mu_0 >= mu_2 >= ... and mu_1 >= mu_3 >= ... for CK and NTK, where it holds and where its premise fails."""

    name = "2403.06925/proposition-3.1"
    title = "CK and NTK of wide networks prefer low degree"
    claim = (
        "As printed, for tokens of more than one bit: the CK and NTK of a transformer with linear attention are "
        "functions of <x, y>, and their eigenvalues mu_k on degree k satisfy mu_0 >= mu_2 >= ... and mu_1 >= mu_3 "
        ">= ...."
    )
    source = "Proposition 3.1 and Theorem B.1"
    version = 2
    scales = {
        "smoke": KernelSettings(seeds=3, bits=(16,), depths=(1,), attention_depths=(1,)),
        "small": KernelSettings(seeds=20, bits=(16, 64, 256), depths=(1, 2, 4), width=256),
        "paper": KernelSettings(seeds=50, bits=(16, 64, 256, 500), depths=(1, 2, 4, 8), width=512),
    }
    deviations = (
        "The paper proves the proposition and has no experiment; every number here is ours.",
        "The kernel of Theorem B.1 is read as printed for one layer of linear attention on raw tokens; deeper layers "
        "and the NTK follow by our own derivation, checked against networks of finite width.",
        "Softmax attention has no closed form: its kernels are empirical, of networks of finite width.",
    )

    def cells(self, settings: KernelSettings, seeds: Sequence[int]) -> list[KernelCell]:
        zonal = [
            ZonalCell(kernel=name, depth=depth, n=n)
            for name in ZONAL
            for depth in settings.depths
            for n in settings.bits
        ]
        attention = [
            AttentionCell(kernel=kernel, depth=depth, tokens=tokens, dim=dim)
            for kernel in ("ck", "ntk")
            for depth in settings.attention_depths
            for tokens, dim in SPLITS
        ]
        finite = [FiniteCell(network=network, seed=seed) for network in FINITE for seed in seeds]
        return [*zonal, *attention, *finite]

    def measure(self, cell: KernelCell, settings: KernelSettings, context: Context) -> KernelRecord:
        if isinstance(cell, ZonalCell):
            return _zonal(cell)
        return _attention(cell) if isinstance(cell, AttentionCell) else _finite(cell, settings.width)

    def figures(self, records: KernelRecords) -> list[Drawing]:
        return [_spectra(records), _over_tokens(records)]

    def expectations(self, records: KernelRecords) -> list[Expectation]:
        zonal = records.of(ZonalCell, ZonalRecord)
        tokens = records.of(AttentionCell, AttentionRecord)
        printed = tokens.where(kernel="ck", depth=1)
        broken = sum(not record.premise_holds for _, record in printed)
        unordered = sum(not record.is_weakly_biased for _, record in tokens)
        found = [
            holds_for_all(
                "mu_k >= mu_(k+2) for kernels that are functions of <x, y>",
                sum(record.violations for _, record in zonal),
                sum(record.tested for _, record in zonal),
            ),
            holds_for_all(
                "Theorem B.1's kernel is a function of <x, y>, for every split of 8 bits into tokens",
                broken,
                len(printed),
            ),
            beyond(
                holds_for_all("mu(U) >= mu(V) for |V| = |U| + 2, linear attention over tokens", unordered, len(tokens))
            ),
        ]
        finite = records.of(FiniteCell, FiniteRecord)
        exact = _shares(kernels.kernel_spectrum("mlp-ntk", 8, depth=2).shares)
        for k in (1, 2):
            share = over_sample([record.shares[k] for _, record in finite.where(network="mlp")], "networks")
            statement = f"share of degree {k} in the NTK of finite MLPs is that of infinite width"
            found.append(within(statement, share, exact[k], _MARGIN))
        means = finite.where(network="softmax attention").column(lambda record: record.mean)
        for k in range(7):
            gap = over_sample([mean[k] - mean[k + 2] for mean in means], "networks")
            found.append(beyond(is_above(f"mu_{k} - mu_{k + 2} of softmax attention's empirical NTK", gap, 0.0)))
        return found


def _zonal(cell: ZonalCell) -> ZonalRecord:
    kernel = ZONAL[cell.kernel]
    spectrum = kernels.kernel_spectrum(
        kernel.name, cell.n, depth=cell.depth, activation=kernel.activation, bias_variance=kernel.bias_variance
    )
    logs = spectrum.log_eigenvalues
    gaps = (logs[:-2] - logs[2:])[np.isfinite(logs[:-2])]  # minus infinity stands for an eigenvalue of 0
    return ZonalRecord(
        tested=len(gaps),
        violations=int((gaps < -_ROUNDING).sum()),
        trace=spectrum.trace,
        eigenvalues=tuple(spectrum.eigenvalues[: _SHOWN_DEGREES + 1].tolist()),
        shares=_shares(spectrum.shares),
    )


def _attention(cell: AttentionCell) -> AttentionRecord:
    gram = kernels.attention_gram(cell.tokens, cell.dim, kind=cell.kernel, depth=cell.depth)
    found, projection = kernels.premise(gram), kernels.fourier_projection(gram)
    eigenvalues = kernels.gram_eigenvalues(gram)
    printed = kernels.default_scale(cell.tokens, cell.dim) * cell.tokens  # undoes our scaling, one layer
    products, least, most = (part.tolist() for part in (found.products, found.minimum, found.maximum))
    return AttentionRecord(
        values_by_product={
            str(product): (low * printed, high * printed)
            for product, low, high in zip(products, least, most, strict=True)
        },
        largest_eigenvalues=tuple((eigenvalues[:20] * printed).round(9).tolist()),
        premise_holds=found.holds,
        is_function_of_product=found.is_function_of_product,
        relative_spread=found.spread / found.size,
        is_weakly_biased=projection.is_weakly_biased,
        off_diagonal_share=projection.off_diagonal_share,
        rank=int((eigenvalues > 1e-9 * eigenvalues[0]).sum()),
        minimum=tuple(projection.minimum.tolist()),
        mean=tuple(projection.mean.tolist()),
        maximum=tuple(projection.maximum.tolist()),
    )


def _finite(cell: FiniteCell, width: int) -> FiniteRecord:
    model: kernels.FiniteMlp | kernels.FiniteAttention
    if cell.network == "mlp":
        model = kernels.FiniteMlp(8, width=2 * width, depth=2, seed=cell.seed)
    else:
        kind = cell.network.split()[0]
        model = kernels.FiniteAttention(4, 2, width=width, heads=16, kind=kind, activation="relu", seed=cell.seed)
    projection = kernels.fourier_projection(kernels.empirical_ntk(model, 8))
    mass = np.bincount(cube.degrees(8), weights=projection.diagonal)
    return FiniteRecord(
        off_diagonal_share=projection.off_diagonal_share,
        shares=_shares(mass / mass.sum()),
        minimum=tuple(projection.minimum.tolist()),
        mean=tuple(projection.mean.tolist()),
        maximum=tuple(projection.maximum.tolist()),
    )


def _shares(shares: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(share) for share in shares[: _SHOWN_DEGREES + 1])


def _spectra(records: KernelRecords) -> Drawing:
    n, depth = max(b for b in records.settings.bits if b <= 64), records.settings.depths[-1]
    part = records.of(ZonalCell, ZonalRecord).where(n=n, depth=depth)
    series = [Series(cell.kernel, *_positive(record.eigenvalues)) for cell, record in part if record.eigenvalues]
    return Drawing(
        "spectra",
        figures.curves(series, x_label="degree k", y_label=f"eigenvalue mu_k, n = {n}, depth {depth}", log_y=True),
        f"Eigenvalues by degree of kernels that are functions of <x, y>, for {n} bits and {depth} layers. Within even "
        "and within odd degrees they only fall.",
        "Falling curves of eigenvalues over degree on a logarithmic axis.",
    )


def _positive(eigenvalues: Sequence[float]) -> tuple[list[int], list[float]]:
    kept = [(k, value) for k, value in enumerate(eigenvalues) if value > 0]
    return [k for k, _ in kept], [value for _, value in kept]


def _over_tokens(records: KernelRecords) -> Drawing:
    series = []
    for cell, record in records.of(AttentionCell, AttentionRecord).where(kernel="ntk", depth=1):
        series.append(_band(f"linear {cell.tokens} x {cell.dim}", record.mean, record.minimum, record.maximum))
    softmax = [record for _, record in records.of(FiniteCell, FiniteRecord).where(network="softmax attention")]
    mean = np.mean([record.mean for record in softmax], axis=0).tolist()
    low = np.mean([record.minimum for record in softmax], axis=0).tolist()
    high = np.mean([record.maximum for record in softmax], axis=0).tolist()
    series.append(_band("softmax 4 x 2", mean, low, high))
    figure = figures.curves(
        series, x_label="size of U", y_label="mu(U) of the NTK: mean, and range over U of a size", log_y=True
    )
    return Drawing(
        "over-tokens",
        figure,
        "The NTK of one layer of attention on 8 bits, split into (tokens x bits) in several ways, in the basis of "
        "monomials: the mean over the sets U of one size, and the range over them. Where the kernel is a function of "
        "<x, y> (one token, or tokens of one bit) the range is a point.",
        "Curves of mu over the size of U with bands that have no width for one token and for tokens of one bit.",
    )


def _band(name: str, mean: Sequence[float], low: Sequence[float], high: Sequence[float]) -> Series:
    """mu by degree, without zeros that rounding made small numbers of."""
    floor = 1e-9 * max(high)
    kept = [k for k in range(len(mean)) if mean[k] > floor]
    return Series(
        name, kept, [mean[k] for k in kept], [max(low[k], 0.0) for k in kept], [max(high[k], mean[k]) for k in kept]
    )
