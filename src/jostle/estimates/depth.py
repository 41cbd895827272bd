"""``depth``: the sensitivity to noise inside a model, layer by layer.

First the call, then the ``Depth`` that it returns: a measurement for each site.
"""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import UsageError
from jostle.base.files import write_text
from jostle.base.table import Row, Tabular
from jostle.estimates.measure import measure
from jostle.estimates.request import Model, Request
from jostle.estimates.result import Measurement
from jostle.integrations.prompts import Prompts, network_of, read_prompts
from jostle.perturbations import GaussianNoise
from jostle.responses import Response
from jostle.sampling import DefaultPlan, Plan
from jostle.tokens import Embeddings, Inside
from jostle.tokens.readout import gives_labels
from jostle.tokens.sites import KINDS, as_vectors, find_sites
from jostle.tokens.sources import as_tensors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PLAN = DefaultPlan(half_width=0.02, relative=0.1, max_passes=5_000)  # for each of many sites
_ASKED = 64  # inputs whose vectors say how large they are


def depth(
    model: Model,
    inputs: Any,
    *,
    site: str = "residual",
    head: int | None = None,
    std: float = 1.0,
    relative: bool = True,
    response: Response | str = "flip",
    plan: Plan | DefaultPlan | str | None = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> "Depth":
    """How often the prediction changes when one vector inside the model is jostled, for each layer.

    At each site, one token's vector gets Gaussian noise, everything after it is the model's own, and the answer is
    compared with the clean one, as ``measure`` does. Noise of std 0 changes nothing, at any site.

    >>> import torch, jostle
    >>> model = jostle.models.create("vit-simple", image_size=8, channels=1, patch_size=4, depth=2, seed=0)
    >>> found = jostle.depth(model, torch.randn(4, 1, 8, 8), site="*.mlp", std=0.0)
    >>> [m.value for m in found]
    [0.0, 0.0]

    Arguments:
        model: an ``nn.Module``: of the zoo, of transformers, or any other.
        inputs: what ``measure`` takes; texts as prompts or token ids.
        site: ``residual`` (what each layer gives out), ``attention``, ``mlp``, ``head`` (with ``head=``), or a path or
            pattern of ``model.named_modules()``, such as ``blocks.*.mlp``.
        head: for ``site="head"``, which head of each layer.
        std: of the noise.
        relative: whether ``std`` is in units of the root mean square of the clean vectors at each site, which grow
            with depth in most networks.
        response: as for ``measure``; of token classifiers ``label-flip`` by default.
        plan: as for ``measure``, for each site; by default a half width of 0.02 for flips and of 10 % for other
            responses, or 5,000 passes.
        level, seed, batch_size, device, progress: as for ``measure``.
        name: how messages and files call the model.
    """
    checks.text("name", name)
    network, checked = network_of(model), checks.number("std", std, least=0)
    if not isinstance(site, str):
        raise checks.wrong("site", site, f"a text: {', '.join(KINDS)}, or a path or pattern of model.named_modules()")
    if (head is None) == (site == "head"):
        raise UsageError(f"site={site!r} and head={head!r}: give head= with site='head', and only with it")
    read = read_prompts(inputs, [model])
    if response == "flip" and gives_labels(network):
        response = "label-flip"
    found, skipped = list[Measurement](), dict[str, str]()
    for path in find_sites(network, site):
        try:
            view, size = _look(network, read, path, head, response, device)
            scale = (checked * size) if checks.truth("relative", relative) else checked
            found.append(
                measure(
                    network,
                    read,
                    tokens=view,
                    perturbation=GaussianNoise(float(f"{scale:.4g}")),
                    response=response,
                    plan=_PLAN if plan is None else plan,
                    level=level,
                    seed=seed,
                    batch_size=batch_size,
                    device=device,
                    progress=progress,
                    name=path,
                )
            )
        except UsageError as error:
            if "expected real numbers of shape" not in str(error):
                raise
            skipped[path] = str(error)  # e.g. a last layer that computes one token only
    if not found:
        raise UsageError(f"site={site!r}: no module gives out a vector for each token ({next(iter(skipped.values()))})")
    return Depth(name, site, found, sorted(skipped))


def _look(
    network: nn.Module, inputs: Any, path: str, head: int | None, response: Response | str, device: str | None
) -> tuple[Any, float]:
    """The view of a site, and the root mean square of what is there in clean inputs."""
    tensors = as_tensors(inputs) if not isinstance(inputs, Prompts) else inputs.inputs
    first = next(iter(tensors.values())) if tensors else None
    is_text = isinstance(inputs, Prompts) or (
        first is not None
        and not first.is_floating_point()
        and first.dim() == 2
        and hasattr(network, "get_input_embeddings")
    )
    view: Embeddings | Inside = Embeddings(module=path, head=head) if is_text else Inside(path, head=head)
    if isinstance(view, Inside):
        view = Inside(path, count=_count(network, inputs, path, head), head=head)
    squares: list[Tensor] = []

    def collect(vectors: Tensor) -> Tensor:
        squares.append(vectors.detach().double().square().mean(dim=2).flatten().cpu())
        return vectors

    request = Request.build(tokens=view, perturbation=GaussianNoise(0.0), response=response, device=device)
    function = request.prepare({path: network}, inputs).functions[0]
    with function.evaluating():
        function(function.inputs.batch(np.arange(min(_ASKED, len(function.inputs)))), collect)
    return view, float(torch.cat(squares).mean().sqrt())


def _count(network: nn.Module, inputs: Any, path: str, head: int | None) -> int:
    """How many vectors there are at a site for one input."""
    seen: list[int] = []
    module = dict(network.named_modules())[path]

    def watch(_: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        vectors = given[0] if head is not None else output[0] if isinstance(output, tuple) else output
        if isinstance(vectors, Tensor) and vectors.dim() in (2, 3, 4) and vectors.is_floating_point():
            seen.append(as_vectors(vectors).shape[1])

    request = Request.build(tokens="whole", perturbation="replace-by:0")
    function = request.prepare({path: network}, inputs).functions[0]
    with contextlib.closing(_Handle(module.register_forward_hook(watch))), function.evaluating():
        function(function.inputs.batch(np.zeros(1, dtype=np.int64)))
    if not seen:
        raise UsageError(
            f"module {path!r} gives out no vectors, expected real numbers of shape (batch, tokens, dim): give another "
            "site"
        )
    return seen[0]


class _Handle:
    """A hook that is removed when it is closed."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def close(self) -> None:
        """Remove the hook."""
        self._handle.remove()


@dataclass(frozen=True, eq=False)
class Depth(Tabular):
    """Measurements at several sites of one model, from the first layer to the last.

    Arguments:
        name: of the model.
        site: the name or pattern that was asked for.
        measurements: one for each site; their names are paths in the model.
        skipped: paths of sites without a vector for each token, as a last layer that computes one token only.
    """

    name: str
    site: str
    measurements: list[Measurement]
    skipped: list[str]

    kind: ClassVar[str] = "jostle/depth"
    version: ClassVar[int] = 1

    def __len__(self) -> int:
        return len(self.measurements)

    def __getitem__(self, number: int) -> Measurement:
        return self.measurements[number]

    def __str__(self) -> str:
        first = self.measurements[0].settings
        lines = [f"{self.name}: {first.response} with noise inside, site={self.site}"]
        width = max(len(m.name) for m in self.measurements)
        lines += [
            f"  {m.name:{width}}  {m.value:.4g}   [{m.low:.4g}, {m.high:.4g}]   {m.settings.perturbation}"
            for m in self.measurements
        ]
        passes, interval = sum(m.passes for m in self.measurements), self.measurements[0].interval
        lines.append(f"  {passes:,} passes; each interval {interval.level:.0%} for the inputs given{interval.mark}")
        lines += [f"  without a vector for each token: {', '.join(self.skipped)}"] * bool(self.skipped)
        lines += [f"  warning: {m.name}: {text}" for m in self.measurements for text in m.warnings]
        return "\n".join([*lines, *(f"  note: {text}" for text in self._notes())])

    def _notes(self) -> list[str]:
        """What should be known about the measurements, each once; the sites are named where it is not about all."""
        sites: dict[str, list[str]] = {}
        for m in self.measurements:
            for text in m.remarks:
                sites.setdefault(text, []).append(m.name)
        return [text if len(at) == len(self) else f"{', '.join(at)}: {text}" for text, at in sites.items()]

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """A row for each site, from the first layer to the last."""
        return [
            {"model": self.name, **m.row(depth=number, site=m.name), "perturbation": m.settings.perturbation}
            for number, m in enumerate(self.measurements)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        measured = [m.to_dict() for m in self.measurements]
        return {
            "kind": self.kind, "version": self.version, "name": self.name, "site": self.site,
            "measurements": measured, "skipped": self.skipped,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Depth":
        """What ``to_dict`` wrote."""
        measured = [Measurement.from_dict(one) for one in record["measurements"]]
        return cls(record["name"], record["site"], measured, record["skipped"])

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def plot(self) -> "Figure":
        """The mean change against the number of the site, with its band."""
        from jostle.figures.lines import depth_figure

        return depth_figure(self)
