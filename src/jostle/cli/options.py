"""The options that commands share, with their help. Nothing here imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter, Token

from jostle.base.errors import UsageError

if TYPE_CHECKING:
    from jostle.engines import Engine

WHAT = Group("What is jostled", sort_key=1)
TEXTS = Group("Texts and tables: csv:FILE, or a dataset of texts", sort_key=2)
PRECISION = Group("Precision and stopping", sort_key=3)
OUTPUT = Group("Running and output", sort_key=4)
ENGINES = Group("Several processes or machines", sort_key=5)

MODEL_HELP = (
    "py:MODULE_OR_FILE:FACTORY[:key=value,...], a function that returns your model; hf:DIR, onnx:FILE, "
    "timm:NAME[:checkpoint=FILE,...] or torchvision:NAME; zoo:NAME[:key=value,...], a network with random weights, or "
    "sample:NAME, a small trained one. hf:DIR is a folder that Hugging Face's save_pretrained wrote, or the name of a "
    "model in the local cache: an image classifier, a text classifier or a language model with its tokenizer; "
    "hf:DIR:features is a text encoder without a classifier."
)
MODELS_HELP = f"SPEC or NAME=SPEC; give it once for each model. {MODEL_HELP}"
WEIGHTS_HELP = (
    "Weights for the model: a .safetensors file, or a .pt file with a state dict. NAME=FILE if there are several "
    "models."
)
DATA_HELP = (
    "Inputs: a dataset's name (jostle list datasets), csv:FILE with texts or a table of numbers, texts:FILE with a "
    "text on each line, a .npy, .npz or .safetensors file (one array, or arrays named like the model's arguments; an "
    "array named labels, y or target holds the right classes), images:DIR[:size=224,seed=0,...], or "
    "py:MODULE_OR_FILE:FACTORY."
)
TOKENS_HELP = (
    "What a token is. Images and arrays: patches:SIZE, rows, coordinates or whole. Texts: embeddings (the vectors that "
    "enter the first layer, after their LayerNorm; the default), embeddings:before (word vectors alone) or words (the "
    "tokens themselves, as the tokenizer cuts them: words or pieces of words). embeddings:module=PATH is what a module "
    "of your own model gives out. Tables: columns, the default."
)
PERTURBATION_HELP = (
    "What a token becomes: gaussian-noise:std=2, sphere:radius=1, sign-flip, uniform-token:-1/1, replace-by:0; for "
    "--tokens words deletion, uniform-token (any word) or a token by its name, replace-by:[MASK]. std=0.5rms is half "
    "the root mean square of the embedded tokens. Default: gaussian-noise:std=1; for texts gaussian-noise:std=1rms, "
    "noise with the size of a token; with --tokens words, deletion."
)
RESPONSE_HELP = (
    "What counts as a change: flip, margin, logit-change, absolute-change, relative-change or angle; for language "
    "models next-token-flip (what flip means for them), kl, total-variation or surprisal."
)
PROMPT_HELP = "A text, in the place of --data; give it again for more texts. Language models are asked what comes next."
CLUSTER_HELP = (
    "Column of csv:FILE that says what a text belongs to, such as its document or speaker: the interval for the "
    "population then takes these, not texts, for independent."
)
ANSWER_HELP = (
    "Make a language model a classifier: which of these answers, by log-likelihood, follows the text? Give it once for "
    "each answer, with the space that stands before it: --answer ' yes' --answer ' no'."
)
LIMIT_HELP = "Use only this many inputs, the first ones."
TEXT_HELP = "Column of texts in a csv file; give it twice for pairs of texts. Default: the column named text."
LABEL_HELP = (
    "Column of labels, numbers from 0 or the model's own names, for the accuracy and for whether flips mean errors. "
    "Default: the column named label, if there is one; of a table also labels, target, class or y."
)
SPECIAL_HELP = "Whether tokens that the tokenizer adds, such as [CLS] and [SEP], are jostled too; by default not."
TOKENIZER_HELP = (
    "A tokenizer.json, a tokenizer.model of SentencePiece, a .bin of llama2.c, or a folder with one, for models that "
    "come without their own."
)
LENGTH_HELP = "Read at most this many tokens of a text; by default as many as the model can."
AVERAGE_HELP = "macro: inputs weigh the same, however long; micro: tokens weigh the same."
HALF_WIDTH_HELP = "Stop when half of the interval's width is at most this. The default rule for flips, at 0.01."
RELATIVE_HELP = (
    "Stop when half of the interval's width is at most this share of the value. The default for other responses, at "
    "0.05."
)
DECIDED_HELP = "With two models or more, stop when it is decided for every pair which is more sensitive."
AT_LEAST_HELP = (
    "With --until-decided, the smallest difference of interest: a pair is done too when its difference is shown to be "
    "smaller. Without it, models that are equal are compared until --max-passes."
)
PLAN_HELP = (
    "The rule as one text, in the place of the options above: until:relative=0.1,adaptive=false or "
    "until:decided=true,at_least=0.001 or grid:5."
)
DRAWS_HELP = (
    "The papers' protocol: jostle every token of every input this many times, and do not stop early. Default: 1 if the "
    "perturbation is deterministic and there are at most 10,000 tokens; otherwise sampling stops early."
)
PASSES_HELP = "The most inputs that a model evaluates. Default: 1,000,000; not limited with --draws."
TARGET_HELP = (
    "Which interval is reported and decides when to stop: for the mean over these inputs (dataset), or over the "
    "population they were drawn from (population)."
)
SEED_HELP = "The same seed gives the same noise, for every model and batch size."
BATCH_HELP = "The most inputs in a batch. Default: as many as suit the model."
OUTPUT_HELP = "Also write the result to this JSON file; jostle.load reads it."
FORCE_HELP = "Overwrite existing files, also those that jostle did not write."
REPORT_HELP = (
    "Also write an HTML page: the sensitivity, at which positions predictions change and examples of texts, "
    "with shaded tokens, or of images."
)
EXAMPLES_HELP = "How many texts or images the page shows."
EXAMPLE_DRAWS_HELP = "How often each of their tokens is jostled."
ENGINE_HELP = (
    "Where units of work run: serial (this process), processes, ray or torchrun. No engine changes a number. Default: "
    "this process, and several where that saves time."
)
WORKERS_HELP = "How many processes, or workers of a Ray cluster, work at once."
ADDRESS_HELP = "Address of a running Ray cluster: auto, HOST:6379 or ray://HOST:10001. Default: one on this machine."
CPUS_HELP = "Threads of each worker. Default: 1 where --workers or --engine is given."
GPUS_HELP = "GPUs of each worker of Ray; 0.5 if two share one. The models then run there."
JSON_HELP = "Print the result as JSON, with notes, and nothing else."
CSV_HELP = "Also write the numbers, each with low and high, to this file of comma-separated values."
SAMPLES_HELP = (
    "Also write what became of every input and every token: a line an input in a .jsonl file, a row a token in a .csv "
    "file. All inputs are then drawn alike."
)
TRACKER_HELP = "Also send the numbers to a tracker: tensorboard:FOLDER, wandb:PROJECT or mlflow:EXPERIMENT."
OPEN_HELP = "open the page in the browser."


def whole(_: Any, tokens: Sequence[Token]) -> int:
    """The whole number that was written, for ``Parameter(converter=whole)``; cyclopts' own converter rounds 12.9."""
    text = tokens[0].value
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise ValueError(f"{text} is not a whole number") from None


Flag = Parameter(negative="", show_default=False, group=OUTPUT)
Force = Annotated[bool, Parameter(negative="", show_default=False, help=FORCE_HELP)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SubjectOptions:
    """What ``measure``, ``compare``, ``sweep`` and ``worst-case`` share: inputs, tokens, response, and output."""

    data: Annotated[str, Parameter(group=WHAT, help=DATA_HELP, show_default=False)] = ""
    prompt: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=PROMPT_HELP)] = None
    tokens: Annotated[str | None, Parameter(group=WHAT, help=TOKENS_HELP)] = None
    response: Annotated[str, Parameter(group=WHAT, help=RESPONSE_HELP)] = "flip"
    split: Annotated[str, Parameter(group=WHAT, help="Which part of a named dataset.")] = "train"
    limit: Annotated[int | None, Parameter(converter=whole, group=WHAT, help=LIMIT_HELP)] = None
    text: Annotated[list[str] | None, Parameter(group=TEXTS, negative="", help=TEXT_HELP)] = None
    special: Annotated[bool | None, Parameter(group=TEXTS, help=SPECIAL_HELP)] = None
    tokenizer: Annotated[str | None, Parameter(group=TEXTS, help=TOKENIZER_HELP)] = None
    max_length: Annotated[int | None, Parameter(converter=whole, group=TEXTS, help=LENGTH_HELP)] = None
    level: Annotated[float, Parameter(group=PRECISION, help="Coverage of the intervals.")] = 0.95
    seed: Annotated[int, Parameter(converter=whole, group=PRECISION, help=SEED_HELP)] = 0
    batch_size: Annotated[int | None, Parameter(converter=whole, group=OUTPUT, help=BATCH_HELP)] = None
    device: Annotated[str | None, Parameter(group=OUTPUT, help="Where the models run, e.g. cuda.")] = None
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=OUTPUT, help=OUTPUT_HELP)] = None
    csv: Annotated[Path | None, Parameter(group=OUTPUT, help=CSV_HELP)] = None
    tracker: Annotated[str | None, Parameter(group=OUTPUT, help=TRACKER_HELP)] = None
    force: Annotated[bool, Flag, Parameter(help=FORCE_HELP)] = False
    as_json: Annotated[bool, Flag, Parameter(name="--json", help=JSON_HELP)] = False
    quiet: Annotated[bool, Flag, Parameter(help="No progress.")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where units of work run; the default differs from command to command."""

    engine: Annotated[
        Literal["serial", "processes", "ray", "torchrun"] | None, Parameter(group=ENGINES, help=ENGINE_HELP)
    ] = None
    workers: Annotated[int | None, Parameter(converter=whole, group=ENGINES, help=WORKERS_HELP)] = None
    address: Annotated[str | None, Parameter(group=ENGINES, help=ADDRESS_HELP)] = None
    cpus: Annotated[int | None, Parameter(converter=whole, group=ENGINES, help=CPUS_HELP)] = None
    gpus: Annotated[float | None, Parameter(group=ENGINES, help=GPUS_HELP)] = None

    def chosen(self) -> "Engine":
        """The engine that these options ask for; torchrun, if that started this process."""
        from jostle.engines import choose
        from jostle.engines.torchrun import is_torchrun

        name = "torchrun" if self.engine is None and is_torchrun() else self.engine
        return choose(name, self.workers, address=self.address, cpus=self.cpus, gpus=self.gpus)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SamplingOptions(SubjectOptions):
    """What ``measure``, ``compare`` and ``sweep`` share beside that: the perturbation, and when to stop."""

    perturbation: Annotated[str | None, Parameter(group=WHAT, help=PERTURBATION_HELP)] = None
    label: Annotated[str | None, Parameter(group=TEXTS, help=LABEL_HELP)] = None
    half_width: Annotated[float | None, Parameter(group=PRECISION, help=HALF_WIDTH_HELP)] = None
    relative: Annotated[float | None, Parameter(group=PRECISION, help=RELATIVE_HELP)] = None
    until_decided: Annotated[bool, Parameter(negative="", show_default=False, group=PRECISION, help=DECIDED_HELP)] = (
        False
    )
    at_least: Annotated[float | None, Parameter(group=PRECISION, help=AT_LEAST_HELP)] = None
    draws: Annotated[int | None, Parameter(converter=whole, group=PRECISION, help=DRAWS_HELP)] = None
    plan: Annotated[str | None, Parameter(group=PRECISION, help=PLAN_HELP)] = None
    max_passes: Annotated[int | None, Parameter(converter=whole, group=PRECISION, help=PASSES_HELP)] = None
    target: Annotated[str, Parameter(group=PRECISION, help=TARGET_HELP)] = "dataset"
    average: Annotated[Literal["macro", "micro"], Parameter(group=PRECISION, help=AVERAGE_HELP)] = "macro"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class MeasureOptions(SamplingOptions):
    """What ``measure`` and ``compare`` take beside the models."""

    answer: Annotated[list[str] | None, Parameter(group=TEXTS, negative="", help=ANSWER_HELP)] = None
    cluster: Annotated[str | None, Parameter(group=TEXTS, help=CLUSTER_HELP)] = None
    log_samples: Annotated[Path | None, Parameter(group=OUTPUT, help=SAMPLES_HELP)] = None
    report: Annotated[Path | None, Parameter(group=OUTPUT, help=REPORT_HELP)] = None
    open_: Annotated[bool, Flag, Parameter(name="--open", help=f"With --report: {OPEN_HELP}")] = False
    examples: Annotated[int, Parameter(converter=whole, group=OUTPUT, help=EXAMPLES_HELP)] = 6
    example_draws: Annotated[int, Parameter(converter=whole, group=OUTPUT, help=EXAMPLE_DRAWS_HELP)] = 30


def model_specs(words: list[str]) -> dict[str, str]:
    """Specs by name, from words that read SPEC or NAME=SPEC; a spec without a name is its own.

    >>> model_specs(["vit=zoo:vit-simple", "zoo:mlp:hidden=8"])
    {'vit': 'zoo:vit-simple', 'zoo:mlp:hidden=8': 'zoo:mlp:hidden=8'}
    """
    named: dict[str, str] = {}
    for word in words:
        name, equals, spec = word.partition("=")
        if not equals or not name or ":" in name:
            name, spec = word, word
        if name in named:
            raise UsageError(f"--model names {name!r} twice; give each a name of its own: --model NAME=SPEC")
        named[name] = spec
    return named


def weight_files(words: list[str], specs: dict[str, str]) -> dict[str, str]:
    """Files by the name of their model; with one model the name can be left out."""
    files: dict[str, str] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or name not in specs:
            if len(specs) > 1:
                raise UsageError(f"--weights {word} must read NAME=FILE with the name of a model: {', '.join(specs)}")
            if equals and not Path(word).exists():
                raise UsageError(f"--weights {word}: there is no --model named {name!r}, and no such file")
            name, file = next(iter(specs)), word
        if name in files:
            raise UsageError(f"--weights names {name!r} twice")
        files[name] = file
    return files
