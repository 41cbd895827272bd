"""Sparse parity: does the regulariser make a transformer find the few bits sooner?"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

import jostle
from jostle.boolean.sampled import uniform_points
from jostle.lowering import StabilityPenalty
from jostle.studies.catalogue import register
from jostle_papers.p2403_06925.parity.designs import BitClassifier, ParityDesign
from jostle_papers.p2403_06925.parity.task import SparseParity
from jostle_papers.p2602_08287.grokking import FIRST_SEED
from jostle_papers.p2602_08287.speed import Problem, SpeedSettings, SpeedStudy

_TESTS, _LOOKED_AT = 1000, 100
_BITS = (-1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class ParitySettings(SpeedSettings):
    """A parity of a few bits.

    Arguments:
        num_bits, degree: of the inputs, and of the product of bits that is the label.
        samples, batch_size: of training.
        dim: of the transformer of two layers.
    """

    num_bits: int = 14
    degree: int = 3
    samples: int = 2000
    batch_size: int = 64
    dim: int = 32


class ParityProblem(Problem):
    """A transformer of two layers on a fixed sample of bits, in random batches; noise draws bits anew."""

    network: BitClassifier

    def __init__(self, settings: ParitySettings, seed: int) -> None:
        task = SparseParity.spread(settings.num_bits, settings.degree)
        design = ParityDesign(sizes={"dim": settings.dim}, samples=settings.samples, batch_size=settings.batch_size)
        self.network = design.create(task, FIRST_SEED + seed)
        points = torch.as_tensor(uniform_points(settings.num_bits, settings.samples + _TESTS, FIRST_SEED + seed))
        points = points.to(torch.float32)
        self._inputs, self._tests = points[: settings.samples], points[settings.samples :]
        self._chosen, self._batch = list(task.coordinates), settings.batch_size
        self._noise, self._seed = torch.Generator().manual_seed(FIRST_SEED + seed), seed

    def optimizer(self, lr: float) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.network.parameters(), lr=lr)

    def loss(self, penalty: StabilityPenalty | None) -> Tensor:
        rows = torch.randint(len(self._inputs), (self._batch,), generator=self._noise)
        bits = self._inputs[rows]
        logits = self.network(bits)
        loss = functional.binary_cross_entropy_with_logits(logits[:, 0], (self._labels(bits) > 0).float())
        return loss if penalty is None else loss + penalty(self.network, bits, clean=logits, generator=self._noise)

    def penalty(self, rho: float, strength: float) -> StabilityPenalty:
        return StabilityPenalty(rho=rho, strength=strength, vocabulary=_BITS)

    @torch.no_grad()
    def accuracy(self, *, unseen: bool) -> float:
        bits = self._tests if unseen else self._inputs[:_TESTS]
        return float((self.network(bits)[:, 0].sign() == self._labels(bits)).double().mean())

    def look(self, rho: float) -> tuple[float, float]:
        bits = self._inputs[:_LOOKED_AT]
        one = jostle.measure(self.network.eval(), bits, tokens="coordinates", perturbation="sign-flip", plan="grid:1")
        every = jostle.stability(self.network, bits, rho=rho, plan=jostle.Grid(10), seed=self._seed)
        self.network.train()
        return one.value, every.value

    def _labels(self, bits: Tensor) -> Tensor:
        return bits[:, self._chosen].prod(dim=1)


@register
class StableParity(SpeedStudy[ParitySettings]):
    """Steps to 99 % of unseen bits with and without the regulariser."""

    name = "2602.08287/parity"
    title = "Sparse parity: steps to 99 % with a noise-stability regulariser"
    claim = (
        "Learning the parity of 3 of 14 bits, a small transformer with a noise-stability regulariser gets 99 % of "
        "unseen inputs right in fewer steps than without, each with its own best learning rate."
    )
    source = "abstract and experiments on algorithmic tasks: about 35 % faster"
    version = 1
    task = "parity of 3 of 14 bits"
    scales = {
        "smoke": ParitySettings(
            seeds=1, num_bits=6, degree=2, samples=60, batch_size=16, dim=16, lrs=(0.01,), strengths=(0.01,), limit=60,
            every=5, look_every=5,
        ),
        "small": ParitySettings(
            seeds=6, lrs=(0.001, 0.003, 0.01), strengths=(0.003, 0.01), limit=1500, every=20, look_every=20
        ),
        "paper": ParitySettings(
            num_bits=20, samples=10_000, batch_size=250, lrs=(0.0003, 0.001, 0.003), strengths=(0.003, 0.03),
            limit=20_000, every=50, look_every=500,
        ),
    }  # fmt: skip
    deviations = (
        "The paper's code is not released. The regulariser is ours in form (1 - normalised stability of the logit), in "
        "its noise (bits are drawn anew with probability 0.1) and strengths; labels have no noise.",
        "A transformer of two layers and 32 dimensions on a fixed sample of 2,000 inputs, in batches of 64 by Adam.",
        "Learning rates and strengths were fixed before the runs, after a pilot with other seeds: strength 0.1 "
        "had not learned a parity of 20 bits after 3,000 steps, and 0.03 took five times the steps of strength 0. Each "
        "seed is judged at the setting that is fastest for the other seeds; the arm with the regulariser has twice as "
        "many settings.",
        "A network that has not learned at the limit counts with the limit, and the comparison is then undecided.",
        "A step with the regulariser takes two passes instead of one; passes are compared beyond the claim.",
    )

    def problem(self, settings: ParitySettings, seed: int) -> Problem:
        return ParityProblem(settings, seed)
