"""``jostle certify``: certified radii by randomised smoothing."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from jostle.cli.options import (
    LABEL_HELP,
    MODEL_HELP,
    PRECISION,
    TEXTS,
    WEIGHTS_HELP,
    WHAT,
    SubjectOptions,
    model_specs,
    weight_files,
    whole,
)
from jostle.cli.output import check_files, say, show

STD_HELP = "Standard deviation of the noise on the whole input; larger noise can prove larger radii, and blurs more."
DRAWS_HELP = "Draws that bound the probability of the smoothed prediction."
SELECTION_HELP = "Draws that guess the smoothed prediction."
ALPHA_HELP = "Error of the statement about each input."
_SHOWN = (0.25, 0.5, 1.0, 2.0)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CertifyOptions(SubjectOptions):
    """What ``jostle certify`` takes beside the model."""

    std: Annotated[float, Parameter(group=WHAT, help=STD_HELP)]
    response: Annotated[str, Parameter(show=False, parse=False)] = "flip"
    label: Annotated[str | None, Parameter(group=TEXTS, help=LABEL_HELP)] = None
    draws: Annotated[int, Parameter(converter=whole, group=PRECISION, help=DRAWS_HELP)] = 1000
    selection: Annotated[int, Parameter(converter=whole, group=PRECISION, help=SELECTION_HELP)] = 100
    alpha: Annotated[float, Parameter(group=PRECISION, help=ALPHA_HELP)] = 0.001


def certify(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: CertifyOptions,
) -> None:
    """Prove within which radius a smoothed prediction stays the same.

    The smoothed prediction is the one that a model gives most often when noise
    is added to the whole input. Prints how many inputs are certified at which
    radius and, with labels, how many of them are also right.

      jostle certify --model zoo:cnn:image_size=28,channels=1
        --weights cnn.safetensors --data mnist-5000 --limit 100 --std 0.5
    """
    specs = model_specs([model])
    files = weight_files([] if weights is None else [weights], specs)
    check_files(options, list(files.values()))
    from jostle.cli.subject import load_models, make_request, read_subject
    from jostle.estimates.certificate import check_certify, run_certify

    noise = check_certify(options.std, options.draws, options.selection, options.alpha)
    models, _ = load_models(specs, files, options.seed)
    subject = read_subject(options, models, label=options.label, tokens="whole")
    request = make_request(options, subject, noise)
    ((name, network),) = subject.models.items()
    result = run_certify(
        request, network, subject.inputs, options.draws, options.selection, options.alpha, not options.quiet, name
    )
    notes = list(subject.notes)
    if subject.labels is not None:
        for radius in _SHOWN:
            found = result.share(radius * result.std, subject.labels, options.level)
            if radius * result.std <= result.largest:
                notes.append(f"right and certified at {radius * result.std:g}: {found.value:.1%}")
        notes += result.certainty(subject.labels, options.level).lines()
    show(result, notes, options)
    if result.abstained == len(result.classes) and not options.as_json:
        say("  nothing is certified: try a smaller --std, or more --draws")
