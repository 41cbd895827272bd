"""What a command measures: models and inputs named on the command line, and the request about them.

``load_models`` and ``read_subject`` turn words into models and inputs that fit each other, ``choose_perturbation``
finds the perturbation that is meant, and ``make_request`` makes the one ``Request`` that everything below works with.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset

import jostle.data
from jostle import integrations
from jostle.base import specs
from jostle.base.errors import UsageError
from jostle.cli.arrays import READERS, read_arrays
from jostle.cli.clean import CleanAnswers
from jostle.cli.labels import folder_labels, with_labels
from jostle.cli.mapped import cast
from jostle.cli.options import SamplingOptions, SubjectOptions
from jostle.cli.prompts import response_for, typed_texts
from jostle.cli.tables import is_table, read_table
from jostle.cli.texts import Texts, as_text_functions, read_texts, reads_strings, text_view
from jostle.data import TextDataset, text_csv
from jostle.data.image_folder import PREFIX, SUFFIXES, ImageFiles, open_images
from jostle.data.table import DataTable
from jostle.data.text_tokenizer import tokenizer_file
from jostle.estimates import Comparison
from jostle.estimates.per_input import plan_for_labels, with_certainty
from jostle.estimates.request import Model, Request
from jostle.integrations import TextNetwork, reader_of
from jostle.integrations.python import call_factory
from jostle.perturbations import PERTURBATIONS, Deletion, GaussianNoise, Perturbation, UniformToken
from jostle.report.measurement import percent
from jostle.report.texts import clean_answers, root_mean_square, rows_of
from jostle.responses import Flip, Margin
from jostle.sampling import PLANS, DefaultPlan, Grid, Plan, Until
from jostle.tokens import VIEWS, Embeddings, TokenView, Words
from jostle.tokens.sites import word_embedding
from jostle.tokens.text import configured_padding, padding_id
from jostle.training import load_weights

_TABLES = (".csv", ".tsv", ".tab")
_ONLY_TEXTS = ("text", "label", "special", "tokenizer", "max_length")  # options
_ASKED_CLEAN = 500  # inputs that models are asked about as they are, at most
_TOKENS_ASKED_CLEAN, _FEWEST_TEXTS = 20_000, 20  # fewer texts if they are long
_OF_PASSES_CLEAN = 10  # the part of --max-passes that may go into these
_MEASURED_FOR_SIZE = 64  # texts whose embeddings say how large a token is
_DIFFERENT_SIZES = 1.5  # from this ratio on, noise of one std is not the same noise for two models
_UNIT = "rms"


@dataclass
class Subject:
    """Models and inputs that fit each other.

    Arguments:
        models: by name, as they are asked.
        loaded: by name, as they were loaded: classifiers of texts know their tokenizer.
        inputs: as the models take them.
        tokens: what a token is.
        texts: the texts behind the inputs, if they are texts.
        labels: (N,) the right classes, if they are known.
        notes: what people should know; printed below the result.
        which_clean: the inputs that the models were asked about as they are, in words.
        accuracies: the share of these inputs that each model gets right, if their classes are known.
        accuracy_notes: those of the notes that are about accuracy; a page has a column for it instead.
    """

    models: dict[str, Model]
    loaded: Mapping[str, Any]
    inputs: Any
    tokens: TokenView
    texts: Texts | None = None
    labels: Tensor | None = None
    notes: list[str] = field(default_factory=list)
    which_clean: str = ""
    accuracies: dict[str, float] = field(default_factory=dict)
    accuracy_notes: list[str] = field(default_factory=list)

    def ask_clean(self, request: Request, *, shown: bool = False) -> CleanAnswers | None:
        """Ask the models about the first inputs as they are, and note their accuracy; None if nothing comes of it.

        Arguments:
            request: what is asked afterwards.
            shown: whether the answers are shown beside images, so that they are wanted without labels too.
        """
        labels_tokens = any(isinstance(one, TextNetwork) and one.task == "labels" for one in self.loaded.values())
        if labels_tokens or (self.texts is None and self.labels is None and not shown):
            return None
        count = min(self._count_clean(), max(1, _most_passes(request) // _OF_PASSES_CLEAN))
        first = _first(self.inputs, count)
        outputs = clean_answers(self.models, first, request)
        names = {name: integrations.class_names(model) for name, model in self.loaded.items()}
        answers = CleanAnswers(outputs, None if self.labels is None else self.labels[:count], names)
        is_all = self.labels is None or len(answers) == len(self.labels)
        things = "inputs" if self.texts is None else "texts"
        self.which_clean = f"{'all' if is_all else 'the first'} {len(answers):,} {things}"
        self._note_accuracies(answers.accuracies())
        self.notes += [
            f"{name}: no accuracy, {reason}" for name in answers.outputs if (reason := answers.why_no_accuracy(name))
        ]
        return answers

    def add_certainty(self, found: Comparison, request: Request) -> Comparison:
        """The same with whether flips mean errors, where the right classes are known and all models have them."""
        if self.labels is None or not isinstance(request.response, Flip):
            return found
        try:
            found = with_certainty(found, request, self.models, self.inputs, self.labels)
        except UsageError as error:
            self.notes.append(f"flips are not compared with errors: {error}")
            return found
        known = {name: m.certainty for name, m in found.measurements.items() if m.certainty is not None}
        knows_all = all(each.inputs == len(self.labels) for each in known.values())
        if known and knows_all:  # then the accuracy on the first ones would be a second one
            self.which_clean = f"all {len(self.labels):,} {'inputs' if self.texts is None else 'texts'}"
            self._note_accuracies({name: each.accuracy.value for name, each in known.items()})
        return found

    def _note_accuracies(self, accuracies: dict[str, float]) -> None:
        """Note how often each model is right about ``which_clean``, in the place of what was noted before."""
        at = self.notes.index(self.accuracy_notes[0]) if self.accuracy_notes else len(self.notes)
        self.notes = [note for note in self.notes if note not in self.accuracy_notes]
        said = [f"{name}: {percent(share)} accuracy on {self.which_clean}" for name, share in accuracies.items()]
        self.notes[at:at] = said
        self.accuracies, self.accuracy_notes = accuracies, said

    def leave_passes(self, request: Request, answers: CleanAnswers | None) -> Request:
        """The request with as many passes less as were taken for clean answers, or will be if labels are given."""
        plan = request.plan
        if answers is not None and isinstance(plan, Until | DefaultPlan):
            request = replace(request, plan=replace(plan, max_passes=max(1, plan.max_passes - len(answers))))
        if self.labels is not None and isinstance(request.response, Flip):
            request = plan_for_labels(request, len(self.labels))
        return request

    def _count_clean(self) -> int:
        if self.texts is None:
            return _ASKED_CLEAN
        tokens = self.texts.encoded["attention_mask"].sum(dim=1).cumsum(dim=0)
        return min(_ASKED_CLEAN, max(int((tokens <= _TOKENS_ASKED_CLEAN).sum()), _FEWEST_TEXTS), len(tokens))


def _most_passes(request: Request) -> int:
    return request.plan.max_passes if isinstance(request.plan, Until | DefaultPlan) else sys.maxsize


def read_subject(
    options: SubjectOptions,
    models: Mapping[str, Any],
    *,
    label: str | None = None,
    labelled: bool = True,
    tokens: str | None = None,
    texts: TextDataset | None = None,
) -> Subject:
    """The inputs that the options name, with models that are loaded.

    Arguments:
        options: of the command.
        models: by name.
        label: the column of labels of a file of texts.
        labelled: whether labels are of use, for the accuracy.
        tokens: what a token is where the options do not say it and inputs are no texts.
        texts: the inputs, if they are not those that the options name.
    """
    check_limit(options.limit)
    if texts is None:
        texts = typed_texts(options)
    notes = list[str]()
    has_columns = texts is None and is_table(options)
    if has_columns:
        inputs, labels, notes = read_table(options, models, label)
        tokens = tokens or "columns"
    elif texts is not None or _is_texts(options.data):
        inputs, labels = texts, None
    else:
        inputs, labels = load_inputs(options.data, options.split, options.limit, notes)
    if inputs is None or isinstance(inputs, TextDataset):
        takes_strings = options.tokenizer is None and all(reads_strings(model) for model in models.values())
        words = text_view(
            options, "words" if not any(isinstance(model, nn.Module) for model in models.values()) else None
        )
        found = read_texts(options, models, words, inputs, label=label, labelled=labelled, by_words=takes_strings)
        right = found.dataset.labels if found.has_labels else None
        asked = unwrap(models) if found.lexicon is None else as_text_functions(models, found.lexicon)
        return Subject(asked, models, found.encoded, words, found, right, list(found.notes))
    for name in _ONLY_TEXTS:
        if getattr(options, name, None) is not None and not (name == "label" and has_columns):
            raise UsageError(
                f"--{name.replace('_', '-')} is for texts, and --data {options.data} is none: leave it out"
            )
    spec = options.tokens or tokens
    if spec is None:
        raise UsageError(
            "--tokens is missing: say what a token is, for example --tokens patches:4, rows or coordinates"
        )
    plain = unwrap(models)
    view = specs.build(VIEWS, spec, "tokens", TokenView)
    matched = match_inputs(inputs, plain.values())
    if labelled and isinstance(inputs, ImageFiles):
        labels = folder_labels(inputs, models, notes)
    return Subject(plain, models, matched, view, labels=labels if labelled else None, notes=notes if labelled else [])


def plan_of(options: SamplingOptions) -> Plan | DefaultPlan:
    """The plan that the options ask for."""
    rules = {
        "half-width": options.half_width,
        "relative": options.relative,
        "until-decided": options.until_decided or None,
        "draws": options.draws,
        "plan": options.plan,
    }
    given = [f"--{name}" for name, value in rules.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"give only one of {', '.join(given)}: they are different rules for when to stop")
    if options.plan is not None:
        if options.max_passes is not None:
            raise UsageError("give max_passes within --plan, for example --plan until:relative=0.1,max_passes=50000")
        return specs.build(PLANS, options.plan, "plan", Plan)
    if options.at_least is not None and not options.until_decided:
        raise UsageError("--at-least needs --until-decided: it says which differences are of interest")
    if options.draws is not None:
        if options.max_passes is not None:
            raise UsageError(
                "give only one of --draws, --max-passes: --draws tries every token, however many there are"
            )
        return Grid(options.draws)
    most = DefaultPlan.max_passes if options.max_passes is None else options.max_passes
    if not given:
        return DefaultPlan(max_passes=most)
    return Until(
        half_width=options.half_width,
        relative=options.relative,
        decided=options.until_decided,
        at_least=options.at_least,
        max_passes=most,
    )


def make_request(
    options: SubjectOptions, subject: Subject, perturbation: Perturbation, plan: Plan | DefaultPlan | None = None
) -> Request:
    """What the options ask of the subject."""
    target, average = (
        (options.target, options.average) if isinstance(options, SamplingOptions) else ("dataset", "macro")
    )
    request = Request.build(
        tokens=subject.tokens,
        perturbation=perturbation,
        response=response_for(options.response, subject.loaded),
        plan=plan,
        target=target,
        average=average,
        level=options.level,
        seed=options.seed,
        batch_size=options.batch_size,
        device=options.device,
    )
    if subject.texts is not None and subject.texts.headless and isinstance(request.response, Flip | Margin):
        raise UsageError(
            f"{subject.texts.headless[0]} has no classes, so no prediction can flip: use --response relative-change, "
            "absolute-change or angle"
        )
    return request


def choose_perturbation(options: SamplingOptions, subject: Subject) -> Perturbation:
    """What a token becomes: what the option says, or noise as large as a token, or deletion for words.

    A number such as ``0.5rms`` is in units of the root mean square of the embedded tokens.
    """
    spec = options.perturbation
    if spec is None and isinstance(subject.tokens, Words):
        return Deletion()
    if spec is None and subject.texts is None:
        return GaussianNoise(1.0)
    name, positional, named = specs.parse("gaussian-noise:std=1rms" if spec is None else spec)
    if name == "uniform-token" and not positional and not named:
        return _any_word(subject)

    def plain(value: Any) -> Any:
        if name == "replace-by" and isinstance(value, str):
            return _token_id(subject, value)
        return value if in_rms(value) is None else scale_rms(options, subject, in_rms(value) or 0.0, spec)

    positional, named = [plain(value) for value in positional], {key: plain(value) for key, value in named.items()}
    return specs.make(PERTURBATIONS, name, positional, named, given=f"--perturbation {spec}")


def _token_id(subject: Subject, token: str) -> int | str:
    """The id of a token by its name, such as ``[MASK]``, where a tokenizer knows it; otherwise the name as it is."""
    if subject.texts is None or not isinstance(subject.tokens, Words):
        return token
    number = subject.texts.reader.tokenizer.id_of(token)
    if number is None:
        raise UsageError(f"--perturbation replace-by:{token}: the tokenizer has no token {token!r}")
    return number


def in_rms(value: Any) -> float | None:
    """How many units of the root mean square ``value`` stands for; None if it is not in these units.

    >>> in_rms("0.5rms"), in_rms("rms"), in_rms(0.5)
    (0.5, None, None)
    """
    if not isinstance(value, str) or not value.lower().endswith(_UNIT):
        return None
    try:
        return float(value[: -len(_UNIT)])
    except ValueError:
        return None


def scale_rms(options: SubjectOptions, subject: Subject, count: float, given: str | None = None) -> float:
    """``count`` root mean squares of the first model's embedded tokens, to three digits; noted in the subject."""
    if subject.texts is None or not isinstance(subject.tokens, Embeddings):
        raise UsageError(
            f"--perturbation {given}: rms is the size of embeddings, --tokens {subject.tokens.describe()} has none"
        )
    encoded = subject.texts.encoded
    some = rows_of(encoded, np.arange(min(_MEASURED_FOR_SIZE, len(encoded["input_ids"]))))
    sizes = root_mean_square(subject.models, some, make_request(options, subject, GaussianNoise(0.0)))
    first, *others = sizes
    number = float(f"{count * sizes[first]:.3g}")
    subject.notes.append(
        f"{count:g} rms is {number:g}: embedded tokens ({subject.tokens.describe()}) of {first} have root mean square "
        f"{sizes[first]:.3g}"
    )
    far = [name for name in others if not 1 / _DIFFERENT_SIZES < sizes[name] / sizes[first] < _DIFFERENT_SIZES]
    if far:
        listed = ", ".join(f"{name} {sizes[name]:.3g}" for name in far)
        subject.notes.append(
            f"embedded tokens are of another size in {listed}: the same noise is weaker or stronger there, so say in "
            "what sense the models are compared"
        )
    return number


def _any_word(subject: Subject) -> Perturbation:
    """Replacement by any token of the vocabulary."""
    if subject.texts is not None:
        ids: Tensor | None = torch.tensor(subject.texts.reader.tokenizer.words())
    else:
        ids = _vocabulary(subject.loaded) if isinstance(subject.tokens, Words) else None
    if ids is None:
        raise UsageError(
            "--perturbation uniform-token needs vocabulary=, the tokens to choose from: for example uniform-token:-1/1 "
            "for bits, or uniform-token:1000 for token ids 0 to 999"
        )
    subject.notes.append(f"a token becomes any of the {len(ids):,} tokens of the vocabulary, all equally likely")
    return UniformToken(ids)


def _vocabulary(models: Mapping[str, Any]) -> Tensor | None:
    """The token ids that all models know, without padding and, where a tokenizer tells, special tokens.

    None if no model tells how many words it has.
    """
    networks = unwrap(models).values()
    tables = [word_embedding(network) for network in networks]
    sizes = [table.num_embeddings for table in tables if isinstance(table, nn.Embedding)]
    if not sizes:
        return None
    for name, model in models.items():
        folder = getattr(model, "folder", None)
        if folder is not None and tokenizer_file(folder).is_file():
            words = torch.tensor(reader_of(model, name=name).tokenizer.words())
            return words[words < min(sizes)]
    pads = {padding_id([network]) for network in networks} | {configured_padding(network) for network in networks}
    return torch.tensor([number for number in range(min(sizes)) if number not in pads])


def unwrap(models: Mapping[str, Any]) -> dict[str, Any]:
    """The networks themselves, whose modules have the names that their own library gives them."""
    return {name: model.network if isinstance(model, TextNetwork) else model for name, model in models.items()}


def load_models(
    named: Mapping[str, str], weights: Mapping[str, str], seed: int
) -> tuple[dict[str, Model], dict[str, list[str]]]:
    """The models by name, and a warning for each whose weights are random, which is also printed at once.

    Arguments:
        named: specs by name.
        weights: files by name.
        seed: of random weights.
    """
    models = {name: load_model(spec, weights.get(name), seed) for name, spec in named.items()}
    known = {}
    for name, spec in named.items():
        is_random = spec.startswith("zoo:") or (
            spec.startswith(("timm:", "torchvision:")) and "checkpoint=" not in spec
        )
        if is_random and name not in weights:
            known[name] = [f"{name} has random weights; give --weights for a trained network"]
            print(f"jostle: {known[name][0]}", file=sys.stderr)  # noqa: T201
    return models, known


def load_model(spec: str, weights: str | None = None, seed: int = 0) -> Callable[..., Any]:
    """The model a spec names, see ``jostle.integrations.load``, with the weights of a safetensors file if given."""
    model = integrations.load(spec, seed=seed)
    if weights is not None:
        if not isinstance(model, nn.Module):
            raise UsageError(f"--weights {weights}: the model {spec} is not an nn.Module, so it has no weights to load")
        wrapped = integrations.ImageClassifier | integrations.TextNetwork
        load_weights(model.network if isinstance(model, wrapped) else model, Path(weights))
    return model


def match_inputs(inputs: Any, models: Iterable[Any]) -> Any:
    """Inputs as the models take them.

    Real numbers get the type of the first model's parameters: files made by numpy are often float64. Images of a folder
    get the size and the normalisation that the models want.
    """
    models = list(models)
    if isinstance(inputs, ImageFiles):
        return integrations.prepare_images(inputs, models)
    parameters = (parameter for model in models if isinstance(model, nn.Module) for parameter in model.parameters())
    wanted = next((parameter.dtype for parameter in parameters if parameter.is_floating_point()), None)

    if wanted is None:
        return inputs

    def as_wanted(value: Any) -> Any:
        if isinstance(value, np.ndarray) and not isinstance(value, np.memmap) and value.dtype.kind == "f":
            value = torch.from_numpy(value.astype(np.float64))
        return cast(value, wanted) if isinstance(value, Tensor) and value.is_floating_point() else value

    return {key: as_wanted(value) for key, value in inputs.items()} if isinstance(inputs, dict) else as_wanted(inputs)


def load_inputs(
    spec: str, split: str = "train", limit: int | None = None, notes: list[str] | None = None
) -> tuple[Any, Tensor | None]:
    """The inputs a spec names, and their labels if they are known, (N,) whole numbers.

    Arguments:
        spec: a dataset, ``images:DIR``, a file (.npy, .npz, .safetensors), or ``py:MODULE_OR_FILE:FACTORY``.
        split: which part of a dataset or folder.
        limit: use only this many inputs, the first ones.
        notes: gets a line if the file holds labels that cannot be used.
    """
    check_limit(limit)
    if has_no_splits(spec) and split != "train":
        raise UsageError(f"--split {split}: --data {spec} has no splits, it is used as it is: leave --split out")
    if spec.startswith("py:"):
        found = call_factory(spec)
        if isinstance(found, Iterator):
            found = list(islice(found, limit))
        inputs, labels = with_labels(found, spec, [] if notes is None else notes)
        return _first(inputs, limit), _first(labels, limit)
    if spec.startswith(PREFIX):
        return open_images(spec, split, limit), None
    if has_no_splits(spec):
        inputs, labels = read_arrays(Path(spec), [] if notes is None else notes)
        return _first(inputs, limit), _first(labels, limit)
    check_name(spec)
    loaded = jostle.data.load(spec, split=split, limit=limit)
    return loaded.inputs, loaded.labels


def has_no_splits(spec: str) -> bool:
    """Whether data are used as they are: a file of arrays, or what a function of your own returns."""
    return spec.startswith("py:") or Path(spec).suffix.lower() in READERS


def check_limit(limit: int | None) -> None:
    """Raise if ``--limit`` leaves no input."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit} must be at least 1")


def _is_texts(spec: str) -> bool:
    return spec.startswith(text_csv.PREFIX) or (":" not in spec and spec in jostle.data.names("text"))


def check_name(spec: str) -> None:
    """Raise if a spec that should name a dataset is a file or a folder instead: most likely its prefix is missing."""
    path = Path(spec)
    if ":" in spec or spec in jostle.data.names("all"):
        return
    if path.is_dir():
        raise UsageError(f"--data {spec} is a folder, not a dataset: write images:{spec} for the images in it")
    if any(suffix in _TABLES for suffix in path.suffixes):
        raise UsageError(f"--data {spec} is a table, not a dataset: write csv:{spec} for what is in it")
    if path.suffix.lower() in SUFFIXES:
        raise UsageError(f"--data {spec} is one image, not a dataset: write images:{path.parent} for its folder")
    if path.is_file():
        known = ", ".join(READERS)
        raise UsageError(f"--data {spec} is a file that cannot be read: {known}, csv:FILE or texts:FILE expected")
    if " " in spec:
        raise UsageError(f"--data {spec!r} is no dataset: write --prompt for a text of your own")


def _first(inputs: Any, limit: int | None) -> Any:
    """The first inputs, at most ``limit``."""
    if limit is None or inputs is None:
        return inputs
    if isinstance(inputs, dict):
        return {key: value[:limit] for key, value in inputs.items()}
    if isinstance(inputs, Tensor | np.ndarray) and inputs.ndim == 0:
        raise UsageError("the data are a single number; expected an array with a row for each input")
    if isinstance(inputs, Tensor | np.ndarray | list):
        return inputs[:limit]
    if hasattr(inputs, "iloc"):  # a frame of pandas
        return inputs.iloc[:limit]
    if isinstance(inputs, ImageFiles):
        return inputs.first(limit)
    if isinstance(inputs, TextDataset):
        return inputs.subset(min(limit, len(inputs)))
    if isinstance(inputs, DataTable):
        return inputs[:limit]
    if isinstance(inputs, Dataset) and hasattr(inputs, "__len__"):
        return Subset(inputs, range(min(limit, len(inputs))))
    raise UsageError(f"--limit {limit} cannot be applied to inputs of type {type(inputs).__name__}")
