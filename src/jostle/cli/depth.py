"""``jostle depth``: noise inside a model, layer by layer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import (
    MODEL_HELP,
    OUTPUT,
    WEIGHTS_HELP,
    WHAT,
    SamplingOptions,
    model_specs,
    weight_files,
    whole,
)
from jostle.cli.output import check_files, check_plot, show, write_plot

SITE_HELP = (
    "Where: residual (what each layer gives out), attention, mlp, head (with --head), or a path or pattern of the "
    "modules of the model, such as 'blocks.*.mlp'."
)
HEAD_HELP = "With --site head, which head of each layer, from 0 on."
STD_HELP = "Standard deviation of the noise, in units of the root mean square of the vectors at each site."
ABSOLUTE_HELP = "Take --std as it is, the same number at every site."
PLOT_HELP = "Also draw the change against the layer into this .svg, .png or .pdf file."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DepthOptions(SamplingOptions):
    """What ``jostle depth`` takes beside the model."""

    site: Annotated[str, Parameter(group=WHAT, help=SITE_HELP)] = "residual"
    head: Annotated[int | None, Parameter(converter=whole, group=WHAT, help=HEAD_HELP)] = None
    std: Annotated[float, Parameter(group=WHAT, help=STD_HELP)] = 1.0
    absolute: Annotated[bool, Parameter(group=WHAT, negative="", show_default=False, help=ABSOLUTE_HELP)] = False
    tokens: Annotated[str | None, Parameter(show=False, parse=False)] = None
    perturbation: Annotated[str | None, Parameter(show=False, parse=False)] = None
    label: Annotated[str | None, Parameter(show=False, parse=False)] = None
    special: Annotated[bool | None, Parameter(show=False, parse=False)] = None
    target: Annotated[str, Parameter(show=False, parse=False)] = "dataset"
    average: Annotated[Literal["macro", "micro"], Parameter(show=False, parse=False)] = "macro"
    plot: Annotated[Path | None, Parameter(group=OUTPUT, help=PLOT_HELP)] = None


def depth(
    *,
    model: Annotated[str, Parameter(group=WHAT, help=MODEL_HELP)],
    weights: Annotated[str | None, Parameter(group=WHAT, help=WEIGHTS_HELP)] = None,
    options: DepthOptions = DepthOptions(),  # noqa: B008 - it is frozen
) -> None:
    """Add noise inside a model, layer by layer, and see what it does to the answer.

    At each site the vector of one token gets noise, and everything after it is
    the model's own. A map of features has a vector for each of its pixels.

      jostle depth --model hf:my-language-model --site mlp --plot depth.svg
        --prompt "Once upon a time, there was a" --response kl

      jostle depth --model zoo:vit-simple:image_size=28,channels=1
        --weights vit.safetensors --data mnist-5000 --site "blocks.*.mlp"
    """
    specs = model_specs([model])
    files = weight_files([] if weights is None else [weights], specs)
    if (options.head is None) == (options.site == "head"):
        raise UsageError("give --head NUMBER with --site head, and only with it")
    check_plot(options.plot)
    check_files(options, list(files.values()), {"--plot": options.plot})
    from jostle.cli.prompts import response_for
    from jostle.cli.subject import load_models, plan_of, read_subject
    from jostle.estimates.depth import depth as measure_depth
    from jostle.sampling import DefaultPlan

    asked = plan_of(options)
    plan = None if isinstance(asked, DefaultPlan) and options.max_passes is None else asked
    models, _ = load_models(specs, files, options.seed)
    subject = read_subject(options, models, labelled=False, tokens="whole")
    ((name, network),) = subject.models.items()
    found = measure_depth(
        network, subject.inputs, site=options.site, head=options.head, std=options.std, relative=not options.absolute,
        response=response_for(options.response, subject.loaded), plan=plan, level=options.level, seed=options.seed,
        batch_size=options.batch_size, device=options.device, progress=not options.quiet, name=name,
    )  # fmt: skip
    show(found, subject.notes, options)
    if options.plot is not None:
        write_plot(found, options.plot, options)
