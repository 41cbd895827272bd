"""Texts on the command line: from a file and a model to what is measured, with defaults that fit texts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import jostle.data
from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.cli.options import Options
from jostle.data import TextDataset
from jostle.data.text_csv import PREFIX, load_options, read_spec
from jostle.integrations import TextClassifier, TextReader, reader_of
from jostle.models.text_model import TextModel
from jostle.perturbations import PERTURBATIONS, GaussianNoise, Perturbation, UniformToken
from jostle.report.texts import TextSettings, root_mean_square, rows_of
from jostle.tokens import VIEWS, Embeddings, TextView, TokenView
from jostle.tokens.sites import word_embedding
from jostle.tokens.text import configured_padding, padding_id

_MEASURED_FOR_SIZE = 64  # texts whose embeddings say how large a token is
_RMS = re.compile(r"(\d+\.?\d*|\.\d+)rms\b")
_LABEL = "label"  # the column of labels, unless another is named
_DIFFERENT_SIZES = 1.5  # from this ratio on, noise of one std is not the same noise for two models


@dataclass(frozen=True)
class Texts:
    """Texts, and how they are read and jostled.

    Arguments:
        dataset: the words.
        encoded: what models are given.
        rows: the number of each text in its file, from 1.
        reader: how they were encoded.
        way: what a token is and becomes.
        has_labels: whether the labels of ``dataset`` are the models' classes.
        can_flip: whether all models predict a class.
        classes: names of the classes; empty if nobody named them.
        notes: what people should know.
    """

    dataset: TextDataset
    encoded: dict[str, Tensor]
    rows: list[int]
    reader: TextReader
    way: TextSettings
    has_labels: bool
    can_flip: bool
    classes: tuple[str, ...]
    notes: list[str]


def is_texts(spec: str) -> bool:
    """Whether the data a spec names are texts."""
    return spec.startswith(PREFIX) or spec in jostle.data.names("text")


def unwrapped(models: Mapping[str, Any]) -> dict[str, Any]:
    """Networks themselves, whose modules have the names that their own library gives them."""
    return {name: model.network if isinstance(model, TextClassifier) else model for name, model in models.items()}


def read_texts(
    options: Options, models: Mapping[str, Any], given: TextDataset | None = None, *, labelled: bool = True
) -> Texts:
    """The texts that the options name, as these models read them.

    Arguments:
        options: of the command.
        models: by name.
        given: the texts, if they are there already.
        labelled: whether labels are of use.
    """
    names = class_names(next(iter(models.values())))
    dataset, notes = (given, []) if given is not None else _load(options, names, labelled=labelled)
    view = _view(options)
    _check_response(options, models)
    reader = _reader(options, models)
    kept, rows = _with_words(dataset, keeps_empty=view.special is not False)
    encoded = reader.encode(kept)
    _check_same_tokens(options, models, reader, kept, encoded)
    cut = reader.count_cut(kept, encoded)
    if cut:
        longer = f"{cut:,} of {len(kept):,} texts have more than {reader.max_length:,} tokens"
        notes.append(f"{longer}: their ends are not read")
    if len(kept) < len(dataset):
        notes.append(f"{len(dataset) - len(kept):,} of {len(dataset):,} texts are empty and were left out")
    way = TextSettings(
        view, GaussianNoise(0.0), options.seed, options.batch_size, options.device, progress=not options.quiet
    )
    perturbation, said = _perturbation(options, view, models, encoded, way, reader)
    largest = int(kept.labels.max())
    has_labels = labelled and kept.classes > 1 and len(names) > 1 and largest < len(names)
    can_flip = all(model.has_head for model in models.values() if isinstance(model, TextClassifier))
    shown = names if any(not re.fullmatch(r"LABEL_\d+", name) for name in names) else ()
    jostled = replace(way, perturbation=perturbation)
    return Texts(kept, encoded, rows, reader, jostled, has_labels, can_flip, shown, [*notes, *said])


def class_names(model: Any) -> tuple[str, ...]:
    """Names of a model's classes, in the order of its outputs; empty if it does not tell how many there are."""
    if isinstance(model, TextClassifier):
        return model.classes
    count = model.classifier.out_features if isinstance(model, TextModel) else 0
    return tuple(f"LABEL_{number}" for number in range(count))


def _load(options: Options, names: tuple[str, ...], *, labelled: bool) -> tuple[TextDataset, list[str]]:
    if not options.data.startswith(PREFIX):
        if options.text or options.label:
            raise UsageError(f"--text and --label name columns of csv:FILE; {options.data} has its own")
        loaded: Any = jostle.data.load(options.data, split=options.split, limit=options.limit)
        return loaded, [f"{options.data}: {loaded.note}"] if loaded.note else []
    file, named = read_spec(options.data)
    columns = _columns(options, named)
    notes: list[str] = []
    if not labelled:
        columns = {"label": None, **columns}
    try:
        dataset = load_options(file, options.split, columns, names)
    except UsageError as error:
        if "label" in columns:
            raise
        dataset = load_options(file, options.split, {**columns, "label": None})
        is_absent = str(error).startswith("unknown column ") and f" {_LABEL!r};" in str(error)
        said = f"no accuracy, because the labels cannot be used: {error}"
        notes = [f"no column {_LABEL!r}: no accuracy (--label NAME)" if is_absent else said]
    meaning = [part for part in dataset.note.split("; ") if part.startswith("labels: ") or "left out" in part]
    return dataset.subset(options.limit), notes + meaning


def _columns(options: Options, named: dict[str, str]) -> dict[str, str | None]:
    """Options of a spec and of the command line together."""
    given: dict[str, str] = dict(zip(("text", "second"), options.text or [], strict=False))
    given |= {} if options.label is None else {"label": options.label}
    if len(options.text or []) > 2:
        raise UsageError(f"--text {' --text '.join(options.text or [])}: give one column, or two for pairs of texts")
    twice = sorted(set(given) & set(named))
    if twice:
        raise UsageError(f"--data {options.data} and --{twice[0]} name the same column: give one of them")
    return {**named, **given}


def _view(options: Options) -> TextView:
    spec = options.tokens or "embeddings"
    view = specs.build(VIEWS, spec, "tokens", TokenView)
    if not isinstance(view, TextView):
        raise UsageError(f"--tokens {spec} is not for texts: use embeddings, embeddings:before or words")
    if "special=" in spec:
        if options.special is not None:
            raise UsageError(f"--tokens {spec} and --special or --no-special say the same: give one of them")
        return view
    return replace(view, special=bool(options.special))


def _check_response(options: Options, models: Mapping[str, Any]) -> None:
    for name, model in models.items():
        is_headless = isinstance(model, TextClassifier) and not model.has_head
        if is_headless and options.response.split(":")[0] in ("flip", "margin"):
            raise UsageError(
                f"{name} has no classes, so no prediction can flip: use --response relative-change, absolute-change or "
                "angle"
            )


def _reader(options: Options, models: Mapping[str, Any]) -> TextReader:
    readers = [
        reader_of(model, name=name, tokenizer=options.tokenizer, max_length=options.max_length)
        for name, model in models.items()
    ]
    shortest = min(reader.max_length for reader in readers)
    return replace(readers[0], max_length=shortest, token_types=any(reader.token_types for reader in readers))


def _check_same_tokens(
    options: Options, models: Mapping[str, Any], reader: TextReader, dataset: TextDataset, encoded: dict[str, Tensor]
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
                f"{names[0]} and {name} cut these texts into different tokens, so they cannot be jostled alike: "
                "measure each on its own"
            )


def _with_words(dataset: TextDataset, *, keeps_empty: bool) -> tuple[TextDataset, list[int]]:
    """The texts that have something to jostle, and their numbers from 1."""
    full = [row for row, texts in enumerate(dataset.texts) if keeps_empty or any(text.strip() for text in texts)]
    if not full:
        raise UsageError(f"all {len(dataset):,} texts of {dataset.name} are empty: is it the right column of texts?")
    return dataset.take(np.asarray(full)), [row + 1 for row in full]


def _perturbation(
    options: Options,
    view: TextView,
    models: Mapping[str, Any],
    encoded: dict[str, Tensor],
    way: TextSettings,
    reader: TextReader,
) -> tuple[Perturbation, list[str]]:
    """What a token becomes, and what to say about it."""
    is_embedded = isinstance(view, Embeddings)
    spec = options.perturbation or ("gaussian-noise:std=1rms" if is_embedded else "deletion")
    found = _RMS.search(spec)
    if found is not None:
        if not is_embedded:
            raise UsageError(
                f"--perturbation {spec}: rms is the size of embeddings, --tokens {view.describe()} has none"
            )
        return _in_units(spec, found, models, encoded, way)
    if spec == "uniform-token":
        return any_word(_word_ids(reader))
    return specs.build(PERTURBATIONS, spec, "perturbation", Perturbation), []


def _in_units(
    spec: str, found: re.Match[str], models: Mapping[str, Any], encoded: dict[str, Tensor], way: TextSettings
) -> tuple[Perturbation, list[str]]:
    """Noise in units of the size of the first model's embedded tokens."""
    some = rows_of(encoded, np.arange(min(_MEASURED_FOR_SIZE, len(encoded["input_ids"]))))
    sizes = root_mean_square(unwrapped(models), some, way)
    first, *others = sizes
    number = float(f"{float(found[1]) * sizes[first]:.3g}")
    perturbation = specs.build(
        PERTURBATIONS, spec[: found.start()] + specs.written(number) + spec[found.end() :], "perturbation", Perturbation
    )
    place = way.view.describe()
    notes = [
        f"{found[1]} rms is {number:g}: embedded tokens ({place}) of {first} have root mean square {sizes[first]:.3g}"
    ]
    far = [name for name in others if not 1 / _DIFFERENT_SIZES < sizes[name] / sizes[first] < _DIFFERENT_SIZES]
    if far:
        listed = ", ".join(f"{name} {sizes[name]:.3g}" for name in far)
        notes.append(
            f"embedded tokens are of another size in {listed}: the same noise is weaker or stronger there, so say in "
            "what sense the models are compared"
        )
    return perturbation, notes


def _word_ids(reader: TextReader) -> Tensor:
    """All ids of the vocabulary that are not special tokens."""
    import json

    added = {entry["id"] for entry in json.loads(reader.tokenizer.json).get("added_tokens", []) if entry.get("special")}
    ids = [number for number in range(reader.tokenizer.vocabulary) if number not in added]
    return torch.tensor([number for number in ids if reader.tokenizer.token_of(number) is not None])


def any_word(ids: Tensor) -> tuple[Perturbation, list[str]]:
    """The perturbation by one of these token ids, all alike, and what to say about it."""
    return UniformToken(ids), [f"a token becomes any of the {len(ids):,} tokens of the vocabulary, alike"]


def vocabulary(models: Mapping[str, Any]) -> Tensor | None:
    """The token ids that all models know, without padding and, where a tokenizer tells, special tokens.

    None if no model tells how many words it has.
    """
    tables = [word_embedding(network) for network in unwrapped(models).values()]
    sizes = [table.num_embeddings for table in tables if isinstance(table, nn.Embedding)]
    if not sizes:
        return None
    for name, model in models.items():
        folder = getattr(model, "folder", None)
        if folder is not None and (folder / "tokenizer.json").is_file():
            words = _word_ids(reader_of(model, name=name))
            return words[words < min(sizes)]
    pads = {padding_id([network]) for network in unwrapped(models).values()}
    pads |= {configured_padding(network) for network in unwrapped(models).values()}
    return torch.tensor([number for number in range(min(sizes)) if number not in pads])
