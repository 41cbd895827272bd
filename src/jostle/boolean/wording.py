"""Analyses as tables of text for a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jostle.boolean.stability import RHOS
from jostle.specs import written

if TYPE_CHECKING:
    from jostle.boolean.analysis import Analysis
    from jostle.boolean.functions import KnownFunction
    from jostle.boolean.sampled import SampledAnalysis

_FEW = 12


def exact_lines(b: "Analysis", rhos: Sequence[float] | None = None) -> list[str]:
    """An exact analysis, a quantity a line."""
    rhos = rhos or RHOS
    kind = "into {-1, 1}" if b.is_boolean else f"real, from {b.table.min():.6g} to {b.table.max():.6g}"
    lines = [
        f"function of {b.n} bits {kind}; exact, from {len(b.table):,} values",
        _row("mean", b.mean),
        _row("total sensitivity", b.total_sensitivity, f"sensitivity {b.sensitivity:.6g} (per bit)"),
        _row("max sensitivity", b.max_sensitivity, f"min {b.min_sensitivity:.6g}"),
        _row("degree", b.degree),
        f"  {'influences':<20} {_numbers(b.influences)}",
        f"  {'Fourier weight':<20} {_by_degree(b.fourier_weight)}",
        f"  {'noise stability':<20} " + "   ".join(f"rho {written(rho)}: {b.noise_stability(rho):.6g}" for rho in rhos),
    ]
    if b.is_boolean:
        profile = b.sensitivity_profile
        counts = [f"{s}: {count:,}" for s, count in enumerate(profile.tolist()) if count]
        lines += [
            f"  {'inputs of s':<20} {_shortened(counts)}",
            f"  {'disagreement':<20} " + "   ".join(f"rho {written(rho)}: {b.disagreement(rho):.6g}" for rho in rhos),
            f"  {'Huang':<20} {b.huang}",
            *(f"  {'Proposition 3.2':<20} {b.proposition_3_2(rho)}" for rho in rhos if rho >= 0),
            *(f"  {'average sensitivity':<20} {b.average_bound(rho)}" for rho in rhos if rho >= 0),
        ]
    return lines


def sampled_lines(b: "SampledAnalysis", rhos: Sequence[float] | None = None) -> list[str]:
    """A sampled analysis, a quantity a line."""
    kind = "into {-1, 1}" if b.is_boolean else "real"
    level = f"{b.measurement.settings.level:.0%}"
    values, low, high = b.influences
    largest = np.argsort(-values, kind="stable")[:5]
    shown = "   ".join(f"bit {i}: {values[i]:.3g} [{low[i]:.3g}, {high[i]:.3g}]" for i in largest)
    return [
        f"function of {b.n} bits {kind}; estimated from {b.samples:,} random inputs and all their neighbours, "
        f"{level} intervals",
        f"  {'mean':<20} {b.mean}",
        f"  {'total sensitivity':<20} {b.total_sensitivity}",
        f"  {'sensitivity':<20} {b.sensitivity}",
        f"  {'max sensitivity':<20} at least {b.max_sensitivity_seen:g}, the largest seen",
        f"  {'largest influences':<20} {shown}",
        *(f"  {f'stability, rho {written(rho)}':<20} {b.noise_stability(rho)}" for rho in rhos or RHOS),
    ]


def formula_line(known: "KnownFunction") -> list[str]:
    """What a formula says about a function of the library, beside what was computed; nothing where there is none."""
    exact = known.exact
    names = ("total_sensitivity", "max_sensitivity", "degree")
    parts = [
        f"{name.replace('_', ' ')} {getattr(exact, name):.6g}" for name in names if getattr(exact, name) is not None
    ]
    mean = " (the mean over such functions)" if exact.is_expectation else ""
    return [f"  {'by formula':<20} {', '.join(parts)}{mean}"] if parts else []


def _row(name: str, value: float, note: str = "") -> str:
    return f"  {name:<20} {value:<12.6g} {note}".rstrip()


def _numbers(values: NDArray[Any]) -> str:
    if len(values) > 1 and np.all(values == values[0]):
        return f"all {len(values)}: {values[0]:.6g}"
    return _shortened([f"{value:.4g}" for value in values.tolist()], " ")


def _by_degree(weight: NDArray[Any]) -> str:
    return _shortened([f"{k}: {value:.4g}" for k, value in enumerate(weight.tolist()) if value > 1e-15 * weight.sum()])


def _shortened(parts: list[str], joint: str = "   ") -> str:
    return joint.join(parts) if len(parts) <= _FEW else f"{joint.join(parts[:_FEW])}{joint}... ({len(parts)} in all)"
