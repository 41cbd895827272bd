"""``jostle measure`` and ``jostle compare``."""

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from jostle.cli.numbers import whole
from jostle.errors import UsageError
from jostle.files import check_writable

WHAT = Group("What is jostled", sort_key=1)
PRECISION = Group("How sure", sort_key=2)
OUTPUT = Group("Running and output", sort_key=3)

MODEL_HELP = (
    "zoo:NAME[:key=value,...], hf:DIR, timm:NAME[:checkpoint=FILE,...] or py:MODULE_OR_FILE:FACTORY[:key=value,...]."
)
DATA_HELP = (
    "Inputs: a dataset's name (jostle list datasets), a .npy, .npz or .safetensors file (one array, or arrays named "
    "like the model's arguments), images:DIR[:size=224,seed=0,...], or py:MODULE_OR_FILE:FACTORY."
)
PERTURBATION_HELP = (
    "What a token becomes: gaussian-noise:std=2, sphere:radius=1, sign-flip, uniform-token:-1/1, replace-by:0."
)
RESPONSE_HELP = "What counts as a change: flip, margin, logit-change, absolute-change, relative-change or angle."
HALF_WIDTH_HELP = "Stop when the interval reaches this far to each side. The default rule for flips, at 0.01."
RELATIVE_HELP = "Stop when the half-width is this share of the value. The default for other responses, at 0.05."
DRAWS_HELP = "The papers' protocol: jostle every token of every input so many times, and do not stop early."
TARGET_HELP = "Which interval decides: dataset (the inputs given) or population (where they came from)."
OUTPUT_HELP = "Also write the result to this JSON file; jostle.load reads it."
JSON_HELP = "Print the result as JSON and nothing else."


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """What ``measure`` and ``compare`` share."""

    data: Annotated[str, Parameter(group=WHAT, help=DATA_HELP)]
    tokens: Annotated[str, Parameter(group=WHAT, help="What a token is: patches:SIZE, rows, coordinates or whole.")]
    perturbation: Annotated[str, Parameter(group=WHAT, help=PERTURBATION_HELP)] = "gaussian-noise:std=1"
    response: Annotated[str, Parameter(group=WHAT, help=RESPONSE_HELP)] = "flip"
    split: Annotated[str, Parameter(group=WHAT, help="Which part of a named dataset.")] = "train"
    limit: Annotated[int | None, Parameter(converter=whole, group=WHAT, help="Use only the first so many inputs.")] = (
        None
    )
    half_width: Annotated[float | None, Parameter(group=PRECISION, help=HALF_WIDTH_HELP)] = None
    relative: Annotated[float | None, Parameter(group=PRECISION, help=RELATIVE_HELP)] = None
    draws: Annotated[int | None, Parameter(converter=whole, group=PRECISION, help=DRAWS_HELP)] = None
    max_passes: Annotated[
        int, Parameter(converter=whole, group=PRECISION, help="Never ask a model about more inputs.")
    ] = 1_000_000
    target: Annotated[str, Parameter(group=PRECISION, help=TARGET_HELP)] = "dataset"
    level: Annotated[float, Parameter(group=PRECISION, help="Coverage of the intervals.")] = 0.95
    seed: Annotated[
        int, Parameter(converter=whole, group=PRECISION, help="Same seed, same noise, for every model and batch size.")
    ] = 0
    batch_size: Annotated[int, Parameter(converter=whole, group=OUTPUT, help="Inputs a model answers at once.")] = 128
    device: Annotated[str | None, Parameter(group=OUTPUT, help="Where the models run, e.g. cuda.")] = None
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=OUTPUT, help=OUTPUT_HELP)] = None
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, group=OUTPUT, help=JSON_HELP)
    ] = False
    quiet: Annotated[bool, Parameter(negative="", show_default=False, group=OUTPUT, help="No progress.")] = False


def measure(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help="A .safetensors file to load into the model.")] = None,
    options: Options,
) -> None:
    """Measure how often a model's prediction changes when one token is jostled.

    Stops by itself as soon as the interval is narrow enough. Ctrl-C prints what
    is known so far.

    A trained network of the zoo on real digits, 4 x 4 patches, noise of std 2:

      jostle measure --model zoo:mlp:image_size=28,channels=1
        --weights mlp.safetensors --data mnist-5000
        --tokens patches:4 --perturbation gaussian-noise:std=2

    Your own model, made by make() in my_model.py, on an array of sequences:

      jostle measure --model py:my_model.py:make --data inputs.npy
        --tokens rows --half-width 0.002 -o result.json
    """
    _run({model: model}, {} if weights is None else {model: weights}, options)


def compare(
    *,
    model: Annotated[list[str], Parameter(group=WHAT, negative="", help="NAME=SPEC; give it once for each model.")],
    weights: Annotated[
        list[str] | None, Parameter(group=WHAT, negative="", help="NAME=FILE.safetensors, for any of the models.")
    ] = None,
    options: Options,
) -> None:
    """Compare models on the same inputs and the same noise.

    Prints each model's sensitivity and, for each pair, the difference with its
    interval and what it says.

      jostle compare --data mnist-5000 --tokens patches:4
        --model vit=zoo:vit-simple:image_size=28,channels=1
        --model mlp=zoo:mlp:image_size=28,channels=1
        --weights vit=vit.safetensors --weights mlp=mlp.safetensors
    """
    specs = _named(model, "--model")
    files = _named(weights or [], "--weights")
    for name in files:
        if name not in specs:
            raise UsageError(f"--weights {name}={files[name]}: there is no --model named {name!r}")
    _run(specs, files, options)


def _run(specs: dict[str, str], weights: dict[str, str], options: Options) -> None:
    if options.output is not None:
        check_writable(options.output)
    plan = _plan(options)  # wrong numbers are said before anything is loaded
    from jostle.cli.loading import load_inputs, load_model, matching
    from jostle.estimates import Comparison, Interrupted, JostleWarning, Measurement
    from jostle.estimates import compare as compare_models

    models = {name: load_model(spec, weights.get(name), options.seed) for name, spec in specs.items()}
    for name in (name for name, spec in specs.items() if _is_random(spec) and name not in weights):
        print(f"jostle: {name} has random weights; give --weights for a trained network", file=sys.stderr)  # noqa: T201
    inputs = matching(load_inputs(options.data, options.split, options.limit), models.values())
    result: Measurement | Comparison
    code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JostleWarning)  # printed with the result
        try:
            result = compare_models(models, inputs, plan=plan, progress=not options.quiet, **_choices(options))
        except Interrupted as interrupted:
            result, code = interrupted.result, 130
    if isinstance(result, Comparison) and len(result) == 1:
        result = result[result.names[0]]
    _show(result, options)
    if code:
        sys.exit(code)


def _plan(options: Options) -> str:
    rules = {"half-width": options.half_width, "relative": options.relative, "draws": options.draws}
    given = [f"--{name}" for name, value in rules.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"give only one of {', '.join(given)}: they are different rules for when to stop")
    if options.draws is not None:
        return f"grid:draws={options.draws}"
    half_width, relative = options.half_width, options.relative
    if half_width is None and relative is None:
        half_width, relative = (0.01, None) if options.response.startswith("flip") else (None, 0.05)
    rule = f"relative={relative}" if half_width is None else f"half_width={half_width}"
    return f"until:{rule},max_passes={options.max_passes}"


def _choices(options: Options) -> dict[str, Any]:
    names = ("tokens", "perturbation", "response", "target", "level", "seed", "batch_size", "device")
    return {name: getattr(options, name) for name in names}


def _show(result: Any, options: Options) -> None:
    if options.output is not None:
        result.save(options.output)
    if options.as_json:
        print(json.dumps(result.to_dict(), indent=1))  # noqa: T201
        return
    print(result)  # noqa: T201
    if options.output is not None:
        print(f"  written to {options.output}")  # noqa: T201


def _named(pairs: list[str], flag: str) -> dict[str, str]:
    named: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or ":" in name:
            raise UsageError(f"{flag} {pair!r} must read NAME=..., for example {flag} vit={pair}")
        if name in named:
            raise UsageError(f"{flag} names {name!r} twice")
        named[name] = value
    return named


def _is_random(spec: str) -> bool:
    """Whether a spec names a network without naming weights."""
    return spec.startswith("zoo:") or (spec.startswith("timm:") and "checkpoint=" not in spec)
