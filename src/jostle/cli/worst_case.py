"""``jostle worst-case``: the largest change that one token can make, and a picture of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.base.files import parse_json, read_text
from jostle.cli.options import (
    MODEL_HELP,
    OUTPUT,
    TEXTS,
    WEIGHTS_HELP,
    WHAT,
    SubjectOptions,
    model_specs,
    weight_files,
    whole,
)
from jostle.cli.output import check_files, command_line, show, tell

if TYPE_CHECKING:
    from jostle.cli.subject import Subject
    from jostle.worst import WorstCase

_PICTURES = (".png", ".svg", ".pdf")

TOKENS_HELP = (
    "What a token is: patches:SIZE, rows, whole; for texts embeddings:after (the default) or embeddings:before."
)
RADIUS_HELP = "Radius of the ball in units of the token's norm; several as 0.3/1/3."
POSITIONS_HELP = "each, worst (ascend only at the most promising positions), or numbers from 0 on as 0/5/7."
LIMIT_HELP = "Use only the first inputs, at most this many."
PICTURE_HELP = "A picture (.png, .svg, .pdf) of one input, its worst token and the change that flips it."
WORDS_HELP = "For arrays of token ids: a file with one word per line, in the order of the ids, or a tokenizer.json."
REPORT_HELP = "Also write an HTML page: the numbers, and inputs with the worst change that was found."
LABEL_HELP = "Column of labels in a csv file, which the model must not see. Default: the column named label."
SHOWN_HELP = "Which input the picture shows, counted from 0; by default the one that changes most."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorstOptions(SubjectOptions):
    """What ``jostle worst-case`` takes beside the model: inputs and tokens as ``measure``, and how to search."""

    tokens: Annotated[str | None, Parameter(group=WHAT, help=TOKENS_HELP)] = None
    radius: Annotated[str, Parameter(group=WHAT, help=RADIUS_HELP)] = "1"
    positions: Annotated[str, Parameter(group=WHAT, help=POSITIONS_HELP)] = "worst"
    absolute: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            group=WHAT,
            help="Read --radius as a length, not in units of the token's norm.",
        ),
    ] = False
    limit: Annotated[int, Parameter(converter=whole, group=WHAT, help=LIMIT_HELP)] = 20
    starts: Annotated[int, Parameter(converter=whole, group=WHAT, help="Gradient ascents of each token.")] = 8
    steps: Annotated[int, Parameter(converter=whole, group=WHAT, help="Steps of each ascent.")] = 100
    draws: Annotated[
        int, Parameter(converter=whole, group=WHAT, help="Random changes that are tried of each token.")
    ] = 64
    level: Annotated[float, Parameter(group=WHAT, help="Coverage of the intervals over inputs.")] = 0.95
    seed: Annotated[int, Parameter(converter=whole, group=WHAT, help="Same seed, same draws.")] = 0
    picture: Annotated[Path | None, Parameter(group=OUTPUT, help=PICTURE_HELP)] = None
    shown: Annotated[int | None, Parameter(converter=whole, group=OUTPUT, help=SHOWN_HELP)] = None
    words: Annotated[Path | None, Parameter(group=OUTPUT, help=WORDS_HELP)] = None
    label: Annotated[str | None, Parameter(group=TEXTS, help=LABEL_HELP)] = None
    report: Annotated[Path | None, Parameter(group=OUTPUT, help=REPORT_HELP)] = None
    examples: Annotated[int, Parameter(converter=whole, group=OUTPUT, help="How many inputs the page shows.")] = 6


def worst_case(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: WorstOptions = WorstOptions(),  # noqa: B008 - it is frozen
) -> None:
    """Search for the one-token change that moves a model's output most.

    Searches a ball around the token, first at random, then uphill from many
    starts. The result is a lower bound: a better search may find more.

      jostle worst-case --model zoo:mlp:image_size=28,channels=1
        --weights mlp.safetensors --data mnist-5000 --tokens patches:4
        --radius 0.3/1 --picture flip.png

      jostle worst-case --model hf:my-classifier --data csv:reviews.csv
        --text review --limit 5 --picture flip.svg
    """
    specs = model_specs([model])
    [name] = specs
    files = weight_files([] if weights is None else [weights], specs)
    outputs = {"--picture": options.picture, "--report": options.report}
    check_files(options, list(files.values()), outputs, [("--words", options.words)])
    if options.picture is not None and options.picture.suffix.lower() not in _PICTURES:
        raise UsageError(f"--picture {options.picture} must end in {', '.join(_PICTURES)}")
    radii, positions = _radii(options.radius), _positions(options.positions)
    _check_tokens(options.tokens)
    _check_shown(options.shown, options.limit, "the first of --limit")
    words = None if options.words is None else _read_words(options.words)
    from jostle.cli.subject import load_models, read_subject

    models, known = load_models(specs, files, options.seed)
    subject = read_subject(options, models, label=options.label, labelled=False)
    _check_shown(options.shown, _count(subject.inputs, options.limit), f"those of --data {options.data}")
    found = _search(name, subject, options, radii, positions, known.get(name, []))
    found.warnings[:] = [text.replace("relative=False", "--absolute") for text in found.warnings]
    show(found, [f"note: {note}" for note in subject.notes], options)
    if subject.texts is not None and words is None:
        words = _words_of(subject.texts.reader.tokenizer)
    from jostle.integrations import class_names

    classes = class_names(subject.loaded[name])
    if options.report is not None:
        _write_page(found, specs[name], subject, options, words, classes, options.report)
        tell(f"  report written to {options.report}", options)
    if options.picture is not None:
        tell(_draw(found, subject.inputs, options.shown, words, classes, options.picture), options)


def _write_page(
    found: "WorstCase",
    spec: str,
    subject: "Subject",
    options: WorstOptions,
    words: list[str] | None,
    classes: Sequence[str],
    path: Path,
) -> None:
    from jostle.report import write
    from jostle.report.worst import worst_page

    page = worst_page(
        found, inputs=options.data, searched=subject.inputs, words=words, examples=options.examples, classes=classes,
        settings={"model": spec}, notes=subject.notes, command=command_line(),
    )  # fmt: skip
    write(page, path)


def _check_tokens(tokens: str | None) -> None:
    if (tokens or "").partition(":")[0] == "words":
        raise UsageError(
            f"--tokens {tokens}: the search moves tokens of real numbers, words are none; use embeddings, which is the "
            "default for texts"
        )


def _check_shown(shown: int | None, count: int, which: str) -> None:
    if shown is not None and not 0 <= shown < max(count, 1):
        raise UsageError(f"--shown {shown} is not an input: they are numbered 0 to {count - 1}, {which}")


def _count(inputs: Any, limit: int) -> int:
    """How many inputs there are; for a loader, whose length is that of batches, at most how many."""
    if isinstance(inputs, dict):
        return len(next(iter(inputs.values())))
    return len(inputs) if hasattr(inputs, "__getitem__") else limit


def _search(
    model: str,
    subject: "Subject",
    options: WorstOptions,
    radii: list[float],
    positions: str | list[int],
    known: list[str],
) -> "WorstCase":
    from jostle.cli.subject import make_request
    from jostle.perturbations import Sphere
    from jostle.sampling import Grid
    from jostle.worst.worst import run_search

    return run_search(
        make_request(options, subject, Sphere(1.0), Grid(options.draws)),
        subject.models[model],
        subject.inputs,
        radius=radii,
        positions=positions,
        starts=options.starts,
        steps=options.steps,
        relative=not options.absolute,
        progress=not options.quiet,
        name=model,
        known=known,
    )


def _words_of(tokenizer: Any) -> list[str]:
    """The word of each id of a tokenizer."""
    return [tokenizer.token_of(number) or f"#{number}" for number in range(tokenizer.vocabulary)]


def _draw(
    found: "WorstCase", inputs: Any, shown: int | None, words: list[str] | None, classes: Sequence[str], path: Path
) -> str:
    """Write the picture, and return a line about it."""
    from jostle.figures import save
    from jostle.worst.picture import caption, choose_shown

    save(found.plot(inputs, shown, words=words, classes=classes), path)
    return f"  {path}: {caption(found, choose_shown(found, shown), classes)}"


def _radii(text: str) -> list[float]:
    try:
        return [float(word) for word in text.replace(",", "/").split("/")]
    except ValueError:
        raise UsageError(f"--radius {text} must be a number, or several with slashes: 0.3/1/3") from None


def _positions(text: str) -> str | list[int]:
    if text in ("each", "worst"):
        return text
    try:
        return [int(word) for word in text.replace(",", "/").split("/")]
    except ValueError:
        raise UsageError(f"--positions {text} must be each, worst, or numbers with slashes: 0/5/7") from None


def _read_words(path: Path) -> list[str]:
    """The word of each token id: the lines of a text file, or the vocabulary of a tokenizer.json."""
    text = read_text(path, "--words")
    if path.suffix != ".json":
        return text.splitlines()
    try:
        table = parse_json(text)["model"]["vocab"]
        pairs = table.items() if isinstance(table, dict) else ((entry[0], place) for place, entry in enumerate(table))
        by_id = {int(number): str(word) for word, number in pairs}
    except (ValueError, KeyError, TypeError, IndexError):
        raise UsageError(f"--words {path} is not a tokenizer.json with a vocabulary; give a line for each id") from None
    return [by_id.get(number, f"#{number}") for number in range(max(by_id, default=-1) + 1)]
