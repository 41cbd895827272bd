"""PARITY in steps: networks that write the parities of all prefixes of a string, trained and measured.

The symbol at place i is y_i = x_1 ... x_i as a product of signs, which is y_{i-1} x_i: no step depends on more than two
symbols. Paper 2 (2402.09963) trains ``BitScratchpad`` on it by teacher forcing and lets it write by greedy steps.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from jostle.base import checks
from jostle.base.progress import Progress
from jostle.landscape import POSITIONS, average_direction_sharpness, layernorm_blowup, parameter_norm
from jostle.landscape.weights import preserve
from jostle.models.bit_scratchpad import BitScratchpad
from jostle.studies.schema import Struct
from jostle_papers.p2402_09963.hardness.designs import HardnessPlan, check_seed, first_weights
from jostle_papers.p2402_09963.hardness.observation import draw_strings, step_length
from jostle_papers.p2402_09963.hardness.tasks import named_task
from jostle_papers.p2402_09963.hardness.training import Weights, train_single

ACCURATE = 0.999
"""Paper 2's rule for a run that counts: a larger share of right symbols when the network writes on its own."""

_AT_ONCE = 256  # strings of a pass


@dataclass(frozen=True, kw_only=True)
class WrittenObservation(Struct):
    """Measures of a network with a scratchpad.

    Arguments:
        loss: mean squared error over all places if all symbols before are right, where labels are 0 and 1.
        written_accuracy: share of right symbols if the network writes all of them, each from those it wrote before.
        answer_accuracy: the same of the last symbol, the parity of all bits.
        sharpness, low, high: average direction sharpness over all places, given the right symbols before, in units
            where labels are -1 and 1, with its interval.
        last_sharpness: of the last place only.
        rho: the length of a step, 0.02 sqrt(number of weights moved).
        encoder_blowup, decoder_blowup: the product over the norms of the blocks of each side, the final norm left out.
        released_encoder_blowup, released_decoder_blowup: the same of 1 / standard deviation.
        norm: of all weights but positions.
        has_converged: whether the run counts: ``written_accuracy`` is above 0.999.
    """

    loss: float
    written_accuracy: float
    answer_accuracy: float
    sharpness: float
    low: float
    high: float
    last_sharpness: float
    rho: float
    encoder_blowup: float
    decoder_blowup: float
    released_encoder_blowup: float
    released_decoder_blowup: float
    norm: float
    has_converged: bool


def prefix_parities(bits: Tensor) -> Tensor:
    """The parity of each prefix, as a product of signs, (batch, tokens) of -1 and 1 -> the same shape.

    >>> prefix_parities(torch.tensor([[-1, 1, -1, -1]])).tolist()
    [[-1, -1, 1, -1]]
    """
    return bits.cumprod(dim=1).to(bits.dtype)


def create_scratchpad(n: int, seed: int, **sizes: Any) -> BitScratchpad:
    """The untrained network for n bits, in float32; torch's own random state stays as it is."""
    with first_weights(seed):
        return BitScratchpad(max_length=n, **sizes)


def train_scratchpad(
    n: int,
    plan: HardnessPlan,
    *,
    seed: int,
    sizes: Mapping[str, int] | None = None,
    folder: str | Path | None = None,
    progress: Progress = False,
) -> tuple[BitScratchpad, int | None, int]:
    """Train a network to write the parities of all prefixes of n fresh bits, given the right symbols before each.

    Arguments:
        n: bits.
        plan: the training; paper 2 has batches of 128.
        seed: of first weights and strings.
        sizes: of ``BitScratchpad``; paper 2's unless given.
        folder: for the state; None for none.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Returns:
        The network, the step after which it had fitted or None, and all steps.
    """
    seed, task = check_seed(seed), named_task("parity", n)
    for size in sizes or {}:
        checks.choice("size", size, inspect.signature(BitScratchpad).parameters.keys() - {"max_length"})
    network = create_scratchpad(n, seed, **(sizes or {}))

    def loss(weights: Weights, step: int) -> Tensor:
        bits, _, shares = task.batch(plan.batch_size, seed, step)
        return taught_loss(network, weights, bits, shares)

    settings = {"scratchpad": n, "seed": seed, "sizes": dict(sizes or {})}
    fitted, steps = train_single(network, loss, plan, settings, folder=folder, progress=progress)
    return network, fitted, steps


def taught_loss(network: BitScratchpad, weights: Weights, bits: Tensor, shares: Tensor) -> Tensor:
    """The mean squared error of a network with these weights, given the right symbols before each place.

    Arguments:
        network: whose weights are not used.
        weights: by name.
        bits: (batch, tokens) of -1 and 1.
        shares: of the strings in the mean, (batch,).
    """
    symbols = prefix_parities(bits)
    found: Tensor = functional_call(network, dict(weights), (bits, symbols))
    return ((found - (symbols + 1) / 2).square().mean(dim=1) * shares).sum()


def observe_scratchpad(
    network: BitScratchpad,
    n: int,
    *,
    directions: int = 100,
    strings: int = 256,
    tests: int = 512,
    level: float = 0.95,
    seed: int = 0,
) -> WrittenObservation:
    """Measure a network that writes parities.

    Arguments:
        network: in any mode; it is left as it was.
        n: bits.
        directions: of steps in the space of weights.
        strings: random ones for sharpness and blow-up, or all if there are no more.
        tests: the same for loss and accuracies.
        level: of the interval of the sharpness: over directions, and over strings if they were drawn.
        seed: of strings and directions.
    """
    checks.sizes(n=n, strings=strings, tests=tests)
    few, whole = draw_strings(n, strings, seed), draw_strings(n, tests, seed, "tests")
    inputs = {"bits": few, "scratchpad": prefix_parities(few)}
    rho = step_length(network)
    common: dict[str, Any] = {"rho": rho, "directions": directions, "label_values": (0.0, 1.0), "seed": seed}
    moved = average_direction_sharpness(network, inputs, level=level, **common)
    ends = moved.function.interval if len(few) == 2**n else moved.population
    right = (write_symbols(network, whole) == prefix_parities(whole)).double()
    written_accuracy = float(right.mean())
    sides = {protocol: _blowups(network, inputs, protocol) for protocol in ("paper", "released")}
    return WrittenObservation(
        loss=_loss(network, whole),
        written_accuracy=written_accuracy,
        answer_accuracy=float(right[:, -1].mean()),
        sharpness=moved.value,
        low=ends.low,
        high=ends.high,
        last_sharpness=average_direction_sharpness(_LastPlace(network), inputs, **common).value,
        rho=rho,
        encoder_blowup=sides["paper"][0],
        decoder_blowup=sides["paper"][1],
        released_encoder_blowup=sides["released"][0],
        released_decoder_blowup=sides["released"][1],
        norm=parameter_norm(network, skip=POSITIONS),
        has_converged=written_accuracy > ACCURATE,
    )


def write_symbols(network: BitScratchpad, bits: Tensor) -> Tensor:
    """The symbols that a network writes on its own, by greedy steps, (batch, tokens) of -1 and 1."""
    with preserve(network):
        return torch.cat([network.generate(part) for part in torch.split(bits, _AT_ONCE)])


def _loss(network: BitScratchpad, bits: Tensor) -> float:
    symbols = prefix_parities(bits)
    pairs = zip(*(torch.split(each, _AT_ONCE) for each in (bits, symbols)), strict=True)
    with preserve(network):
        found = torch.cat([network(*pair) for pair in pairs])
    return float((found - (symbols + 1) / 2).double().square().mean())


def _blowups(network: BitScratchpad, inputs: Mapping[str, Tensor], protocol: str) -> tuple[float, float]:
    """Of the encoder and of the decoder: means over strings of the product over norms, at the worst place of each."""
    found = layernorm_blowup(network, inputs, protocol=protocol, last_layer_norms=0)
    encoder, decoder = (
        [place for place, name in enumerate(found.norms) if name.startswith(side)] for side in ("encoder.", "decoder.")
    )
    return (
        float(np.prod(found.per_norm[:, encoder], axis=1).mean()),
        float(np.prod(found.per_norm[:, decoder], axis=1).mean()),
    )


class _LastPlace(nn.Module):
    """The number at the last place alone."""

    def __init__(self, network: BitScratchpad) -> None:
        super().__init__()
        self.network = network

    def forward(self, bits: Tensor, scratchpad: Tensor) -> Tensor:
        """(batch, tokens) -> (batch,)."""
        last: Tensor = self.network(bits, scratchpad)[:, -1]
        return last
