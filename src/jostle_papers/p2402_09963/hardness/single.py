"""One module trained on a loss of its own by a ``Plan``: what ``train`` does not know, scratchpads and many lengths.

Weights are one row, as in ``layout``, so that state on disk and optimiser are the same as there.
"""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Progress, reporter
from jostle.base.progress import State as Shown
from jostle_papers.p2402_09963.hardness.designs import SHOWN, SMOOTHING, Plan
from jostle_papers.p2402_09963.hardness.storage import STATE, State, checked_folder, load_state, save_state

Weights = Mapping[str, Tensor]
Loss = Callable[[Weights, int], Tensor]
"""Weights by name and the number of steps done, to the mean squared error on the batch of that step."""


def train_single(
    network: nn.Module,
    loss: Loss,
    plan: Plan,
    settings: Mapping[str, Any],
    *,
    scale: float = 1.0,
    folder: str | Path | None = None,
    checkpoint_every: int = 200,
    progress: Progress = False,
) -> tuple[float, int | None, int]:
    """Train ``network`` in place; it ends in eval mode.

    As in ``train``: AdamW, once the smoothed loss is below ``fit_loss`` it has ``settle`` more steps in which the lr
    goes down to 0, and with ``folder`` training that was interrupted goes on bit for bit.

    Arguments:
        network: a module with its first weights.
        loss: what is made smaller.
        plan: its steps, rates and end; batches and lengths are what ``loss`` makes of them.
        settings: what tells this training from others, JSON values, for the state on disk.
        scale: 4 Var(label), by which ``fit_loss`` is multiplied.
        folder: for the state; None for none.
        checkpoint_every: steps between states.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Returns:
        The smoothed loss, the step after which it was below ``fit_loss`` or None, and all steps.
    """
    checks.sizes(checkpoint_every=checkpoint_every)
    if plan.curriculum:
        raise UsageError(f"curriculum={plan.curriculum} is for train; here the loss chooses its lengths")
    training = _Training(network, loss, plan, scale, dict(settings) | plan.describe(), folder)
    with contextlib.closing(reporter(progress, "train")) as report:
        while training.rate() > 0:
            training.step()
            steps = training.state.steps
            if steps % checkpoint_every == 0:
                training.save()
            if steps % SHOWN == 0:
                report(Shown(steps / plan.steps, steps, f"loss {float(training.state.loss):.2e}", "steps"))
    training.save()
    return training.finish()


class _Training:
    """A network on its way."""

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        plan: Plan,
        scale: float,
        settings: dict[str, Any],
        folder: str | Path | None,
    ) -> None:
        self._network, self._loss, self._plan, self._settings = network, loss, plan, settings
        self._enough = scale * plan.fit_loss
        self._shapes = {name: weight.shape for name, weight in network.named_parameters()}
        self._path = None if folder is None else checked_folder(folder) / STATE
        found = None if self._path is None else load_state(self._path, settings)
        if found is None:
            row = torch.cat([weight.detach().flatten() for weight in network.parameters()]).unsqueeze(0)
            found = State.start(row)
        self.state = found

    def rate(self) -> float:
        """The lr of the next step, 0 where there is none."""
        return float(self._plan.rates(self.state.steps, self.state.fitted))

    def step(self) -> None:
        """One step."""
        state, rate = self.state, self.rate()
        row = state.weights.requires_grad_()
        loss = self._loss(self._views(row), state.steps)
        gradient = torch.autograd.grad(loss, row)[0]
        state.weights = row.detach()
        state.optimizer.step(state.weights, gradient, rate, self._plan.weight_decay)
        value = float(loss.detach())
        if not torch.isfinite(torch.tensor(value)):
            raise FailureError(
                f"training diverged before step {state.steps}; a smaller lr than {self._plan.lr} may help"
            )
        is_first = bool(state.loss.isnan())
        state.loss = torch.full_like(state.loss, value) if is_first else state.loss.lerp(
            torch.full_like(state.loss, value), 1 - SMOOTHING
        )  # fmt: skip
        if int(state.fitted) < 0 and float(state.loss) < self._enough:
            state.fitted = torch.full_like(state.fitted, state.steps)

    def _views(self, row: Tensor) -> dict[str, Tensor]:
        parts = torch.split(row[0], [shape.numel() for shape in self._shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def save(self) -> None:
        """Write the state to the folder, if there is one."""
        if self._path is not None:
            save_state(self._path, self.state, self._settings)

    def finish(self) -> tuple[float, int | None, int]:
        """Put the weights into the network."""
        with torch.no_grad():
            for name, view in self._views(self.state.weights).items():
                self._network.get_parameter(name).copy_(view)
        self._network.eval()
        fitted = int(self.state.fitted)
        return float(self.state.loss), None if fitted < 0 else fitted, self.state.steps
