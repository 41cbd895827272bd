"""Noise added to the inputs that a network is trained on, with their labels kept."""

import contextlib
from collections.abc import Mapping
from typing import Any, Literal, overload

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.registry import unknown_name
from jostle.base.specs import written
from jostle.lowering.arguments import number
from jostle.lowering.moves import Jostling, as_batch, named
from jostle.perturbations import GaussianNoise, must_be_at_least_zero
from jostle.tokens import Batch, Embeddings, TextView, TokenView
from jostle.tokens.sources import ONLY

_MODES = ("append", "replace")
Mode = Literal["append", "replace"]


class NoiseAugmentation:
    """x + xi with xi ~ N(0, std^2 I) in place of x, or beside it; the label stays.

    Paper 1 (2403.06925), Section 7.1, trains on images with noise N(0, 0.1) all over. It does not say whether 0.1 is
    the variance (``std=0.316``) or the standard deviation, nor whether the noisy images replace the others or join
    them.

    >>> augment = NoiseAugmentation(std=0.5, mode="append")
    >>> inputs, labels = augment(torch.zeros(2, 3), torch.tensor([0, 1]))
    >>> tuple(inputs.shape), labels.tolist(), float(inputs[:2].abs().max())
    ((4, 3), [0, 1, 0, 1], 0.0)

    A std or share of 0 is exactly nothing: what comes in goes out, without a random number.

    Arguments:
        std: the standard deviation of the noise, at least 0.
        share: the probability with which an input gets noise, each by its own coin; 1 for all.
        tokens: where: everywhere by default, or in one random token of the input, e.g. ``Patches(4)``. Padding, where
            inputs are mappings with a mask, gets none. For texts, whose vectors are inside the model,
            ``Embeddings(whole=True)`` for all of them and ``Embeddings()`` for one; see ``inside``.
        mode: ``replace`` puts noisy inputs in the place of the others; ``append`` puts them, with their labels, after
            all the others, so that batches grow by ``share``. Texts know ``replace`` only.
    """

    def __init__(
        self, *, std: float, share: float = 1.0, tokens: TokenView | str = "whole", mode: Mode = "replace"
    ) -> None:
        std, share = number(std), number(share)
        must_be_at_least_zero("std", std, "NoiseAugmentation")
        must_be_at_least_zero("share", share, "NoiseAugmentation")
        if share > 1:
            raise UsageError(f"share={share} of NoiseAugmentation must lie between 0 and 1")
        if mode not in _MODES:
            raise unknown_name("mode of NoiseAugmentation", str(mode), _MODES)
        self.std, self.share, self.mode = std, share, mode
        self._jostling = Jostling(tokens, GaussianNoise(std))
        if isinstance(self._jostling.view, TextView):
            _check_text(self._jostling.view, mode)

    @property
    def is_inside(self) -> bool:
        """Whether the noise is added inside the model, by ``inside``, and not to its inputs."""
        return isinstance(self._jostling.view, TextView)

    def inside(
        self, model: Any, inputs: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Within, ``model`` answers ``inputs`` with noise in their embeddings: for texts.

            with augment.inside(model, ids):
                logits = model(ids)

        Arguments:
            model: as ``jostle.Embeddings`` takes it.
            inputs: the batch of token ids, or a mapping with an attention mask, that it is then called with once.
            generator: of the random numbers; by default torch's global one.
        """
        if not self.is_inside:
            raise UsageError(
                f"tokens={self._jostling.view.describe()} of NoiseAugmentation: the noise is added to inputs, call "
                "augment(inputs, labels); for texts use tokens=Embeddings(whole=True)"
            )
        if self.std == 0 or self.share == 0:
            return contextlib.nullcontext()
        batch = as_batch(inputs)
        coins = self._coins(next(iter(batch.values())), generator)
        return self._jostling.applied(model, batch, None, generator, coins)[1]

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
            generator: of the random numbers; by default torch's global one of the device of ``inputs``.
        """
        if self.is_inside:
            raise UsageError(
                f"tokens={self._jostling.view.describe()} of NoiseAugmentation are inside the model: write "
                "with augment.inside(model, inputs): logits = model(inputs)"
            )
        if self.mode == "append" and labels is None:
            raise UsageError("mode='append' of NoiseAugmentation makes more inputs: call augment(inputs, labels)")
        if labels is not None:
            self._check_labels(labels, named(inputs))
        if self.std == 0 or self.share == 0:
            return inputs if labels is None else (inputs, labels)
        batch = as_batch(inputs)
        if labels is None or self.mode == "replace":
            given = _as_given(self._replaced(batch, generator))
            return given if labels is None else (given, labels)
        appended, labels = self._appended(batch, labels, generator)
        return _as_given(appended), labels

    def describe(self) -> str:
        """All choices in one line, by which a checkpoint of another augmentation is told apart."""
        numbers = f"std={written(self.std)}, share={written(self.share)}"
        return f"noise-augmentation({numbers}, tokens={self._jostling.view.describe()}, mode={self.mode})"

    def __repr__(self) -> str:
        return self.describe()

    def _check_labels(self, labels: Any, batch: Batch) -> None:
        """Raise unless there is a label for each input, in a tensor if labels are added."""
        if self.mode == "append" and not isinstance(labels, Tensor):
            raise UsageError(f"labels of type {type(labels).__name__} cannot be added to; give a tensor")
        if not hasattr(labels, "__len__") or (isinstance(labels, Tensor) and labels.dim() == 0):
            raise UsageError(f"labels={labels!r} must be one for each input, (batch, ...)")
        size = next((len(tensor) for tensor in batch.values() if tensor.dim()), 0)
        if len(labels) != size:
            raise UsageError(f"labels={len(labels)} in number, inputs={size}: give as many")

    def _replaced(self, batch: Batch, generator: torch.Generator | None) -> Batch:
        key = self._jostling.key(batch)
        chosen = self._coins(batch[key], generator)
        noisy = self._jostling(batch, None, generator)
        if chosen is None:
            return noisy
        chosen = chosen.view(-1, *[1] * (batch[key].dim() - 1))
        return {**batch, key: torch.where(chosen, noisy[key], batch[key])}

    def _appended(self, batch: Batch, labels: Tensor, generator: torch.Generator | None) -> tuple[Batch, Tensor]:
        chosen = self._coins(batch[self._jostling.key(batch)], generator)
        noisy = self._jostling(batch, None, generator)
        added = labels
        if chosen is not None:
            noisy, added = {key: tensor[chosen] for key, tensor in noisy.items()}, labels[chosen.to(labels.device)]
        return {key: torch.cat([batch[key], noisy[key]]) for key in batch}, torch.cat([labels, added])

    def _coins(self, tokens: Tensor, generator: torch.Generator | None) -> Tensor | None:
        """Which inputs get noise, (batch,); None for all of them."""
        if self.share == 1:
            return None
        return torch.rand(len(tokens), generator=generator, device=tokens.device) < self.share


def _check_text(view: TextView, mode: str) -> None:
    """Raise unless noise can be added to tokens of texts."""
    if not isinstance(view, Embeddings):
        raise UsageError(
            f"tokens={view.describe()} of NoiseAugmentation: token ids take no noise; use Embeddings(whole=True)"
        )
    if mode != "replace":
        raise UsageError(f"mode={mode!r} of NoiseAugmentation: embeddings inside a model can only be replaced")


def _as_given(batch: Batch) -> Tensor | Batch:
    return batch[ONLY] if set(batch) == {ONLY} else batch
