"""All measures of networks along their training, from the weights that were kept, for all networks at once.

    train_loss, test_loss            cross-entropy on the pairs trained on and on the others, after the epoch
    train_accuracy, test_accuracy    share of right answers; nothing is smoothed
    unmirrored_accuracy              the same for test pairs (a, b) of which (b, a) was not trained on either (only
                                     where a and b can be exchanged): a network that knows only that they can be
                                     exchanged gets none of these right
    joint_sensitivity                flips under noise in both numbers, the measure of paper 1's code
    sensitivity                      flips under noise in one number, Eq. 2 of paper 1
    replacement_sensitivity          flips when one number becomes another, exactly
    weight_norm                      square root of the sum of squares of all weights
    restricted_loss, excluded_loss   with the key frequencies of the end only, and without them (addition, subtraction)

All but the two under noise are exact, over all pairs. Sensitivities are on training pairs, as in the paper.
"""

import contextlib
from collections.abc import Mapping

import torch
from torch import Tensor

from jostle.base.progress import Progress, State, reporter
from jostle_papers.p2403_06925.grokking import fourier
from jostle_papers.p2403_06925.grokking.noise import EmbeddingNoise, flip_rates
from jostle_papers.p2403_06925.grokking.passes import Pairs, cross_entropy_, logits_of
from jostle_papers.p2403_06925.grokking.plain import layout_of
from jostle_papers.p2403_06925.grokking.replacement import replacement_sensitivity
from jostle_papers.p2403_06925.grokking.tables import Tables, tables
from jostle_papers.p2403_06925.grokking.tasks import GrokkingTask
from jostle_papers.p2403_06925.grokking.training import GrokkingRun
from jostle_papers.stacked.trajectory import Trajectory

Measures = dict[str, Tensor]  # each (networks,)


def follow(run: GrokkingRun, *, std: float = 0.1, draws: int = 1, progress: Progress = False) -> list[Trajectory]:
    """Measure all networks of ``run`` at every epoch of which it has the weights.

    Arguments:
        run: from ``train`` or ``load_run``.
        std: of the noise in each number of an embedding.
        draws: of noise for each pair.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
    """
    observer = GrokkingObserver(run, std, draws)
    points: list[Measures] = []
    with contextlib.closing(reporter(progress, f"measure {run.task.describe()}")) as report:
        for index, epoch in enumerate(run.epochs):
            points.append(observer.look(run.weights(epoch)))
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


class GrokkingObserver:
    """Measures networks with the same pairs, splits, noise and final frequencies at every epoch.

    Arguments:
        run: whose networks are measured.
        std, draws: of the noise.
    """

    def __init__(self, run: GrokkingRun, std: float, draws: int) -> None:
        task, design = run.task, run.design
        self._task, self._design, self._layout = task, design, layout_of(task, design)
        self._trained = run.training_rows().sort(dim=1).values  # (networks, count)
        self._subsets = _subsets(task, self._trained)
        everything = torch.arange(len(task.pairs())).expand(len(run.seeds), -1)
        self._all = Pairs.of(task, everything, design.heads)
        self._some = Pairs.of(task, self._trained, design.heads)
        last = run.weights(run.epochs[-1])
        self._noise = EmbeddingNoise.of(self._trained, run.seeds, self._layout.views(last)["positions"], std, draws)
        self.frequencies: list[tuple[int, ...]] = []
        if task.cycle is not None:
            logits = logits_of(self._tables(last), self._all)
            self.frequencies = fourier.key_frequencies(fourier.answer_means(logits, task))

    @torch.no_grad()
    def look(self, weights: Tensor, /) -> Measures:
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


def _subsets(task: GrokkingTask, trained: Tensor) -> dict[str, Tensor]:
    """The pairs that count for each accuracy, (networks, all) true or false."""
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
