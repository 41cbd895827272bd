"""``jostle try`` and ``jostle play``: a first result, and a bench in the browser."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from jostle.base.errors import UsageError
from jostle.cli.options import (
    DATA_HELP,
    MODELS_HELP,
    WEIGHTS_HELP,
    WHAT,
    Force,
    MeasureOptions,
    model_specs,
    weight_files,
    whole,
)
from jostle.cli.output import say

OUTPUT = Group("Running and output", sort_key=2)
NO_OPEN_HELP = "Do not open a browser."
SAMPLES = {"vit": "sample:vit", "mlp": "sample:mlp", "cnn": "sample:cnn"}
_SAMPLE_DATA = "drawn-digits"
_LOCAL = "127.0.0.1"
_MOST_INPUTS = 24
_TEXTS = (
    "The food was good, but the service was not.",
    "I would not say that this film is bad.",
    "Once upon a time there was a little dog who",
)


def try_it(
    *,
    report: Annotated[Path, Parameter(group=OUTPUT, help="The page that is written.")] = Path("jostle-try.html"),
    no_open: Annotated[bool, Parameter(negative="", show_default=False, group=OUTPUT, help=NO_OPEN_HELP)] = False,
    force: Annotated[Force, Parameter(group=OUTPUT)] = False,
) -> None:
    """Get a first result in under a minute, without any download.

    Adds noise to one patch of digits that jostle draws, and asks three small
    networks that come with jostle: a vision transformer, an MLP and a CNN.
    Prints how often their predictions flip and opens a page that shows where.

      jostle try
    """
    from jostle.cli.measure import run_measurement

    options = MeasureOptions(
        data=_SAMPLE_DATA, split="test", tokens="patches:4", perturbation="gaussian-noise:std=5", half_width=0.005,
        report=report, force=force, examples=6, example_draws=20,
    )  # fmt: skip
    run_measurement(SAMPLES, {}, options)
    say("  the same with your own model: jostle measure --help; in the browser: jostle play")
    if not no_open:
        _open(report.resolve().as_uri())


def play(
    *,
    model: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=MODELS_HELP)] = None,
    weights: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=WEIGHTS_HELP)] = None,
    data: Annotated[str | None, Parameter(group=WHAT, help=f"Inputs to begin with. {DATA_HELP}")] = None,
    split: Annotated[str, Parameter(group=WHAT, help="Which part of a named dataset.")] = "test",
    patch: Annotated[int, Parameter(converter=whole, group=WHAT, help="Height and width of a patch of images.")] = 4,
    text: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help="A text to begin with.")] = None,
    tokenizer: Annotated[str | None, Parameter(group=WHAT, help="For models of texts without their own.")] = None,
    port: Annotated[int, Parameter(converter=whole, group=OUTPUT, help="0 for any that is free.")] = 0,
    no_open: Annotated[bool, Parameter(negative="", show_default=False, group=OUTPUT, help=NO_OPEN_HELP)] = False,
) -> None:
    """Play with models in the browser: press a patch or a word, and watch.

    Opens a page on this machine. Without a model it shows the small networks
    that come with jostle. Ctrl-C ends it.

      jostle play
      jostle play --model py:my_model.py:make --data inputs.npy --patch 4
      jostle play --model hf:my-classifier --text "I liked it a lot."
    """
    specs = model_specs(model) if model else {name: SAMPLES[name] for name in ("vit", "cnn")}
    files = weight_files(weights or [], specs)
    try:
        import uvicorn

        from jostle.play.server import make_app, make_token
    except ModuleNotFoundError as error:
        raise UsageError(f'jostle play needs the package {error.name}: pip install "jostle[play]"') from None
    from jostle.cli.subject import load_models
    from jostle.play.bench import make_bench

    models, _ = load_models(specs, files, 0)
    inputs = _inputs(models, data if data is not None or model else _SAMPLE_DATA, split, text)
    bench = make_bench(models, inputs, patch=patch, tokenizer=tokenizer)
    token, listening = make_token(), _listen(port)
    name = f"{_LOCAL}:{listening.getsockname()[1]}"
    app = make_app(bench, token, (name, name.replace(_LOCAL, "localhost")))
    address = f"http://{name}/{token}/"
    say(f"jostle plays at {address}\n  Ctrl-C ends it")
    if not no_open:
        _open(address)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1))
    server.run(sockets=[listening])


def _inputs(models: dict[str, Any], data: str | None, split: str, text: list[str] | None) -> Any:
    """Images, as a ``Dataset`` if their classes are known, or texts."""
    import torch

    from jostle.cli.subject import load_inputs, match_inputs, unwrap
    from jostle.data import Dataset, TextDataset, load, names
    from jostle.integrations import TextNetwork
    from jostle.models.text_model import TextModel

    if data is None and any(isinstance(one, TextNetwork | TextModel) for one in models.values()):
        return text or _TEXTS
    if data is None:
        raise UsageError("--data is missing: which images to begin with? For example --data inputs.npy, or images:DIR")
    if data in names("image"):
        return load(data, split=split, limit=_MOST_INPUTS)
    found, labels = load_inputs(data, split if data in names("text") else "train", _MOST_INPUTS)
    if isinstance(found, TextDataset):
        return [*(text or ()), *(" ".join(texts) for texts in found.texts)]
    images = match_inputs(found, unwrap(models).values())
    if not isinstance(images, torch.Tensor) or images.dim() != 4:
        raise UsageError(f"--data {data}: images of shape (N, channels, height, width) are expected")
    return images if labels is None else Dataset(data, images, labels, int(labels.max()) + 1)


def _listen(port: int) -> Any:
    """A socket of this machine that nobody else can reach."""
    import socket

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_LOCAL, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(f"--port {port} cannot be used: {getattr(error, 'strerror', None) or error}") from None
    return listening


def _open(address: str) -> None:
    """Open a page in the browser, if there is a screen."""
    import webbrowser

    if sys.stdout.isatty():
        webbrowser.open(address)
