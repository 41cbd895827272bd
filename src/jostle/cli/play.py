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
PATCH_HELP = "Height and width of a patch of images. Default: such that a row has at most 14."
SAMPLES = {"vit": "sample:vit", "mlp": "sample:mlp", "cnn": "sample:cnn"}
_SAMPLE_DATA = "drawn-digits"
_LOCAL = "127.0.0.1"
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")  # without one a browser would be one of texts, in this terminal
_MOST_INPUTS, _CLOSE = 24, 8  # inputs to begin with, and how many of the digits that jostle draws are close calls
_LOOKED_AT = 400  # digits among which they are sought
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
    address = report.resolve().as_uri()
    opened = not no_open and _open(address)
    say(f"  {'opened' if opened else 'open'} {address}")
    say("  the same with your own model: jostle measure --help; press patches in the browser: jostle play")


def play(
    *,
    model: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=MODELS_HELP)] = None,
    weights: Annotated[list[str] | None, Parameter(group=WHAT, negative="", help=WEIGHTS_HELP)] = None,
    data: Annotated[str | None, Parameter(group=WHAT, help=f"Inputs to begin with. {DATA_HELP}")] = None,
    split: Annotated[str, Parameter(group=WHAT, help="Which part of a named dataset.")] = "test",
    patch: Annotated[int | None, Parameter(converter=whole, group=WHAT, help=PATCH_HELP)] = None,
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
    from jostle.play.kinds import make_bench

    models, _ = load_models(specs, files, 0)
    inputs = _inputs(models, data, split, text)
    bench = make_bench(models, inputs, patch=patch, tokenizer=tokenizer)
    bench.describe(next(iter(bench.names())))  # what cannot be played with is said here, and not in the browser
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
    from jostle.data.image_folder import ImageFiles
    from jostle.integrations import TextNetwork
    from jostle.models.text_model import TextModel

    if data is None and any(isinstance(one, TextNetwork | TextModel) for one in models.values()):
        return text or _TEXTS
    if text:
        raise UsageError("--text is for models of texts, and these are none: give images as --data")
    if data is None:
        return drawn_digits(models)
    if data in names("image"):
        return load(data, split=split, limit=_MOST_INPUTS)
    found, labels = load_inputs(data, split if data in names("text") else "train", _MOST_INPUTS)
    if isinstance(found, TextDataset):
        return [*(text or ()), *(" ".join(texts) for texts in found.texts)]
    images = match_inputs(found, unwrap(models).values())
    if isinstance(images, ImageFiles):
        return images
    if not isinstance(images, torch.Tensor) or images.dim() != 4:
        raise UsageError(f"--data {data}: images of shape (N, channels, height, width) are expected")
    return images if labels is None else Dataset(data, images, labels, int(labels.max()) + 1)


def drawn_digits(models: dict[str, Any]) -> Any:
    """Digits that jostle draws, as the models take them: close calls first, then digits as they come."""
    from dataclasses import replace

    import numpy as np
    import torch
    from PIL import Image

    from jostle.cli.subject import match_inputs
    from jostle.data import load
    from jostle.integrations import ImageClassifier

    found = load(_SAMPLE_DATA, split="test", limit=_LOOKED_AT)
    digits = replace(found, inputs=match_inputs(found.inputs, models.values()))
    made = [one.preprocessing for one in models.values() if isinstance(one, ImageClassifier)]
    if made and made[0] is not None:
        for one in models.values():
            if isinstance(one, ImageClassifier):
                one.accept(made[0])
        pixels = (127.5 * (digits.inputs[:_MOST_INPUTS, 0].clamp(-1, 1) + 1)).to(torch.uint8).numpy()
        return torch.stack([made[0].pixels(Image.fromarray(image)) for image in pixels])
    try:
        with torch.inference_mode():
            outputs = [torch.as_tensor(model(digits.inputs)) for model in models.values()]
        best = torch.stack([output.double().softmax(dim=1).topk(2, dim=1).values for output in outputs])
    except Exception as error:  # a model of any kind may refuse digits in any way
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            "--data is missing: which images to begin with? For example --data inputs.npy, or images:DIR (the digits "
            f"that jostle draws, of shape 1 x 28 x 28, are not for this model: {reason})"
        ) from None
    order = torch.argsort((best[..., 0] - best[..., 1]).amin(dim=0)).numpy()
    return digits.take(np.concatenate([order[:_CLOSE], np.sort(order[_CLOSE:_MOST_INPUTS])]))


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


def _open(address: str) -> bool:
    """Open a page in a browser with windows, if there is a screen; False if nothing was opened."""
    import os
    import webbrowser

    has_screen = sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in _SCREENS)
    if not sys.stdout.isatty() or not has_screen:
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
