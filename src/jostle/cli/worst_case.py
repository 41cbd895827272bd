"""``jostle worst-case``: the largest change that one token can make, and a picture of it."""

import json
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.base.files import read_text
from jostle.cli.numbers import whole
from jostle.cli.options import (
    DATA_HELP,
    JSON_HELP,
    LENGTH_HELP,
    MODEL_HELP,
    OUTPUT,
    RESPONSE_HELP,
    SPECIAL_HELP,
    TEXT_HELP,
    TEXTS,
    TOKENIZER_HELP,
    WHAT,
    Options,
    is_random,
    random_weights,
)
from jostle.cli.outputs import check_outputs, say

if TYPE_CHECKING:
    from jostle.cli.task import Task

_PICTURES = (".png", ".svg", ".pdf")

TOKENS_HELP = (
    "What a token is: patches:SIZE, rows, whole; for texts embeddings:after (the default) or embeddings:before."
)
RADIUS_HELP = "Radius of the ball in units of the token's norm; several as 0.3/1/3."
POSITIONS_HELP = "each, worst (ascend only where it is promising), or numbers from 0 on as 0/5/7."
PICTURE_HELP = "A picture (.png, .svg, .pdf) of one input, its worst token and the change that flips it."
WORDS_HELP = "For arrays of token ids: a file with the word of each id, a line each, or a tokenizer.json."
SHOWN_HELP = "Which input the picture shows, from 0; the one that changes most unless given."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorstOptions:
    """What ``jostle worst-case`` takes beside the model."""

    data: Annotated[str, Parameter(group=WHAT, help=DATA_HELP)]
    tokens: Annotated[str | None, Parameter(group=WHAT, help=TOKENS_HELP)] = None
    weights: Annotated[str | None, Parameter(group=WHAT, help="A .safetensors file to load into the model.")] = None
    radius: Annotated[str, Parameter(group=WHAT, help=RADIUS_HELP)] = "1"
    response: Annotated[str, Parameter(group=WHAT, help=RESPONSE_HELP)] = "flip"
    positions: Annotated[str, Parameter(group=WHAT, help=POSITIONS_HELP)] = "worst"
    absolute: Annotated[
        bool, Parameter(negative="", show_default=False, group=WHAT, help="Radii in absolute length.")
    ] = False
    split: Annotated[str, Parameter(group=WHAT, help="Which part of a named dataset.")] = "train"
    limit: Annotated[int, Parameter(converter=whole, group=WHAT, help="Use only the first so many inputs.")] = 20
    starts: Annotated[int, Parameter(converter=whole, group=WHAT, help="Starts of the ascent for each token.")] = 8
    steps: Annotated[int, Parameter(converter=whole, group=WHAT, help="Steps of each start.")] = 100
    draws: Annotated[int, Parameter(converter=whole, group=WHAT, help="Random changes of each token.")] = 64
    level: Annotated[float, Parameter(group=WHAT, help="Coverage of the intervals over inputs.")] = 0.95
    seed: Annotated[int, Parameter(converter=whole, group=WHAT, help="Same seed, same draws.")] = 0
    text: Annotated[list[str] | None, Parameter(group=TEXTS, negative="", help=TEXT_HELP)] = None
    special: Annotated[bool | None, Parameter(group=TEXTS, help=SPECIAL_HELP)] = None
    tokenizer: Annotated[str | None, Parameter(group=TEXTS, help=TOKENIZER_HELP)] = None
    max_length: Annotated[int | None, Parameter(converter=whole, group=TEXTS, help=LENGTH_HELP)] = None
    picture: Annotated[Path | None, Parameter(group=OUTPUT, help=PICTURE_HELP)] = None
    shown: Annotated[int | None, Parameter(converter=whole, group=OUTPUT, help=SHOWN_HELP)] = None
    words: Annotated[Path | None, Parameter(group=OUTPUT, help=WORDS_HELP)] = None
    batch_size: Annotated[int, Parameter(converter=whole, group=OUTPUT, help="Inputs answered at once.")] = 128
    device: Annotated[str | None, Parameter(group=OUTPUT, help="Where the model runs, e.g. cuda.")] = None
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], group=OUTPUT, help="Also write the result to this JSON file.")
    ] = None
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, group=OUTPUT, help=JSON_HELP)
    ] = False
    quiet: Annotated[bool, Parameter(negative="", show_default=False, group=OUTPUT, help="No progress.")] = False


def worst_case(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    options: WorstOptions,
) -> None:
    """Search for the one-token change that moves a model's output most.

    Looks inside a ball around the token, first at random, then uphill from many
    starts. What it finds is a lower bound: a better search may find more.

      jostle worst-case --model zoo:mlp:image_size=28,channels=1
        --weights mlp.safetensors --data mnist-5000 --tokens patches:4
        --radius 0.3/1 --picture flip.png

      jostle worst-case --model hf:my-classifier --data csv:reviews.csv
        --text review --limit 5 --picture flip.svg
    """
    read = [("--model", model), ("--data", options.data), ("--weights", options.weights)]
    read += [("--tokenizer", options.tokenizer), ("--words", None if options.words is None else str(options.words))]
    check_outputs({"--output": options.output, "--picture": options.picture}, read)
    if options.picture is not None and options.picture.suffix.lower() not in _PICTURES:
        raise UsageError(f"--picture {options.picture} must end in {', '.join(_PICTURES)}")
    radii, positions = _radii(options.radius), _positions(options.positions)
    _check_words(options.tokens)
    _check_shown(options.shown, options.limit, "the first of --limit")
    table = None if options.words is None else _words(options.words)
    from jostle.cli.inputs import load_model
    from jostle.cli.task import make_task

    loaded = load_model(model, options.weights, options.seed)
    warned = [random_weights(model)] if is_random(model) and options.weights is None else []
    for warning in warned:
        print(f"jostle: {warning}", file=sys.stderr)  # noqa: T201
    task = make_task(_asked(options), {model: loaded}, labelled=False)
    _check_shown(options.shown, _count(task.inputs, options.limit), f"those of --data {options.data}")
    found = _search(model, task, options, radii, positions)
    found = replace(found, warnings=[*found.warnings, *warned])
    notes = [f"  note: {note}" for note in task.notes]
    say(json.dumps(found.to_dict(), indent=1) if options.as_json else "\n".join([str(found), *notes]))
    written = []
    if options.output is not None:
        found.save(options.output)
        written.append(f"  written to {options.output}")
    if options.picture is not None:
        table = _table(task.texts.reader.tokenizer) if task.texts is not None and table is None else table
        written.append(_draw(found, task.inputs, options.shown, table, options.picture))
    if written and not options.as_json:
        say("\n".join(written))


def _check_words(tokens: str | None) -> None:
    if (tokens or "").partition(":")[0] == "words":
        raise UsageError(
            f"--tokens {tokens}: the search moves tokens of real numbers, words are none; use embeddings, which is the "
            "default for texts"
        )


def _check_shown(shown: int | None, count: int, which: str) -> None:
    if shown is not None and not 0 <= shown < max(count, 1):
        raise UsageError(f"--shown {shown} is not an input: they are numbered 0 to {count - 1}, {which}")


def _count(inputs: Any, limit: int) -> int:
    """How many inputs there are, or at most if only a search will tell, as of a loader, whose length is of batches."""
    if isinstance(inputs, dict):
        return len(next(iter(inputs.values())))
    return len(inputs) if hasattr(inputs, "__getitem__") else limit


def _asked(options: WorstOptions) -> Options:
    """The same as ``jostle measure`` takes it; the noise is not used, and 0 needs no look at the tokens' size."""
    return Options(
        data=options.data,
        tokens=options.tokens,
        perturbation="gaussian-noise:std=0",
        response=options.response,
        split=options.split,
        limit=options.limit,
        text=options.text,
        special=options.special,
        tokenizer=options.tokenizer,
        max_length=options.max_length,
        batch_size=options.batch_size,
        device=options.device,
        seed=options.seed,
    )


def _search(model: str, task: "Task", options: WorstOptions, radii: list[float], positions: str | list[int]) -> Any:
    from jostle.estimates import JostleWarning
    from jostle.worst import worst_case as search

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JostleWarning)  # printed with the result
        return search(
            task.models[model],
            task.inputs,
            tokens=task.tokens,
            radius=radii,
            response=options.response,
            positions=positions,
            starts=options.starts,
            steps=options.steps,
            draws=options.draws,
            relative=not options.absolute,
            level=options.level,
            seed=options.seed,
            batch_size=options.batch_size,
            device=options.device,
            progress=not options.quiet,
            name=model,
        )


def _table(tokenizer: Any) -> list[str]:
    """The token of each id of a tokenizer."""
    return [tokenizer.token_of(number) or f"#{number}" for number in range(tokenizer.vocabulary)]


def _draw(found: Any, inputs: Any, shown: int | None, words: list[str] | None, path: Path) -> str:
    from jostle.figures import save
    from jostle.worst.picture import caption, choose_shown

    save(found.plot(inputs, shown, words=words), path)
    return f"  {path}: {caption(found, choose_shown(found, shown))}"


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


def _words(path: Path) -> list[str]:
    """The word of each token id: the lines of a text file, or the vocabulary of a tokenizer.json."""
    text = read_text(path, "--words")
    if path.suffix != ".json":
        return text.splitlines()
    try:
        table = json.loads(text)["model"]["vocab"]
        pairs = table.items() if isinstance(table, dict) else ((entry[0], place) for place, entry in enumerate(table))
        by_id = {int(number): str(word) for word, number in pairs}
    except (ValueError, KeyError, TypeError, IndexError):
        raise UsageError(f"--words {path} is not a tokenizer.json with a vocabulary; give a line for each id") from None
    return [by_id.get(number, f"#{number}") for number in range(max(by_id, default=-1) + 1)]
