"""What was measured of one network along its training.

All measures of networks along their training, from the weights that were kept, for all networks at once.

    train_loss, test_loss            cross-entropy on the pairs trained on and on the others, after the epoch
    train_accuracy, test_accuracy    share of right answers; nothing is smoothed
    unmirrored_accuracy              the same for test pairs (a, b) of which (b, a) was not trained on either (only
                                     where a and b can be exchanged), of which a network that knows no more than
                                     that they can be has none
    joint_sensitivity                flips under noise in both numbers, the measure of paper 1's code
    sensitivity                      flips under noise in one number, Eq. 2 of paper 1
    replacement_sensitivity          flips when one number becomes another, exactly
    weight_norm                      square root of the sum of squares of all weights
    restricted_loss, excluded_loss   with the key frequencies of the end only, and without them (addition, subtraction)

All but the two under noise are exact, over all pairs. Sensitivities are on training pairs, as in the paper.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.progress import Progress, State, reporter
from jostle.base.registry import unknown_name
from jostle_papers.p2403_06925.grokking import fourier
from jostle_papers.p2403_06925.grokking.layout import Layout
from jostle_papers.p2403_06925.grokking.noise import Noise, flip_rates
from jostle_papers.p2403_06925.grokking.passes import Pairs, cross_entropy_, logits_of
from jostle_papers.p2403_06925.grokking.replacement import replacement_sensitivity
from jostle_papers.p2403_06925.grokking.tables import Tables, tables
from jostle_papers.p2403_06925.grokking.tasks import Task
from jostle_papers.p2403_06925.grokking.training import Run


@dataclass(frozen=True)
class Trajectory:
    """Curves over epochs of one network.

    Arguments:
        seed: of the network.
        epochs: (points,), increasing.
        curves: for each measure as many values; what they are is in ``jostle_papers.p2403_06925.grokking.course``.
        frequencies: key frequencies at the end, the strongest first; empty if the task has none.
    """

    seed: int
    epochs: tuple[int, ...]
    curves: Mapping[str, tuple[float, ...]] = field(repr=False)
    frequencies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(after <= before for before, after in zip(self.epochs, self.epochs[1:], strict=False)):
            raise UsageError(f"epochs of a trajectory must increase, got {self.epochs}")
        for name, values in self.curves.items():
            if len(values) != len(self.epochs):
                raise UsageError(f"curve {name} has {len(values)} values at {len(self.epochs)} epochs")

    def curve(self, name: str) -> tuple[float, ...]:
        """One measure; an unknown one answers with near matches."""
        if name not in self.curves:
            raise unknown_name("curve", name, self.curves)
        return self.curves[name]

    def at(self, name: str, epoch: int) -> float:
        """One measure at the last epoch measured up to ``epoch``."""
        before = [index for index, each in enumerate(self.epochs) if each <= epoch]
        if not before:
            raise UsageError(f"epoch={epoch} is before the first that was measured, {self.epochs[0]}")
        return self.curve(name)[before[-1]]

    def first(self, name: str, least: float) -> int | None:
        """The first epoch at which a measure is at least so large; None if it never is."""
        return next((epoch for epoch, value in zip(self.epochs, self.curve(name), strict=True) if value >= least), None)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary, for JSON."""
        return {
            "seed": self.seed,
            "epochs": list(self.epochs),
            "curves": {name: list(values) for name, values in self.curves.items()},
            "frequencies": list(self.frequencies),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Trajectory":
        """The trajectory that ``to_dict`` wrote."""
        curves: dict[str, Sequence[float]] = record["curves"]
        return cls(
            record["seed"],
            tuple(record["epochs"]),
            {name: tuple(values) for name, values in curves.items()},
            tuple(record["frequencies"]),
        )


Measures = dict[str, Tensor]  # each (networks,)


def follow(run: Run, *, std: float = 0.1, draws: int = 1, progress: Progress = False) -> list[Trajectory]:
    """Measure all networks of ``run`` at every epoch of which it has the weights.

    Arguments:
        run: from ``train``.
        std: of the noise in each number of an embedding.
        draws: of noise for each pair.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
    """
    observer = Observer(run, std, draws)
    points: list[Measures] = []
    with contextlib.closing(reporter(progress, f"measure {run.task.describe()}")) as report:
        for index, epoch in enumerate(run.epochs):
            points.append(observer.measures(run.weights(epoch)))
            shown = ", ".join(f"{value:.2f}" for value in points[-1]["test_accuracy"].tolist())
            report(State((index + 1) / len(run.epochs), epoch, f"test accuracy {shown}", "epochs"))
    return [
        Trajectory(
            seed,
            run.epochs,
            {name: tuple(float(point[name][network]) for point in points) for name in points[0]},
            observer.frequencies[network] if observer.frequencies else (),
        )
        for network, seed in enumerate(run.seeds)
    ]


class Observer:
    """What does not change from epoch to epoch: pairs, splits, noise and the frequencies of the end.

    Arguments:
        run: whose networks are measured.
        std, draws: of the noise.
    """

    def __init__(self, run: Run, std: float, draws: int) -> None:
        task, design = run.task, run.design
        self._task, self._design, self._layout = task, design, Layout(task, design)
        self._trained = run.trained_rows().sort(dim=1).values  # (networks, count)
        self._subsets = _subsets(task, self._trained)
        everything = torch.arange(len(task.pairs())).expand(len(run.seeds), -1)
        self._all = Pairs.of(task, everything, design.heads)
        self._some = Pairs.of(task, self._trained, design.heads)
        last = run.weights(run.epochs[-1])
        self._noise = Noise.of(self._trained, run.seeds, self._layout.views(last)["positions"], std, draws)
        self.frequencies: list[tuple[int, ...]] = []
        if task.cycle is not None:
            logits = logits_of(self._tables(last), self._all)
            self.frequencies = fourier.key_frequencies(fourier.answer_means(logits, task))

    @torch.no_grad()
    def measures(self, weights: Tensor) -> Measures:
        """Every measure of every network with these weights (networks, columns)."""
        made = self._tables(weights)
        logits = logits_of(made, self._all)  # (networks, all, tokens)
        predicted = logits.argmax(dim=2)
        together, alone = flip_rates(made, self._layout.views(weights), self._design, self._some, self._noise)
        found = _scores(logits, predicted, self._all.labels, self._subsets)
        found |= {
            "joint_sensitivity": together,
            "sensitivity": alone,
            "replacement_sensitivity": replacement_sensitivity(predicted, self._task, self._trained),
            "weight_norm": weights.double().square().sum(dim=1).sqrt(),
        }
        if self.frequencies:
            means = fourier.answer_means(logits, self._task)
            found["restricted_loss"] = fourier.restricted_loss(means, self._task, self.frequencies)
            found["excluded_loss"] = fourier.excluded_loss(logits, means, self._task, self.frequencies, self._trained)
        return found

    @torch.no_grad()
    def _tables(self, weights: Tensor) -> Tables:
        return tables(self._layout.views(weights), self._design)


def _subsets(task: Task, trained: Tensor) -> dict[str, Tensor]:
    """Which pairs count for each accuracy, (networks, all) true or false."""
    networks, count = len(trained), len(task.pairs())
    train = torch.zeros(networks, count, dtype=torch.bool).scatter_(1, trained, True)
    subsets = {"train": train, "test": ~train}
    if task.is_commutative:
        first, second = task.pairs().T
        mirror = second * task.numbers + first  # the row of (b, a)
        subsets["unmirrored"] = ~train & ~train[:, mirror]
    return subsets


def _scores(logits: Tensor, predicted: Tensor, labels: Tensor, subsets: Mapping[str, Tensor]) -> Measures:
    """Losses and accuracies over subsets of all pairs."""
    losses = cross_entropy_(logits.clone(), labels)[0].double()
    right = (predicted == labels).double()
    found = {}
    for name, chosen in subsets.items():
        counted = chosen.sum(dim=1).clamp_min(1)
        found[f"{name}_accuracy"] = (right * chosen).sum(dim=1) / counted
        if name != "unmirrored":
            found[f"{name}_loss"] = (losses * chosen).sum(dim=1) / counted
    return found
