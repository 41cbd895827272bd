"""The one training loop of stacked networks: steps, checkpoints, resumption, looks, progress, device and Ctrl-C."""

import contextlib
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic

import torch
from torch import Tensor

from jostle.base import checks, interrupts
from jostle.base.errors import FailureError, UsageError
from jostle.base.progress import Progress, State, reporter
from jostle_papers.stacked.adamw import BETAS, EPS
from jostle_papers.stacked.state import AnyState, load_state, save_state

_SHOWN = 20  # steps from one line of progress, and one check for divergence, to the next


class StackedTraining(ABC, Generic[AnyState]):
    """What is trained: what the loop must know of first weights, loss, learning rates and looks.

    What a step does must be a function of the state alone, so that a training that resumes from a state ends with the
    same bits.

    Attributes:
        kind: the class of its states.
        unit: what a step is called, ``step`` or ``epoch``.
        label: what a line of progress begins with.
        lr: the learning rate that messages name.
        weight_decay, betas, eps: of AdamW.
    """

    kind: type[AnyState]
    unit: ClassVar[str] = "step"
    label: str = "train"
    lr: float
    weight_decay: float = 0.0
    betas: tuple[float, float] = BETAS
    eps: float = EPS

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What must be the same for a state on disk to belong to this training, as JSON values."""

    @abstractmethod
    def start(self) -> AnyState:
        """The state before the first step, on the CPU."""

    @abstractmethod
    def rates(self, state: AnyState) -> Tensor | float:
        """The learning rate of the next step, or one for each network, (networks, 1). All 0: training is over."""

    @abstractmethod
    def loss_and_gradient(self, state: AnyState) -> tuple[Tensor, Tensor]:
        """The loss of each network on the batch of the next step, (networks,), and its gradient, like the weights."""

    def note(self, state: AnyState, losses: Tensor, rates: Tensor | float) -> None:
        """Called after every step with the losses before it and its rates; may change what the state remembers."""

    def next_look(self, step: int) -> int | None:
        """The first step after ``step`` at which to look; None for no look."""
        return None

    def look(self, state: AnyState) -> None:
        """Called before the first step and at the steps of ``next_look``, possibly again after a resumption."""

    @abstractmethod
    def share(self, state: AnyState) -> float:
        """The share of the training that is done, from 0 to 1."""

    @abstractmethod
    def summary(self, state: AnyState, losses: Tensor) -> str:
        """What a line of progress says."""


def train_stacked(
    training: StackedTraining[AnyState],
    *,
    folder: Path | None,
    checkpoint_every: int,
    device: str | torch.device = "cpu",
    progress: Progress = False,
) -> AnyState:
    """Train to the end and return the last state.

    With ``folder`` the state is written there every ``checkpoint_every`` steps, at the end, and at Ctrl-C. Called
    again, training resumes from it and ends with the same weights, bit for bit, as if it had not been interrupted (same
    machine, torch and number of threads). A look is taken before the state of its step is written, so every look is
    taken at least once.

    Arguments:
        training: what is trained.
        folder: from ``check_folder``; None to write nothing.
        checkpoint_every: steps between states.
        device: where to train.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Raises:
        UsageError: the device or the folder cannot be used, or it holds another training.
        FailureError: training diverged, or a file could not be written.
    """
    settings = training.describe()
    found = None if folder is None else load_state(training.kind, folder, settings)
    state = (training.start() if found is None else found).to(device)

    def save() -> None:
        _check_finite(training, state)
        if folder is not None:
            save_state(folder, state, settings)

    with contextlib.closing(reporter(progress, training.label)) as report, _delayed_interrupt() as is_interrupted:
        if found is None:
            training.look(state)
            save()
        saved, due = state.steps, training.next_look(state.steps)
        while _is_positive(rates := training.rates(state)):
            losses, gradient = training.loss_and_gradient(state)
            state.optimizer.step(state.weights, gradient, rates, training.weight_decay, training.betas, training.eps)
            training.note(state, losses, rates)
            is_look, is_checkpoint = state.steps == due, state.steps % checkpoint_every == 0
            if is_look or is_checkpoint or state.steps % _SHOWN == 0:
                _check_finite(training, state)
                if is_look:
                    training.look(state)
                    due = training.next_look(state.steps)
                if is_checkpoint:
                    save()
                    saved = state.steps
                text = training.summary(state, losses)
                report(State(training.share(state), state.steps, text, f"{training.unit}s"))
            if is_interrupted():
                save()
                raise KeyboardInterrupt
        if saved != state.steps:
            save()
    return state


def check_seeds(seeds: Any, *, most: int = 2**64 - 1) -> tuple[int, ...]:
    """``seeds`` as a tuple of at least one whole number, also of numpy, from 0 to ``most``.

    >>> check_seeds([])
    Traceback (most recent call last):
    jostle.base.errors.UsageError: seeds=[] must be whole numbers from 0 to 2^64 - 1, one for each network
    """
    try:
        found = tuple(checks.whole("seed", seed, least=0, most=most) for seed in seeds)
    except (TypeError, UsageError):
        found = ()
    if not found:
        raise checks.wrong("seeds", seeds, f"whole numbers from 0 to 2^{most.bit_length()} - 1, one for each network")
    return found


def _is_positive(rates: Tensor | float) -> bool:
    return bool(rates.any()) if isinstance(rates, Tensor) else rates > 0


def _check_finite(training: StackedTraining[AnyState], state: AnyState) -> None:
    if not bool(state.weights.isfinite().all()):
        raise FailureError(
            f"training diverged before {training.unit} {state.steps}; a smaller lr than {training.lr} may help"
        )


@contextlib.contextmanager
def _delayed_interrupt() -> Iterator[Callable[[], bool]]:
    """Inside, Ctrl-C waits for the end of a step, where the state is whole; a second Ctrl-C does not wait.

    Yields a function that tells whether there was one. Only the main thread gets Ctrl-C, and where somebody else
    handles it, as in a worker process, it is left to them.
    """
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    if not interrupts.is_usual():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:  # after the last step
        raise KeyboardInterrupt
