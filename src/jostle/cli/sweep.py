"""``jostle sweep``: sensitivity against the strength of the noise."""

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.measure import files_read, loaded, plan_of
from jostle.cli.options import MODEL_HELP, OUTPUT, WHAT, Options
from jostle.cli.outputs import check_outputs, say

if TYPE_CHECKING:
    from jostle.cli.task import Task
    from jostle.estimates import Sweep
    from jostle.sampling import DefaultPlan, Plan

_PICTURES = (".svg", ".png", ".pdf")
_STRENGTH = re.compile(r"(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)(rms)?", re.IGNORECASE)

STDS_HELP = (
    "Strengths of the noise, 0 or larger: 0.5 1 2 5, or 0.5/1/2/5. Of texts also 0.5rms 1rms, in units of the root "
    "mean square of the embedded tokens."
)
KIND_HELP = "What has the strength: gaussian-noise (its std), or sphere (its radius), also sphere:relative=true."
PLOT_HELP = "Also draw the curves into this .svg, .png or .pdf file."
NAMES_HELP = f"SPEC or NAME=SPEC; give it once for each model. {MODEL_HELP}"
WEIGHTS_HELP = "A .safetensors file for the model; NAME=FILE if there are several."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SweepOptions(Options):
    """What ``jostle sweep`` takes beside the models: what ``measure`` takes, at several strengths, without a page."""

    stds: Annotated[list[str], Parameter(group=WHAT, negative="", consume_multiple=True, help=STDS_HELP)]
    perturbation: Annotated[str | None, Parameter(group=WHAT, help=KIND_HELP)] = "gaussian-noise"
    plot: Annotated[Path | None, Parameter(group=OUTPUT, help=PLOT_HELP)] = None
    report: Annotated[Path | None, Parameter(parse=False)] = None
    examples: Annotated[int, Parameter(parse=False)] = 0
    example_draws: Annotated[int, Parameter(parse=False)] = 1


def sweep(
    *,
    model: Annotated[list[str], Parameter(group=WHAT, negative="", help=NAMES_HELP)],
    weights: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=WEIGHTS_HELP)] = None,
    options: SweepOptions,
) -> None:
    """Measure models at several strengths of the noise, on the same inputs.

    Which of two models is more sensitive can change with the strength. Prints
    a table and, for each pair, where the order is decided and where it is not.
    Ctrl-C prints the strengths that are finished.

      jostle sweep --data mnist-5000 --tokens patches:7 --stds 0.5 1 2 5
        --model vit=zoo:vit-simple:image_size=28,channels=1
        --model mlp=zoo:mlp:image_size=28,channels=1
        --weights vit=vit.safetensors --weights mlp=mlp.safetensors
        -o sweep.json --plot sweep.svg

      jostle sweep --model hf:my-classifier --data csv:reviews.csv
        --text review --stds 0.25rms 0.5rms 1rms 2rms
    """
    specs = _models(model)
    files = _weights(weights or [], specs)
    if options.plot is not None and options.plot.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot {options.plot} must end in {', '.join(_PICTURES)}; its ending decides the format")
    check_outputs({"--output": options.output, "--plot": options.plot}, files_read(specs, files, options))
    strengths, in_units = _strengths(options.stds)
    plan = plan_of(options)  # wrong numbers are said before anything is loaded
    models, known = loaded(specs, files, options)
    task, strengths = _task(models, options, strengths, in_units)
    result = _swept(task, options, strengths, plan, known)
    _show(result, task.notes, options)
    if result.missing:
        sys.exit(130)


def _task(
    models: dict[str, Any], options: SweepOptions, strengths: list[float], in_units: bool
) -> tuple["Task", list[float]]:
    """Models and inputs that fit each other, and the strengths as numbers, in whatever unit they were written."""
    from jostle.cli.task import make_task
    from jostle.estimates.sweep import family_of

    kind = options.perturbation or "gaussian-noise"
    parameter = family_of(kind).parameter
    joint = "," if ":" in kind else ":"
    one = f"{kind}{joint}{parameter}={'1rms' if in_units else '0'}"  # 0 needs no look at the tokens' size
    task = make_task(replace(options, perturbation=one), models)
    if not in_units:
        return task, strengths
    if task.texts is None:
        raise UsageError(f"--stds {' '.join(options.stds)}: rms is the size of embedded texts; give plain numbers")
    unit = getattr(task.perturbation, parameter)
    return task, [float(f"{strength * unit:.3g}") for strength in strengths]


def _swept(
    task: "Task",
    options: SweepOptions,
    strengths: list[float],
    plan: "Plan | DefaultPlan",
    known: dict[str, list[str]],
) -> "Sweep":
    """The sweep; after Ctrl-C some strengths are missing."""
    from jostle.estimates.sweep import checked_strengths, family_of, run_sweep

    family, checked = family_of(options.perturbation or "gaussian-noise"), checked_strengths(strengths)
    request = replace(task.request(options, plan), perturbation=family.at(checked[-1]))
    task.look_around()
    return run_sweep(request, family, checked, task.models, task.inputs, not options.quiet, known)


def _show(result: "Sweep", notes: list[str], options: SweepOptions) -> None:
    """Print, then save: a file that cannot be written does not take the numbers with it."""
    if options.as_json:
        say(json.dumps(result.to_dict(), indent=1))
    else:
        say("\n".join([str(result), *(f"  {note}" for note in notes)]))
    if options.output is not None:
        result.save(options.output)
    if options.plot is not None:
        from jostle.figures import save

        save(result.plot(), options.plot)
    for path in (options.output, options.plot):
        if path is not None and not options.as_json:
            say(f"  written to {path}")


def _strengths(words: list[str]) -> tuple[list[float], bool]:
    """The numbers that were written, and whether they are in units of the tokens' root mean square."""
    parts = [part for word in words for part in word.replace(",", "/").split("/") if part]
    if not parts:
        raise UsageError("--stds is empty: give the strengths of the noise, for example --stds 0.5 1 2 5")
    found = [_STRENGTH.fullmatch(part) for part in parts]
    for part, match in zip(parts, found, strict=True):
        if match is None:
            raise UsageError(f"--stds {part} must be a finite number, 0 or larger: for example --stds 0.5 1 2 5")
    units = {bool(match[2]) for match in found if match is not None}
    if len(units) > 1:
        raise UsageError(f"--stds {' '.join(words)}: give all of them in rms, or none")
    return [float(match[1]) for match in found if match is not None], units.pop()


def _models(words: list[str]) -> dict[str, str]:
    """Specs by name; a spec without a name is its own."""
    named: dict[str, str] = {}
    for word in words:
        name, equals, spec = word.partition("=")
        if not equals or not name or ":" in name:
            name, spec = word, word
        if name in named:
            raise UsageError(f"--model names {name!r} twice; give each a name of its own: --model NAME=SPEC")
        named[name] = spec
    return named


def _weights(words: list[str], specs: dict[str, str]) -> dict[str, str]:
    """Files by the name of their model; with one model the name can be left out."""
    files: dict[str, str] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or name not in specs:
            if len(specs) > 1:
                raise UsageError(f"--weights {word} must read NAME=FILE with the name of a model: {', '.join(specs)}")
            name, file = next(iter(specs)), word
        if name in files:
            raise UsageError(f"--weights names {name!r} twice")
        files[name] = file
    return files
