"""Training on strings of many lengths, and accuracy on longer ones.

A learned position beyond the longest string of training would never be trained. So strings are put at random places of
a longer table of positions: every position is trained, and only the length of a longer string is new. A network without
positions could not learn PARITY: attention then sees shares of symbols, which 10 and 1100, of different parity, have in
common.

The released code of paper 2 (2402.09963) has no such experiment. Its theory implies that PARITY does not carry over to
longer strings, and that a scratchpad helps.
"""

import copy
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.progress import Progress
from jostle.base.randomness import Stream
from jostle.models.bit_encoder import BitEncoder
from jostle.models.bit_scratchpad import BitScratchpad
from jostle_papers.p2402_09963.hardness.designs import HardnessDesign, HardnessPlan, check_seed
from jostle_papers.p2402_09963.hardness.observation import draw_strings
from jostle_papers.p2402_09963.hardness.passes import outputs
from jostle_papers.p2402_09963.hardness.scratchpad import create_scratchpad, taught_loss, write_symbols
from jostle_papers.p2402_09963.hardness.tasks import named_task
from jostle_papers.p2402_09963.hardness.training import Weights, train_single

BitNetwork = BitEncoder | BitScratchpad

_AT_ONCE = 256  # strings of a pass


@dataclass(frozen=True, kw_only=True)
class Span:
    """The lengths of training, and the table of positions that strings are put into.

    Arguments:
        shortest, longest: lengths of training, all equally often.
        table: number of positions, which is the longest string that can be tried.
    """

    shortest: int = 4
    longest: int = 8
    table: int = 16

    def __post_init__(self) -> None:
        checks.sizes(shortest=self.shortest, longest=self.longest, table=self.table)
        if not self.shortest <= self.longest <= self.table:
            raise UsageError(f"shortest, longest, table={self.shortest}, {self.longest}, {self.table} must not fall")

    def draw(self, seed: int, step: int, groups: int = 1) -> tuple[int, list[int]]:
        """The length of the strings of a step, and the offset of each group of them; all uniform.

        >>> Span(shortest=4, longest=4, table=4).draw(0, 7, groups=2)
        (4, [0, 0])
        """
        first, *others = Stream(seed, "length and offsets").uniforms([0], [0], [step], size=1 + groups)[0]
        length = self.shortest + int(first * (self.longest - self.shortest + 1))
        return length, [int(other * (self.table - length + 1)) for other in others]


def train_encoder(
    target: str,
    span: Span,
    design: HardnessDesign,
    plan: HardnessPlan,
    *,
    groups: int = 8,
    seed: int,
    folder: str | Path | None = None,
    progress: Progress = False,
) -> tuple[BitEncoder, int | None, int]:
    """Train a ``BitEncoder`` on a function of all lengths of ``span``, with one length a step.

    Arguments:
        target: a function of ``jostle.boolean.functions`` by name.
        span: lengths and positions.
        design: the network, a transformer.
        plan: the training.
        groups: into which the strings of a step are divided, each at an offset of its own; must divide the batch size.
        seed: of first weights, lengths, offsets and strings.
        folder: for the state; None for none.
        progress: true for a bar on a terminal and plain lines elsewhere, or a function of ``progress.State``.

    Returns:
        The network, the step after which it had fitted or None, and all steps.
    """
    seed, task = check_seed(seed), named_task(target, span.longest)
    network = design.create(span.table, seed)
    if not isinstance(network, BitEncoder):
        raise UsageError(f"architecture={design.architecture!r} cannot be put at offsets; expected 'transformer'")
    checks.sizes(groups=groups)
    if plan.batch_size % groups:
        raise UsageError(f"batch_size={plan.batch_size} must be a multiple of groups={groups}")

    def loss(weights: Weights, step: int) -> Tensor:
        length, offsets = span.draw(seed, step, groups)
        bits = _strings(plan.batch_size, length, seed, step)
        labels = torch.from_numpy(task.label(bits.numpy())).float().view(groups, -1)
        found = outputs(_at_offsets(weights, offsets, length), bits.view(groups, -1, length), design.heads)
        return (found - labels).square().mean()

    settings = {"target": target, "seed": seed, "groups": groups, **design.describe(), **asdict(span)}
    scale = statistics.fmean(task.scale(length) for length in range(span.shortest, span.longest + 1))
    fitted, steps = train_single(network, loss, plan, settings, scale=scale, folder=folder, progress=progress)
    return network, fitted, steps


def train_writer(
    span: Span,
    plan: HardnessPlan,
    *,
    dim: int = 32,
    seed: int,
    folder: str | Path | None = None,
    progress: Progress = False,
) -> tuple[BitScratchpad, int | None, int]:
    """Train a ``BitScratchpad`` to write the parities of all prefixes, with one length and one offset a step.

    Arguments and results are those of ``train_encoder``; ``dim`` is the size of a ``BitScratchpad``.
    """
    seed, task = check_seed(seed), named_task("parity", span.longest)
    network = create_scratchpad(span.table, seed, dim=dim)

    def loss(weights: Weights, step: int) -> Tensor:
        length, [offset] = span.draw(seed, step)
        bits, _, shares = task.batch(plan.batch_size, seed, step, length)
        shifted_weights = dict(weights) | {"positions": weights["positions"][offset:]}
        return taught_loss(network, shifted_weights, bits, shares)

    settings = {"scratchpad": True, "seed": seed, "dim": dim, **asdict(span)}
    fitted, steps = train_single(network, loss, plan, settings, folder=folder, progress=progress)
    return network, fitted, steps


@torch.no_grad()
def accuracy(
    network: BitNetwork, target: str, length: int, *, tests: int = 1024, places: int = 4, seed: int = 0
) -> float:
    """The share of right answers on strings of ``length``, at ``places`` offsets spread over the table.

    A network with a scratchpad writes all symbols on its own; its answer is the last one.

    Arguments:
        network: from ``train_encoder`` or ``train_writer``; it is left as it was.
        target: the function by name; parity for a scratchpad.
        length: bits, at most the number of positions.
        tests: random strings, or all if there are no more.
        places: offsets, or all if there are no more.
        seed: of the strings.
    """
    checks.sizes(length=length, tests=tests, places=places)
    bits = draw_strings(length, tests, seed, "tests")
    labels = torch.from_numpy(named_task(target, length).label(bits.numpy().astype(np.int8)) > 0.5)
    room = network.max_length - length
    offsets = sorted({round(room * place / max(places - 1, 1)) for place in range(places)})
    right = [_answers(shift_positions(network, offset), bits) == labels for offset in offsets]
    return float(torch.cat(right).double().mean())


@torch.no_grad()
def shift_positions(network: BitNetwork, offset: int) -> BitNetwork:
    """A copy of a network for strings that begin ``offset`` places into its table of positions."""
    twin = copy.deepcopy(network).eval()
    twin.positions.copy_(network.positions.roll(-offset, dims=0))
    return twin


def _strings(count: int, length: int, seed: int, step: int) -> Tensor:
    """Fresh strings, (count, length) of -1 and 1, as a function of seed and step."""
    numbers = Stream(seed, "strings").uniforms([0], [0], [step], size=count * length)
    return torch.from_numpy(np.where(numbers > 0.5, 1, -1).astype(np.int8)).view(count, length)


def _at_offsets(weights: Weights, offsets: list[int], length: int) -> dict[str, Tensor]:
    """The weights of one network for each of some offsets, (offsets, ...): only the positions differ."""
    same = {name: weight.expand(len(offsets), *weight.shape) for name, weight in weights.items()}
    places = torch.stack([weights["positions"][offset : offset + length] for offset in offsets])
    return same | {"positions": places}


def _answers(network: BitNetwork, bits: Tensor) -> Tensor:
    """Whether the answer to each string is 1, (batch,)."""
    if isinstance(network, BitScratchpad):
        return write_symbols(network, bits)[:, -1] > 0
    return torch.cat([network(part) for part in torch.split(bits, _AT_ONCE)]) > 0.5
