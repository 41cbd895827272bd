"""``certify``: a radius around each input within which the smoothed prediction provably stays.

Randomised smoothing (Cohen, Rosenfeld and Kolter 2019, arXiv 1902.02918): g(x) is the class that f predicts most often
under x + N(0, std^2 I). If the probability of that class is at least p > 1/2, then g is the same for all x + delta with
||delta||_2 < std * Phi^-1(p). The bound p comes from counts of draws.
"""

import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import UsageError
from jostle.base.estimate import Estimate, Interval, in_seconds, provenance
from jostle.base.files import write_text
from jostle.base.progress import State
from jostle.base.table import Row, Tabular
from jostle.estimates.certainty import Certainty, find_certainty
from jostle.estimates.clean import clean_outputs, doubts, predictions, read_labels
from jostle.estimates.request import Model, Request
from jostle.estimates.result import MeasureSettings
from jostle.intervals.fixed import clopper_pearson
from jostle.perturbations import GaussianNoise
from jostle.responses import Response, logits_of
from jostle.sampling import Grid, TrialEvaluation, Trials
from jostle.sampling.plans import Batching
from jostle.tokens import Embeddings, TokenView, Whole

ABSTAINED = -1
_ARRAYS: dict[str, Any] = {  # one number for each input
    "classes": np.int64, "radii": np.float64, "chances": np.float64, "predictions": np.int64, "flips": np.float64,
    "doubts": np.float64,
}  # fmt: skip
_AT_ONCE = 4096  # draws between two lines of progress
_MOST = 10**7  # draws of an input, which are in memory together


def certify(
    model: Model,
    inputs: Any,
    *,
    std: float,
    draws: int = 1000,
    selection: int = 100,
    alpha: float = 0.001,
    tokens: TokenView | str = "whole",
    seed: int = 0,
    batch_size: int | None = None,
    device: str | None = None,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> "Certificates":
    """The class that each input has under Gaussian noise on all of it, and how far that class provably reaches.

    For each input ``selection`` draws guess the class c, and ``draws`` further ones bound its probability from below:
    p = the lower end of a one-sided Clopper-Pearson interval of level 1 - alpha. If p > 1/2 the smoothed prediction is
    c within radius std * Phi^-1(p), otherwise it abstains. The statement about one input is wrong with probability at
    most alpha. A radius is for the *smoothed* prediction g, not for f itself.

    >>> import torch, jostle
    >>> found = jostle.certify(lambda x: x[:, 0], torch.tensor([[1.0, 5.0], [-0.3, 2.0]]), std=0.5, draws=10_000)
    >>> found.classes.tolist(), found.radii.round(2).tolist()  # the exact radii are 1 and 0.3
    ([1, 0], [0.95, 0.27])

    Arguments:
        model: an ``nn.Module`` (put in eval mode and put back) or any callable from a batch to outputs.
        inputs: as for ``measure``.
        std: of the noise, above 0; larger noise can prove larger radii, and blurs more.
        draws: that bound the probability: no radius is above std * Phi^-1(alpha^(1 / draws)).
        selection: draws that guess the class.
        alpha: error of each statement.
        tokens: ``Whole()``, or for texts ``Embeddings()``: the radius is then in the space of all embedded tokens.
        seed, batch_size, device, progress, name: as for ``measure``.
    """
    checks.text("name", name)
    noise = check_certify(std, draws, selection, alpha)
    request = Request.build(
        tokens=tokens, perturbation=noise, plan=Grid(1), seed=seed, batch_size=batch_size, device=device
    )
    return run_certify(request, model, inputs, draws, selection, alpha, progress, name)


def check_certify(std: float, draws: int, selection: int, alpha: float) -> GaussianNoise:
    """The noise, if all numbers can be used."""
    checks.whole("draws", draws, least=1, most=_MOST)
    checks.whole("selection", selection, least=1, most=_MOST)
    checks.number("alpha", alpha, above=0, below=0.5)
    return GaussianNoise(checks.number("std", std, above=0))


def run_certify(
    request: Request,
    model: Model,
    inputs: Any,
    draws: int,
    selection: int,
    alpha: float,
    progress: progress_bar.Progress = False,
    name: str = "model",
) -> "Certificates":
    """What ``certify`` returns, for a request whose perturbation is Gaussian noise; all tokens get it."""
    started = time.perf_counter()
    if isinstance(request.tokens, Embeddings):
        request = replace(request, tokens=replace(request.tokens, whole=True))
    elif not isinstance(request.tokens, Whole):
        raise UsageError(
            f"tokens={request.tokens.describe()} of certify: the radius is that of the whole input; use Whole() or, "
            "for texts, Embeddings()"
        )
    request = replace(request, plan=Grid(1))
    assert isinstance(request.perturbation, GaussianNoise)
    std = request.perturbation.std
    evaluation = replace(request, response=PredictedClass()).prepare({name: model}, inputs)
    function = evaluation.functions[0]
    report = progress_bar.reporter(progress, name)
    outputs = clean_outputs(function, Batching(evaluation.inputs, request.batch_size))
    said = predictions(logits_of(outputs)).numpy()
    with function.evaluating():
        evaluation.check()
        guesses, votes, flips = _count(evaluation, said, selection, draws, report)
    report.close()
    chances = np.asarray([special.betaincinv(v, draws - v + 1, alpha) if v > 0 else 0.0 for v in votes.tolist()])
    is_sure = chances > 0.5
    radii = np.where(is_sure, std * special.ndtri(np.where(is_sure, chances, 0.5)), 0.0)
    return Certificates(
        name=name,
        classes=np.where(is_sure, guesses, ABSTAINED),
        radii=radii,
        chances=chances,
        predictions=said,
        flips=flips,
        doubts=doubts(outputs),
        std=std,
        draws=draws,
        selection=selection,
        alpha=alpha,
        settings=request.settings(evaluation.inputs),
        passes=function.passes,
        seconds=time.perf_counter() - started,
        provenance=provenance(),
        nonfinite=int(evaluation.nonfinite.sum()),
    )


@dataclass(frozen=True)
class PredictedClass(Response):
    """The predicted class itself, as a number, whatever the clean prediction is."""

    name: ClassVar[str] = "predicted-class"
    reads_ranks: ClassVar[bool] = True

    def reference(self, outputs: Tensor) -> Tensor:
        return torch.zeros(len(logits_of(outputs)), 1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:  # noqa: ARG002
        return predictions(outputs).double()


def _count(
    evaluation: TrialEvaluation,
    said: NDArray[np.int64],
    selection: int,
    draws: int,
    report: progress_bar.Reporter,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The guessed class of each input, how many of the other draws have it, and the share that is not what was said.

    A NaN output counts for no class, and as a change.
    """
    count, each = len(evaluation.inputs), selection + draws
    guesses, votes, flips = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), np.zeros(count)
    step = max(1, _AT_ONCE // each)
    for start in range(0, count, step):
        chosen = np.arange(start, min(start + step, count))
        owner = np.repeat(chosen, each)
        trials = Trials(owner, np.zeros_like(owner), np.tile(np.arange(each), len(chosen)))
        seen = evaluation.changes(trials)[0].reshape(len(chosen), each)
        flips[chosen] = (seen != said[chosen, None]).mean(axis=1)
        for row, classes in zip(chosen.tolist(), seen, strict=True):
            first = classes[:selection][np.isfinite(classes[:selection])]
            if len(first):
                values, times = np.unique(first, return_counts=True)
                guesses[row] = int(values[times.argmax()])
                votes[row] = int((classes[selection:] == guesses[row]).sum())
        report(State((start + len(chosen)) / count, evaluation.passes, f"{start + len(chosen):,} of {count:,} inputs"))
    return guesses, votes, flips


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificates(Tabular):
    """For each input the smoothed prediction and its certified radius.

    Arguments:
        name: of the model.
        classes: (N,) the smoothed prediction; -1 where it abstains.
        radii: (N,) in units of the inputs, L2; 0 where it abstains.
        chances: (N,) the lower bounds of the probability of the guessed class.
        predictions: (N,) what the model predicts without noise.
        flips: (N,) the share of all draws in which it predicts something else.
        doubts: (N,) 1 - its largest probability without noise.
        std, draws, selection, alpha: as for ``certify``.
        settings, passes, seconds, provenance: as for a ``Measurement``.
        nonfinite: draws that the model answered with NaN or infinity; they count for no class, and as changes.
    """

    name: str
    classes: NDArray[np.int64] = field(repr=False)
    radii: NDArray[np.float64] = field(repr=False)
    chances: NDArray[np.float64] = field(repr=False)
    predictions: NDArray[np.int64] = field(repr=False)
    flips: NDArray[np.float64] = field(repr=False)
    doubts: NDArray[np.float64] = field(repr=False)
    std: float
    draws: int
    selection: int
    alpha: float
    settings: MeasureSettings = field(repr=False)
    passes: int
    seconds: float
    provenance: dict[str, str] = field(repr=False)
    nonfinite: int = 0

    kind: ClassVar[str] = "jostle/certificates"
    version: ClassVar[int] = 2
    tables: ClassVar[tuple[str, ...]] = ("result", "inputs")

    @property
    def abstained(self) -> int:
        """How many inputs have no certified prediction."""
        return int((self.classes == ABSTAINED).sum())

    @property
    def largest(self) -> float:
        """The largest radius that so many draws can prove, if all of them agree; 0 if they are too few for any."""
        return self.std * max(0.0, float(special.ndtri(self.alpha ** (1 / self.draws))))

    def share(self, radius: float, labels: Any = None, level: float = 0.95) -> Estimate:
        """The share of inputs that are certified at this radius; with ``labels``, certified and right.

        The interval is for the population that the inputs came from (Clopper-Pearson over inputs).
        """
        found = (self.radii > radius) | ((self.radii == radius) & (self.classes != ABSTAINED))
        if labels is not None:
            found = found & (self.classes == self._right(labels))
        low, high = (float(end) for end in clopper_pearson(found.sum(), len(found), checks.level(level)))
        return Estimate(float(found.mean()), Interval(low, high, level, "population", "Clopper-Pearson"))

    def certainty(self, labels: Any, level: float = 0.95) -> Certainty:
        """Whether predictions that flip under the same draws are those that are wrong, as ``measure(labels=...)`` does.

        Arguments:
            labels: (N,) the right classes.
            level: of the intervals.
        """
        is_wrong = self.predictions != self._right(labels)
        return find_certainty(self.flips, is_wrong, self.doubts, checks.level(level), self.draws + self.selection)

    def _right(self, labels: Any) -> NDArray[np.int64]:
        known = max(int(np.max(self.classes)), int(np.max(self.predictions)), int(torch.as_tensor(labels).max()), 1) + 1
        right: NDArray[np.int64] = read_labels(labels, len(self.classes), known).numpy()
        return right

    def __str__(self) -> str:
        count = len(self.classes)
        lines = [
            f"{self.name}: smoothed by noise of std {self.std:g}, {count - self.abstained:,} of {count:,} inputs have "
            f"a certified prediction, {self.abstained:,} abstain",
            f"  flips: {float(self.flips.mean()):.1%} of draws change the prediction",
            f"  radius: median {float(np.median(self.radii)):.4g}, largest {float(self.radii.max()):.4g} (at most "
            f"{self.largest:.4g} with {self.draws:,} draws)",
        ]
        for radius, one in self._shares().items():
            lines.append(f"  at radius {radius:<8.4g} {one.value:.1%}   [{one.low:.3f}, {one.high:.3f}]")
        lines.append(
            f"  each statement holds with probability {1 - self.alpha:g}; {self.passes:,} passes, "
            f"{in_seconds(self.seconds)}"
        )
        if self.nonfinite:
            lines.append(
                f"  warning: {self.nonfinite:,} of {count * (self.draws + self.selection):,} draws were answered with "
                "NaN or infinity; they count as changes"
            )
        return "\n".join(lines)

    def _shares(self) -> dict[float, Estimate]:
        """The share of inputs that are certified at radii that this many draws can prove."""
        radii = (radius * self.std for radius in (0.25, 0.5, 1.0, 2.0))
        return {radius: self.share(radius) for radius in radii if radius <= self.largest}  # none if it is 0

    def rows(self, of: str = "result") -> list[Row]:
        """The share of certified inputs by radius; or a row for each input, where a bound has no interval."""
        if of == "result":
            return [one.row(model=self.name, radius=radius) for radius, one in self._shares().items()]
        names = ("class", "radius", "chance_at_least", "prediction", "flips", "doubt")
        columns = zip(*(getattr(self, key).tolist() for key in _ARRAYS), strict=True)
        return [
            {"model": self.name, "input": index, **dict(zip(names, row, strict=True))}
            for index, row in enumerate(columns)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        same = ("name", "std", "draws", "selection", "alpha", "passes", "nonfinite", "provenance")
        arrays = {key: getattr(self, key).tolist() for key in _ARRAYS}
        named = {key: getattr(self, key) for key in same}
        kept = {"settings": asdict(self.settings), "seconds": round(self.seconds, 3)}
        return {"kind": self.kind, "version": self.version, **named, **kept, **arrays}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Certificates":
        """What ``to_dict`` wrote."""
        same = ("name", "std", "draws", "selection", "alpha", "passes", "provenance", "seconds")
        arrays: dict[str, Any] = {key: np.asarray(record[key], dtype=kind) for key, kind in _ARRAYS.items()}
        settings = MeasureSettings(**record["settings"])
        if any(part.shape != (settings.num_inputs,) for part in arrays.values()):
            raise ValueError(f"{', '.join(arrays)} or settings.num_inputs, which do not fit each other")
        return cls(
            **arrays,
            settings=settings,
            **{key: record[key] for key in same},
            nonfinite=record.get("nonfinite", 0),
        )

    def save(self, path: str | Path) -> None:
        """Write to a JSON file, whole or not at all; ``jostle.load`` reads it."""
        write_text(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
