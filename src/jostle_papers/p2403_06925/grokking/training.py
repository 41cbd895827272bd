"""Several networks trained at once on one task, each on pairs of its own, with their weights kept along the way."""

import contextlib
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
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Progress, Reporter, reporter
from jostle.base.progress import State as Shown
from jostle_papers.p2403_06925.grokking import storage
from jostle_papers.p2403_06925.grokking.designs import NANDA, Design, chosen
from jostle_papers.p2403_06925.grokking.gradients import loss_and_gradient
from jostle_papers.p2403_06925.grokking.layout import Layout
from jostle_papers.p2403_06925.grokking.passes import Pairs
from jostle_papers.p2403_06925.grokking.plain import PlainNetwork, initial_network
from jostle_papers.p2403_06925.grokking.tasks import TASKS, Task, split
from jostle_papers.stacked.adamw import StackedAdamW


@dataclass(frozen=True)
class Run:
    """Networks that were trained together, with their weights after some epochs.

    Arguments:
        task, design: what was trained, and how.
        seeds: one a network.
        epochs: after which the weights are there, from 0 to the last.
        folder: where they are.
    """

    task: Task
    design: Design
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    folder: Path

    def weights(self, epoch: int) -> Tensor:
        """The weights of all networks after ``epoch``, (networks, columns of the layout)."""
        return storage.load_weights(self.folder, epoch)

    def network(self, seed: int, epoch: int | None = None) -> PlainNetwork:
        """One network as a module, after ``epoch`` or at the end; made for ``jostle.measure`` and everything else."""
        if seed not in self.seeds:
            raise UsageError(f"seed={seed} is not one of {', '.join(map(str, self.seeds))}")
        weights = self.weights(self.epochs[-1] if epoch is None else epoch)
        return Layout(self.task, self.design).unstack(weights, self.seeds.index(seed))

    def trained_rows(self) -> Tensor:
        """Which pairs each network was trained on, (networks, count), as rows of the task."""
        return trained_rows(self.task, self.design, self.seeds)


def train(
    task: Task | str = "addition:modulus=113",
    design: Design | str = NANDA,
    *,
    seeds: Sequence[int],
    epochs: int,
    every: int = 100,
    folder: str | Path | None = None,
    checkpoint_every: int = 500,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    progress: Progress = False,
) -> Run:
    """Train a network from each seed on the full batch, all at once, and keep the weights along the way.

    A network's weights do not depend on which others are trained with it, up to rounding. With ``folder`` the state is
    written there every ``checkpoint_every`` epochs; called again, training goes on from it and ends with the same
    weights, bit for bit, as if it had not been interrupted (same machine, torch and number of threads).

    Arguments:
        task: e.g. ``"addition:modulus=113"``, ``"subtraction"``, ``"division"``, ``"permutations:degree=5"``.
        design: ``"nanda"``, ``"released"``, ``"mlp"`` or a ``Design``.
        seeds: of first weights and of the split into pairs that are trained on and pairs that are not.
        epochs: steps on the full batch; may be raised later.
        every: epochs between the weights that are kept; also those of epochs 0, 1, 2, 5, 10, 20, 50, ... below it, and
            the last. One network of the paper's size takes 0.9 MB each time.
        folder: for state and weights; None for one that is removed with the ``Run``.
        checkpoint_every: epochs between states.
        dtype: of weights and arithmetic.
        device: where to train.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: one line on what cannot be used as given.
        FailureError: training diverged, or a file could not be written.
    """
    task, design = specs.build(TASKS, task, "task", Task), chosen(design)
    checks.sizes(epochs=epochs, every=every, checkpoint_every=checkpoint_every)
    seeds = _checked(seeds)
    place = Path(tempfile.mkdtemp(prefix="jostle-grokking-") if folder is None else folder)
    run = Run(task, design, seeds, kept_epochs(epochs, every), place)
    if folder is None:
        weakref.finalize(run, shutil.rmtree, place, ignore_errors=True)
    settings = {"task": task.describe(), "seeds": list(seeds), "every": every, "dtype": str(dtype)}
    settings |= {
        name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(design).items()
    }
    state = _started(run, settings, dtype)
    if state.epochs > epochs:
        raise UsageError(f"epochs={epochs}: training in {place} is already at epoch {state.epochs}; give at least that")
    with contextlib.closing(reporter(progress, f"train {task.describe()}")) as report:
        _go(run, _moved(state, device), settings, checkpoint_every, report)
    return run


def so_far(folder: str | Path) -> Run:
    """What a training with this ``folder`` has come to, from any process, while it goes on or after it.

    Nothing is written. ``follow`` measures it; key frequencies are then those of the last epoch there is.

    Raises:
        UsageError: no training is there, or it cannot be read.
    """
    place = Path(folder)
    settings = storage.load_settings(place)
    named = [each.name for each in dataclasses.fields(Design)]
    fields: dict[str, Any] = {name: value for name, value in settings.items() if name in named}
    design = Design(**fields | {"betas": tuple(settings["betas"])})
    task = specs.build(TASKS, settings["task"], "task", Task)
    return Run(task, design, tuple(settings["seeds"]), storage.kept(place), place)


def _go(run: Run, state: storage.State, settings: dict[str, Any], checkpoint_every: int, report: Reporter) -> None:
    """Train to the last epoch."""
    # Sorted, so that pairs with the same first number follow each other and find its rows in the cache.
    pairs = Pairs.of(run.task, run.trained_rows().sort(dim=1).values, run.design.heads).to(state.weights.device)
    layout = Layout(run.task, run.design)
    gradient, last, kept = torch.zeros_like(state.weights), run.epochs[-1], set(run.epochs)
    while state.epochs < last:
        loss = loss_and_gradient(state.weights, pairs, layout, run.design, gradient)
        design = run.design
        state.optimizer.step(state.weights, gradient, design.lr, design.weight_decay, design.betas, design.eps)
        epoch = state.epochs
        if epoch in kept or epoch % checkpoint_every == 0:
            if not bool(torch.isfinite(state.weights).all()):
                raise FailureError(f"training diverged before epoch {epoch}; a smaller lr may help")
            if epoch in kept:
                storage.save_weights(run.folder, epoch, state.weights)
            if epoch % checkpoint_every == 0 or epoch == last:
                storage.save_state(run.folder, state, settings)
            report(Shown(epoch / last, epoch, f"loss {', '.join(f'{each:.2e}' for each in loss.tolist())}", "epochs"))


def _started(run: Run, settings: dict[str, Any], dtype: torch.dtype) -> storage.State:
    """The state in the folder of ``run``, or the first one, which is written there."""
    found = storage.load_state(run.folder, settings)
    if found is not None:
        return found
    networks = [initial_network(run.task, run.design, seed) for seed in run.seeds]
    weights = Layout(run.task, run.design).stack(networks, dtype)
    state = storage.State(weights, StackedAdamW.start(weights))
    storage.save_weights(run.folder, 0, weights)
    storage.save_state(run.folder, state, settings)
    return state


def trained_rows(task: Task, design: Design, seeds: Sequence[int]) -> Tensor:
    """Which pairs the network of each seed is trained on, (networks, count), as rows of ``task.pairs()``."""
    return torch.stack([split(task, design.train_fraction, seed)[0] for seed in seeds])


def kept_epochs(epochs: int, every: int) -> tuple[int, ...]:
    """After which epochs weights are kept.

    >>> kept_epochs(250, 100)
    (0, 1, 2, 5, 10, 20, 50, 100, 200, 250)
    """
    early = {step * 10**power for power in range(len(str(every))) for step in (1, 2, 5)}
    kept = {0, epochs} | {epoch for epoch in early if epoch < min(every, epochs)} | set(range(every, epochs + 1, every))
    return tuple(sorted(kept))


def _checked(seeds: Sequence[int]) -> tuple[int, ...]:
    found = tuple(seeds)
    are_seeds = all(isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**32 for seed in found)
    if not found or len(set(found)) < len(found) or not are_seeds:
        raise UsageError(f"seeds={list(found)} must be different whole numbers from 0 to 2^32 - 1, one a network")
    return found


def _moved(state: storage.State, device: str | torch.device) -> storage.State:
    """The same state on ``device``; one that is not there is one clear line."""
    try:
        tensors = [part.to(device) for part in (state.weights, state.optimizer.mean, state.optimizer.square)]
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device={str(device)!r} cannot be used: {str(error).splitlines()[0]}") from None
    return storage.State(tensors[0], StackedAdamW(tensors[1], tensors[2], state.optimizer.steps))
