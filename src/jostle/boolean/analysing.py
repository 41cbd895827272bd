"""``analyse``: from a function or a table to all that can be said about it."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from torch import Tensor

from jostle.boolean.analysis import Analysis
from jostle.boolean.cube import LARGEST
from jostle.boolean.sampled import SampledAnalysis, sample
from jostle.boolean.tables import Evaluator, Output, given_table, table_of
from jostle.errors import UsageError
from jostle.estimates.settings import checked_level, checked_whole
from jostle.progress import Progress

_MOST = 1 << 28  # bits of all points together: two gigabytes

Method = Literal["auto", "exact", "sampled"]


def analyse(
    f: Callable[..., Any] | Any,
    n: int | None = None,
    *,
    method: Method = "auto",
    output: Output = "auto",
    tie: int | None = None,
    tensors: bool = False,
    samples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 4096,
    progress: Progress = False,
) -> Analysis | SampledAnalysis:
    """Sensitivity, influences and Fourier spectrum of a function of n bits.

    Exact for n up to 24, from 2^n evaluations of f (never n 2^n); for larger n, estimates with intervals.

    >>> from jostle.boolean import analyse
    >>> b = analyse(lambda x: x.prod(axis=1), n=10)  # parity
    >>> b.total_sensitivity, b.sensitivity, b.max_sensitivity, b.degree
    (10.0, 1.0, 10, 10)
    >>> analyse([-1, -1, -1, 1]).influences.tolist()  # AND of two bits, as a table
    [0.5, 0.5]

    Arguments:
        f: a callable from a (batch, n) array of -1 and 1 to (batch,) numbers, an ``nn.Module``, or a table of 2^n
            values in the order of ``itertools.product((-1, 1), repeat=n)``. Truth values count as -1 and 1.
        n: the number of bits; may be left out for a table or a function that has an ``n`` of its own.
        method: ``exact``, ``sampled``, or ``auto``: exact up to 24 bits.
        output: ``values`` of f as they are, ``sign`` for the predictions of a network, or ``auto``: values, where a
            function into 0 and 1 is an error, since its sensitivity would not count flips.
        tie: -1 or 1, the sign of an output of exactly 0; by default such an output is an error.
        tensors: give a callable that is no module tensors instead of arrays.
        samples: random points for ``sampled``, each with its n neighbours.
        level, seed: of the intervals and of the points.
        batch_size: how many points f answers at once.
        progress: as for ``jostle.measure``; only sampling shows it.

    Raises:
        UsageError: one line on what cannot be analysed.
    """
    if method not in ("auto", "exact", "sampled"):
        raise UsageError(f"method={method!r} must be auto, exact or sampled")
    checked_whole("samples", samples, least=2)
    checked_whole("batch_size", batch_size, least=1)
    checked_level(level)
    checked_whole("seed", seed)
    if not callable(f):
        if method == "sampled":
            raise UsageError("method='sampled' needs a function; a table already says everything exactly")
        return Analysis.of(_table(f, n, output, tie))
    bits = _bits(f, n)
    if method != "exact" and bits > LARGEST and bits * samples > _MOST:
        raise UsageError(f"{samples:,} samples of {bits:,} bits are too many to hold; take fewer samples or bits")
    evaluator = Evaluator(f, bits, output, tie, tensors)
    if method == "exact" and bits > LARGEST:
        raise UsageError(f"n={bits} is too large for method='exact', 2^n evaluations; the limit is {LARGEST}")
    if method == "exact" or (method == "auto" and bits <= LARGEST):
        return Analysis.of(table_of(evaluator, bits, batch_size))
    return sample(evaluator, bits, samples, level, seed, batch_size, progress)


def _table(values: Any, n: int | None, output: Output, tie: int | None) -> np.ndarray[Any, Any]:
    if not isinstance(values, np.ndarray | Tensor | list | tuple):
        raise UsageError(f"f of type {type(values).__name__} is neither a function of bits nor a table of 2^n values")
    table = given_table(values, output, tie)
    found = len(table).bit_length() - 1
    if n is not None and checked_whole("n", n, least=1) != found:
        raise UsageError(f"n={n} does not fit a table of {len(table):,} values, which is for n={found}")
    return table


def _bits(f: Callable[..., Any], n: int | None) -> int:
    """The number of bits: as given, or as a function or network of jostle's knows it."""
    own = getattr(f, "n", None) if type(f).__module__.startswith("jostle.boolean") else None
    if n is None and own is None:
        raise UsageError("n is missing: give the number of bits, analyse(f, n=10)")
    bits = checked_whole("n", n if n is not None else own, least=1)  # type: ignore[arg-type]
    if own not in (None, bits):
        raise UsageError(f"n={n} does not fit a function of {own} bits")
    return bits
