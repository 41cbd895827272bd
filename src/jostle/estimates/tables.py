"""The rows of results: of a measurement, of its positions and inputs, of several measurements and their differences."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.base.errors import UsageError
from jostle.base.estimate import Interval
from jostle.base.notebook import in_frame, map_svg, table_html
from jostle.base.table import Row

if TYPE_CHECKING:
    from jostle.estimates.result import Comparison, Difference, MeanChange, Measurement, Profile
    from jostle.estimates.stability import Stability
    from jostle.estimates.sweep import Sweep

_LONG = ("dataset_low", "dataset_high", "population_low", "population_high", "response", "level", "target")
MOST_POSITIONS = 4096  # in the map of a notebook


def measured_row(m: "Measurement", **first: Any) -> Row:
    """A measurement: its number, both intervals, what it cost and why sampling ended."""
    return {
        "model": m.name,
        **first,
        "against": None,
        "response": m.settings.response,
        **_ends(m),
        "verdict": None,
        "trials": m.trials,
        "passes": m.passes,
        "stopped": m.stopped,
    }


def difference_row(d: "Difference", response: str | None = None, **first: Any) -> Row:
    """A difference, with the columns of ``measured_row``."""
    return {
        "model": d.first,
        **first,
        "against": d.second,
        "response": response,
        **_ends(d),
        "verdict": d.verdict,
        "trials": d.trials,
        "passes": None,
        "stopped": None,
    }


def _ends(one: "MeanChange") -> Row:
    known: Mapping[str, Interval] = {"dataset": one.dataset, "population": one.population}
    both = {
        f"{name}_{end}": getattr(interval, end) if interval.is_known else None
        for name, interval in known.items()
        for end in ("low", "high")
    }
    return {**one.row(), **both}


def position_rows(profile: "Profile", **first: Any) -> list[Row]:
    """A row for each token position: its mean change, the interval of this position alone, and its trials."""
    numbers = np.stack([profile.values, profile.low, profile.high], axis=1).tolist()
    return [
        {
            **first,
            "position": place,
            **_places(place, profile.positions),
            **dict(zip(("value", "low", "high"), each, strict=True)),
            "trials": int(count),
        }
        for place, (each, count) in enumerate(zip(numbers, profile.counts.tolist(), strict=True))
    ]


def _places(place: int, shape: Sequence[int]) -> Row:
    """Where a position is in a grid of two dimensions."""
    return {"row": place // shape[1], "column": place % shape[1]} if len(shape) == 2 else {}


def input_rows(m: "Measurement", **first: Any) -> list[Row]:
    """A row for each input that was visited: its mean change over tokens and draws.

    With ``samples`` there is an interval for each, and the number of its trials; without them there is none.
    """
    if m.samples is not None:
        return m.samples.input_rows(**first)
    visited = np.flatnonzero(np.isfinite(m.per_input))
    return [
        {**first, "input": int(index), "value": float(m.per_input[index]), "low": None, "high": None, "trials": None}
        for index in visited
    ]


def measurement_rows(m: "Measurement", of: str, **first: Any) -> list[Row]:
    """The rows of a measurement: ``result``, ``positions``, ``inputs`` or ``tokens``."""
    if of == "result":
        return [measured_row(m, **first)]
    first = {"model": m.name, **first}
    if of == "positions":
        return position_rows(m.profile, **first)
    if of == "inputs":
        return input_rows(m, **first)
    return [] if m.samples is None else m.samples.token_rows(**first)


def comparison_rows(c: "Comparison", of: str = "result", **first: Any) -> list[Row]:
    """The rows of several models; with ``result`` also of their differences."""
    rows = [row for m in c.measurements.values() for row in measurement_rows(m, of, **first)]
    if of == "result":
        response = next(iter(c.measurements.values())).settings.response
        rows += [difference_row(d, response, **first) for d in c.differences]
    return rows


def sweep_rows(sweep: "Sweep", of: str) -> list[Row]:
    """The rows of all strengths; the column of the strength has its name."""
    return [
        row for strength, found in sweep.at.items() for row in comparison_rows(found, of, **{sweep.parameter: strength})
    ]


def stability_rows(found: "Stability") -> list[Row]:
    """A row for each rho."""
    return [
        {
            **point.row(model=found.name, rho=point.rho),
            "other_low": point.other.low if point.other.is_known else None,
            "other_high": point.other.high if point.other.is_known else None,
            "trials": point.trials,
            "stopped": point.stopped,
        }
        for point in found.points
    ]


def position_hints(profile: "Profile") -> Iterator[str]:
    """What pointing at a position says."""
    numbers = zip(profile.values.tolist(), profile.low.tolist(), profile.high.tolist(), strict=True)
    for place, ((value, low, high), count) in enumerate(zip(numbers, profile.counts.tolist(), strict=True)):
        where = f"position {place}"
        if len(profile.positions) == 2:
            where = "row {row}, column {column}".format(**_places(place, profile.positions))
        yield f"{where}: {value:.3g} [{low:.3g}, {high:.3g}], {count:,} trials" if count else f"{where}: not jostled"


def profile_html(profile: "Profile", label: str) -> str:
    """A map or a strip of the positions, shaded by their mean change; empty if there is one position or very many."""
    if not 1 < len(profile.values) <= MOST_POSITIONS or len(profile.positions) > 2:
        return ""
    top = float(np.nanmax(profile.values, initial=0.0))
    shown = map_svg(profile.image(), list(position_hints(profile)), top=top, label=label)
    return f'<div>{shown}<div style="opacity:.7">{escape(label)}: 0 to {top:.3g}, darkest</div></div>'


def measurements_html(text: str, rows: Sequence[Row], measured: Iterable["Measurement"]) -> str:
    """For notebooks: the text, the table, and for each model its positions and, with ``samples``, examples."""
    short = [{key: row[key] for key in row if key not in _LONG} for row in rows]
    parts = [table_html(short)]
    shown = list(measured)
    for m in shown:
        label = "mean change by position" + (f" of {m.name}" if len(shown) > 1 else "")
        parts.append(profile_html(m.profile, label))
        if m.samples is not None:
            parts.append(m.samples.examples_html(m.name if len(shown) > 1 else ""))
    return in_frame(text, *parts)


def sweep_xarray(sweep: "Sweep") -> Any:
    """A sweep as labelled arrays: numbers over model and strength, positions too, differences over pairs.

    ``value``, ``low``, ``high`` are (model, strength), ``position_value``, ``position_low`` and ``position_high``
    (model, strength, position), ``difference``, ``difference_low`` and ``difference_high`` (pair, strength). The
    dimension of the strength has its name, ``std`` or ``radius``.
    """
    try:
        xarray = importlib.import_module("xarray")
    except ModuleNotFoundError:
        raise UsageError('to_xarray() needs xarray: pip install "jostle[tables]"') from None
    strength, names = sweep.parameter, sweep.names
    measured = [[found[name] for found in sweep.at.values()] for name in names]
    over, arrays = ("model", strength), dict[str, Any]()
    for end in ("value", "low", "high"):
        arrays[end] = (over, [[getattr(m, end) for m in row] for row in measured])
        part = "values" if end == "value" else end
        arrays[f"position_{end}"] = ((*over, "position"), [[getattr(m.profile, part) for m in row] for row in measured])
    pairs = next(iter(sweep.at.values())).differences
    if pairs:
        found = [[each.difference(d.first, d.second) for each in sweep.at.values()] for d in pairs]
        for name, end in (("difference", "value"), ("difference_low", "low"), ("difference_high", "high")):
            arrays[name] = (("pair", strength), [[getattr(d, end) for d in row] for row in found])
    coordinates = {"model": names, strength: sweep.strengths}
    coordinates |= {"pair": [f"{d.first} - {d.second}" for d in pairs]} if pairs else {}
    s = sweep.settings
    attributes = {"response": s.response, "level": s.level, "target": s.target, "shared_level": sweep.shared_level}
    return xarray.Dataset(arrays, coords=coordinates, attrs=attributes)
