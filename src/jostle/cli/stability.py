"""``jostle stability``: noise stability over rho."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import MODEL_HELP, OUTPUT, WEIGHTS_HELP, WHAT, SamplingOptions, model_specs, weight_files
from jostle.cli.output import check_files, check_plot, show, write_plot

if TYPE_CHECKING:
    from jostle.cli.subject import Subject

RHO_HELP = (
    "Correlations from 0 (nothing of the input is left) to 1 (nothing moves): 0.5 0.9 0.99, or 0.5/0.9/0.99. Several "
    "make a curve. Below 0, to -1, for real numbers and bits."
)
RESPONSE_HELP = (
    "agreement: how often the prediction stays. correlation: E[f(x) f(y)] / E[f(x)^2] of the outputs themselves."
)
CENTRED_HELP = "Correlation of the outputs without their mean over the inputs."
CENTRE_HELP = "Mean of the noise; by default that of the inputs' numbers, or of the embedded tokens of texts."
STD_HELP = (
    "Standard deviation of the noise at rho 0; by default that of the inputs' numbers, or of the embedded tokens."
)
VOCABULARY_HELP = (
    "What replaces token ids: a number V for ids 0 to V - 1, or tokens such as -1/1. Default: the words of the model; "
    "for inputs that are all -1 or 1, these two."
)
PLOT_HELP = "Also draw the curve into this .svg, .png or .pdf file."
_ALL = "All tokens move at once; --tokens says where: whole (all numbers) or, for texts, embeddings or words."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StabilityOptions(SamplingOptions):
    """What ``jostle stability`` takes beside the model."""

    rho: Annotated[list[str], Parameter(group=WHAT, negative="", consume_multiple=True, help=RHO_HELP)]
    tokens: Annotated[str | None, Parameter(group=WHAT, help=_ALL)] = None
    response: Annotated[str, Parameter(group=WHAT, help=RESPONSE_HELP)] = "agreement"
    centred: Annotated[bool, Parameter(group=WHAT, negative="", show_default=False, help=CENTRED_HELP)] = False
    perturbation: Annotated[str | None, Parameter(show=False, parse=False)] = None
    average: Annotated[Literal["macro", "micro"], Parameter(show=False, parse=False)] = "macro"
    centre: Annotated[float | None, Parameter(group=WHAT, help=CENTRE_HELP)] = None
    std: Annotated[float | None, Parameter(group=WHAT, help=STD_HELP)] = None
    vocabulary: Annotated[str | None, Parameter(group=WHAT, allow_leading_hyphen=True, help=VOCABULARY_HELP)] = None
    plot: Annotated[Path | None, Parameter(group=OUTPUT, help=PLOT_HELP)] = None


def stability(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: StabilityOptions,
) -> None:
    """Measure how much of the answer is left when all tokens are partly redrawn.

    Every token is replaced by one with correlation rho: real numbers are mixed
    with noise, ids and bits are drawn anew with probability 1 - rho. One curve
    over rho costs one set of clean passes. Ctrl-C prints the rho that are done.

      jostle stability --model zoo:mlp:image_size=28,channels=1
        --weights mlp.safetensors --data mnist-5000 --rho 0.5 0.9 0.99

      jostle stability --model hf:my-classifier --data csv:reviews.csv
        --text review --tokens words --rho 0.5 0.9 --plot stability.svg
    """
    specs = model_specs([model])
    files = weight_files([] if weights is None else [weights], specs)
    check_plot(options.plot)
    check_files(options, list(files.values()), {"--plot": options.plot})
    from jostle.cli.subject import load_models, make_request, plan_of, read_subject
    from jostle.estimates.stability import STILL, as_response, read_rhos, run_stability
    from jostle.perturbations import Correlated

    plan, rhos, response = plan_of(options), read_rhos(_numbers(options.rho)), as_response(options.response)
    noise = _noise(options)
    Correlated(rhos[0], **{key: value for key, value in noise.items() if value is not None})  # wrong numbers raise now
    models, known = load_models(specs, files, options.seed)
    subject = read_subject(options, models, label=options.label, tokens="whole")
    request = make_request(replace(options, response="flip"), subject, STILL, plan)
    subject.ask_clean(request)
    ((name, network),) = subject.models.items()
    result = run_stability(
        request, network, subject.inputs, rhos, response, centred=options.centred,
        noise=_with_words(subject, noise), progress=not options.quiet, name=name, known=known.get(name, ()),
    )  # fmt: skip
    show(result, subject.notes, options)
    if options.plot is not None:
        write_plot(result, options.plot, options)
    if result.missing:
        sys.exit(130)


def _numbers(words: list[str]) -> list[float]:
    """The numbers that were written, with spaces, commas or slashes between them."""
    parts = [part for word in words for part in word.replace(",", "/").split("/") if part]
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise UsageError(f"--rho {' '.join(words)} must be numbers from 0 to 1, for example --rho 0.5 0.9") from None


def _noise(options: StabilityOptions) -> dict[str, Any]:
    from jostle.base import specs

    vocabulary = None if options.vocabulary is None else specs.literal(options.vocabulary)
    return {"vocabulary": vocabulary, "centre": options.centre, "std": options.std}


def _with_words(subject: "Subject", noise: dict[str, Any]) -> dict[str, Any]:
    """The noise; token ids of texts become any word of the tokenizer, unless an option says otherwise."""
    import torch

    from jostle.tokens import Words

    if subject.texts is None or not isinstance(subject.tokens, Words) or noise["vocabulary"] is not None:
        return noise
    ids = torch.tensor(subject.texts.reader.tokenizer.words())
    subject.notes.append(f"a token becomes any of the {len(ids):,} tokens of the vocabulary, all equally likely")
    return noise | {"vocabulary": ids}
