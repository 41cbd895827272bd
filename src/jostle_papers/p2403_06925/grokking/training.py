"""Several networks trained at once on one task, each on pairs of its own, with their weights kept along the way."""

import bisect
import dataclasses
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jostle.base import checks, specs
from jostle.base.errors import UsageError
from jostle.base.progress import Progress
from jostle_papers.p2403_06925.grokking.designs import NANDA, GrokkingDesign, as_design
from jostle_papers.p2403_06925.grokking.gradients import loss_and_gradient
from jostle_papers.p2403_06925.grokking.passes import Pairs
from jostle_papers.p2403_06925.grokking.plain import PlainNetwork, initial_network, layout_of
from jostle_papers.p2403_06925.grokking.tasks import TASKS, GrokkingTask, split
from jostle_papers.stacked.state import (
    StackedState,
    check_folder,
    kept_steps,
    load_settings,
    load_weights,
    save_weights,
)
from jostle_papers.stacked.training import StackedTraining, check_seeds, train_stacked


@dataclass(frozen=True)
class GrokkingRun:
    """Networks that were trained together, with their weights after some epochs.

    Arguments:
        task, design: what was trained, and how.
        seeds: one for each network.
        epochs: after which the weights were kept, from 0 to the last.
        folder: where they are.
    """

    task: GrokkingTask
    design: GrokkingDesign
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    folder: Path

    def weights(self, epoch: int) -> Tensor:
        """The weights of all networks after ``epoch``, (networks, columns of the layout)."""
        return load_weights(self.folder, epoch)

    def network(self, seed: int, epoch: int | None = None) -> PlainNetwork:
        """One network as a module, after ``epoch`` or at the end, for ``jostle.measure`` and everything else."""
        if seed not in self.seeds:
            raise UsageError(f"seed={seed} is not one of {', '.join(map(str, self.seeds))}")
        weights = self.weights(self.epochs[-1] if epoch is None else epoch)
        network = layout_of(self.task, self.design).unstack(weights, self.seeds.index(seed))
        assert isinstance(network, PlainNetwork)
        return network

    def training_rows(self) -> Tensor:
        """The pairs that each network was trained on, (networks, count), as rows of the task."""
        return torch.stack([split(self.task, self.design.train_fraction, seed)[0] for seed in self.seeds])


def train(
    task: GrokkingTask | str = "addition:modulus=113",
    design: GrokkingDesign | str = NANDA,
    *,
    seeds: Sequence[int],
    epochs: int,
    every: int = 100,
    folder: str | Path | None = None,
    checkpoint_every: int = 500,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    progress: Progress = False,
) -> GrokkingRun:
    """Train a network from each seed on the full batch, all at once, and keep the weights along the way.

    The weights of a network do not depend on which others are trained with it, up to rounding. With ``folder`` training
    that was interrupted resumes bit for bit; see ``train_stacked``.

    Arguments:
        task: e.g. ``"addition:modulus=113"``, ``"subtraction"``, ``"division"``, ``"permutations:degree=5"``.
        design: ``"nanda"``, ``"released"``, ``"mlp"`` or a ``GrokkingDesign``.
        seeds: of the first weights and of the split into pairs that are trained on and pairs that are not.
        epochs: steps on the full batch; may be raised later.
        every: epochs between the weights that are kept. Those of epochs 0, 1, 2, 5, 10, 20, 50, ... below it and of the
            last are kept too. One network of the paper's size takes 0.9 MB each time.
        folder: for state and weights; None for one that is removed with the ``GrokkingRun``.
        checkpoint_every: epochs between states.
        dtype: of weights and arithmetic.
        device: where to train.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: one line on what cannot be used as given.
        FailureError: training diverged, or a file could not be written.
    """
    task, design = specs.build(TASKS, task, "task", GrokkingTask), as_design(design)
    checks.sizes(epochs=epochs, every=every, checkpoint_every=checkpoint_every)
    seeds = check_seeds(seeds, most=2**32 - 1)
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"seeds={list(seeds)} must be different, one for each network")
    place = Path(tempfile.mkdtemp(prefix="jostle-grokking-")) if folder is None else check_folder(folder)
    run = GrokkingRun(task, design, seeds, kept_epochs(epochs, every), place)
    if folder is None:
        weakref.finalize(run, shutil.rmtree, place, ignore_errors=True)
    training = GrokkingTraining(run, every, dtype)
    train_stacked(training, folder=place, checkpoint_every=checkpoint_every, device=device, progress=progress)
    return run


def load_run(folder: str | Path) -> GrokkingRun:
    """The run of a training with this ``folder`` as far as it is, from any process, during the training or after it.

    Nothing is written. ``follow`` measures it; key frequencies are then those of the last epoch that is there.

    Raises:
        UsageError: there is no training, or it cannot be read.
    """
    place = Path(folder)
    settings = load_settings(place)
    named = [each.name for each in dataclasses.fields(GrokkingDesign)]
    fields: dict[str, Any] = {name: value for name, value in settings.items() if name in named}
    design = GrokkingDesign(**fields | {"betas": tuple(settings["betas"])})
    task = specs.build(TASKS, settings["task"], "task", GrokkingTask)
    return GrokkingRun(task, design, tuple(settings["seeds"]), kept_steps(place), place)


class GrokkingTraining(StackedTraining[StackedState]):
    """The full batch of every network, and weights kept at the epochs of a run.

    Arguments:
        run: task, design, seeds, and the epochs of which the weights are kept.
        every: as in ``train``.
        dtype: of weights and arithmetic.
    """

    kind, unit = StackedState, "epoch"

    def __init__(self, run: GrokkingRun, every: int, dtype: torch.dtype) -> None:
        design = run.design
        self.label, self.lr, self.weight_decay = f"train {run.task.describe()}", design.lr, design.weight_decay
        self.betas, self.eps = design.betas, design.eps
        self._run, self._every, self._dtype = run, every, dtype
        self._layout = layout_of(run.task, design)
        # Sorted, so that pairs with the same first number follow each other and find its rows in the cache.
        self._pairs = Pairs.of(run.task, run.training_rows().sort(dim=1).values, design.heads)
        self._gradient = torch.zeros(0)

    def describe(self) -> dict[str, Any]:
        run = self._run
        settings = {"task": run.task.describe(), "seeds": list(run.seeds), "every": self._every}
        design = dataclasses.asdict(run.design) | {"betas": list(run.design.betas)}
        return settings | {"dtype": str(self._dtype)} | design

    def start(self) -> StackedState:
        networks = [initial_network(self._run.task, self._run.design, seed) for seed in self._run.seeds]
        return StackedState.start(self._layout.stack(networks, self._dtype))

    def rates(self, state: StackedState) -> float:
        last = self._run.epochs[-1]
        if state.steps > last:
            raise UsageError(
                f"epochs={last}: training in {self._run.folder} is already at epoch {state.steps}; give at least that"
            )
        return self.lr if state.steps < last else 0.0

    def loss_and_gradient(self, state: StackedState) -> tuple[Tensor, Tensor]:
        if self._gradient.shape != state.weights.shape:  # before the first step
            self._gradient, self._pairs = torch.zeros_like(state.weights), self._pairs.to(state.weights.device)
        loss = loss_and_gradient(state.weights, self._pairs, self._layout, self._run.design, self._gradient)
        return loss, self._gradient

    def next_look(self, step: int) -> int | None:
        epochs = self._run.epochs
        place = bisect.bisect_right(epochs, step)
        return epochs[place] if place < len(epochs) else None

    def look(self, state: StackedState) -> None:
        """Keep the weights; ``follow`` measures them."""
        save_weights(self._run.folder, state.steps, state.weights)

    def share(self, state: StackedState) -> float:
        return state.steps / self._run.epochs[-1]

    def summary(self, state: StackedState, losses: Tensor) -> str:
        return f"loss {', '.join(f'{loss:.2e}' for loss in losses.tolist())}"


def kept_epochs(epochs: int, every: int) -> tuple[int, ...]:
    """The epochs after which weights are kept.

    >>> kept_epochs(250, 100)
    (0, 1, 2, 5, 10, 20, 50, 100, 200, 250)
    """
    early = {step * 10**power for power in range(len(str(every))) for step in (1, 2, 5)}
    kept = {0, epochs} | {epoch for epoch in early if epoch < min(every, epochs)} | set(range(every, epochs + 1, every))
    return tuple(sorted(kept))
