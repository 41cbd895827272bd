"""What a trained network is like: whether it fits, how sensitive its function is, and how its weights lie.

``observe`` measures a network. ``moved_tables`` gives the functions that it computes after steps of its weights.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.boolean import cube, pointwise
from jostle.landscape import POSITIONS, average_direction_sharpness, layernorm_blowup, parameter_norm
from jostle.landscape.layernorm import is_norm
from jostle.landscape.network import Network
from jostle.landscape.weights import WeightNoise, chosen_parameters, preserve
from jostle.studies.schema import Struct
from jostle_papers.p2402_09963.hardness.tasks import HardnessTask, derive_seed

CONVERGED = 1e-3
"""Paper 2's rule for a run that counts: a smaller mean squared error, where labels are 0 and 1."""

LARGEST = 12  # bits up to which all strings are tried
STEP = 0.02  # of each weight in the released code
_FLIPPED = 256  # strings beyond 12 bits whose neighbours are tried
_AT_ONCE = 512  # strings of a pass, if they are short
_SCORES = 2**23  # of attention in a pass, for a head

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Observation(Struct):
    """Measures of one network.

    Arguments:
        loss: mean squared error where labels are 0 and 1, on all strings up to 12 bits, otherwise on fresh ones.
        accuracy: share of strings on the right side of 0.5.
        total_sensitivity: as_n of the signs of output - 0.5; on a sample of strings beyond 12 bits.
        sharpness, low, high: average direction sharpness in units where labels are -1 and 1, by paper 2's definition,
            with its interval: for directions alone if all strings were tried, otherwise for drawn strings as well.
        released_sharpness: the increase of the loss under N(0, 0.02^2) on each weight, as in the released code.
        rho: the length of a step, 0.02 sqrt(number of weights moved).
        blowup, released_blowup: of the layer norms, by both definitions; 1, the product of nothing, without norms.
        mean_square_blowup: of paper 2's definition, over strings.
        norm: of all weights but positions.
        has_converged: whether the run counts: its loss is below 0.001.
    """

    loss: float
    accuracy: float
    total_sensitivity: float
    sharpness: float
    low: float
    high: float
    released_sharpness: float
    rho: float
    blowup: float
    released_blowup: float
    mean_square_blowup: float
    norm: float
    has_converged: bool


def observe(
    network: nn.Module,
    task: HardnessTask,
    *,
    directions: int = 100,
    strings: int = 256,
    tests: int = 4096,
    level: float = 0.95,
    seed: int = 0,
) -> Observation:
    """Measure a network that was trained on ``task``.

    Arguments:
        network: in any mode; it is left as it was.
        task: gives the labels for the loss, on all strings, trained on or not.
        directions: of steps in the space of weights.
        strings: random ones for sharpness and blow-up, or all if there are no more.
        tests: random ones for loss and accuracy beyond 12 bits.
        level: of the interval of the sharpness.
        seed: of strings and directions.
    """
    checks.sizes(strings=strings, tests=tests)
    few = draw_strings(task.n, strings, seed)
    many = draw_strings(task.n, 2**LARGEST if task.n <= LARGEST else tests, seed, "tests")
    labels = torch.from_numpy(task.label(few.numpy().astype(np.int8))).to(few.dtype)
    outputs, wanted = _outputs(network, many), task.label(many.numpy().astype(np.int8))
    rho = step_length(network)
    common: dict[str, Any] = {"directions": directions, "label_values": (0.0, 1.0), "seed": seed, "level": level}
    common["batch_size"] = min(128, _at_once(task.n) // 4)  # several directions are computed together
    moved = average_direction_sharpness(network, few, labels, rho=rho, **common)
    released = average_direction_sharpness(network, few, labels, protocol="released", std=STEP, **common)
    ends = moved.function.interval if len(few) == 2**task.n else moved.population
    blowup, released_blowup, mean_square_blowup = _blowups(network, few)
    loss = float(np.square(outputs - wanted).mean())
    return Observation(
        loss=loss,
        accuracy=float(((outputs > 0.5) == (wanted > 0.5)).mean()),
        total_sensitivity=_total_sensitivity(network, task.n, seed),
        sharpness=moved.value,
        low=ends.low,
        high=ends.high,
        released_sharpness=released.value,
        rho=rho,
        blowup=blowup,
        released_blowup=released_blowup,
        mean_square_blowup=mean_square_blowup,
        norm=parameter_norm(network, skip=POSITIONS),
        has_converged=loss < CONVERGED,
    )


def moved_tables(network: nn.Module, n: int, *, rho: float, directions: int, seed: int = 0) -> tuple[Floats, Floats]:
    """The outputs of a network at all 2^n strings, (2^n,), and those of copies whose weights took a step.

    The copies, (directions, 2^n) in table order, are those of ``average_direction_sharpness``: its value is factor *
    the mean of (copy - table)^2.

    >>> from jostle_papers.p2402_09963.hardness.designs import HardnessDesign
    >>> table, copies = moved_tables(HardnessDesign(dim=4).create(3, seed=0), 3, rho=0.1, directions=5)
    >>> table.shape, copies.shape
    ((8,), (5, 8))

    Arguments:
        network: on bits, one number for each string; it is left as it was.
        n: bits.
        rho: the length of a step; positions stay.
        directions: number of copies, at least 1.
        seed: of the directions.
    """
    checks.sizes(n=n, directions=directions)
    rho, seed = checks.number("rho", rho, least=0), checks.whole("seed", seed)
    strings = torch.from_numpy(cube.points(n)).to(next(network.parameters()).dtype)
    held = Network(network, strings, skip=POSITIONS)
    noise = WeightNoise(held.parameters, "sphere", rho, seed)
    copies = np.empty((directions, 2**n))
    with preserve(network):
        outputs = torch.cat([held.clean_outputs(rows) for rows in held.batches()])
        check_numbers(outputs, 2**n)
        table = outputs.double().numpy()
        for group in held.groups(noise, directions, None):
            for rows, moved in held.moved_outputs(noise, group):  # (batch, draws)
                copies[group, rows] = moved.double().mT.numpy()
    return table, copies


def step_length(network: nn.Module, std: float = STEP) -> float:
    """rho = std sqrt(number of weights but positions): as long as Gaussian steps of ``std`` on each of them are."""
    return std * math.sqrt(sum(weight.numel() for weight in chosen_parameters(network, POSITIONS).values()))


def draw_strings(n: int, count: int, seed: int, purpose: str = "measured") -> Tensor:
    """Random strings (count, n), others for another seed or purpose; or all in table order if there are no more."""
    checks.sizes(count=count)
    like, generator = torch.float32, torch.Generator().manual_seed(derive_seed(f"strings {purpose}", seed))
    if n <= 30 and 2**n <= count:
        return torch.from_numpy(cube.points(n)).to(like)
    return torch.randint(2, (count, n), generator=generator).to(like) * 2 - 1


def answers(network: nn.Module, n: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    """The function that a network computes: -1 or 1 by the side of 0.5, at all 2^n strings in table order."""
    return np.where(_outputs(network, draw_strings(n, 2**n, 0)) > 0.5, 1, -1).astype(np.int8)


def check_numbers(outputs: Tensor, count: int) -> None:
    """Raise unless a network has answered ``count`` strings with one number each; (count, 1) is refused."""
    if outputs.shape != (count,):
        raise UsageError(f"network answers with {tuple(outputs.shape)}; expected one number a string, ({count},)")


def _total_sensitivity(network: nn.Module, n: int, seed: int) -> float:
    if n <= LARGEST:
        return float(pointwise.influences(answers(network, n)).sum())
    points = draw_strings(n, _FLIPPED, seed, "flipped")
    flips = 1 - 2 * torch.eye(n, dtype=points.dtype)
    before = _outputs(network, points) > 0.5
    after = _outputs(network, (points[:, None] * flips).flatten(0, 1)).reshape(len(points), n) > 0.5
    return float((after != before[:, None]).sum(axis=1).mean())


def _blowups(network: nn.Module, bits: Tensor) -> tuple[float, float, float]:
    """By the paper's definition, by the released code's, and the mean square of the first."""
    if not any(map(is_norm, network.modules())):
        return 1.0, 1.0, 1.0
    found = layernorm_blowup(network, bits)
    return found.value, layernorm_blowup(network, bits, protocol="released").value, found.mean_square


def _at_once(n: int) -> int:
    """How many strings of n bits are in memory together: attention has n^2 scores for each. 512 up to 128 bits."""
    return min(_AT_ONCE, max(4, _SCORES // n**2))


def _outputs(network: nn.Module, bits: Tensor) -> Floats:
    with preserve(network):
        found = torch.cat([network(part) for part in torch.split(bits, _at_once(bits.shape[1]))])
    check_numbers(found, len(bits))
    return found.double().numpy()
