"""Texts that are typed or stand in plain files, what they belong to, and language models that choose among answers."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from jostle.base.errors import UsageError
from jostle.cli.large_csv import check_ordinary, is_large, small_file
from jostle.cli.options import SubjectOptions
from jostle.cli.texts import Texts
from jostle.data import TextDataset
from jostle.data.text_csv import PREFIX, load_options, read_spec
from jostle.integrations import AnswerChoices, TextNetwork, reader_of

LINES = "texts:"


def typed_texts(options: SubjectOptions) -> TextDataset | None:
    """Texts of ``--prompt``, or of ``--data texts:FILE``; None if ``--data`` names other inputs. One must be given."""
    if (options.prompt is None) == (not options.data):
        raise UsageError("give the inputs: --data, or texts as --prompt TEXT, and not both")
    if options.prompt is None and not options.data.startswith(LINES):
        return None
    listed = _lines(options.data, options.limit) if options.prompt is None else options.prompt
    texts = tuple((text,) for text in listed)
    name = "--prompt" if options.prompt is not None else options.data
    found = TextDataset(name, texts, torch.zeros(len(texts), dtype=torch.int64), 1)
    return found if options.limit is None else found.subset(min(options.limit, len(found)))


def _lines(spec: str, limit: int | None) -> list[str]:
    """The lines of a plain file, without empty ones."""
    file = spec.removeprefix(LINES)
    check_ordinary(file, LINES)
    path = Path(file).expanduser()
    if limit is None and is_large(path):
        raise UsageError(f"--data {spec} is a large file: give --limit, or csv:FILE, of which some rows are drawn")
    try:
        with path.open(encoding="utf-8-sig") as lines:
            found = list(islice((line.strip() for line in lines if line.strip()), limit))
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not text in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise UsageError(f"--data {spec} cannot be read: {reason}") from None
    if not found:
        raise UsageError(f"--data {spec} is empty; expected a text on each line")
    return found


def read_clusters(options: SubjectOptions, column: str, texts: Texts | None) -> list[str]:
    """What each text belongs to, as a column of its file says.

    Arguments:
        options: of the command.
        column: the name of the column.
        texts: the texts that were read.
    """
    if texts is None or not options.data.startswith(PREFIX):
        raise UsageError(f"--cluster {column} is a column of texts in a file: give --data csv:FILE")
    file, named = read_spec(options.data)
    if {"skip", "test"} & set(named):
        raise UsageError(f"--cluster {column} needs all rows of the file: leave out skip= and test= of --data")
    with small_file(file, options.limit, named.get("quoted")) as (small, _):
        found = load_options(str(small), options.split, {**named, "text": column, "second": None, "label": None})
    clusters = [found.texts[row - 1][0] for row in texts.rows]
    empty = [row for row, name in zip(texts.rows, clusters, strict=True) if not name.strip()]
    if empty:
        raise UsageError(f"--cluster {column}: row {empty[0]} of {file} does not say what its text belongs to")
    return clusters


def with_answers(models: Mapping[str, Any], options: SubjectOptions, answers: list[str] | None) -> dict[str, Any]:
    """Language models as classifiers of these answers; all models as they are if there are none."""
    if answers is None:
        return dict(models)
    if len(answers) < 2 or not all(one.strip() for one in answers):
        raise UsageError("--answer is one of several: give it twice or more, for example --answer yes --answer no")
    found: dict[str, Any] = {}
    for name, model in models.items():
        if not isinstance(model, TextNetwork) or model.task != "next-token":
            raise UsageError(f"--answer is for language models, and {name} is none: leave it out")
        cut = reader_of(model, name=name, tokenizer=options.tokenizer).tokenizer
        choices = AnswerChoices(model.network, answers, cut)
        names = [one.strip() for one in answers]
        found[name] = TextNetwork(choices, model.folder, model.source, task="answers", names=names)
    return found


def response_for(response: str, models: Mapping[str, Any]) -> str:
    """The response that is meant: a flip of a language model is of the next token, of a token classifier of labels."""
    tasks = {model.task for model in models.values() if isinstance(model, TextNetwork)}
    if response != "flip" or len(tasks) != 1:
        return response
    return {"next-token": "next-token-flip", "labels": "label-flip"}.get(tasks.pop(), response)
