"""``jostle influence``: which token matters for which prediction of a language model."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import (
    MODEL_HELP,
    OUTPUT,
    PRECISION,
    WEIGHTS_HELP,
    WHAT,
    SamplingOptions,
    model_specs,
    weight_files,
    whole,
)
from jostle.cli.output import check_files, check_plot, say, show

if TYPE_CHECKING:
    from jostle.cli.subject import Subject
    from jostle.estimates import Influence
    from jostle.integrations import Prompts
    from jostle.perturbations import Perturbation

DATA_HELP = "Prompts in a file: csv:FILE with texts, or a .npy or .safetensors file with token ids."
TOKENS_HELP = "What moves: words (the token itself), or embeddings or embeddings:before (its vector)."
PERTURBATION_HELP = (
    "What a token becomes: uniform-token (any word, the default for words), deletion, replace-by:ID, "
    "uniform-token:12/7 (one of these ids); for embeddings gaussian-noise:std=1rms (the default), ..."
)
RESPONSE_HELP = (
    "What counts as a change: next-token-flip, kl, total-variation, surprisal; label-flip for token classifiers. "
    "Default: a flip."
)
HALF_WIDTH_HELP = (
    "Stop when half of every interval's width is at most this; by default 0.1 for flips and total variation, and a "
    "tenth of the largest entry for other responses."
)
PASSES_HELP = "The most inputs that the model evaluates. Default: 100,000."
REPORT_HELP = "Also write an HTML page: the text with shaded tokens, the matrix, and numbers to point at."
PLOT_HELP = "Also draw the matrix of the first prompt into this .svg, .png or .pdf file."
_MOST_PROMPTS = 20


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InfluenceOptions(SamplingOptions):
    """What ``jostle influence`` takes beside the model."""

    data: Annotated[str, Parameter(group=WHAT, help=DATA_HELP, show_default=False)] = ""
    tokens: Annotated[str | None, Parameter(group=WHAT, help=TOKENS_HELP)] = None
    perturbation: Annotated[str | None, Parameter(group=WHAT, help=PERTURBATION_HELP)] = None
    response: Annotated[str, Parameter(group=WHAT, help=RESPONSE_HELP, show_default=False)] = "flip"
    half_width: Annotated[float | None, Parameter(group=PRECISION, help=HALF_WIDTH_HELP)] = None
    max_passes: Annotated[int | None, Parameter(converter=whole, group=PRECISION, help=PASSES_HELP)] = None
    label: Annotated[str | None, Parameter(show=False, parse=False)] = None
    relative: Annotated[float | None, Parameter(show=False, parse=False)] = None
    draws: Annotated[int | None, Parameter(show=False, parse=False)] = None
    target: Annotated[str, Parameter(show=False, parse=False)] = "dataset"
    average: Annotated[Literal["macro", "micro"], Parameter(show=False, parse=False)] = "macro"
    report: Annotated[Path | None, Parameter(group=OUTPUT, help=REPORT_HELP)] = None
    plot: Annotated[Path | None, Parameter(group=OUTPUT, help=PLOT_HELP)] = None


def influence(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: InfluenceOptions = InfluenceOptions(),  # noqa: B008 - it is frozen
) -> None:
    """Show which word of a prompt the next word hangs on.

    Each token is replaced by other words, and every later prediction of the
    model is compared with what it was. One pass gives all of them. The
    intervals of all entries of the matrix hold together.

      jostle influence --model hf:my-language-model
        --prompt "Once upon a time, there was a" --report influence.html

      jostle influence --model hf:my-language-model --data csv:prompts.csv
        --text prompt --limit 5 --response total-variation

    Ctrl-C prints what is known so far.
    """
    specs = model_specs([model])
    files = weight_files([] if weights is None else [weights], specs)
    check_plot(options.plot)
    check_files(options, list(files.values()), {"--report": options.report, "--plot": options.plot})
    from jostle.cli.subject import load_models, make_request
    from jostle.estimates.influence import default_response, run_influence

    models, known = load_models(specs, files, options.seed)
    options = replace(options, tokens=options.tokens or "words")
    subject = _subject(options, models)
    ((name, network),) = subject.models.items()
    asked = replace(options, response=default_response(options.response, network).describe())
    request = make_request(asked, subject, _perturbation(options, subject))
    most = {} if options.max_passes is None else {"max_passes": options.max_passes}
    result = run_influence(
        request,
        name,
        network,
        _prompts(subject) or subject.inputs,
        options.half_width,
        progress=not options.quiet,
        **most,
    )
    result.warnings.extend(known.get(name, ()))
    show(result, subject.notes, options)
    _write(result, options, {"model": specs[name]} if specs[name] != name else {})
    if result.stopped == "interrupted":
        sys.exit(130)


def _subject(options: InfluenceOptions, models: Mapping[str, Any]) -> "Subject":
    """The prompts of the options, cut into tokens."""
    from jostle.cli.subject import read_subject

    subject = read_subject(options, models, labelled=False, tokens="words")
    count = len(next(iter(subject.inputs.values())) if isinstance(subject.inputs, dict) else subject.inputs)
    if count > _MOST_PROMPTS and options.limit is None:
        raise UsageError(
            f"--data {options.data} holds {count:,} prompts, and each has a matrix of its own: say how many, for "
            "example --limit 5"
        )
    return subject


def _perturbation(options: InfluenceOptions, subject: "Subject") -> "Perturbation":
    """What a token becomes; a word any other word."""
    from jostle.cli.subject import choose_perturbation
    from jostle.tokens import Words

    spec = options.perturbation or ("uniform-token" if isinstance(subject.tokens, Words) else None)
    return choose_perturbation(replace(options, perturbation=spec), subject)


def _prompts(subject: "Subject") -> "Prompts | None":
    """The prompts with their pieces, if they are texts."""
    from jostle.integrations import Prompts

    if subject.texts is None:
        return None
    reader = subject.texts.reader
    pieces = [reader.pieces(texts) for texts in subject.texts.dataset.texts]
    return Prompts(subject.texts.encoded, pieces, decode=reader.tokenizer.shown)


def _write(result: "Influence", options: InfluenceOptions, settings: dict[str, str]) -> None:
    written = []
    if options.report is not None:
        from jostle.report import write
        from jostle.report.influence import influence_page

        write(influence_page(result, settings), options.report)
        written.append(options.report)
    if options.plot is not None:
        from jostle.figures import save

        save(result.plot(), options.plot)
        written.append(options.plot)
    if not options.as_json:
        for path in written:
            say(f"  written to {path}")
