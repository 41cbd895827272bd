"""``jostle sweep``: sensitivity against the strength of the noise."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import (
    MODELS_HELP,
    OUTPUT,
    WEIGHTS_HELP,
    WHAT,
    EngineOptions,
    SamplingOptions,
    model_specs,
    weight_files,
)
from jostle.cli.output import check_files, check_plot, command_line, say, show, write_plot

if TYPE_CHECKING:
    from jostle.cli.subject import Subject
    from jostle.estimates import Sweep

_KIND = "gaussian-noise"

STDS_HELP = (
    "Strengths of the noise, 0 or larger: 0.5 1 2 5, or 0.5/1/2/5. For texts also 0.5rms 1rms, in units of the root "
    "mean square of the embedded tokens."
)
KIND_HELP = "Kind of noise. --stds is its std (gaussian-noise) or its radius (sphere, sphere:relative=true)."
PLOT_HELP = "Also draw the curves into this .svg, .png or .pdf file."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SweepOptions(SamplingOptions):
    """What ``jostle sweep`` takes beside the models."""

    stds: Annotated[list[str], Parameter(group=WHAT, negative="", consume_multiple=True, help=STDS_HELP)]
    perturbation: Annotated[str | None, Parameter(group=WHAT, help=KIND_HELP)] = _KIND
    plot: Annotated[Path | None, Parameter(group=OUTPUT, help=PLOT_HELP)] = None
    report: Annotated[Path | None, Parameter(group=OUTPUT, help="Also write an HTML page.")] = None


def sweep(
    *,
    model: Annotated[list[str], Parameter(group=WHAT, negative="", help=MODELS_HELP)],
    weights: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=WEIGHTS_HELP)] = None,
    options: SweepOptions,
    engines: EngineOptions = EngineOptions(),  # noqa: B008 - it is frozen
) -> None:
    """Measure models at several strengths of the noise, on the same inputs.

    Which of two models is more sensitive can change with the strength. Prints
    a table and, for each pair, at which strengths one is clearly more sensitive.
    Ctrl-C prints the strengths that are finished.

      jostle sweep --data mnist-5000 --tokens patches:7 --stds 0.5 1 2 5
        --model vit=zoo:vit-simple:image_size=28,channels=1
        --model mlp=zoo:mlp:image_size=28,channels=1
        --weights vit=vit.safetensors --weights mlp=mlp.safetensors
        -o sweep.json --plot sweep.svg

      jostle sweep --model hf:my-classifier --data csv:reviews.csv
        --text review --stds 0.25rms 0.5rms 1rms 2rms
    """
    specs = model_specs(model)
    files = weight_files(weights or [], specs)
    check_plot(options.plot)
    check_files(options, list(files.values()), {"--plot": options.plot, "--report": options.report})
    engine = engines.chosen()
    from jostle.cli.subject import load_models, make_request, plan_of, read_subject
    from jostle.engines.torchrun import is_first
    from jostle.estimates.sweep import family_of, read_strengths, run_sweep

    plan, family = plan_of(options), family_of(options.perturbation or _KIND)
    written, are_in_rms = _strengths(options.stds)  # wrong numbers raise before anything is loaded
    models, known = load_models(specs, files, options.seed)
    subject = read_subject(options, models, label=options.label)
    strengths = read_strengths(_from_rms(options, subject, written) if are_in_rms else written)
    request = make_request(options, subject, family.at(strengths[-1]), plan)
    subject.ask_clean(request)
    is_quiet = options.quiet or not is_first()
    result = run_sweep(request, family, strengths, subject.models, subject.inputs, not is_quiet, known, engine)
    if not is_first():
        return  # another process of torchrun has the same result and writes it
    show(result, subject.notes, options)
    if options.plot is not None:
        write_plot(result, options.plot, options)
    if options.report is not None:
        _write_page(result, specs, subject, options, options.report)
    if result.missing:
        sys.exit(130)


def _write_page(result: "Sweep", specs: dict[str, str], subject: "Subject", options: SweepOptions, path: Path) -> None:
    from jostle.report import write
    from jostle.report.measurement import percent
    from jostle.report.sweep import sweep_page

    settings = {f"model {name}" if name != spec else "model": spec for name, spec in specs.items()}
    if subject.accuracies:
        shown = ", ".join(f"{name} {percent(share)}" for name, share in subject.accuracies.items())
        settings[f"accuracy on {subject.which_clean}"] = shown
    notes = [note for note in subject.notes if note not in subject.accuracy_notes]
    page = sweep_page(result, inputs=options.data, settings=settings, notes=notes, command=command_line())
    write(page, path)
    if not options.as_json:
        say(f"  report written to {path}")


def _strengths(words: list[str]) -> tuple[list[float], bool]:
    """The numbers that were written, and whether they are in units of the tokens' root mean square."""
    from jostle.cli.subject import in_rms

    parts = [part for word in words for part in word.replace(",", "/").split("/") if part]
    if not parts:
        raise UsageError("--stds is empty: give the strengths of the noise, for example --stds 0.5 1 2 5")
    counts = [in_rms(part) for part in parts]
    if any(count is not None for count in counts) and None in counts:
        raise UsageError(f"--stds {' '.join(words)}: give all of them in rms, or none")
    numbers = [_number(part) if count is None else count for part, count in zip(parts, counts, strict=True)]
    for part, number in zip(parts, numbers, strict=True):
        if not math.isfinite(number) or number < 0:
            raise UsageError(f"--stds {part} must be a finite number, 0 or larger: for example --stds 0.5 1 2 5")
    return numbers, counts[0] is not None


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def _from_rms(options: SweepOptions, subject: "Subject", counts: list[float]) -> list[float]:
    """Strengths in units of the root mean square as plain numbers, to three digits."""
    from jostle.cli.subject import scale_rms

    if subject.texts is None:
        raise UsageError(f"--stds {' '.join(options.stds)}: rms is the size of embedded texts; give plain numbers")
    unit = scale_rms(options, subject, 1.0, f"{options.perturbation} with --stds {' '.join(options.stds)}")
    strengths = {float(f"{count * unit:.3g}"): count for count in sorted(counts)}
    asked = ", ".join(f"{strength:g} is {count:g}rms" for strength, count in strengths.items())
    subject.notes.append(f"rows as asked for: {asked}")
    return [float(f"{count * unit:.3g}") for count in counts]
