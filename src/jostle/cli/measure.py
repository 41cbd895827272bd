"""``jostle measure`` and ``jostle compare``."""

import itertools
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import MODEL_HELP, WHAT, Options, is_random, random_weights
from jostle.cli.outputs import check_outputs, say

if TYPE_CHECKING:
    from jostle.cli.task import Task
    from jostle.sampling import DefaultPlan, Plan


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
    from jostle.estimates.measure import run_request

    models, known = loaded(specs, weights, options)
    task = make_task(options, models)
    request = task.request(options, plan)
    task.look_around()
    compared = run_request(request, task.models, task.inputs, not options.quiet, known)
    result = compared if len(compared) > 1 else compared[compared.names[0]]
    code = 130 if compared.stopped == "interrupted" else 0
    _show(result, task.notes, options)
    if options.report is not None:  # after an interruption without examples, which would take time
        _write_page(task, result, replace(options, examples=0) if code else options, specs)
    if code:
        sys.exit(code)


def files_read(specs: dict[str, str], weights: dict[str, str], options: Options) -> list[tuple[str, str | None]]:
    """All files that a measurement reads, by option: no output may replace them."""
    of_models = [("--model", spec) for spec in specs.values()] + [("--weights", file) for file in weights.values()]
    return [("--data", options.data), ("--tokenizer", options.tokenizer), *of_models]


def loaded(
    specs: dict[str, str], weights: dict[str, str], options: Options
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """The models by name, and a warning for each whose weights are random, which is also printed at once."""
    from jostle.cli.inputs import load_model

    models = {name: load_model(spec, weights.get(name), options.seed) for name, spec in specs.items()}
    known = {name: [random_weights(name)] for name, spec in specs.items() if is_random(spec) and name not in weights}
    for warning in itertools.chain.from_iterable(known.values()):
        print(f"jostle: {warning}", file=sys.stderr)  # noqa: T201
    return models, known


def plan_of(options: Options) -> "Plan | DefaultPlan":
    """The plan that the options ask for."""
    from jostle.sampling import DefaultPlan, Grid, Until

    rules = {"half-width": options.half_width, "relative": options.relative, "draws": options.draws}
    given = [f"--{name}" for name, value in rules.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"give only one of {', '.join(given)}: they are different rules for when to stop")
    if options.draws is not None:
        if options.max_passes is not None:
            raise UsageError(
                "give only one of --draws, --max-passes: --draws tries every token, however many there are"
            )
        return Grid(options.draws)
    most = {} if options.max_passes is None else {"max_passes": options.max_passes}
    if not given:
        return DefaultPlan(**most)
    return Until(half_width=options.half_width, relative=options.relative, **most)


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
