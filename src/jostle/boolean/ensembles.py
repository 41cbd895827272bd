"""The Boolean functions of networks with random weights, and their sensitivity.

An ensemble is many functions on n bits: those of networks with random weights, or uniformly random functions as a
control. Sources: Bhattamishra et al. 2023, "Simplicity bias in transformers and their ability to learn sparse Boolean
functions" (weights U(-10, 10), all inputs up to 12 bits); the sensitivity profile (K_0, ..., K_n) of the follow-up of
paper 2 (2606.08768).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.estimate import Interval
from jostle.base.randomness import Stream
from jostle.boolean import cube, fourier, networks, pointwise
from jostle.boolean.networks.ensemble import all_logits, best_batch, check_init, redraw, seed_of
from jostle.intervals import fixed

__all__ = ["Ensemble", "draw_network", "random_functions", "random_networks"]

Floats = NDArray[np.float64]

THRESHOLDS = ("zero", "median")
LARGEST = 16  # the largest n whose inputs are all evaluated for every network
TIE = 1e-5  # logits closer than this, relative to the largest, are equal up to rounding in float32


@dataclass(frozen=True)
class Ensemble:
    """Functions f_1, ..., f_count from n bits to signs, with the sensitivity of each.

    Every quantity is a mean, a maximum or a count over the inputs: all 2^n if ``is_exact``, otherwise uniformly random
    inputs, drawn for each function apart. Then means estimate the means over the cube (see
    ``total_sensitivity_intervals``). They are unbiased for the threshold ``zero``; the threshold ``median`` is taken
    from the same inputs, and with few inputs the sensitivity is then estimated too large. ``max_sensitivity`` and
    ``has_zero`` can only be too small, and ``is_constant`` is true too often.

    Arguments:
        n: how many bits.
        signs: f_j(x), (count, inputs) of -1 and 1, int8.
        sensitivities: s(x, f_j), (count, inputs), uint8, or uint16 beyond 255 bits.
        is_exact: whether the inputs are the whole cube in table order.
        settings: how the functions were made.

    >>> both = Ensemble.of_tables(np.array([[-1, -1, -1, 1], [1, 1, 1, 1]], dtype=np.int8))  # AND, constant
    >>> both.total_sensitivity.tolist(), both.profiles.tolist()
    ([1.0, 0.0], [[1, 2, 1], [4, 0, 0]])
    """

    n: int
    signs: NDArray[np.int8] = field(repr=False)
    sensitivities: NDArray[Any] = field(repr=False)
    is_exact: bool = True
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_tables(cls, tables: NDArray[np.int8], settings: dict[str, Any] | None = None) -> "Ensemble":
        """The ensemble of the functions with these tables of signs, (count, 2^n), int8."""
        return cls(cube.dimension(tables), tables, pointwise.sensitivities(tables), settings=settings or {})

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def tables(self) -> NDArray[np.int8]:
        """f_j on the whole cube, (count, 2^n)."""
        self._need_tables("tables")
        return self.signs

    @cached_property
    def profiles(self) -> NDArray[np.int64]:
        """K_k = number of inputs of sensitivity k, for k = 0..n: (count, n + 1)."""
        return np.stack([np.bincount(row, minlength=self.n + 1) for row in self.sensitivities]).astype(np.int64)

    @cached_property
    def total_sensitivity(self) -> Floats:
        """The mean of s(x, f) over the inputs, between 0 and n: (count,)."""
        return np.asarray(self.sensitivities.mean(axis=1, dtype=np.float64))

    @property
    def sensitivity(self) -> Floats:
        """The total sensitivity divided by n, between 0 and 1: (count,)."""
        return self.total_sensitivity / self.n

    @cached_property
    def max_sensitivity(self) -> NDArray[np.int64]:
        """The largest s(x, f): (count,)."""
        return np.asarray(self.sensitivities.max(axis=1), dtype=np.int64)

    @property
    def zero_share(self) -> Floats:
        """The share of inputs of sensitivity 0, K_0 / 2^n: (count,)."""
        return np.asarray(self.profiles[:, 0] / self.signs.shape[1])

    @property
    def has_zero(self) -> NDArray[np.bool_]:
        """Whether some input has sensitivity 0, K_0 >= 1: (count,)."""
        return self.profiles[:, 0] > 0

    @cached_property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether f is the same at all inputs and, if they are sampled, at their neighbours: (count,)."""
        is_same = (self.signs == self.signs[:, :1]).all(axis=1)
        return np.asarray(is_same & (self.max_sensitivity == 0))

    @cached_property
    def positive_share(self) -> Floats:
        """The share of inputs with f(x) = 1: (count,)."""
        return np.asarray((self.signs > 0).mean(axis=1))

    def degrees(self) -> NDArray[np.int64]:
        """The largest size of a U with fhat(U) != 0; 0 for a constant: (count,). Exact ensembles only."""
        self._need_tables("degrees")
        sizes = cube.degrees(self.n).astype(np.int64)
        # Coefficients of a table of signs are whole multiples of 2^-n, without rounding errors: no tolerance is needed.
        return np.array([sizes[fourier.coefficients(table) != 0].max() for table in self.signs], dtype=np.int64)

    def total_sensitivity_intervals(self, level: float = 0.95) -> Floats:
        """An interval for each function's total sensitivity over the cube, (count, 2): a point if exact.

        Over the sampled inputs by Gaffke's bound (``intervals.fixed.bounded_mean``), each function for itself.
        """
        if self.is_exact:
            return np.stack([self.total_sensitivity] * 2, axis=1)
        bounds = (0.0, float(self.n))
        return np.array([fixed.bounded_mean(*fixed.histogram(row), level, bounds) for row in self.sensitivities])

    def summary(self, level: float = 0.95) -> dict[str, Any]:
        """Means over the functions, with intervals for the mean over all functions that the settings can draw.

        Intervals are Gaffke's for bounded quantities and Clopper and Pearson's for shares. A plain dictionary.
        """
        found: dict[str, Any] = {"n": self.n, "count": len(self), "is_exact": self.is_exact, **self.settings}
        means = {
            "total_sensitivity": (self.total_sensitivity, self.n),
            "sensitivity": (self.sensitivity, 1),
            "max_sensitivity": (self.max_sensitivity, self.n),
            "zero_share": (self.zero_share, 1),
            "positive_share": (self.positive_share, 1),
        }
        for name, (values, largest) in means.items():
            ends = fixed.bounded_mean(*fixed.histogram(values), level, (0.0, float(largest)))
            found[name] = {"mean": float(values.mean()), **_record(ends, level, "Gaffke")}
        for name, flags in {"has_zero": self.has_zero, "is_constant": self.is_constant}.items():
            low, high = fixed.clopper_pearson(flags.sum(), len(self), level)
            found[name] = {"mean": float(flags.mean()), **_record((float(low), float(high)), level, "Clopper-Pearson")}
        return found

    def _need_tables(self, what: str) -> None:
        if not self.is_exact:
            raise UsageError(f"{what} needs all 2^{self.n} inputs, but only some were evaluated; leave out inputs=")


def random_networks(
    name: str,
    n: int = 10,
    count: int = 100,
    *,
    init: str = "default",
    scale: float = 1.0,
    seed: int = 0,
    threshold: str = "zero",
    inputs: int | None = None,
    batch: int | None = None,
    **sizes: Any,
) -> Ensemble:
    """The functions of ``count`` networks with random weights, evaluated in float32.

    Arguments:
        name: one of ``networks.names()``.
        n: how many bits.
        count: how many networks. Network j is the same whatever ``count`` and ``batch`` are (``draw_network``).
        init: ``default`` (the module's own), ``uniform``, ``gaussian``, ``xavier-uniform`` or ``xavier-normal``; see
            ``networks.ensemble.redraw`` for which parameters are drawn.
        scale: U(-scale, scale), N(0, scale^2), or the gain of Xavier.
        seed: of everything.
        threshold: ``zero``, f(x) = 1 if the logit is >= 0 (a sigmoid >= 0.5), otherwise -1. ``median``, f(x) = 1 if
            the logit exceeds the network's lower median over the inputs (the value at place N/2 of N sorted logits)
            by more than 1e-5 times its largest absolute logit, otherwise -1. Half of the values are then 1 if no logit
            ties with the median; ties, exact or by rounding, all become -1.
        inputs: None for all 2^n (n up to 16), or the number of uniformly random points for each network, each
            evaluated with its n neighbours.
        batch: networks evaluated at once; by default chosen by their size. It changes the speed, and results up to
            rounding.
        sizes: of the network, e.g. ``depth``, ``dim``.

    A logit that is not finite is an error that names the network.

    >>> found = random_networks("mlp", n=4, count=3, width=8, seed=1)
    >>> found.tables.shape, found.summary()["count"]
    ((3, 16), 3)
    """
    n, count = checks.whole("n", n, least=1), checks.whole("count", count, least=1)
    seed = checks.whole("seed", seed)
    check_init(init, scale)
    checks.choice("threshold", threshold, THRESHOLDS)
    settings = {"name": name, "init": init, "scale": scale, "seed": seed, "threshold": threshold, **sizes}
    _check_inputs(n, inputs)
    if batch is None:
        first = draw_network(name, n, 0, init=init, scale=scale, seed=seed, **sizes)
        batch = best_batch(first, 2**n if inputs is None else inputs * (n + 1), n)
    checks.sizes(batch=batch)
    found: list[tuple[NDArray[np.int8], NDArray[Any]]] = []
    for start in range(0, count, batch):
        indices = range(start, min(start + batch, count))
        drawn = [draw_network(name, n, index, init=init, scale=scale, seed=seed, **sizes) for index in indices]
        points = _points(n, indices, inputs, seed)
        values = all_logits(drawn, points)  # (networks, rows)
        _check_finite(values, indices, settings)
        found.append(_signs_and_sensitivities(values, n, threshold, inputs))
    signs, sensitivities = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Ensemble(n, signs, sensitivities, inputs is None, settings)


def draw_network(
    name: str, n: int, index: int, *, init: str = "default", scale: float = 1.0, seed: int = 0, **sizes: Any
) -> nn.Module:
    """Network number ``index`` of the ensemble that ``random_networks`` makes with the same arguments; float32."""
    with _float32():
        network = networks.create(name, n, seed_of(seed, "default weights", index), **sizes)
    redraw(network, init, scale, seed=seed_of(seed, "weights", index))
    return network


def random_functions(n: int, count: int, seed: int = 0) -> Ensemble:
    """Uniformly random Boolean functions: the control.

    Total sensitivity has mean n/2 and standard deviation sqrt(n / 2^(n+1)); some input has sensitivity 0 with
    probability about 1 - 1/e.

    >>> float(random_functions(n=10, count=50).total_sensitivity.mean().round(1))
    5.0
    """
    n, count = checks.whole("n", n, least=1), checks.whole("count", count, least=1)
    seed = checks.whole("seed", seed)
    if n > cube.LARGEST:
        raise UsageError(f"n={n} has too many inputs for tables of random functions; the limit is {cube.LARGEST}")
    stream, none = Stream(seed, "random functions"), np.zeros(1)
    tables = np.empty((count, 2**n), dtype=np.int8)
    for index in range(count):
        tables[index] = np.where(stream.uniforms([index], none, none, size=2**n)[0] < 0.5, -1, 1)
    return Ensemble.of_tables(tables, {"name": "random function", "seed": seed})


def _check_inputs(n: int, inputs: int | None) -> None:
    """Raise unless all inputs are few enough or a number of them is given."""
    if inputs is not None:
        checks.sizes(inputs=inputs)
    elif n > LARGEST:
        raise UsageError(f"n={n} has too many inputs to evaluate all for each network; pass inputs=2000, for example")


def _points(n: int, indices: range, inputs: int | None, seed: int) -> Tensor:
    """The whole cube, (2^n, n); or random points of each network, each before its n neighbours, (networks, rows, n)."""
    if inputs is None:
        return torch.from_numpy(cube.points(n)).float()
    stream, none = Stream(seed, "points"), np.zeros(len(indices))
    uniforms = stream.uniforms(np.array(indices), none, none, size=inputs * n)
    centres = np.where(uniforms < 0.5, -1, 1).astype(np.int8).reshape(len(indices), inputs, 1, n)
    flips = np.concatenate([np.ones((1, n), dtype=np.int8), 1 - 2 * np.eye(n, dtype=np.int8)])  # (n + 1, n)
    return torch.from_numpy((centres * flips).reshape(len(indices), -1, n)).float()


def _signs_and_sensitivities(
    logits: Tensor, n: int, threshold: str, inputs: int | None
) -> tuple[NDArray[np.int8], NDArray[Any]]:
    """f(x) and s(x, f) at the inputs. ``logits``, (networks, rows): at the whole cube, or at inputs and neighbours."""
    values = logits.numpy()
    if inputs is not None:
        values = values.reshape(len(values), inputs, n + 1)
    centres = values if inputs is None else values[:, :, 0]  # (networks, inputs)
    if threshold == "zero":
        is_positive = values >= 0
    else:
        median = np.sort(centres, axis=1)[:, (centres.shape[1] - 1) // 2]
        limit = median + TIE * np.abs(centres).max(axis=1)
        is_positive = values > limit.reshape(-1, *[1] * (values.ndim - 1))
    signs = np.where(is_positive, 1, -1).astype(np.int8)
    if inputs is None:
        return signs, pointwise.sensitivities(signs)
    changed = signs[:, :, 1:] != signs[:, :, :1]
    return signs[:, :, 0], changed.sum(axis=2, dtype=np.uint8 if n < 256 else np.uint16)


def _check_finite(logits: Tensor, indices: range, settings: dict[str, Any]) -> None:
    """Raise if a logit is infinite or not a number: such a network has no sign."""
    is_bad = ~logits.isfinite()
    if is_bad.any():
        first = int(is_bad.any(dim=1).nonzero()[0])
        raise UsageError(
            f"network {indices[first]} ({settings['name']}, init={settings['init']!r}, scale={settings['scale']}) has "
            f"{int(is_bad[first].sum())} of {logits.shape[1]} logits that are not finite; take a smaller scale or depth"
        )


def _record(ends: tuple[float, float], level: float, method: str) -> dict[str, Any]:
    return Interval(*ends, level, "population", method).to_dict()


@contextmanager
def _float32() -> Iterator[None]:
    """New parameters in float32, so that the same seed gives the same weights whatever torch's default is."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
