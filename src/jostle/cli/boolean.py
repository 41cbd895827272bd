"""``jostle boolean``: the analysis of a function of bits."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import Force, whole
from jostle.cli.output import check_outputs, say

if TYPE_CHECKING:
    from jostle.boolean import Analysis, SampledAnalysis
    from jostle.boolean.functions import KnownFunction

FUNCTION = Group("Which function", sort_key=1)
HOW = Group("How it is analysed", sort_key=2)
OUTPUT = Group("Output", sort_key=3)

_FILES = (".npy", ".txt", ".csv")
_PICTURES = (".svg", ".png", ".pdf")

NAME_HELP = (
    "A name with options (jostle list functions), e.g. parity, majority, sparse-parity:k=3, threshold:weights=3/1/1; "
    "a formula, e.g. 'x0 and not (x1 xor x2)'; or a truth table: .npy, .txt or .csv with 2^n values in the order of "
    "itertools.product((-1, 1), repeat=n)."
)
N_HELP = "Number of bits; not needed for a truth table or a formula."
MODEL_HELP = (
    "Instead of a name: a network that takes (batch, n) of -1 and 1, py:MODULE_OR_FILE:FACTORY[:key=value,...] or, "
    "with --shape, zoo:NAME[:key=value,...]. Its prediction is analysed: the sign of one logit, or the larger of two."
)
SHAPE_HELP = "Give a network its n bits in this shape, e.g. 1x4x4 for an image of 16 bits."
METHOD_HELP = (
    "exact: all 2^n inputs, up to 24 bits; sampled: random inputs, with intervals; auto: exact where possible."
)
VALUES_HELP = "Analyse the output as real numbers: of a network, not its sign; of a table, 0 and 1 as they are."
TIE_HELP = "The sign of an output of exactly 0: -1 or 1. By default such an output is an error."
RHO_HELP = "Correlations for noise stability, disagreement and Proposition 3.2 of arXiv 2403.06925: --rho 0.5 0.9."
COEFFICIENTS_HELP = "Also print this number of largest Fourier coefficients."
FIGURE_HELP = "Draw Fourier weight and sensitivity profile to this .svg, .png or .pdf file."


def boolean(
    name: Annotated[str | None, Parameter(group=FUNCTION, help=NAME_HELP)] = None,
    *,
    n: Annotated[
        int | None,
        Parameter(converter=whole, group=FUNCTION, help="Number of bits; not needed for a truth table or a formula."),
    ] = None,
    model: Annotated[str | None, Parameter(group=FUNCTION, help=MODEL_HELP)] = None,
    weights: Annotated[str | None, Parameter(group=FUNCTION, help="A .safetensors or .pt file for the model.")] = None,
    shape: Annotated[str | None, Parameter(group=FUNCTION, help=SHAPE_HELP)] = None,
    method: Annotated[Literal["auto", "exact", "sampled"], Parameter(group=HOW, help=METHOD_HELP)] = "auto",
    samples: Annotated[
        int, Parameter(converter=whole, group=HOW, help="Random inputs for sampled, each with n neighbours.")
    ] = 2000,
    level: Annotated[float, Parameter(group=HOW, help="Coverage of the intervals.")] = 0.95,
    seed: Annotated[
        int, Parameter(converter=whole, group=HOW, help="Seed of the random inputs and of a zoo model's weights.")
    ] = 0,
    values: Annotated[bool, Parameter(group=HOW, negative="", show_default=False, help=VALUES_HELP)] = False,
    tie: Annotated[int | None, Parameter(converter=whole, group=HOW, help=TIE_HELP)] = None,
    rho: Annotated[list[float] | None, Parameter(group=HOW, negative="", consume_multiple=True, help=RHO_HELP)] = None,
    batch_size: Annotated[int, Parameter(converter=whole, group=HOW, help="Inputs in one batch of a network.")] = 4096,
    coefficients: Annotated[int, Parameter(converter=whole, group=OUTPUT, help=COEFFICIENTS_HELP)] = 0,
    figure: Annotated[Path | None, Parameter(group=OUTPUT, help=FIGURE_HELP)] = None,
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, group=OUTPUT, help="Print JSON only.")
    ] = False,
    force: Annotated[Force, Parameter(group=OUTPUT)] = False,
) -> None:
    """Analyse a function of bits: sensitivity, influences, Fourier spectrum, noise stability.

    Exact up to 24 bits, from one evaluation of each of the 2^n inputs.

      jostle boolean parity --n 10
      jostle boolean sparse-parity:k=3 --n 12 --figure parity.svg
      jostle boolean "x0 and not (x1 xor x2)"
      jostle boolean table.txt
      jostle boolean --model py:my_model.py:make --weights my.safetensors --n 10
    """
    _check(name, model, weights, shape, tie, coefficients)
    _check_figure(figure, name, weights, force=force)
    from jostle.boolean import LARGEST, Analysis, analyse

    known, f = (None, None) if name is None else _load_function(name, n)
    if model is not None:
        f = _load_network(model, weights, shape, n, seed)
    n = _bits_of(f, n)
    if method == "sampled" or (method == "auto" and (n or 0) > LARGEST):
        for flag, value in (("--figure", figure), ("--coefficients", coefficients)):
            if value:
                raise UsageError(f"{flag} {value}: only an exact analysis has the whole Fourier spectrum")
    try:
        found = analyse(
            f,
            n,
            method=method,
            output="values" if values else "auto" if model is None else "sign",
            tie=tie,
            tensors=model is not None,
            samples=samples,
            level=level,
            seed=seed,
            batch_size=batch_size,
            progress=not as_json and sys.stderr.isatty(),
        )
    except UsageError as error:
        raise UsageError(_with_flags(str(error))) from None
    _print(name or str(model), found, known, rho, coefficients, as_json)
    if isinstance(found, Analysis) and figure is not None:
        from jostle.figures import boolean_figure, save

        save(boolean_figure(found, title=name or model), figure)
        if not as_json:
            say(f"  written to {figure}")


def _check(
    name: str | None,
    model: str | None,
    weights: str | None,
    shape: str | None,
    tie: int | None,
    coefficients: int,
) -> None:
    """Raise on options that do not go together, before anything is loaded."""
    if (name is None) == (model is None):
        raise UsageError("give a function's name, a truth-table file, or --model; exactly one of them")
    for flag, value in (("--weights", weights), ("--shape", shape), ("--tie", tie)):
        if value is not None and model is None:
            raise UsageError(f"{flag} {value} goes with --model only")
    if coefficients < 0:
        raise UsageError(f"--coefficients {coefficients} must be at least 0")


def _check_figure(figure: Path | None, name: str | None, weights: str | None, *, force: bool) -> None:
    if figure is not None and figure.suffix.lower() not in _PICTURES:
        raise UsageError(f"--figure {figure} must end in {', '.join(_PICTURES)}; its ending decides the format")
    check_outputs({"--figure": figure}, force=force, read=[("the truth table", name), ("--weights", weights)])


def _load_function(name: str, n: int | None) -> tuple["KnownFunction | None", Any]:
    """A function of the library and its closed forms, or the table of a file."""
    from jostle.boolean import functions, read_table
    from jostle.boolean.formulas import is_formula, parse

    if Path(name).suffix.lower() in _FILES:
        return None, read_table(Path(name))
    if is_formula(name) and not Path(name).is_file():
        return None, parse(name)
    if Path(name).is_file():
        raise UsageError(f"truth table file {name} must end in {', '.join(_FILES)}")
    if n is None:
        functions.FUNCTIONS.get(name.partition(":")[0])
        raise UsageError(f"how many bits? Give --n, for example jostle boolean {name} --n 10")
    known = functions.create(name, n=n)
    return known, known


def _bits_of(f: Any, n: int | None) -> int | None:
    """The number of bits: ``--n``, or as many as a formula has."""
    needed = getattr(f, "bits", None)
    if needed is None or n is None:
        return n if needed is None else int(needed)
    if n < needed:
        raise UsageError(f"--n {n}: the formula {f.text!r} has {needed} bits, x0 to x{needed - 1}")
    return n


def _load_network(model: str, weights: str | None, shape: str | None, n: int | None, seed: int) -> Callable[..., Any]:
    """The network of ``--model`` with its weights, on n bits."""
    import math

    from torch import nn

    from jostle.cli.subject import load_model

    if n is None:
        raise UsageError(f"how many bits does the network take? Give --n, for example --model {model} --n 10")
    network = load_model(model, weights, seed)
    if shape is None:
        return network
    sizes = [int(part) if part.isdigit() else 0 for part in shape.split("x")]
    if min(sizes) < 1 or math.prod(sizes) != n:
        raise UsageError(f"--shape {shape} must be whole numbers with x between them whose product is n={n}")
    if isinstance(network, nn.Module):
        return nn.Sequential(nn.Unflatten(1, sizes), network)
    return lambda batch: network(batch.reshape(len(batch), *sizes))


def _print(
    name: str,
    found: "Analysis | SampledAnalysis",
    known: "KnownFunction | None",
    rho: list[float] | None,
    coefficients: int,
    as_json: bool,
) -> None:
    """Print an analysis as text or as JSON."""
    from jostle.boolean import Analysis

    largest = found.largest_coefficients(coefficients) if isinstance(found, Analysis) and coefficients else []
    if as_json:
        numbers = found.to_dict(rho) if rho else found.to_dict()
        if coefficients:
            numbers["largest_coefficients"] = [{"subset": list(subset), "value": value} for subset, value in largest]
        say(json.dumps({"name": name, **numbers}, indent=1))
        return
    if isinstance(found, Analysis):
        from jostle.boolean.analysis import exact_lines

        lines = exact_lines(found, rho)
    else:
        from jostle.boolean.sampled import sampled_lines  # imports torch

        lines = sampled_lines(found, rho)
    lines += [f"  {'coefficient':<20} {value:+.6g} of {_subset(subset)}" for subset, value in largest]
    if known is not None:
        lines += _formula_lines(known)
    say(f"{name}: " + "\n".join(lines))


def _formula_lines(known: "KnownFunction") -> list[str]:
    """The closed-form values of a function of the library, as one line; no line if it has none."""
    exact = known.exact
    names = ("total_sensitivity", "max_sensitivity", "degree")
    parts = [
        f"{name.replace('_', ' ')} {getattr(exact, name):.6g}" for name in names if getattr(exact, name) is not None
    ]
    mean = " (the mean over such functions)" if exact.is_expectation else ""
    return [f"  {'by formula':<20} {', '.join(parts)}{mean}"] if parts else []


def _with_flags(message: str) -> str:
    """An error message of ``analyse`` with flags in place of Python arguments."""
    words = {
        "output='values'": "--values",
        "tie=-1 or tie=1": "--tie -1 or --tie 1",
        "method='exact'": "--method exact",
        "samples=": "--samples ",
        "level=": "--level ",
        "n=": "--n ",
    }
    for python, flag in words.items():
        message = message.replace(python, flag)
    return message


def _subset(subset: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, subset))}}}" if subset else "the empty set"
