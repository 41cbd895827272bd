"""The inequalities of Lemma 9, Theorem 4 and Corollary 5: sensitivity needs blow-up, on every network that was trained.

With T the output of a network in units where labels are -1 and 1, B(x) the product over its layer norms of max over
positions of 1 + 1 / sqrt(variance + eps), y_n the token at the last position after the last block, H the number of
heads, s(x) = sum over i of (T(x) - T(x^i))^2 / 4, and x^i the string x with bit i flipped:

    Lemma 9       |y_n(x) - y_n(x^i)|             <=  C B(x) B(x^i) (1 / n + [i = n])
    Theorem 4     s(x) / sqrt(n log n)            <=  C (B(x)^2 + mean over i of B(x^i)^2)
    Corollary 5   as_n(T) / sqrt(n log n) - H / n <=  C E[B(x)^2]

The paper's C depends on the weights (norms of the matrices, an exponential of the largest attention score) and not on
n. A constant computed so is astronomically large, and nothing could violate it. So the *least* constant is computed
that makes an inequality hold for a network, and the question is whether it is at most 1.

Differs: the paper's layers have one norm, those of its experiments two, so B is a product over twice as many.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.boolean import cube, functions
from jostle.landscape import layernorm_blowup
from jostle.landscape.weights import preserve
from jostle.studies.schema import Struct
from jostle.studies.verdict import Expectation, holds_for_all
from jostle_papers.p2402_09963.hardness import Observation

CONSTANT = 1.0
HEADS = 2  # of the paper's network
_AT_ONCE = 512  # strings of a pass


@dataclass(frozen=True, kw_only=True)
class LeastConstants(Struct):
    """The least C that makes each inequality hold for a network, on all strings.

    Arguments:
        lemma: for all strings and bits.
        theorem: for all strings. The theorem lets a share of H / n^2 of them violate it.
        corollary: not positive if its left-hand side is not.
    """

    lemma: float
    theorem: float
    corollary: float


class CorollaryCase(NamedTuple):
    """What Corollary 5 is about, of one network that has learnt a function.

    Arguments:
        n: bits.
        sensitivity: as_n of the function, whose values are -1 and 1 (or between).
        loss: mean squared error where labels are 0 and 1.
        mean_square: E[B(x)^2], or a lower bound.
    """

    n: int
    sensitivity: float
    loss: float
    mean_square: float

    @property
    def constant(self) -> float:
        """An upper bound of the least constant, from as_n(T) <= (sqrt(as_n(f)) + sqrt(n E(T - f)^2))^2.

        The square root of as_n is a norm with weights of at most n; E(T - f)^2 is 4 times the loss.

        >>> round(CorollaryCase(n=8, sensitivity=8.0, loss=0.0, mean_square=400.0).constant, 5)
        0.00428
        """
        most = (math.sqrt(self.sensitivity) + 2 * math.sqrt(self.n * self.loss)) ** 2
        return (most / scale(self.n) - HEADS / self.n) / self.mean_square


def scale(n: int) -> float:
    """sqrt(n log n)."""
    return math.sqrt(checks.whole("n", n, least=2) * math.log(n))


def case_of(target: str, n: int, found: Observation) -> CorollaryCase:
    """The case of a network that was trained on a function by name."""
    sensitivity = functions.create(target, n).exact.total_sensitivity
    assert sensitivity is not None, target
    return CorollaryCase(n, sensitivity, found.loss, found.mean_square_blowup)


def expect_corollary(cases: Iterable[CorollaryCase]) -> Expectation:
    """That no network violates Corollary 5 with the constant 1; E[B^2] is over the strings that were tried."""
    constants = [case.constant for case in cases]
    return holds_for_all(
        "Corollary 5 with the constant 1: as_n / sqrt(n log n) - 2 / n is at most the mean square of the blow-up",
        sum(constant > CONSTANT for constant in constants),
        len(constants),
    )


def least_constants(network: nn.Module, n: int, heads: int = HEADS) -> LeastConstants:
    """The least constants of a network of the type ``BitEncoder``, from all 2^n strings.

    Arguments:
        network: its last module is ``readout``; it is left as it was.
        n: bits.
        heads: of attention.
    """
    strings = torch.from_numpy(cube.points(n)).to(next(network.parameters()).dtype)
    outputs, tokens = _last_tokens(network, strings)
    blowups = layernorm_blowup(network, strings).per_input  # (2^n,)
    flipped = np.stack([np.arange(2**n) ^ 1 << n - 1 - bit for bit in range(n)], axis=1)  # (2^n, n), rows of the cube
    changes = np.square(outputs[:, None] - outputs[flipped]).sum(axis=1)  # s(x): a quarter of squares of 2 T
    beside = np.square(blowups) + np.square(blowups[flipped]).mean(axis=1)
    moved = np.linalg.norm(tokens[:, None] - tokens[flipped], axis=2)  # (2^n, n)
    reach = np.full(n, 1 / n)
    reach[-1] += 1
    return LeastConstants(
        lemma=float((moved / (blowups[:, None] * blowups[flipped] * reach)).max()),
        theorem=float((changes / scale(n) / beside).max()),
        corollary=float((changes.mean() / scale(n) - heads / n) / np.square(blowups).mean()),
    )


def _last_tokens(network: nn.Module, strings: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The outputs (count,), and the token that the read-out reads, (count, dim)."""
    seen: list[Tensor] = []
    readout = network.get_submodule("readout")
    hook = readout.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        with preserve(network):
            outputs = torch.cat([network(part) for part in torch.split(strings, _AT_ONCE)])
    finally:
        hook.remove()
    return outputs.double().numpy(), torch.cat(seen).double().numpy()
