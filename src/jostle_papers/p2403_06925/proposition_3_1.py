"""Proposition 3.1: the kernels of wide networks prefer functions of low degree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.base.store import Record
from jostle.boolean import cube, kernels
from jostle.figures import Series, curves
from jostle.studies.catalogue import register
from jostle.studies.evidence import over_seeds
from jostle.studies.records import Records
from jostle.studies.settings import Settings
from jostle.studies.study import Cell, Context, Drawing, Study
from jostle.studies.verdict import Expectation, beyond, holds_for_all, is_above, within

# Kernels of infinite width that are functions of <x, y>: name -> (kernel, options).
ZONAL: dict[str, tuple[str, dict[str, Any]]] = {
    "MLP CK, relu": ("mlp-ck", {"activation": "relu"}),
    "MLP NTK, relu": ("mlp-ntk", {"activation": "relu"}),
    "MLP CK, erf": ("mlp-ck", {"activation": "erf", "bias_variance": 0.1}),
    "MLP NTK, erf": ("mlp-ntk", {"activation": "erf", "bias_variance": 0.1}),
    "one-token linear attention CK": ("linear-attention-ck", {}),
    "one-token linear attention NTK": ("linear-attention-ntk", {}),
    "one-token linear attention NTK, relu layers": ("linear-attention-ntk", {"activation": "relu"}),
}
FINITE = ("mlp", "linear attention", "softmax attention")
SPLITS = ((1, 8), (2, 4), (4, 2), (8, 1))  # eight bits as (tokens, bits of a token)
_SHOWN_DEGREES = 10
_ROUNDING = 1e-9  # of logarithms of eigenvalues
_MARGIN = 0.02  # a difference of shares that does not matter


@dataclass(frozen=True, kw_only=True)
class Choices(Settings):
    """Which kernels are looked at.

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


@register
class Proposition31(Study[Choices]):
    """mu_0 >= mu_2 >= ... and mu_1 >= mu_3 >= ... for CK and NTK, where it holds and where its premise fails."""

    name = "2403.06925/proposition-3.1"
    title = "CK and NTK of wide networks prefer low degree"
    claim = (
        "The CK and NTK of a transformer with linear attention are functions of <x, y>, and their eigenvalues mu_k on "
        "degree k satisfy mu_0 >= mu_2 >= ... and mu_1 >= mu_3 >= ...."
    )
    source = "Proposition 3.1 and Theorem B.1"
    version = 2
    scales = {
        "smoke": Choices(seeds=3, bits=(16,), depths=(1,), attention_depths=(1,)),
        "small": Choices(seeds=20, bits=(16, 64, 256), depths=(1, 2, 4), width=256),
        "paper": Choices(seeds=50, bits=(16, 64, 256, 500), depths=(1, 2, 4, 8), width=512),
    }
    deviations = (
        "The paper proves the proposition and has no experiment; every number here is ours.",
        "The kernel of Theorem B.1 is read as printed for one layer of linear attention on raw tokens; deeper layers "
        "and the NTK follow by our own derivation, checked against networks of finite width.",
        "Softmax attention has no closed form: its kernels are empirical, of networks of finite width.",
    )

    def cells(self, settings: Choices, seeds: Sequence[int]) -> list[Cell]:
        zonal = [
            Cell.of(kind="function of <x, y>", kernel=name, depth=depth, n=n)
            for name in ZONAL
            for depth in settings.depths
            for n in settings.bits
        ]
        attention = [
            Cell.of(kind="linear attention over tokens", kernel=kernel, depth=depth, tokens=tokens, dim=dim)
            for kernel in ("ck", "ntk")
            for depth in settings.attention_depths
            for tokens, dim in SPLITS
        ]
        finite = [Cell.of(kind="finite width", network=network, seed=seed) for network in FINITE for seed in seeds]
        return [*zonal, *attention, *finite]

    def measure(self, cell: Cell, settings: Choices, context: Context) -> Record:
        if cell.values["kind"] == "function of <x, y>":
            return _zonal(cell.values)
        if cell.values["kind"] == "linear attention over tokens":
            return _attention(cell.values)
        return _finite(cell.values, settings.width)

    def figures(self, records: Records[Choices]) -> list[Drawing]:
        return [_spectra(records), _over_tokens(records)]

    def expectations(self, records: Records[Choices]) -> list[Expectation]:
        zonal = records.where(kind="function of <x, y>")
        tokens = records.where(kind="linear attention over tokens")
        printed = tokens.where(kernel="ck", depth=1)
        broken = sum(not holds for holds in printed.column("premise_holds"))
        unordered = sum(not ordered for ordered in tokens.column("is_weakly_biased"))
        found = [
            holds_for_all(
                "mu_k >= mu_(k+2) for kernels that are functions of <x, y>",
                sum(zonal.column("violations")),
                sum(zonal.column("tested")),
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
        finite = records.where(kind="finite width")
        exact = _shares(kernels.kernel_spectrum("mlp-ntk", 8, depth=2).shares)
        for k in (1, 2):
            share = over_seeds([shares[k] for shares in finite.where(network="mlp").column("shares")])
            statement = f"share of degree {k} in the NTK of finite MLPs is that of infinite width"
            found.append(within(statement, share, exact[k], _MARGIN))
        means = finite.where(network="softmax attention").column("mean")
        for k in range(7):
            gap = over_seeds([mean[k] - mean[k + 2] for mean in means])
            found.append(beyond(is_above(f"mu_{k} - mu_{k + 2} of softmax attention's empirical NTK", gap, 0.0)))
        return found


def _zonal(values: Mapping[str, Any]) -> Record:
    name, options = ZONAL[values["kernel"]]
    spectrum = kernels.kernel_spectrum(name, values["n"], depth=values["depth"], **options)
    logs = spectrum.log_eigenvalues
    gaps = (logs[:-2] - logs[2:])[np.isfinite(logs[:-2])]  # minus infinity stands for an eigenvalue of 0
    return {
        "tested": len(gaps),
        "violations": int((gaps < -_ROUNDING).sum()),
        "trace": spectrum.trace,
        "eigenvalues": spectrum.eigenvalues[: _SHOWN_DEGREES + 1].tolist(),
        "shares": _shares(spectrum.shares),
    }


def _attention(values: Mapping[str, Any]) -> Record:
    gram = kernels.attention_gram(values["tokens"], values["dim"], kind=values["kernel"], depth=values["depth"])
    found, projection = kernels.premise(gram), kernels.fourier_projection(gram)
    eigenvalues = kernels.gram_eigenvalues(gram)
    printed = kernels.default_scale(values["tokens"], values["dim"]) * values["tokens"]  # undoes our scaling, one layer
    return {
        "values_by_product": {
            str(product): [low * printed, high * printed]
            for product, low, high in zip(
                found.products.tolist(), found.minimum.tolist(), found.maximum.tolist(), strict=True
            )
        },
        "largest_eigenvalues": (eigenvalues[:20] * printed).round(9).tolist(),
        "premise_holds": found.holds,
        "is_function_of_product": found.is_function_of_product,
        "relative_spread": found.spread / found.size,
        "is_weakly_biased": projection.is_weakly_biased,
        "off_diagonal_share": projection.off_diagonal_share,
        "rank": int((eigenvalues > 1e-9 * eigenvalues[0]).sum()),
        **_by_degree(projection),
    }


def _finite(values: Mapping[str, Any], width: int) -> Record:
    seed = values["seed"]
    model: kernels.FiniteMlp | kernels.FiniteAttention
    if values["network"] == "mlp":
        model = kernels.FiniteMlp(8, width=2 * width, depth=2, seed=seed)
    else:
        kind = values["network"].split()[0]
        model = kernels.FiniteAttention(4, 2, width=width, heads=16, kind=kind, activation="relu", seed=seed)
    projection = kernels.fourier_projection(kernels.empirical_ntk(model, 8))
    mass = np.bincount(cube.degrees(8), weights=projection.diagonal)
    return {
        "off_diagonal_share": projection.off_diagonal_share,
        "shares": _shares(mass / mass.sum()),
        **_by_degree(projection),
    }


def _by_degree(projection: kernels.Projection) -> Record:
    return {name: getattr(projection, name).tolist() for name in ("minimum", "mean", "maximum")}


def _shares(shares: Any) -> list[float]:
    return [float(share) for share in shares[: _SHOWN_DEGREES + 1]]


def _spectra(records: Records[Choices]) -> Drawing:
    n, depth = max(b for b in records.settings.bits if b <= 64), records.settings.depths[-1]
    part = records.where(kind="function of <x, y>", n=n, depth=depth)
    series = [
        Series(cell.values["kernel"], *_positive(record["eigenvalues"]))
        for cell, record in part
        if record["eigenvalues"]
    ]
    return Drawing(
        "spectra",
        curves(series, x_label="degree k", y_label=f"eigenvalue mu_k, n = {n}, depth {depth}", log_y=True),
        f"Eigenvalues by degree of kernels that are functions of <x, y>, for {n} bits and {depth} layers. Within even "
        "and within odd degrees they only fall.",
        "Falling curves of eigenvalues over degree on a logarithmic axis.",
    )


def _positive(eigenvalues: list[float]) -> tuple[list[int], list[float]]:
    kept = [(k, value) for k, value in enumerate(eigenvalues) if value > 0]
    return [k for k, _ in kept], [value for _, value in kept]


def _over_tokens(records: Records[Choices]) -> Drawing:
    series = []
    tokens = records.where(kind="linear attention over tokens", kernel="ntk", depth=1)
    for cell, record in tokens:
        name = f"linear {cell.values['tokens']} x {cell.values['dim']}"
        series.append(_band(name, record["mean"], record["minimum"], record["maximum"]))
    softmax = records.where(kind="finite width", network="softmax attention")
    mean, low, high = (np.mean(softmax.column(field), axis=0).tolist() for field in ("mean", "minimum", "maximum"))
    series.append(_band("softmax 4 x 2", mean, low, high))
    figure = curves(
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


def _band(name: str, mean: list[float], low: list[float], high: list[float]) -> Series:
    """mu by degree, without what rounding leaves of zeros."""
    floor = 1e-9 * max(high)
    kept = [k for k in range(len(mean)) if mean[k] > floor]
    return Series(
        name, kept, [mean[k] for k in kept], [max(low[k], 0.0) for k in kept], [max(high[k], mean[k]) for k in kept]
    )
