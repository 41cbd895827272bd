"""``jostle measure`` and ``jostle compare``."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import (
    MODEL_HELP,
    MODELS_HELP,
    WEIGHTS_HELP,
    WHAT,
    EngineOptions,
    MeasureOptions,
    model_specs,
    weight_files,
)
from jostle.cli.output import check_files, command_line, open_page, show, tell

if TYPE_CHECKING:
    from jostle.cli.clean import CleanAnswers
    from jostle.cli.subject import Subject
    from jostle.estimates import Comparison, Measurement
    from jostle.estimates.request import Request


def measure(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: MeasureOptions = MeasureOptions(),  # noqa: B008 - it is frozen
    engines: EngineOptions = EngineOptions(),  # noqa: B008 - it is frozen
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

    A language model, on a text of yours:

      jostle measure --model hf:my-language-model --tokens words
        --prompt "Once upon a time, there was a" --response kl
    """
    specs = model_specs([model])
    run_measurement(specs, weight_files([] if weights is None else [weights], specs), options, engines)


def compare(
    *,
    model: Annotated[list[str], Parameter(group=WHAT, negative="", help=MODELS_HELP)],
    weights: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=WEIGHTS_HELP)] = None,
    options: MeasureOptions = MeasureOptions(),  # noqa: B008 - it is frozen
    engines: EngineOptions = EngineOptions(),  # noqa: B008 - it is frozen
) -> None:
    """Compare models on the same inputs and the same noise.

    Prints each model's sensitivity and, for each pair, the difference, its
    interval, and which model is more sensitive.

      jostle compare --data mnist-5000 --tokens patches:4
        --model vit=zoo:vit-simple:image_size=28,channels=1
        --model mlp=zoo:mlp:image_size=28,channels=1
        --weights vit=vit.safetensors --weights mlp=mlp.safetensors
    """
    specs = model_specs(model)
    run_measurement(specs, weight_files(weights or [], specs), options, engines)


def run_measurement(
    specs: dict[str, str],
    weights: dict[str, str],
    options: MeasureOptions,
    engines: EngineOptions = EngineOptions(),  # noqa: B008
) -> None:
    """Measure models by name, print the result and write what the options ask for."""
    engine = engines.chosen()
    check_files(options, list(weights.values()), {"--report": options.report, "--log-samples": options.log_samples})
    if options.open_ and options.report is None:
        raise UsageError("--open opens the page that --report writes: give --report report.html too")
    if options.examples < 0 or options.example_draws < 1:
        raise UsageError(
            f"--examples {options.examples} must be at least 0 and --example-draws {options.example_draws} at least 1"
        )
    from jostle.cli.prompts import read_clusters, with_answers
    from jostle.cli.subject import choose_perturbation, load_models, make_request, plan_of, read_subject
    from jostle.engines.torchrun import is_first
    from jostle.estimates.advice import advice
    from jostle.estimates.measure import run_request
    from jostle.estimates.per_input import plan_for_clusters, refine
    from jostle.estimates.samples import check_file

    check_file(options.log_samples)
    plan = plan_of(options)  # wrong numbers raise before anything is loaded
    models, known = load_models(specs, weights, options.seed)
    models = with_answers(models, options, options.answer)
    subject = read_subject(options, models, label=options.label)
    request = make_request(options, subject, choose_perturbation(options, subject), plan)
    cluster = None if options.cluster is None else read_clusters(options, options.cluster, subject.texts)
    if cluster is not None:
        request = plan_for_clusters(request)
    answers = subject.ask_clean(request, shown=_shows_images(subject, request, options))
    request = subject.leave_passes(request, answers)
    keeps = options.log_samples is not None
    is_quiet = options.quiet or not is_first()
    compared = run_request(request, subject.models, subject.inputs, not is_quiet, known, engine=engine, samples=keeps)
    if not is_first():
        return  # another process of torchrun has the same result and writes it
    if compared.stopped != "interrupted" and cluster is not None:
        compared = refine(compared, request, subject.models, subject.inputs, None, cluster)
    if compared.stopped != "interrupted":
        compared = subject.add_certainty(compared, request)
    result = compared if len(compared) > 1 else compared[compared.names[0]]
    show(result, [*subject.notes, *advice(result), *_references(result, subject, request, options)], options)
    if options.log_samples is not None:
        _write_samples(compared, subject, options)
    is_interrupted = compared.stopped == "interrupted"
    if options.report is not None:  # after an interruption without examples, which would take time
        shown = replace(options, examples=0) if is_interrupted else options
        _write_page(subject, request, answers, result, shown, specs)
    if is_interrupted:
        sys.exit(130)


def _references(
    result: "Measurement | Comparison", subject: "Subject", request: "Request", options: MeasureOptions
) -> list[str]:
    """What the number can be compared with."""
    from jostle.cli.references import count_classes, reference_lines

    return reference_lines(result, options.data, count_classes(subject.models, subject.inputs, request))


def _write_samples(compared: "Comparison", subject: "Subject", options: MeasureOptions) -> None:
    from jostle.estimates.samples import write_samples

    assert options.log_samples is not None
    found = [(name, m.samples) for name, m in compared.measurements.items() if m.samples is not None]
    if subject.texts is not None:
        pieces = [subject.texts.reader.pieces(texts) for texts in subject.texts.dataset.texts]
        for _, each in found:
            each.source.pieces = pieces
    write_samples(options.log_samples, found)
    tell(f"  written to {options.log_samples}", options)


def _shows_images(subject: "Subject", request: "Request", options: MeasureOptions) -> bool:
    """Whether a page with images is wanted and can be made."""
    if options.report is None or options.examples < 1 or subject.texts is not None:
        return False
    from jostle.report.images import are_pictures

    return are_pictures(subject.inputs, request)


def _write_page(
    subject: "Subject",
    request: "Request",
    answers: "CleanAnswers | None",
    result: "Measurement | Comparison",
    options: MeasureOptions,
    specs: dict[str, str],
) -> None:
    from jostle.cli.texts import example_sections
    from jostle.report import Section, write
    from jostle.report.measurement import measurement_page, percent

    assert options.report is not None
    texts, sections, numbers = subject.texts, list[Section](), list[dict[str, Any]]()
    columns = dict[str, dict[str, str]]()
    if texts is not None and answers is not None:
        sections, numbers = example_sections(
            texts, subject.models, request, answers, options.examples, options.example_draws, not options.quiet
        )
    elif answers is not None and _shows_images(subject, request, options) and answers.have_classes:
        from jostle.report.images import image_examples

        found = image_examples(
            subject.models,
            subject.inputs,
            request,
            answers.margins(),
            answers.said(),
            count=options.examples,
            draws=options.example_draws,
            classes=answers.classes,
            progress=not options.quiet,
        )
        sections, numbers = found.sections, found.numbers
    if subject.accuracies:
        title = f"accuracy on {subject.which_clean}"
        columns = {title: {name: percent(share) for name, share in subject.accuracies.items()}}
    page = measurement_page(
        result,
        inputs=options.data or "your texts",
        examples=sections,
        settings={f"model {name}" if name != spec else "model": spec for name, spec in specs.items()},
        notes=[note for note in subject.notes if note not in subject.accuracy_notes] if texts is None else texts.notes,
        columns=columns,
        data={"accuracy": subject.accuracies, "examples": numbers},
        command=command_line(),
    )
    write(page, options.report)
    tell(f"  report written to {options.report}", options)
    if options.open_:
        open_page(options.report)
