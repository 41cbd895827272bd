"""``jostle measure`` and ``jostle compare``."""

import json
import sys
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import MODEL_HELP, WHAT, Options, is_random, random_weights
from jostle.cli.outputs import check_outputs, say

if TYPE_CHECKING:
    from jostle.cli.task import Task
    from jostle.estimates import Comparison

_MOST_PASSES = 1_000_000


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

    A text classifier that transformers saved, on your own texts, with a page
    that shades each word by how often jostling it flips the prediction:

      jostle measure --model hf:my-classifier --data csv:reviews.csv
        --text review --label sentiment --report report.html
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
    check_outputs({"--output": options.output, "--report": options.report}, files_read(specs, weights, options))
    if options.examples < 0 or options.example_draws < 1:
        raise UsageError(
            f"--examples {options.examples} must be at least 0 and --example-draws {options.example_draws} at least 1"
        )
    plan = plan_of(options)  # wrong numbers are said before anything is loaded
    from jostle.cli.task import make_task
    from jostle.estimates import Comparison, Interrupted, JostleWarning, Measurement
    from jostle.estimates import compare as compare_models

    models, said = loaded(specs, weights, options)
    task = make_task(options, models)
    result: Measurement | Comparison
    code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JostleWarning)  # printed with the result
        task.look_around()
        try:
            result = compare_models(
                task.models,
                task.inputs,
                tokens=task.tokens,
                perturbation=task.perturbation,
                plan=plan,
                progress=not options.quiet,
                **choices_of(options),
            )
        except Interrupted as interrupted:
            result, code = interrupted.result, 130
    if isinstance(result, Comparison):
        result = with_warnings(result, said)
        result = result if len(result) > 1 else result[result.names[0]]
    _show(result, task.notes, options)
    if options.report is not None:  # after an interruption without examples, which would take time
        _write_page(task, result, replace(options, examples=0) if code else options, specs)
    if code:
        sys.exit(code)


def files_read(specs: dict[str, str], weights: dict[str, str], options: Options) -> list[tuple[str, str | None]]:
    """All files that a measurement reads, by option: no output may replace them."""
    of_models = [("--model", spec) for spec in specs.values()] + [("--weights", file) for file in weights.values()]
    return [("--data", options.data), ("--tokenizer", options.tokenizer), *of_models]


def loaded(specs: dict[str, str], weights: dict[str, str], options: Options) -> tuple[dict[str, Any], dict[str, str]]:
    """The models by name, and a warning for each whose weights are random, which is also printed at once."""
    from jostle.cli.inputs import load_model

    models = {name: load_model(spec, weights.get(name), options.seed) for name, spec in specs.items()}
    said = {name: random_weights(name) for name, spec in specs.items() if is_random(spec) and name not in weights}
    for warning in said.values():
        print(f"jostle: {warning}", file=sys.stderr)  # noqa: T201
    return models, said


def plan_of(options: Options) -> str | None:
    """The plan that was asked for; None for that of ``jostle.measure``, which knows what needs no sampling."""
    rules = {"half-width": options.half_width, "relative": options.relative, "draws": options.draws}
    given = [f"--{name}" for name, value in rules.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"give only one of {', '.join(given)}: they are different rules for when to stop")
    if options.draws is not None:
        if options.max_passes is not None:
            raise UsageError(
                "give only one of --draws, --max-passes: --draws tries every token, however many there are"
            )
        return f"grid:draws={options.draws}"
    half_width, relative = options.half_width, options.relative
    if not given and options.max_passes is None:
        return None
    if half_width is None and relative is None:
        half_width, relative = (0.01, None) if options.response.startswith("flip") else (None, 0.05)
    rule = f"relative={relative}" if half_width is None else f"half_width={half_width}"
    most = _MOST_PASSES if options.max_passes is None else options.max_passes
    return f"until:{rule},max_passes={most}"


def choices_of(options: Options) -> dict[str, Any]:
    """The options that ``jostle.measure`` takes under the same names."""
    names = ("response", "target", "average", "level", "seed", "batch_size", "device")
    return {name: getattr(options, name) for name in names}


def _write_page(task: "Task", result: Any, options: Options, specs: dict[str, str]) -> None:
    from jostle.cli.task import page
    from jostle.report import write

    assert options.report is not None
    write(page(task, result, options, specs), options.report)
    if not options.as_json:
        say(f"  report written to {options.report}")


def _show(result: Any, notes: list[str], options: Options) -> None:
    """Print, then save: a file that cannot be written does not take the number with it."""
    if options.as_json:
        say(json.dumps(result.to_dict(), indent=1))
    else:
        say("\n".join([str(result), *(f"  {note}" for note in notes)]))
    if options.output is not None:
        result.save(options.output)
        if not options.as_json:
            say(f"  written to {options.output}")


def with_warnings(result: "Comparison", said: dict[str, str]) -> "Comparison":
    """The same with one more warning for some of the models."""
    measured = {
        name: replace(m, warnings=[*m.warnings, said[name]] if name in said else m.warnings)
        for name, m in result.measurements.items()
    }
    return replace(result, measurements=measured)


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
