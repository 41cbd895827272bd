"""Loss terms: how much the logits change when one token is jostled, or how little is left when all of them are.

``ChangePenalty`` is what both terms share, ``SensitivityPenalty`` and ``StabilityPenalty`` are the terms, and
``UnalignedSquares`` are the squares that the released code of the first jostles.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from jostle.base import checks, specs
from jostle.base.errors import UsageError
from jostle.base.specs import written
from jostle.lowering.answer import ask, read_logits
from jostle.lowering.moves import TokenMover, named_tensors, read_batch
from jostle.perturbations import Correlated, GaussianNoise, Perturbation
from jostle.tokens import VIEWS, TextView, TokenView, Whole
from jostle.tokens.views import must_fit

_Inputs = Tensor | Mapping[str, Tensor]
_HALF = (torch.bfloat16, torch.float16)
_PASSES_WITH_BACKWARD = 3  # a backward pass counts as two


class ChangePenalty(ABC):
    """strength * what ``compare`` makes of the logits of a batch and those of the batch with some tokens moved.

    The gradient goes through both passes. The model answers in the mode it is in. In train mode dropout is independent
    in the two passes, so part of the term is dropout's own noise. BatchNorm normalises the two batches separately, and
    its running statistics include both. NaN in inputs or logits makes the term NaN, as it does a loss, and raises
    nothing: gradient scalers rely on it. With a strength of 0, or a perturbation that moves nothing, the term is
    exactly 0, without a pass and without a random number.

    Attributes:
        name: in descriptions.
        passes: how many inputs the model answered for the penalty, over all calls. A backward pass counts as two, and
            is counted when the term is made: 3 for an input whose clean logits are given, 6 otherwise.

    Arguments:
        mover: what is moved, and how.
        strength: the weight of the term, at least 0; at most 1 for ``combine`` and ``mix``.
        mix: whether ``jostle.training.fit`` minimises ``combine`` (true) or loss + penalty (false).
    """

    name: ClassVar[str]

    def __init__(self, mover: TokenMover, strength: float, mix: bool) -> None:
        self._mover = mover
        self.strength, self.mix = checks.number("strength", strength, least=0), checks.truth("mix", mix)
        self.passes = 0
        if mix:
            self._check_share()

    @abstractmethod
    def compare(self, before: Tensor, after: Tensor) -> Tensor:
        """The term without the strength, a scalar, from the logits (batch, ...) of clean and of moved inputs."""

    @property
    def loss_share(self) -> float:
        """The factor of the loss in ``fit``: 1, or 1 - strength with ``mix``."""
        return 1.0 - self.strength if self.mix else 1.0

    def __call__(
        self,
        model: Callable[..., Any],
        inputs: _Inputs,
        *,
        clean: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The term to add to a loss, a scalar.

        Arguments:
            model: from a batch to logits (batch, classes), (batch, 1) or (batch,); mappings are passed by keyword.
            inputs: a batch, or a mapping with an attention mask. Padding is never jostled.
            clean: the logits of these inputs, if they are known, to save a pass. If they are detached, the gradient
                goes through the jostled pass alone.
            mask: (batch, tokens), true for tokens that may be jostled, for ``inputs`` without a mask of their own.
            generator: of the random numbers; by default torch's global generator of the device of ``inputs``.
        """
        if self.strength == 0:
            return _zero(inputs)
        return self.strength * self.change(model, inputs, clean=clean, mask=mask, generator=generator)

    def combine(
        self,
        loss: Tensor,
        model: Callable[..., Any],
        inputs: _Inputs,
        *,
        clean: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """(1 - strength) * loss + the penalty. Arguments as in the call."""
        self._check_share()
        if not isinstance(loss, Tensor | float | int):
            raise UsageError(f"loss of type {type(loss).__name__} must be a number: call combine(loss, model, inputs)")
        if self.strength == 0:
            return loss
        return (1 - self.strength) * loss + self(model, inputs, clean=clean, mask=mask, generator=generator)

    def change(
        self,
        model: Callable[..., Any],
        inputs: _Inputs,
        *,
        clean: Tensor | None = None,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The term without the strength. Arguments as in the call."""
        if self._mover.moves_nothing:
            return _zero(inputs)
        batch = read_batch(inputs)
        size = len(next(iter(batch.values())))
        # Before the clean pass, so that the noise is the same whether or not clean is given.
        jostled, inside = self._mover.move_for(model, batch, mask, generator)
        before = ask(model, batch) if clean is None else _given_logits(clean, size)
        with inside:
            after = ask(model, jostled)
        if before.shape != after.shape:
            raise UsageError(
                f"clean has shape {tuple(before.shape)}, but the model's logits have {tuple(after.shape)}; give the "
                "model's own output for these inputs"
            )
        passes = _PASSES_WITH_BACKWARD if after.requires_grad else 1
        self.passes += size * passes * (2 if clean is None else 1)
        return self.compare(_at_least_single(before), _at_least_single(after))

    def describe(self) -> str:
        """All settings in one line, which distinguishes the checkpoints of different penalties."""
        parts = [
            f"tokens={self._mover.view.describe()}",
            f"perturbation={self._mover.perturbation.describe()}",
            f"strength={written(self.strength)}",
        ]
        return f"{self.name}({', '.join(parts)}{', mix' if self.mix else ''})"

    def __repr__(self) -> str:
        return self.describe()

    def _check_share(self) -> None:
        if self.strength > 1:
            raise UsageError(
                f"strength={self.strength} of {type(self).__name__} leaves the loss a share of {1 - self.strength:g}; "
                "combine and mix need a strength of at most 1, or add the penalty to the loss"
            )


class SensitivityPenalty(ChangePenalty):
    """strength * mean over inputs x and logits k of (f_k(x with one random token jostled) - f_k(x))^2.

    Each call draws one token of every input and one noise for it. The gradient goes through both passes. Paper 1
    (2403.06925), Section 7.1, minimises (1 - p) * cross-entropy + p * that mean with p = 0.25, aligned 4 x 4 patches
    and noise of std 1: that is ``combine``, or ``mix=True`` in ``jostle.training.fit``. Calling the penalty gives the
    term alone, for a loss that keeps its weight.

    >>> bits = torch.tensor([[1.0, -1.0, 1.0]])
    >>> penalty = SensitivityPenalty(tokens="coordinates", perturbation="sign-flip", strength=0.25)
    >>> float(penalty(lambda x: x.sum(dim=1), bits))  # a flip changes the sum by 2, and 0.25 * 2^2 = 1
    1.0
    >>> penalty.passes  # one clean, one jostled, no gradient
    2

    ``ChangePenalty`` says what holds for dropout, BatchNorm, NaN, a strength or std of 0, and ``passes``.

    Arguments:
        tokens: what a token is, an object or a spec. The released code has ``UnalignedSquares(4, released=True)``.
        std: of the noise: short for ``perturbation=GaussianNoise(std)``; by default 1.
        strength: the weight of the term, at least 0; at most 1 for ``combine`` and ``mix``.
        perturbation: any perturbation of jostle, an object or a spec.
        mix: whether ``jostle.training.fit`` minimises ``combine`` (true) or loss + penalty (false).
    """

    name = "sensitivity-penalty"

    def __init__(
        self,
        *,
        tokens: TokenView | str = "patches:4",
        std: float | None = None,
        strength: float = 0.25,
        perturbation: Perturbation | str | None = None,
        mix: bool = False,
    ) -> None:
        checks.number("strength", strength, least=0)
        if std is not None and perturbation is not None:
            raise UsageError(f"std={std} and perturbation={perturbation!r} of SensitivityPenalty: give one of them")
        noise = GaussianNoise(1.0 if std is None else checks.number("std", std, least=0))
        super().__init__(TokenMover(tokens, noise if perturbation is None else perturbation), strength, mix)

    def compare(self, before: Tensor, after: Tensor) -> Tensor:
        """The mean squared change of the logits."""
        return (after - before).square().mean()


class StabilityPenalty(ChangePenalty):
    """strength * (1 - noise stability of the logits over the batch), with all tokens replaced by rho-correlated ones.

        1 - stability = sum |f(x) - f(y)|^2 / (sum |f(x)|^2 + sum |f(y)|^2)

    where y is a rho-correlated copy of x (``Correlated``) and the sums go over the inputs of the batch. Where y has the
    law of x the expected numerator and denominator give 1 - E[f(x) f(y)] / E[f(x)^2], the lost correlation that
    ``jostle.stability`` measures. The term is between 0 and 2 and does not change with the size of the logits, so that
    smaller logits do not lower it, as they lower ``SensitivityPenalty``. Of several logits their mean over the classes
    is taken away first, which no prediction and no cross-entropy sees.

    Regularisation by noise stability is that of arXiv 2602.08287. Its code is not released, and the exact form of its
    term, rho and weight are not known to us: this normalised form is our choice.

    >>> bits = torch.tensor([[1.0, -1.0, 1.0], [1.0, 1.0, 1.0]])
    >>> penalty = StabilityPenalty(rho=-1.0, vocabulary=(-1, 1))  # all bits are flipped, and the sum changes its sign
    >>> float(penalty(lambda x: x.sum(dim=1), bits))
    2.0

    ``ChangePenalty`` says what holds for dropout, BatchNorm, NaN, a strength of 0 or a rho of 1, and ``passes``.

    Arguments:
        rho: the correlation of the moved batch with the batch.
        strength: the weight of the term.
        tokens: ``Embeddings()`` for noise in all vectors of a text, ``Words()`` for ids; by default all numbers of the
            input.
        vocabulary: for ids and bits, see ``Correlated``.
        centre, std: of real-valued tokens, see ``Correlated``.
        mix: as for ``ChangePenalty``.
    """

    name = "stability-penalty"

    def __init__(
        self,
        *,
        rho: float = 0.9,
        strength: float = 1.0,
        tokens: TokenView | str = "whole",
        vocabulary: Any = None,
        centre: float = 0.0,
        std: float = 1.0,
        mix: bool = False,
    ) -> None:
        noise = Correlated(rho, vocabulary, centre, std)
        view = specs.build(VIEWS, tokens, "tokens", TokenView)
        every = replace(view, whole=True) if isinstance(view, TextView) else Whole(key=view.key, mask_key=view.mask_key)
        super().__init__(TokenMover(every, noise), strength, mix)

    def compare(self, before: Tensor, after: Tensor) -> Tensor:
        """The lost correlation of the logits, symmetric in the two batches; 0 where both are 0."""
        before, after = (_without_mean(logits) for logits in (before, after))
        total = before.square().sum() + after.square().sum()
        return (after - before).square().sum() / total.clamp_min(torch.finfo(total.dtype).tiny)


def _without_mean(logits: Tensor) -> Tensor:
    """Logits (batch, classes) without their mean over the classes; a single logit stays."""
    return logits if logits.dim() < 2 or logits.shape[-1] == 1 else logits - logits.mean(dim=-1, keepdim=True)


def _given_logits(clean: Any, size: int) -> Tensor:
    """The logits that the caller gave, with a message about the argument if they do not fit the inputs."""
    try:
        return read_logits(clean, size)
    except UsageError as error:
        raise UsageError(f"clean must be the model's own output for these {size} inputs: {error}") from None


def _at_least_single(logits: Tensor) -> Tensor:
    """Logits with half-precision ones in float32: a difference of numbers with three digits has none left."""
    return logits.float() if logits.dtype in _HALF else logits


def _zero(inputs: _Inputs) -> Tensor:
    """0 on the device of the inputs, in the type of the first real-valued one."""
    tensors = list(named_tensors(inputs).values())
    like = next((each for each in tensors if each.is_floating_point()), None)
    device = tensors[0].device if tensors else None
    return torch.zeros((), device=device, dtype=None if like is None else like.dtype)


@dataclass(frozen=True)
class UnalignedSquares(TokenView):
    """All squares of ``size`` x ``size`` pixels of an image, with all channels. Unlike patches they overlap.

    Positions are the places of the top left corner, row by row. The released code of paper 1's penalty (2403.06925,
    Section 7.1) draws such squares, and not the patches that a vision transformer sees.

    >>> UnalignedSquares(4).num_tokens((3, 32, 32)), UnalignedSquares(4, released=True).num_tokens((3, 32, 32))
    (841, 784)

    Arguments:
        size: the side of a square in pixels, at most height and width.
        released: leave out the last place of each row and column: 28 of 29 places for images of 32 x 32. The released
            code draws a place from ``randint(0, 28)``, whose end is exclusive, so the last row and column of pixels
            never move.
    """

    size: int
    released: bool = False

    def __post_init__(self) -> None:
        checks.whole("size", self.size, least=1)
        checks.truth("released", self.released)

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        must_fit(len(shape) in (2, 3), self, shape, "expected (channels, height, width) or (height, width)")
        height, width = shape[-2:]
        least = self.size + int(self.released)
        fits = height >= least and width >= least
        must_fit(fits, self, shape, f"height {height} and width {width} must be at least {least}")
        return height - least + 1, width - least + 1

    def grid(self, batch: Tensor) -> Tensor:
        rows, columns = self.positions(tuple(batch.shape[1:]))
        squares = batch.unfold(-2, self.size, 1).unfold(-2, self.size, 1)[..., :rows, :columns, :, :]
        return squares if batch.dim() == 3 else squares.permute(0, 2, 3, 1, 4, 5)  # (batch, rows, columns, ...)

    @property
    def spec(self) -> str:
        return f"unaligned-squares:{self.size}" + (",released=true" if self.released else "")
