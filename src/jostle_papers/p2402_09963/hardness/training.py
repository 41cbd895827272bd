"""Training of one network, or of several at once, from seeds of their own, each on its own function and strings."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Progress, reporter
from jostle.base.progress import State as Shown
from jostle_papers.p2402_09963.hardness.architectures import evaluation, takes_shorter
from jostle_papers.p2402_09963.hardness.designs import SHOWN, SMOOTHING, Design, Plan, as_seed
from jostle_papers.p2402_09963.hardness.layout import Layout
from jostle_papers.p2402_09963.hardness.storage import STATE, State, checked_folder, load_state, save_state
from jostle_papers.p2402_09963.hardness.tasks import Task

_NUMBERS = 2**18  # of tokens at once: one megabyte

Watch = Callable[[int, tuple[nn.Module, ...]], None]
"""Told how many steps are done, and given the networks after them."""


@dataclass(frozen=True)
class Trained:
    """Networks that were trained together.

    Arguments:
        networks: in eval mode, in the order of the seeds.
        losses: smoothed over the last steps, in units where labels are 0 and 1.
        fitted: the step after which each was below ``fit_loss`` on the full length; None if never.
        steps: all that were taken, the same number for all networks.
    """

    networks: tuple[nn.Module, ...]
    losses: tuple[float, ...]
    fitted: tuple[int | None, ...]
    steps: int


def train(
    tasks: Sequence[Task] | Task,
    design: Design,
    plan: Plan,
    *,
    seeds: Sequence[int],
    folder: str | Path | None = None,
    checkpoint_every: int = 200,
    watch: Watch | None = None,
    watch_every: int = 100,
    progress: Progress = False,
) -> Trained:
    """Train a network from each seed, all at once.

    A network does not depend on which others are trained with it, up to rounding, unless there is a curriculum: all go
    on to its next length together. With ``folder`` the state is written there every ``checkpoint_every`` steps; called
    again, training goes on from it and ends with the same weights, bit for bit, as if it had not been interrupted (same
    machine, torch and number of threads).

    Arguments:
        tasks: one for all networks or one for each, all of the same number of bits.
        design: the network.
        plan: the training.
        seeds: of first weights and of strings, one a network.
        folder: for the state; None for none.
        checkpoint_every: steps between states.
        watch: called before the first step and after every ``watch_every``, with networks of its own. Training that
            goes on from a state calls it again for steps since that state, with the same weights.
        watch_every: steps.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: one line on what cannot be used as given.
        FailureError: training diverged, or a file could not be written.
    """
    checks.sizes(checkpoint_every=checkpoint_every, watch_every=watch_every)
    seeds = _as_seeds(seeds)
    training = _Training(_checked(tasks, seeds, design, plan), design, plan, seeds, folder)
    label = f"train {training.tasks[0].name}"
    with contextlib.closing(reporter(progress, label)) as report:
        if watch is not None and training.state.steps == 0:
            watch(0, training.result().networks)
        while not training.is_over():
            training.step()
            if watch is not None and training.state.steps % watch_every == 0:  # before the state that lies behind it
                watch(training.state.steps, training.result().networks)
            if training.state.steps % checkpoint_every == 0:
                training.save()
            if training.state.steps % SHOWN == 0:
                report(training.shown())
    training.save()
    return training.result()


class _Training:
    """Networks on their way."""

    def __init__(
        self, tasks: list[Task], design: Design, plan: Plan, seeds: list[int], folder: str | Path | None
    ) -> None:
        self.tasks, self._design, self._plan, self._seeds = tasks, design, plan, seeds
        self._n = tasks[0].n
        self._layout = Layout(design, self._n)
        self._outputs = evaluation(design.architecture, design.create(self._n, 0), design.heads)
        self._path = None if folder is None else checked_folder(folder) / STATE
        scales = [[task.scale(length) for task in tasks] for length in plan.lengths(self._n)]
        self._enough = plan.fit_loss * torch.tensor(scales, dtype=torch.float64)  # (lengths, networks)
        about: dict[str, Any] = {"tasks": [task.describe() for task in tasks], "seeds": seeds}
        self._settings = about | design.describe() | plan.describe()
        found = None if self._path is None else load_state(self._path, self._settings)
        self.state = self._first() if found is None else found

    def _first(self) -> State:
        weights = self._layout.stack([self._design.create(self._n, seed) for seed in self._seeds])
        return State.start(weights)

    def is_over(self) -> bool:
        """Whether no step is left, or no network goes on."""
        return not bool(self._rates().any())

    def step(self) -> None:
        """One step of all networks that are not done."""
        state, plan = self.state, self._plan
        length = plan.lengths(self._n)[state.stage]
        batches = [
            task.batch(plan.batch_size, seed, state.steps, length)
            for task, seed in zip(self.tasks, self._seeds, strict=True)
        ]
        # Of other lengths only where networks have other numbers of strings: filled up with strings of share 0.
        padded = [pad_sequence(list(parts), batch_first=True) for parts in zip(*batches, strict=True)]
        rates, size = self._rates(), self._at_once(length)
        gradient, losses = torch.zeros_like(state.weights), torch.zeros(len(self._seeds), dtype=torch.float64)
        weights = state.weights.requires_grad_()
        for bits, labels, shares in zip(*(torch.split(part, size, dim=1) for part in padded), strict=True):
            found = self._outputs(self._layout.views(weights), bits)
            parts = ((found - labels).square() * shares).sum(dim=1)  # (networks,)
            gradient += torch.autograd.grad(parts.sum(), weights)[0]
            losses += parts.detach()
        state.weights = weights.detach()
        state.optimizer.step(state.weights, gradient, rates, plan.weight_decay)
        self._note(losses, rates)

    def _at_once(self, length: int) -> int:
        """How many strings of each network are in memory together: their tokens stay in the cache."""
        return max(16, _NUMBERS // (len(self._seeds) * length * self._design.dim))

    def _rates(self) -> Tensor:
        """The lr of each network, (networks, 1)."""
        state = self.state
        return self._plan.rates(state.steps, state.fitted).to(state.weights.dtype).unsqueeze(1)

    def _note(self, losses: Tensor, rates: Tensor) -> None:
        """Smooth the losses of networks that go on, and see who has fitted."""
        state = self.state
        if not bool(losses.isfinite().all()):
            raise FailureError(
                f"training diverged before step {state.steps}; a smaller lr than {self._plan.lr} may help"
            )
        smoothed = torch.where(state.loss.isnan(), losses, SMOOTHING * state.loss + (1 - SMOOTHING) * losses)
        state.loss = torch.where(rates[:, 0] > 0, smoothed, state.loss)
        fits = state.loss < self._enough[state.stage]
        if state.stage < len(self._plan.lengths(self._n)) - 1:
            if bool(fits.all()):  # all go on to the next length together
                state.stage += 1
                state.loss = torch.full_like(state.loss, torch.nan)
        else:
            state.fitted = torch.where(
                (state.fitted < 0) & fits, torch.full_like(state.fitted, state.steps), state.fitted
            )

    def save(self) -> None:
        """Write the state to the folder, if there is one."""
        if self._path is not None:
            save_state(self._path, self.state, self._settings)

    def shown(self) -> Shown:
        """How far it is."""
        state, length = self.state, self._plan.lengths(self._n)[self.state.stage]
        text = f"{length} bits, loss {', '.join(f'{loss:.2e}' for loss in state.loss.tolist())}"
        return Shown(state.steps / self._plan.steps, state.steps, text, "steps")

    def result(self) -> Trained:
        """The networks as they are."""
        state = self.state
        return Trained(
            tuple(self._layout.unstack(state.weights, row) for row in range(len(self._seeds))),
            tuple(state.loss.tolist()),
            tuple(None if step < 0 else int(step) for step in state.fitted.tolist()),
            state.steps,
        )


def _as_seeds(seeds: Sequence[int]) -> list[int]:
    try:
        found = [as_seed(seed) for seed in seeds]
    except (TypeError, UsageError):
        found = []
    if not found:
        raise UsageError(f"seeds={seeds!r} must be whole numbers from 0 to below 2^64, one a network, e.g. [0, 1]")
    return found


def _checked(tasks: Sequence[Task] | Task, seeds: Sequence[int], design: Design, plan: Plan) -> list[Task]:
    found = [tasks] * len(seeds) if isinstance(tasks, Task) else list(tasks)
    if len(found) != len(seeds) or len({task.n for task in found}) != 1:
        raise UsageError(f"{len(found)} tasks for {len(seeds)} seeds; expected one for each, all of as many bits")
    if plan.curriculum and any(task.labels is not None for task in found):
        raise UsageError("curriculum needs functions of every length; a table has one, so leave curriculum out")
    if plan.curriculum and not takes_shorter(design.architecture):
        raise UsageError(
            f"curriculum needs a network for every length, and {design.architecture} has one; leave it out"
        )
    return found
