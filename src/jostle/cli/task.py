"""What a command measures: models and inputs that fit each other, tokens, jostle, and what to say about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jostle.cli.loading import load_inputs, matching
from jostle.cli.options import Options
from jostle.cli.text_report import Look, accuracy_lines, example_sections, look_at
from jostle.cli.texts import Texts, is_texts, read_texts, unwrapped
from jostle.data import TextDataset
from jostle.errors import UsageError
from jostle.estimates import Comparison, Measurement
from jostle.perturbations import Perturbation
from jostle.report import Page, Section
from jostle.report.measured import measured_page, percent
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
    """

    models: dict[str, Callable[..., Any]]
    inputs: Any
    tokens: TokenView | str
    perturbation: Perturbation | str
    texts: Texts | None = None
    notes: list[str] = field(default_factory=list)
    look: Look | None = None

    def look_around(self) -> None:
        """Of texts, ask the models about a few as they are, for the accuracy and for examples."""
        if self.texts is not None:
            self.look = look_at(self.texts, self.models)
            self.notes += accuracy_lines(self.look)


def make_task(options: Options, models: Mapping[str, Any]) -> Task:
    """The task that the options describe, with models that are loaded."""
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit} must be at least 1")
    inputs = None if is_texts(options.data) else load_inputs(options.data, options.split, options.limit)
    if inputs is None or isinstance(inputs, TextDataset):
        texts = read_texts(options, models, inputs)
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
    return Task(plain, matching(inputs, plain.values()), options.tokens, options.perturbation or "gaussian-noise:std=1")


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
    return measured_page(
        result,
        inputs=options.data,
        examples=sections,
        settings=models,
        notes=task.texts.notes if task.texts is not None else (),
        columns=columns,
        data={"accuracy": {} if task.look is None else task.look.accuracies(), "examples": examples},
    )
