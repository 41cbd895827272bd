"""What a command measures: models and inputs that fit each other, tokens, jostle, and what to say about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from jostle.base.errors import UsageError
from jostle.cli.accuracy import accuracy_notes
from jostle.cli.inputs import load_labelled, matching
from jostle.cli.options import Options
from jostle.cli.text_report import Look, accuracy_lines, example_sections, look_at
from jostle.cli.texts import Texts, any_word, is_texts, read_texts, unwrapped, vocabulary
from jostle.data import TextDataset
from jostle.estimates import Comparison, Measurement
from jostle.estimates.request import Request
from jostle.perturbations import Perturbation
from jostle.report import Page, Section
from jostle.report.measurement import measurement_page, percent
from jostle.sampling import DefaultPlan, Plan
from jostle.tokens import TokenView

_ONLY_TEXTS = ("text", "label", "special", "tokenizer", "max_length")


@dataclass
class Task:
    """Everything that ``jostle.compare`` is given.

    Arguments:
        models: by name.
        inputs: as the models take them.
        tokens, perturbation: what a token is, and what it becomes.
        texts: the words, of texts.
        notes: what people should know.
        labels: (N,) the right classes, if a file of arrays holds them.
        batch_size, device: of the models, for a look at their accuracy.
    """

    models: dict[str, Callable[..., Any]]
    inputs: Any
    tokens: TokenView | str
    perturbation: Perturbation | str
    texts: Texts | None = None
    notes: list[str] = field(default_factory=list)
    look: Look | None = None
    labels: Tensor | None = None
    batch_size: int = 128
    device: str | None = None

    def request(self, options: Options, plan: Plan | DefaultPlan) -> Request:
        """What the options ask of these models."""
        return Request.build(
            tokens=self.tokens,
            perturbation=self.perturbation,
            response=options.response,
            plan=plan,
            target=options.target,
            average=options.average,
            level=options.level,
            seed=options.seed,
            batch_size=options.batch_size,
            device=options.device,
        )

    def look_around(self) -> None:
        """Ask the models about a few inputs as they are, for the accuracy and, of texts, for examples."""
        if self.texts is not None:
            self.look = look_at(self.texts, self.models)
            self.notes += accuracy_lines(self.look)
        elif self.labels is not None:
            self.notes += accuracy_notes(
                self.models,
                self.inputs,
                self.labels,
                tokens=self.tokens,
                batch_size=self.batch_size,
                device=self.device,
            )


def make_task(options: Options, models: Mapping[str, Any], *, labelled: bool = True) -> Task:
    """The task that the options describe, with models that are loaded.

    Arguments:
        options: of the command.
        models: by name.
        labelled: whether labels are of use, for the accuracy.
    """
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit} must be at least 1")
    given = (None, None) if is_texts(options.data) else load_labelled(options.data, options.split, options.limit)
    inputs, labels = given
    if inputs is None or isinstance(inputs, TextDataset):
        texts = read_texts(options, models, inputs, labelled=labelled)
        way = texts.way
        return Task(unwrapped(models), texts.encoded, way.view, way.perturbation, texts, list(texts.notes))
    for name in _ONLY_TEXTS:
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is for texts, and --data {options.data} is none: leave it out"
            )
    if options.tokens is None:
        raise UsageError(
            "--tokens is missing: say what a token is, for example --tokens patches:4, rows or coordinates"
        )
    plain = unwrapped(models)
    perturbation, notes = _perturbation(options, models)
    task = Task(plain, matching(inputs, plain.values()), options.tokens, perturbation, notes=notes)
    return replace(task, labels=labels if labelled else None, batch_size=options.batch_size, device=options.device)


def _perturbation(options: Options, models: Mapping[str, Any]) -> tuple[Perturbation | str, list[str]]:
    """What a token of an array becomes, and what to say about it."""
    is_words = str(options.tokens).partition(":")[0] == "words"
    spec = options.perturbation or ("deletion" if is_words else "gaussian-noise:std=1")
    if spec.rstrip(":") != "uniform-token":
        return spec, []
    ids = vocabulary(models) if is_words else None
    if ids is None:
        raise UsageError(
            f"--perturbation {spec} needs vocabulary=, the tokens to choose from: for example uniform-token:-1/1 for "
            "bits, or uniform-token:1000 for token ids 0 to 999"
        )
    return any_word(ids)


def page(task: Task, result: Measurement | Comparison, options: Options, specs: Mapping[str, str]) -> Page:
    """The report of a finished task."""
    sections, examples = list[Section](), list[dict[str, Any]]()
    columns: dict[str, dict[str, str]] = {}
    if task.texts is not None and task.look is not None:
        sections, examples = example_sections(
            task.texts, task.models, task.look, options.examples, options.example_draws
        )
        shares = task.look.accuracies()
        looked_at = "" if task.look.labels is None else f"accuracy on the first {len(task.look.labels):,} texts"
        columns = {looked_at: {name: percent(share) for name, share in shares.items()}} if shares else {}
    models = {f"model {name}" if name != spec else "model": spec for name, spec in specs.items()}
    return measurement_page(
        result,
        inputs=options.data,
        examples=sections,
        settings=models,
        notes=task.texts.notes if task.texts is not None else task.notes,
        columns=columns,
        data={"accuracy": {} if task.look is None else task.look.accuracies(), "examples": examples},
    )
