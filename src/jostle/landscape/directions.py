"""Paper 2's average direction sharpness: how far a function moves when its weights take a step of a given length."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import UsageError
from jostle.base.estimate import Interval
from jostle.base.table import Row, Tabular
from jostle.landscape.averages import Floats, MeanOverDraws, crossed_interval, real_mean
from jostle.landscape.draws import Compare, WeightDraws
from jostle.landscape.losses import Loss, as_labels, as_loss, check_labels, is_mean, is_squared, per_input
from jostle.landscape.network import Network
from jostle.landscape.weights import MOST_DRAWS, POSITIONS, WeightNoise

PROTOCOLS = {"paper": "sphere", "released": "gaussian"}
RELEASED_STD = 0.02
_NAMED = 3  # skipped parameters that a text names


@dataclass(frozen=True, eq=False)
class DirectionSharpness(Tabular):
    """How far a function moves when its weights move, on average over directions.

    Arguments:
        function: the mean squared change of the outputs.
        loss: the mean increase of the loss over the same directions; None without labels.
        clean_loss: the loss with the weights as they are; None without labels. A network that does not fit its labels
            can look flat.
        protocol: says which of the two is ``value``: ``function`` for ``paper``, ``loss`` for ``released``.
        rho: the length of a step; for ``released`` its root mean square, std sqrt(num_parameters).
        factor: the number that squared changes were multiplied by, for units in which labels are -1 and 1.
        num_inputs, num_parameters: how many inputs were averaged over, and how many weights were moved.
        skipped: the names of the parameters that were not moved.
        seed: of the directions.
        passes: how many inputs the model answered.
        seconds: wall-clock time.
        per_input: (N,), for each input the mean over the directions; ``value`` is their mean.
        num_skipped: how many weights were not moved.
        is_mean_loss: whether the loss gave one number for a whole batch; ``per_input`` of the loss then repeats it.
    """

    function: MeanOverDraws
    loss: MeanOverDraws | None
    clean_loss: float | None
    protocol: str
    rho: float
    factor: float
    num_inputs: int
    num_parameters: int
    skipped: list[str]
    seed: int
    passes: int
    seconds: float
    per_input: Floats = field(repr=False)
    num_skipped: int = 0
    is_mean_loss: bool = False

    @property
    def population(self) -> Interval:
        """The interval for other directions and other inputs from the same population.

        ``low`` and ``high`` are for exactly these inputs. This one is open for a loss that is a mean over the inputs of
        a batch, because nothing is known about how much inputs differ.
        """
        level, is_loss, is_exact = self.estimate.interval.level, self.estimate is self.loss, self.rho == 0
        least = -math.inf if is_loss else 0.0
        if is_loss and self.is_mean_loss and not is_exact:
            return Interval(least, math.inf, level, "population", "open: the loss is a mean over inputs")
        return crossed_interval(self.estimate.per_draw, self.per_input, level, is_exact=is_exact, least=least)

    @property
    def estimate(self) -> MeanOverDraws:
        """The number that the protocol calls sharpness: ``function`` or ``loss``."""
        return self.loss if self.protocol == "released" and self.loss is not None else self.function

    @property
    def value(self) -> float:
        """The sharpness."""
        return self.estimate.value

    @property
    def low(self) -> float:
        """The lower end of the sharpness' interval."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """The upper end of the sharpness' interval."""
        return self.estimate.high

    def __str__(self) -> str:
        interval, directions = self.estimate.interval, len(self.estimate.per_draw)
        return (
            f"average direction sharpness {self.estimate}   {interval.level:.0%}, {interval.method}\n"
            f"  {self.num_inputs:,} inputs, {directions} directions of length {self.rho:.4g} in "
            f"{self.num_parameters:,} parameters; protocol={self.protocol} factor={self.factor:g} seed={self.seed}"
            f"{self._skipped_line()}"
        )

    def _skipped_line(self) -> str:
        """A line about the skipped parameters; empty if there are none."""
        if not self.skipped:
            return ""
        more = f" and {len(self.skipped) - _NAMED} more" if len(self.skipped) > _NAMED else ""
        return f"\n  {self.num_skipped:,} parameters skipped: {', '.join(self.skipped[:_NAMED])}{more}"

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """The change of the outputs and, with labels, that of the loss."""
        found = {"function": self.function, "loss": self.loss}
        return [one.row(quantity=name, rho=self.rho) for name, one in found.items() if one is not None]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        loss = None if self.loss is None else self.loss.to_dict()
        parts = {"function": self.function.to_dict(), "loss": loss, "population": self.population.to_dict()}
        return {**self.__dict__, "value": self.value, **parts, "per_input": self.per_input.tolist()}


def average_direction_sharpness(
    model: Any,
    inputs: Any,
    labels: Any = None,
    loss: Any = "mse",
    *,
    rho: float | None = None,
    std: float | None = None,
    directions: int = 100,
    protocol: str = "paper",
    label_values: tuple[float, float] = (-1.0, 1.0),
    skip: tuple[str, ...] | list[str] = POSITIONS,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 128,
    draws_at_once: int | None = None,
    progress: progress_bar.Progress = False,
) -> DirectionSharpness:
    """The mean squared change of a function when its weights take a step of length rho in a random direction.

        L_rho = E over x of  E over |Delta| = rho of  (T_{theta + Delta}(x) - T_theta(x))^2

    with Delta uniform on the sphere of radius rho (paper 2, 2402.09963; its lower bound as_n / n is in units where
    labels are -1 and 1). If the network has several outputs, their squared changes are averaged. Directions are
    independent, and all inputs share each direction. So the intervals are Student's t over directions, for exactly the
    inputs given; ``population`` is the interval for inputs that were drawn at random too.

    >>> import torch
    >>> line = torch.nn.Linear(1, 1, bias=False)  # one weight: the sphere is {-rho, rho}
    >>> round(average_direction_sharpness(line, torch.full((5, 1), 3.0).to(line.weight), rho=0.1, skip=()).value, 6)
    0.09

    Differs: the released code (``protocol="released"``) takes the increase of the loss, which is the same only if
    T_theta(x) is the label. It moves each weight by N(0, std^2), and multiplies by 4 in its plots, because its labels
    are 0 and 1. Its 10 directions are the same in all its measurements; ours depend on ``seed``.

    Arguments:
        model: a module. It is measured in eval mode and left bit for bit as it was.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``.
        labels: (N, ...), for the loss; by default the labels of the dataset.
        loss: ``mse``, ``cross-entropy``, or a function of outputs and labels that returns a mean or one number for each
            input. A mean leaves ``population`` of the loss open, unless ``batch_size`` is 1.
        rho: the radius, for ``paper``. Compare networks of different sizes at the same rho only.
        std: the standard deviation of each weight's step, for ``released``; by default 0.02.
        directions: how many directions, at least 2; direction i is a function of ``seed`` and i.
        protocol: ``paper`` or ``released``.
        label_values: the two labels that the network answers with. Squared changes are multiplied by
            4 / (difference)^2: (0, 1) gives a factor of 4.
        skip: patterns of the names of parameters that are not moved; by default positional encodings, as in the
            released code.
        level: coverage of the intervals.
        seed: any whole number.
        batch_size, draws_at_once, progress: as in ``sharpness``.
    """
    started = time.perf_counter()
    protocol = checks.choice("protocol", protocol, PROTOCOLS)
    size = _size(protocol, rho, std)
    directions = checks.whole("directions", directions, least=2, most=MOST_DRAWS)
    seed, level = checks.whole("seed", seed), checks.level(level)
    at_once = None if draws_at_once is None else checks.whole("draws_at_once", draws_at_once, least=1)
    factor = _factor(label_values, loss)
    network = Network(model, inputs, skip=skip, batch_size=batch_size)
    held = as_labels(labels, inputs, len(network))
    if held is None and protocol == "released":
        raise UsageError("protocol='released' is a difference of losses: give labels, or a dataset that has them")
    noise = WeightNoise(network.parameters, PROTOCOLS[protocol], size, seed)
    draws = WeightDraws(network, noise, directions, at_once)
    clean, measured_loss = draws.clean_outputs(), as_loss(loss)
    if held is not None:
        check_labels(measured_loss, clean[0], held)
    skipped = {name: tensor for name, tensor in model.named_parameters() if name not in network.parameters}
    sums = np.zeros((2, len(network)))  # over directions, of the function and of the loss
    numbers = factor * draws.mean_changes(clean, _compare(held, measured_loss, sums), progress)
    is_exact = size == 0
    return DirectionSharpness(
        function=real_mean(numbers[0], level, is_exact=is_exact, least=0.0),
        loss=None if held is None else real_mean(numbers[1], level, is_exact=is_exact),
        clean_loss=None if held is None else factor * _clean_loss(network, clean, held, measured_loss),
        protocol=protocol,
        rho=size if protocol == "paper" else size * math.sqrt(noise.count),
        factor=factor,
        num_inputs=len(network),
        num_parameters=noise.count,
        skipped=list(skipped),
        seed=seed,
        passes=draws.passes,
        seconds=time.perf_counter() - started,
        per_input=factor * sums[1 if protocol == "released" else 0] / directions,
        num_skipped=sum(tensor.numel() for tensor in skipped.values()),
        is_mean_loss=held is not None and is_mean(measured_loss, clean[0], held[: len(clean[0])]),
    )


def _compare(labels: Tensor | None, loss: Loss, sums: Floats) -> Compare:
    """A function to the squared change of the outputs and, with labels, the increase of the loss of each input.

    The function also adds these numbers to ``sums``, (2, N).
    """

    def compare(rows: slice, before: Tensor, after: Tensor) -> list[Tensor]:
        changes = [(after.double() - before.double()).square().reshape(len(after), -1).mean(dim=1)]
        if labels is not None:
            changes.append(per_input(loss, after, labels[rows]) - per_input(loss, before, labels[rows]))
        for total, change in zip(sums, changes, strict=False):
            total[rows] += change.cpu().numpy()
        return changes

    return compare


def _clean_loss(network: Network, clean: list[Tensor], labels: Tensor, loss: Loss) -> float:
    """The mean loss of the clean outputs."""
    batches = zip(clean, network.batches(), strict=True)
    return float(torch.cat([per_input(loss, outputs, labels[rows]) for outputs, rows in batches]).mean())


def _size(protocol: str, rho: float | None, std: float | None) -> float:
    """The radius, or the standard deviation, of a step."""
    if protocol == "paper":
        if rho is None or std is not None:
            raise UsageError("protocol='paper' needs rho=, the length of a step, and no std; std is for 'released'")
        return checks.number("rho", rho, least=0)
    if rho is not None:
        raise UsageError("protocol='released' moves each weight by std=, 0.02 unless given; rho is for 'paper'")
    return checks.number("std", RELEASED_STD if std is None else std, least=0)


def _factor(label_values: Any, loss: Any) -> float:
    """The number that brings squared changes to units where labels are -1 and 1."""
    try:
        low, high = (float(value) for value in label_values)
    except (TypeError, ValueError):
        low = high = math.nan
    if not math.isfinite(high - low) or low == high:
        raise UsageError(f"label_values={label_values!r} must be two different numbers, such as (0, 1) or (-1, 1)")
    factor = 4 / (high - low) ** 2
    if factor != 1 and not is_squared(loss):
        raise UsageError(
            f"label_values={label_values!r} rescales squared errors only, and loss is another; leave label_values out"
        )
    return factor
