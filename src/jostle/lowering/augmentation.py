"""Noise added to the inputs of a network in training; the labels stay."""

import contextlib
from collections.abc import Mapping
from typing import Any, Literal, overload

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.specs import written
from jostle.lowering.moves import TokenMover, named_tensors, read_batch
from jostle.perturbations import GaussianNoise
from jostle.tokens import Batch, Embeddings, TextView, TokenView
from jostle.tokens.sources import ONLY

_MODES = ("append", "replace")
Mode = Literal["append", "replace"]


class NoiseAugmentation:
    """x + xi with xi ~ N(0, std^2 I) in place of x, or beside it; the label stays.

    Paper 1 (2403.06925), Section 7.1, trains on images with noise N(0, 0.1) on all pixels. It does not say whether 0.1
    is the variance (``std=0.316``) or the standard deviation, nor whether noisy images replace the clean ones or join
    them.

    >>> augment = NoiseAugmentation(std=0.5, mode="append")
    >>> inputs, labels = augment(torch.zeros(2, 3), torch.tensor([0, 1]))
    >>> tuple(inputs.shape), labels.tolist(), float(inputs[:2].abs().max())
    ((4, 3), [0, 1, 0, 1], 0.0)

    With a std or share of 0 inputs are returned unchanged, without a random number.

    Arguments:
        std: the standard deviation of the noise, at least 0.
        share: the probability that an input gets noise, independently for each input; 1 for all inputs.
        tokens: where the noise goes: by default everywhere, or in one random token of the input, e.g. ``Patches(4)``.
            Padding of inputs with a mask gets no noise. For texts, whose vectors are inside the model:
            ``Embeddings(whole=True)`` for all vectors, ``Embeddings()`` for one; see ``inside``.
        mode: ``replace`` puts noisy inputs in the place of the clean ones; ``append`` puts them, with their labels,
            after all clean ones, so that batches grow by ``share``. Texts can only be replaced.
    """

    def __init__(
        self, *, std: float, share: float = 1.0, tokens: TokenView | str = "whole", mode: Mode = "replace"
    ) -> None:
        self.std, self.share = checks.number("std", std, least=0), checks.number("share", share, least=0, most=1)
        self.mode = checks.choice("mode", mode, _MODES)
        self._mover = TokenMover(tokens, GaussianNoise(self.std))
        if isinstance(self._mover.view, TextView):
            _check_text(self._mover.view, mode)

    @property
    def is_inside(self) -> bool:
        """Whether the noise is added inside the model, by ``inside``, and not to its inputs."""
        return isinstance(self._mover.view, TextView)

    def inside(
        self, model: Any, inputs: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """For texts: a context in which ``model`` answers ``inputs`` with noise in their embeddings.

            with augment.inside(model, ids):
                logits = model(ids)

        Arguments:
            model: a model that ``jostle.Embeddings`` can be used with.
            inputs: the batch of token ids, or a mapping with an attention mask. The model must be called once with it.
            generator: of the random numbers; by default torch's global generator.
        """
        if not self.is_inside:
            raise UsageError(
                f"tokens={self._mover.view.describe()} of NoiseAugmentation: the noise is added to inputs, call "
                "augment(inputs, labels); for texts use tokens=Embeddings(whole=True)"
            )
        if self.std == 0 or self.share == 0:
            return contextlib.nullcontext()
        batch = read_batch(inputs)
        coins = self._coins(next(iter(batch.values())), generator)
        return self._mover.move_for(model, batch, None, generator, coins)[1]

    @overload
    def __call__(self, inputs: Tensor, labels: None = None, *, generator: torch.Generator | None = None) -> Tensor: ...
    @overload
    def __call__(
        self, inputs: Tensor, labels: Tensor, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(
        self, inputs: Mapping[str, Tensor], labels: None = None, *, generator: torch.Generator | None = None
    ) -> Batch: ...
    @overload
    def __call__(
        self, inputs: Mapping[str, Tensor], labels: Tensor, *, generator: torch.Generator | None = None
    ) -> tuple[Batch, Tensor]: ...
    def __call__(self, inputs: Any, labels: Tensor | None = None, *, generator: torch.Generator | None = None) -> Any:
        """The inputs with noise; with ``labels`` given, inputs and labels.

        Arguments:
            inputs: a batch, or a mapping of tensors with an attention mask.
            labels: (batch, ...); ``append`` needs them.
            generator: of the random numbers; by default torch's global generator of the device of ``inputs``.
        """
        if self.is_inside:
            raise UsageError(
                f"tokens={self._mover.view.describe()} of NoiseAugmentation are inside the model: write "
                "with augment.inside(model, inputs): logits = model(inputs)"
            )
        if self.mode == "append" and labels is None:
            raise UsageError("mode='append' of NoiseAugmentation makes more inputs: call augment(inputs, labels)")
        if labels is not None:
            self._check_labels(labels, named_tensors(inputs))
        if self.std == 0 or self.share == 0:
            return inputs if labels is None else (inputs, labels)
        batch = read_batch(inputs)
        if labels is None or self.mode == "replace":
            noisy = _as_given(self._replace_inputs(batch, generator))
            return noisy if labels is None else (noisy, labels)
        appended, labels = self._append_inputs(batch, labels, generator)
        return _as_given(appended), labels

    def describe(self) -> str:
        """All settings in one line, which distinguishes the checkpoints of different augmentations."""
        numbers = f"std={written(self.std)}, share={written(self.share)}"
        return f"noise-augmentation({numbers}, tokens={self._mover.view.describe()}, mode={self.mode})"

    def __repr__(self) -> str:
        return self.describe()

    def _check_labels(self, labels: Any, batch: Batch) -> None:
        """Raise unless there is a label for each input; ``append`` needs a tensor of labels."""
        if self.mode == "append" and not isinstance(labels, Tensor):
            raise UsageError(f"labels of type {type(labels).__name__} cannot be appended to; give a tensor")
        if not hasattr(labels, "__len__") or (isinstance(labels, Tensor) and labels.dim() == 0):
            raise checks.wrong("labels", labels, "one for each input, (batch, ...)")
        size = next((len(tensor) for tensor in batch.values() if tensor.dim()), 0)
        if len(labels) != size:
            raise UsageError(f"there are {len(labels)} labels for {size} inputs; give one for each")

    def _replace_inputs(self, batch: Batch, generator: torch.Generator | None) -> Batch:
        key = self._mover.key(batch)
        chosen = self._coins(batch[key], generator)
        noisy = self._mover.move(batch, None, generator)
        if chosen is None:
            return noisy
        chosen = chosen.view(-1, *[1] * (batch[key].dim() - 1))
        return {**batch, key: torch.where(chosen, noisy[key], batch[key])}

    def _append_inputs(self, batch: Batch, labels: Tensor, generator: torch.Generator | None) -> tuple[Batch, Tensor]:
        chosen = self._coins(batch[self._mover.key(batch)], generator)
        noisy = self._mover.move(batch, None, generator)
        added = labels
        if chosen is not None:
            noisy, added = {key: tensor[chosen] for key, tensor in noisy.items()}, labels[chosen.to(labels.device)]
        return {key: torch.cat([batch[key], noisy[key]]) for key in batch}, torch.cat([labels, added])

    def _coins(self, tokens: Tensor, generator: torch.Generator | None) -> Tensor | None:
        """Which inputs get noise, (batch,) of booleans; None for all of them."""
        if self.share == 1:
            return None
        return torch.rand(len(tokens), generator=generator, device=tokens.device) < self.share


def _check_text(view: TextView, mode: str) -> None:
    """Raise unless noise can be added to such tokens of texts."""
    if not isinstance(view, Embeddings):
        raise UsageError(
            f"tokens={view.describe()} of NoiseAugmentation: token ids take no noise; use Embeddings(whole=True)"
        )
    if mode != "replace":
        raise UsageError(f"mode={mode!r} of NoiseAugmentation: embeddings inside a model can only be replaced")


def _as_given(batch: Batch) -> Tensor | Batch:
    """A batch of one unnamed tensor as that tensor, as the caller gave it."""
    return batch[ONLY] if set(batch) == {ONLY} else batch
