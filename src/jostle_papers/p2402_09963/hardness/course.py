"""A network while it is trained: its loss, sharpness, blow-up and norm at some steps, and when it has converged.

``follow`` trains and looks; ``converged_at``, ``drop`` and ``at`` read the looks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.progress import Progress
from jostle.landscape import POSITIONS, layernorm_blowup, parameter_norm
from jostle.landscape.weights import WeightNoise, chosen_parameters
from jostle_papers.p2402_09963.hardness.designs import HardnessDesign, HardnessPlan, check_seed
from jostle_papers.p2402_09963.hardness.observation import draw_strings, step_length
from jostle_papers.p2402_09963.hardness.passes import outputs
from jostle_papers.p2402_09963.hardness.tasks import FACTOR, HardnessTask
from jostle_papers.p2402_09963.hardness.training import train
from jostle_papers.stacked.looks import Looks
from jostle_papers.stacked.state import check_folder

FITTED = 0.01
"""Convergence in paper 2's figures of training: the first loss below it."""

_LEFT = 0.9  # of the loss of the best constant: below it, the loss is falling
_AT_ONCE = 8  # directions
_FOLLOWED = "transformer"


@dataclass(frozen=True)
class HardnessLook:
    """What a network is like after some steps.

    Arguments:
        step: the number of steps.
        loss: mean squared error where labels are 0 and 1.
        accuracy: share of strings on the right side of 0.5.
        sharpness: average direction sharpness by paper 2's definition, in units where labels are -1 and 1.
        blowup, released_blowup: of the layer norms, by both definitions.
        norm: of all weights but positions.
    """

    step: int
    loss: float
    accuracy: float
    sharpness: float
    blowup: float
    released_blowup: float
    norm: float


def follow(
    task: HardnessTask,
    design: HardnessDesign,
    plan: HardnessPlan,
    *,
    seed: int,
    every: int = 25,
    later: int | None = None,
    directions: int = 48,
    strings: int = 256,
    folder: str | Path | None = None,
    progress: Progress = False,
) -> list[HardnessLook]:
    """Train one network and look at it on the way.

    All looks are on the same strings and along the same directions, which differ from seed to seed. So what changes
    from look to look is the network, and the spread over seeds contains that of directions. Training that was
    interrupted resumes from ``folder`` and gives the same looks; none is taken twice.

    Arguments:
        task: what the network learns.
        design: the network.
        plan: the training; with ``fit_loss=0`` all its steps are at one learning rate.
        seed: of first weights, batches, strings and directions.
        every: steps from one look to the next, before the loss is below 0.01.
        later: the same afterwards, counted from that look; a multiple of ``every``, which is the default.
        directions: of steps in the space of weights, of length 0.02 sqrt(number of weights).
        strings: number of random strings of a look, or all if there are no more.
        folder: for state and looks; None for none.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
    """
    seed, later = check_seed(seed), every if later is None else later
    checks.sizes(every=every, later=later, directions=directions, strings=strings)
    if later % every:
        raise UsageError(f"later={later} must be a multiple of every={every}")
    if design.architecture != _FOLLOWED:
        raise UsageError(f"architecture={design.architecture!r} cannot be followed; expected {_FOLLOWED!r}")
    about: dict[str, Any] = {"every": every, "later": later, "directions": directions, "strings": strings, "seed": seed}
    about |= {"task": task.describe(), **design.describe(), **plan.describe()}
    looks = Looks(None if folder is None else check_folder(folder), about)
    observer = HardnessObserver(task, design, directions, strings, seed)

    def seen() -> list[HardnessLook]:
        return [HardnessLook(**record) for record in looks.until().values()]

    def watch(step: int, networks: tuple[nn.Module, ...]) -> None:
        start = converged_at(seen())
        is_due = start is None or (step - start) % later == 0
        if is_due:
            looks.take(step, lambda: asdict(observer.look(networks[0], step)))

    train(task, design, plan, seeds=[seed], folder=folder, watch=watch, watch_every=every, progress=progress)
    return seen()


class HardnessObserver:
    """Looks at networks of one design, always on the same strings and along the same directions.

    Arguments:
        task, design, directions, strings, seed: as in ``follow``.
    """

    def __init__(self, task: HardnessTask, design: HardnessDesign, directions: int, strings: int, seed: int) -> None:
        self._heads = design.heads
        self._bits = draw_strings(task.n, strings, seed)  # (strings, n)
        self._labels = torch.from_numpy(task.label(self._bits.numpy().astype(np.int8)))
        # The steps do not depend on the weights. Drawing them takes longer than a look, so they are drawn once.
        like = design.create(task.n, 0)
        noise = WeightNoise(chosen_parameters(like, POSITIONS), "sphere", step_length(like), seed)
        groups = torch.split(torch.arange(directions), _AT_ONCE)
        self._steps = torch.cat([torch.from_numpy(noise.steps(group.tolist())).float() for group in groups])

    @torch.no_grad()
    def look(self, network: nn.Module, step: int = 0) -> HardnessLook:
        """What a network is like after ``step`` steps."""
        found = network(self._bits).double()
        return HardnessLook(
            step=step,
            loss=float((found - self._labels).square().mean()),
            accuracy=float(((found > 0.5) == (self._labels > 0.5)).double().mean()),
            sharpness=self.sharpness(network),
            blowup=layernorm_blowup(network, self._bits).value,
            released_blowup=layernorm_blowup(network, self._bits, protocol="released").value,
            norm=parameter_norm(network, skip=POSITIONS),
        )

    @torch.no_grad()
    def sharpness(self, network: nn.Module) -> float:
        """``average_direction_sharpness`` in a third of the time: ``passes`` take several sets of weights at once."""
        before = outputs(_stacked(network, None), self._bits[None], self._heads)  # (1, strings)
        changes = [
            (outputs(_stacked(network, part), self._bits.expand(len(part), -1, -1), self._heads) - before).double()
            for part in torch.split(self._steps, _AT_ONCE)
        ]
        return FACTOR * float(torch.cat(changes).square().mean())


def _stacked(network: nn.Module, steps: Tensor | None) -> dict[str, Tensor]:
    """The weights of a network plus each of some steps (steps, numbers), by name; None for the weights themselves."""
    held = {name: weight.detach().unsqueeze(0) for name, weight in network.named_parameters()}
    if steps is None:
        return held
    moved = chosen_parameters(network, POSITIONS)
    parts = torch.split(steps, [weight.numel() for weight in moved.values()], dim=1)
    stays = {name: weight.expand(len(steps), *weight.shape[1:]) for name, weight in held.items()}
    return stays | {
        name: weight + part.view(-1, *weight.shape)
        for (name, weight), part in zip(moved.items(), parts, strict=True)
    }  # fmt: skip


def converged_at(looks: Iterable[HardnessLook], bound: float = FITTED) -> int | None:
    """The step of the first look with a loss below ``bound``; None if there is none."""
    return next((look.step for look in looks if look.loss < bound), None)


def drop(looks: Sequence[HardnessLook], constant: float = 0.25) -> tuple[HardnessLook, HardnessLook] | None:
    """The two looks between which the loss falls from that of a constant to convergence; None without convergence.

    The first is the last one before convergence whose loss is at least nine tenths of ``constant``, the second the one
    at convergence.

    Arguments:
        looks: of one network, in order.
        constant: the loss of the best constant, which is the variance of the labels.
    """
    end = converged_at(looks)
    if end is None:
        return None
    until = [look for look in looks if look.step <= end]
    before = [look for look in until[:-1] if look.loss >= _LEFT * constant]
    return (before or until)[-1 if before else 0], until[-1]


def at(looks: Iterable[HardnessLook], offset: int) -> HardnessLook | None:
    """The look ``offset`` steps after convergence (before it, if negative); None if there is none."""
    held = list(looks)
    start = converged_at(held)
    return None if start is None else next((look for look in held if look.step == start + offset), None)
