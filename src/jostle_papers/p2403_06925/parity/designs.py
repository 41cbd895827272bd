"""Networks that learn a sparse parity and their training: the settings of paper 1, and three other networks."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry
from jostle.boolean.networks.mlp import BooleanMLP
from jostle_papers.p2403_06925.parity.recurrent import BitLSTM, BitStateSpace
from jostle_papers.p2403_06925.parity.task import SparseParity
from jostle_papers.p2403_06925.parity.transformer import BitTransformer


class BitClassifier(nn.Module):
    """A network on bits as a classifier of two classes: (batch, n) to one logit each, (batch, 1)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, bits: Tensor) -> Tensor:
        """Bits to logits, (batch, n) of -1 and 1 -> (batch, 1)."""
        logits: Tensor = self.network(bits)
        return logits.unsqueeze(1)


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "transformer": BitTransformer,
    "mlp": BooleanMLP,
    "lstm": BitLSTM,
    "state-space": BitStateSpace,
}


@dataclass(frozen=True, kw_only=True)
class ParityDesign:
    """A network and its training by Adam on a fixed sample, with the logistic loss.

    Arguments:
        network: one of ``NETWORKS``.
        sizes: of the network, by name.
        samples: training examples.
        batch_size, lr: of Adam.
        clip: largest norm of a gradient, None for no limit.
    """

    network: str = "transformer"
    sizes: Mapping[str, Any] = field(default_factory=dict)
    samples: int = 50_000
    batch_size: int = 250
    lr: float = 1e-3
    clip: float | None = None

    def __post_init__(self) -> None:
        checks.choice("network", self.network, NETWORKS)
        checks.sizes(samples=self.samples, batch_size=self.batch_size)
        checks.number("lr", self.lr, above=0)
        if self.batch_size > self.samples:
            raise UsageError(f"batch_size={self.batch_size} must be at most samples={self.samples}")

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-self.samples // self.batch_size)

    def create(self, task: SparseParity, seed: int) -> BitClassifier:
        """The untrained network; its weights are a function of design, task and seed."""
        network = NETWORKS[self.network]
        known = inspect.signature(network).parameters
        for size in self.sizes:
            checks.choice(f"{self.network} argument", size, known)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return BitClassifier(network(n=task.num_bits, **self.sizes))

    def describe(self) -> dict[str, Any]:
        """All choices, as JSON values."""
        return asdict(self) | {"sizes": dict(self.sizes)}


DESIGNS: Registry[ParityDesign] = Registry("design")

# Paper 1 (2403.06925), appendix A.6: two layers, four heads; the first with three seeds, the others with one.
DESIGNS.register("transformer-50k")(ParityDesign(sizes={"dim": 32}, samples=50_000, batch_size=250, lr=1e-3))
DESIGNS.register("transformer-10k")(ParityDesign(sizes={"dim": 64}, samples=10_000, batch_size=100, lr=1e-3))
DESIGNS.register("transformer-5k-25")(ParityDesign(sizes={"dim": 32}, samples=5000, batch_size=25, lr=1e-4))
DESIGNS.register("transformer-5k-50")(ParityDesign(sizes={"dim": 32}, samples=5000, batch_size=50, lr=1e-4))
OF_THE_PAPER = ("transformer-50k", "transformer-10k", "transformer-5k-25", "transformer-5k-50")

# Ours: other networks of about as many weights as the transformer of dim 32 (18,600 at 40 bits), trained like it.
DESIGNS.register("mlp")(ParityDesign(network="mlp", sizes={"width": 117}))
DESIGNS.register("lstm")(ParityDesign(network="lstm", sizes={"dim": 32, "hidden": 34}))
DESIGNS.register("state-space")(ParityDesign(network="state-space", sizes={"dim": 34, "state": 4}))


def as_design(design: ParityDesign | str) -> ParityDesign:
    """``design`` if it is one, or the design of that name."""
    if isinstance(design, ParityDesign):
        return design
    if not isinstance(design, str):
        raise checks.wrong("design", design, f"a ParityDesign or one of {', '.join(DESIGNS.names())}")
    return DESIGNS.get(design)
