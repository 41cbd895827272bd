"""A loss term for the change of the logits when one token is jostled."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.specs import written
from jostle.lowering.answer import ask, logits_of
from jostle.lowering.arguments import number, truth
from jostle.lowering.moves import Jostling, as_batch, named
from jostle.perturbations import GaussianNoise, Perturbation, must_be_at_least_zero
from jostle.tokens import TokenView

_Given = Tensor | Mapping[str, Tensor]
_HALF = (torch.bfloat16, torch.float16)
_PASSES_WITH_BACKWARD = 3  # a backward pass counts as two


class SensitivityPenalty:
    """strength * mean over inputs x and logits k of (f_k(x with one random token jostled) - f_k(x))^2.

    One token of every input, drawn anew in each call, and one draw of noise; the gradient goes through both passes.
    Paper 1 (2403.06925), Section 7.1, minimises (1 - p) * cross-entropy + p * that mean with p = 0.25, aligned 4 x 4
    patches and noise of std 1: that is ``combine``, or ``mix=True`` within ``jostle.training.fit``. The call is the
    term alone, to be added to a loss that keeps its weight.

    >>> bits = torch.tensor([[1.0, -1.0, 1.0]])
    >>> penalty = SensitivityPenalty(tokens="coordinates", perturbation="sign-flip", strength=0.25)
    >>> float(penalty(lambda x: x.sum(dim=1), bits))  # a flip changes the sum by 2, and 0.25 * 2^2 = 1
    1.0
    >>> penalty.passes  # one clean, one jostled, no gradient
    2

    The model is asked in the mode it is in. In train mode dropout is independent in the two passes, as in the paper,
    so part of the term is dropout's own noise; BatchNorm normalises clean and jostled batches apart, and its running
    statistics take up both. NaN among inputs or logits makes the term NaN, as it does a loss, and is not refused:
    gradient scalers count on it.

    A strength or std of 0 is exactly nothing: 0, without a pass and without a random number.

    Attributes:
        passes: inputs answered for the penalty so far, over all calls, a backward pass counted as two (and counted
            when the term is made): 3 for an input whose clean logits are handed in, 6 otherwise.

    Arguments:
        tokens: what a token is, an object or a spec; ``UnalignedSquares(4, released=True)`` is the released code's.
        std: of the noise: short for ``perturbation=GaussianNoise(std)``; 1 unless ``perturbation`` is given.
        strength: the weight of the term, at least 0; at most 1 for ``combine`` and ``mix``.
        perturbation: any of jostle's, an object or a spec.
        mix: whether ``jostle.training.fit`` minimises ``combine`` (true) or loss + penalty (false).
    """

    def __init__(
        self,
        *,
        tokens: TokenView | str = "patches:4",
        std: float | None = None,
        strength: float = 0.25,
        perturbation: Perturbation | str | None = None,
        mix: bool = False,
    ) -> None:
        strength, std = number(strength), number(std)
        must_be_at_least_zero("strength", strength, "SensitivityPenalty")
        if std is not None and perturbation is not None:
            raise UsageError(f"std={std} and perturbation={perturbation!r} of SensitivityPenalty: give one of them")
        if std is not None:
            must_be_at_least_zero("std", std, "SensitivityPenalty")
        noise = GaussianNoise(1.0 if std is None else std)
        self._jostling = Jostling(tokens, noise if perturbation is None else perturbation)
        self.strength, self.mix, self.passes = strength, truth("mix", mix, "SensitivityPenalty"), 0
        if mix:
            self._check_share()

    @property
    def loss_share(self) -> float:
        """What ``fit`` multiplies the loss with: 1, or 1 - strength with ``mix``."""
        return 1.0 - self.strength if self.mix else 1.0

    def __call__(
        self,
        model: Callable[..., Any],
        inputs: _Given,
        *,
        clean: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The term to be added to a loss, a scalar.

        Arguments:
            model: from a batch to logits (batch, classes), (batch, 1) or (batch,); mappings are passed by keyword.
            inputs: a batch, or a mapping with an attention mask, whose padding is then never jostled.
            clean: the logits of these inputs, if they are there already, to save a pass. Logits without gradient, say
                detached ones, let the gradient through the jostled pass alone.
            mask: (batch, tokens), true for tokens that may be jostled, if ``inputs`` bring none of their own.
            generator: of the random numbers; by default torch's global one of the device of ``inputs``.
        """
        if self.strength == 0:
            return _zero(inputs)
        return self.strength * self.change(model, inputs, clean=clean, mask=mask, generator=generator)

    def combine(
        self,
        loss: Tensor,
        model: Callable[..., Any],
        inputs: _Given,
        *,
        clean: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """(1 - strength) * loss + the penalty: the objective of paper 1. Arguments as in the call."""
        self._check_share()
        if not isinstance(loss, Tensor | float | int):
            raise UsageError(f"loss of type {type(loss).__name__} must be a number: call combine(loss, model, inputs)")
        if self.strength == 0:
            return loss
        return (1 - self.strength) * loss + self(model, inputs, clean=clean, mask=mask, generator=generator)

    def change(
        self,
        model: Callable[..., Any],
        inputs: _Given,
        *,
        clean: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The mean squared change of the logits, without the strength. Arguments as in the call."""
        if self._jostling.moves_nothing:
            return _zero(inputs)
        batch = as_batch(inputs)
        size = len(next(iter(batch.values())))
        # First: the same noise whether or not clean is given.
        jostled, inside = self._jostling.applied(model, batch, mask, generator)
        before = ask(model, batch) if clean is None else logits_of(clean, size, "clean")
        with inside:
            after = ask(model, jostled)
        if before.shape != after.shape:
            raise UsageError(
                f"clean has shape {tuple(before.shape)}, but the model's logits have {tuple(after.shape)}; give the "
                "model's own output for these inputs"
            )
        each = _PASSES_WITH_BACKWARD if after.requires_grad else 1
        self.passes += size * each * (2 if clean is None else 1)
        return (_precise(after) - _precise(before)).square().mean()

    def describe(self) -> str:
        """All choices in one line, by which a checkpoint of another penalty is told apart."""
        parts = [
            f"tokens={self._jostling.view.describe()}",
            f"perturbation={self._jostling.perturbation.describe()}",
            f"strength={written(self.strength)}",
        ]
        return f"sensitivity-penalty({', '.join(parts)}{', mix' if self.mix else ''})"

    def __repr__(self) -> str:
        return self.describe()

    def _check_share(self) -> None:
        if self.strength > 1:
            raise UsageError(
                f"strength={self.strength} of SensitivityPenalty leaves the loss a share of {1 - self.strength:g}; "
                "combine and mix need a strength of at most 1, or add the penalty to the loss"
            )


def _precise(logits: Tensor) -> Tensor:
    """Half-precision logits in float32: three digits do not make a difference."""
    return logits.float() if logits.dtype in _HALF else logits


def _zero(inputs: _Given) -> Tensor:
    """0 on the device of the inputs, in their type if that is real."""
    tensors = list(named(inputs).values())
    like = next((each for each in tensors if each.is_floating_point()), None)
    device = tensors[0].device if tensors else None
    return torch.zeros((), device=device, dtype=None if like is None else like.dtype)
