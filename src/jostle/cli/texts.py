"""Texts on the command line: read from a file or a dataset, encoded for the models, and shown in a report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import jostle.data
from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.cli.large_csv import small_file
from jostle.cli.options import SubjectOptions
from jostle.data import TextDataset
from jostle.data.text_csv import PREFIX, column_names, load_options, read_spec
from jostle.integrations import TextNetwork, TextReader, reader_of
from jostle.integrations.callables import callable_of
from jostle.integrations.estimator import Estimator
from jostle.integrations.lexicon import Lexicon, TextFunction, WordReader
from jostle.integrations.onnx import OnnxModel
from jostle.integrations.prompts import tokenizer_of
from jostle.models.text_model import TextModel
from jostle.report import Section
from jostle.report.measurement import percent
from jostle.report.page import Passage
from jostle.report.texts import FlipCounts, flip_counts, legend, passage, rows_of
from jostle.tokens import VIEWS, TextView, TokenView

if TYPE_CHECKING:
    from jostle.cli.clean import CleanAnswers
    from jostle.estimates.request import Request

_LABEL = "label"  # the column of labels, unless another is named
_SHORT = 64  # tokens of a text that is nice to read


@dataclass(frozen=True)
class Texts:
    """Texts, and how the models read them.

    Arguments:
        dataset: the words.
        encoded: what models are given.
        rows: the number of each text in its file, from 1.
        reader: how they were encoded.
        lexicon: the words of texts for functions of strings; None where there is a tokenizer.
        has_labels: whether the labels of ``dataset`` are the models' classes.
        headless: names of the models that predict no class.
        classes: names of the classes; empty if they have no names.
        notes: what people should know.
    """

    dataset: TextDataset
    encoded: dict[str, Tensor]
    rows: list[int]
    reader: TextReader | WordReader
    has_labels: bool
    headless: list[str]
    classes: tuple[str, ...]
    notes: list[str]
    lexicon: Lexicon | None = None


def read_texts(
    options: SubjectOptions,
    models: Mapping[str, Any],
    view: TextView,
    given: TextDataset | None = None,
    *,
    label: str | None = None,
    labelled: bool = True,
    by_words: bool = False,
) -> Texts:
    """The texts that the options name, as these models read them.

    Arguments:
        options: of the command.
        models: by name.
        view: what a token is.
        given: the texts, if they are loaded already.
        label: the column of labels of a file.
        labelled: whether labels are of use.
        by_words: whether the models are functions of strings, for which texts are cut into words.
    """
    names = class_names(next(iter(models.values())))
    dataset, notes = (given, []) if given is not None else _load(options, names, label, labelled=labelled)
    reader = WordReader() if by_words else _reader(options, models)
    kept, rows = _with_words(dataset, keeps_empty=view.special is not False and not by_words)
    encoded = reader.encode(kept)
    if isinstance(reader, TextReader):
        _check_same_tokens(options, models, reader, kept, encoded)
    cut = reader.count_cut(kept, encoded)
    if cut:
        longer = f"{cut:,} of {len(kept):,} texts have more than {reader.max_length:,} tokens"
        notes.append(f"{longer}: their ends are not read")
    if len(kept) < len(dataset):
        notes.append(f"{len(dataset) - len(kept):,} of {len(dataset):,} texts are empty and were left out")
    has_labels = labelled and kept.classes > 1 and len(names) > 1 and int(kept.labels.max()) < len(names)
    headless = [name for name, model in models.items() if isinstance(model, TextNetwork) and not model.has_head]
    shown = names if any(not re.fullmatch(r"LABEL_\d+", name) for name in names) else ()
    if _predicts_tokens(models):
        words = reader.tokenizer
        shown = tuple(repr(words.shown(number)) for number in range(words.vocabulary))
    lexicon = reader.lexicon if isinstance(reader, WordReader) else None
    return Texts(kept, encoded, rows, reader, has_labels, headless, shown, notes, lexicon)


def reads_strings(model: Any) -> bool:
    """Whether a model is a function of strings as far as can be seen: no module, and without a tokenizer."""
    return not isinstance(model, nn.Module) and tokenizer_of(model) is None


def as_text_functions(models: Mapping[str, Any], lexicon: Lexicon) -> dict[str, Any]:
    """Functions of strings as functions of the numbers of their words."""
    return {name: TextFunction(callable_of(model, name), lexicon) for name, model in models.items()}


def text_view(options: SubjectOptions, usual: str | None = None) -> TextView:
    """What a token of texts is; special tokens stay unless an option says otherwise.

    Arguments:
        options: of the command.
        usual: where the options do not say it; by default embeddings.
    """
    spec = options.tokens or usual or "embeddings"
    view = specs.build(VIEWS, spec, "tokens", TokenView)
    if not isinstance(view, TextView):
        raise UsageError(f"--tokens {spec} is not for texts: use embeddings, embeddings:before or words")
    if "special" in specs.parse(spec)[2]:
        if options.special is not None:
            raise UsageError(f"--tokens {spec} and --special or --no-special say the same: give one of them")
        return view
    return replace(view, special=bool(options.special))


def _predicts_tokens(models: Mapping[str, Any]) -> bool:
    """Whether all models are language models, whose classes are tokens."""
    return all(isinstance(model, TextNetwork) and model.task == "next-token" for model in models.values())


def class_names(model: Any) -> tuple[str, ...]:
    """Names of a model's classes, in the order of its outputs; empty if it does not tell how many there are."""
    if isinstance(model, TextNetwork | Estimator | OnnxModel):
        return model.classes
    count = model.classifier.out_features if isinstance(model, TextModel) else 0
    return tuple(f"LABEL_{number}" for number in range(count))


def example_sections(
    texts: Texts,
    models: Mapping[str, Any],
    request: "Request",
    answers: "CleanAnswers",
    count: int,
    draws: int,
    progress: bool,
) -> tuple[list[Section], list[dict[str, Any]]]:
    """Sections with shaded texts, and the numbers behind them.

    Arguments:
        texts, models, request: what was measured.
        answers: to the first texts as they are.
        count: how many texts are shown.
        draws: how often each of their tokens is jostled.
        progress: whether progress is shown.
    """
    if count < 1 or texts.headless or any(outputs.dim() > 2 for outputs in answers.outputs.values()):
        return [], []
    lengths = texts.encoded["attention_mask"].sum(dim=1).numpy()[: len(next(iter(answers.outputs.values())))]
    close, random, limit = choose_examples(answers.margins(), lengths, count, request.seed)
    rows = np.concatenate([close, random])
    found = flip_counts(models, rows_of(texts.encoded, rows), request, draws, progress)
    counts, made = found.flips, found.draws
    shown = [_passages(texts, answers, found, int(row), place) for place, row in enumerate(rows)]
    among = f"Chosen among the texts of at most {limit} tokens in the first {len(lengths):,}."
    close_text = (
        "The texts of whose class a model is least sure; most flips happen in such texts. Each token is shaded by how "
        f"often jostling it alone flips the prediction; point at or tap a token to see the number and the "
        f"new class. {among}"
    )
    random_text = f"Texts as they come. {among}"
    parts = [("Close calls", close_text, shown[: len(close)]), ("Picked at random", random_text, shown[len(close) :])]
    sections = [
        Section(title, text, passages=[one for group in groups for one in group], legend=legend(made))
        for title, text, groups in parts
        if groups
    ]
    numbers = [
        {
            "row": texts.rows[int(row)],
            "draws": made,
            "flips": {name: [None if np.isnan(one) else int(one) for one in counts[name][place]] for name in counts},
        }
        for place, row in enumerate(rows)
    ]
    return sections, numbers


def choose_examples(
    margins: NDArray[np.float64], lengths: NDArray[np.int64], count: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Texts to show: half of them with the smallest margins, half at random, and how many tokens they have at most.

    Short texts, or the shortest quarter where there are too few of these.
    """
    limit = _SHORT
    if (lengths <= _SHORT).sum() < count:
        limit = int(np.sort(lengths)[: max(count, len(lengths) // 4)][-1])
    pool = np.flatnonzero(lengths <= limit)
    by_margin = pool[np.argsort(margins[pool], kind="stable")]
    close, rest = np.split(by_margin, [(count + 1) // 2])
    rest = np.sort(rest)
    picked = rest[Stream(seed, "examples").permutation(len(rest))[: count // 2]] if len(rest) else rest
    return close, picked, limit


def _load(
    options: SubjectOptions, names: tuple[str, ...], label: str | None, *, labelled: bool
) -> tuple[TextDataset, list[str]]:
    """The texts of a dataset or a file, and what to say about them."""
    if not options.data.startswith(PREFIX):
        if options.text or label:
            raise UsageError(f"--text and --label name columns of csv:FILE; {options.data} has its own")
        loaded: Any = jostle.data.load(options.data, split=options.split, limit=options.limit)
        return loaded, [f"{options.data}: {loaded.note}"] if loaded.note else []
    file, named = read_spec(options.data)
    columns = _columns(options, named, label)
    first = None if "test" in named else options.limit  # of a split the first rows, not of the file
    with small_file(file, first, named.get("quoted")) as (small, notes):
        dataset, said = _load_file(str(small), options.split, columns, names, labelled=labelled)
    first = None if options.limit is None else min(options.limit, len(dataset))
    return dataset.subset(first), [*notes, *said, *dataset.remarks]


def _load_file(
    file: str, split: str, columns: dict[str, str | None], names: tuple[str, ...], *, labelled: bool
) -> tuple[TextDataset, list[str]]:
    if "label" in columns or not labelled:
        return load_options(file, split, {"label": None, **columns}, names), []
    if _LABEL not in column_names(file, columns):
        notes = [f"no column {_LABEL!r}: no accuracy (--label NAME)"] if names else []
        return load_options(file, split, {**columns, "label": None}), notes
    return _load_guessed_labels(file, split, columns, names)


def _load_guessed_labels(
    file: str, split: str, columns: dict[str, str | None], names: tuple[str, ...]
) -> tuple[TextDataset, list[str]]:
    """Texts with the labels of the column ``label``; without them if they cannot be used."""
    try:
        return load_options(file, split, columns, names), []
    except UsageError as error:  # raised again by the next line, unless the labels were the reason
        dataset = load_options(file, split, {**columns, "label": None})
        return dataset, [f"no accuracy, because the labels cannot be used: {error}"]


def _columns(options: SubjectOptions, named: dict[str, str], label: str | None) -> dict[str, str | None]:
    """Options of a spec and of the command line together."""
    given: dict[str, str] = dict(zip(("text", "second"), options.text or [], strict=False))
    given |= {} if label is None else {"label": label}
    if len(options.text or []) > 2:
        raise UsageError(f"--text {' --text '.join(options.text or [])}: give one column, or two for pairs of texts")
    twice = sorted(set(given) & set(named))
    if twice:
        raise UsageError(f"--data {options.data} and --{twice[0]} name the same column: give one of them")
    return {**named, **given}


def _reader(options: SubjectOptions, models: Mapping[str, Any]) -> TextReader:
    readers = [
        reader_of(model, name=name, tokenizer=options.tokenizer, max_length=options.max_length)
        for name, model in models.items()
    ]
    shortest = min(reader.max_length for reader in readers)
    return replace(readers[0], max_length=shortest, token_types=any(reader.token_types for reader in readers))


def _check_same_tokens(
    options: SubjectOptions,
    models: Mapping[str, Any],
    reader: TextReader,
    dataset: TextDataset,
    encoded: dict[str, Tensor],
) -> None:
    """Raise if another model cuts the texts into other tokens: then there is no token that both could be jostled in."""
    names = list(models)
    for name in names[1:]:
        other = reader_of(models[name], name=name, tokenizer=options.tokenizer)
        if other.tokenizer.fingerprint() == reader.tokenizer.fingerprint():
            continue
        ids = replace(other, max_length=reader.max_length).encode(dataset)
        is_real = encoded["attention_mask"] == 1
        is_same = ids["input_ids"].shape == is_real.shape and torch.equal(
            ids["attention_mask"], encoded["attention_mask"]
        )
        if not is_same or not torch.equal(ids["input_ids"][is_real], encoded["input_ids"][is_real]):
            raise UsageError(
                f"{names[0]} and {name} cut these texts into different tokens, so the same token cannot be "
                "jostled in both: measure each on its own"
            )


def _with_words(dataset: TextDataset, *, keeps_empty: bool) -> tuple[TextDataset, list[int]]:
    """The texts that have something to jostle, and their numbers from 1."""
    full = [row for row, texts in enumerate(dataset.texts) if keeps_empty or any(text.strip() for text in texts)]
    if not full:
        hint = ": is it the right column of texts?" if dataset.name.startswith(PREFIX) else ""
        raise UsageError(f"all {len(dataset):,} texts of {dataset.name} are empty{hint}")
    return dataset.take(np.asarray(full)), [row + 1 for row in full]


def _passages(texts: Texts, answers: "CleanAnswers", found: FlipCounts, row: int, place: int) -> list[Passage]:
    """The passages of one text, one for each model."""
    pieces = texts.reader.pieces(texts.dataset.texts[row])
    shown = []
    for name, table in found.flips.items():
        share = float(np.nanmean(table[place])) / found.draws
        above = f"{_label(texts, answers, name, row)}; flips {percent(share)} of the time"
        becomes = {
            token: _class(texts, after) for (input_, token), after in found.becomes[name].items() if input_ == place
        }
        above += f"; {name}" if len(found.flips) > 1 else ""
        shown.append(passage(pieces, table[place], found.draws, above, becomes))
    return shown


def _label(texts: Texts, answers: "CleanAnswers", name: str, row: int) -> str:
    """The prediction of a model for a text, its probability, and the right class."""
    outputs, number = answers.outputs[name], int(answers.predictions(name)[row])
    is_single = outputs.dim() == 1 or outputs.shape[1] == 1
    sure = "" if is_single else f" ({percent(float(outputs[row].softmax(dim=0)[number]))})"
    right = "" if answers.labels is None else f", labelled {_class(texts, int(answers.labels[row]))}"
    return f"text {texts.rows[row]}: predicted {_class(texts, number)}{sure}{right}"


def _class(texts: Texts, number: int) -> str:
    return texts.classes[number] if 0 <= number < len(texts.classes) else f"class {number}"
