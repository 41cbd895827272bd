"""Paper 1's sharpness: how far outputs and predictions move when Gaussian noise is added to all weights."""

import time
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from jostle.base import checks
from jostle.base import progress as progress_bar
from jostle.base.errors import UsageError
from jostle.base.table import Row, Tabular
from jostle.landscape.averages import MeanOverDraws, real_mean, share_mean
from jostle.landscape.draws import Compare, WeightDraws
from jostle.landscape.network import Network
from jostle.landscape.weights import MOST_DRAWS, WeightNoise
from jostle.responses import Flip, logits_of

PROTOCOLS = {"paper": (0.005, "mean"), "released": (0.05, "sum")}  # name: std and reduction
REDUCTIONS = ("mean", "sum")


@dataclass(frozen=True, eq=False)
class Sharpness(Tabular):
    """How far a network's outputs and predictions move when its weights move.

    Arguments:
        output: ShOp, the mean change of the outputs.
        prediction: ShPred, the share of inputs whose prediction changes.
        std: of the noise on each weight.
        protocol, reduction, seed: as given to ``sharpness``.
        num_inputs, num_parameters: how many inputs were averaged over, and how many weights were moved.
        passes: how many inputs the model answered.
        seconds: wall-clock time.
    """

    output: MeanOverDraws
    prediction: MeanOverDraws
    std: float
    protocol: str
    reduction: str
    seed: int
    num_inputs: int
    num_parameters: int
    passes: int
    seconds: float

    def __str__(self) -> str:
        level, draws = self.output.interval.level, len(self.output.per_draw)
        return (
            f"output {self.output}   {level:.0%}, {self.output.interval.method}\n"
            f"prediction {self.prediction}   {level:.0%}, {self.prediction.interval.method}\n"
            f"  {self.num_inputs:,} inputs, {draws} draws of noise with std={self.std:g} on {self.num_parameters:,} "
            f"parameters; protocol={self.protocol} reduction={self.reduction} seed={self.seed}"
        )

    def rows(self, of: str = "result") -> list[Row]:  # noqa: ARG002 - there is one table
        """The change of the outputs and of the predictions."""
        return [
            self.output.row(quantity="output", std=self.std),
            self.prediction.row(quantity="prediction", std=self.std),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain numbers and text for JSON."""
        return {**self.__dict__, "output": self.output.to_dict(), "prediction": self.prediction.to_dict()}


def sharpness(
    model: Any,
    inputs: Any,
    std: float | None = None,
    draws: int = 5,
    *,
    protocol: str = "paper",
    reduction: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    batch_size: int = 128,
    draws_at_once: int | None = None,
    progress: progress_bar.Progress = False,
) -> Sharpness:
    """How sharp the minimum is: the change of outputs (ShOp) and of predictions (ShPred) under noise on all weights.

        ShOp = E |Phi(theta; x) - Phi(theta + xi; x)|,  ShPred = P[f(theta; x) != f(theta + xi; x)],  xi ~ N(0, std^2 I)

    with the mean over the inputs and the draws of xi (paper 1, 2403.06925, Table 2). The paper defines ShOp for one
    output; for several logits it is their mean here. A draw moves the weights for all inputs together, so draws are the
    independent units of the intervals. The interval of ``output`` is Student's t; that of ``prediction`` too, unless a
    draw changes no prediction or all of them: then it is Gaffke's bound. Both are for exactly the inputs given.

    >>> import torch
    >>> line = torch.nn.Linear(1, 1, bias=False)  # ShOp is std sqrt(2 / pi) |x| = 0.0798 for |x| = 1
    >>> found = sharpness(line, torch.ones(1, 1, dtype=line.weight.dtype), std=0.1, draws=400)
    >>> found.output.low < 0.0798 < found.output.high
    True

    Differs: the released code (``protocol="released"``) has std 0.05 instead of 0.005, adds up the logits, and moves
    the weights of a fresh network that it leaves in train mode: dropout acts, and BatchNorm uses the statistics of
    the batch. So its values are not 0 without noise, and they depend on ``batch_size`` (there 100) and on the order of
    the inputs. Its running statistics are those of a fresh network too, but train mode does not use them.

    Arguments:
        model: a module. It is measured in eval mode and left bit for bit as it was.
        inputs: a tensor (N, ...), a mapping of tensors, a ``Dataset`` or a ``DataLoader``.
        std: of the noise on each weight; by default 0.005, or 0.05 for ``released``.
        draws: how many draws of the noise, at least 2; draw i is a function of ``seed`` and i.
        protocol: ``paper`` or ``released``.
        reduction: of the logits: ``mean``, or ``sum`` as in the released code; by default as the protocol has it.
        level: coverage of the intervals.
        seed: any whole number.
        batch_size: how many inputs the model answers at once.
        draws_at_once: how many draws are evaluated together; by default chosen by the size of the network.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.
    """
    started = time.perf_counter()
    protocol = checks.choice("protocol", protocol, PROTOCOLS)
    usual_std, usual_reduction = PROTOCOLS[protocol]
    std = checks.number("std", usual_std if std is None else std, least=0)
    reduction = checks.choice("reduction", usual_reduction if reduction is None else reduction, REDUCTIONS)
    draws = checks.whole("draws", draws, least=2, most=MOST_DRAWS)
    seed, level = checks.whole("seed", seed), checks.level(level)
    at_once = None if draws_at_once is None else checks.whole("draws_at_once", draws_at_once, least=1)
    network = Network(model, inputs, batch_size=batch_size)
    noise = WeightNoise(network.parameters, "gaussian", std, seed)
    weights = WeightDraws(network, noise, draws, at_once, in_training=protocol == "released", seed=seed)
    changes, flips = weights.mean_changes(_logits(weights.clean_outputs()), _compare(reduction), progress)
    is_exact = std == 0 and protocol == "paper"
    return Sharpness(
        output=real_mean(changes, level, is_exact=is_exact, least=0.0),
        prediction=share_mean(flips, level, is_exact=is_exact),
        std=std,
        protocol=protocol,
        reduction=reduction,
        seed=seed,
        num_inputs=len(network),
        num_parameters=noise.count,
        passes=weights.passes,
        seconds=time.perf_counter() - started,
    )


def _compare(reduction: str) -> Compare:
    """A function of logits before and after to the change of the outputs and to whether the prediction changes."""
    flip = Flip()

    def compare(_: slice, before: Tensor, outputs: Tensor) -> list[Tensor]:
        after = logits_of(outputs)  # (batch, classes)
        distances = (after.double() - before.double()).abs()
        change = distances.sum(dim=1) if reduction == "sum" else distances.mean(dim=1)
        return [change, flip.change(flip.reference(before), after)]

    return compare


def _logits(clean: list[Tensor]) -> list[Tensor]:
    """The clean outputs of each batch as logits (batch, classes)."""
    shape = clean[0].shape
    if len(shape) > 2 or (len(shape) == 2 and shape[1] == 0):
        raise UsageError(f"the model's outputs have shape {tuple(shape)}; expected (batch, classes) or (batch,)")
    return [logits_of(outputs) for outputs in clean]
