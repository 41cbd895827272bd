"""Texts with one random token moved, or all of them: as ids, or as embeddings inside the model."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.perturbations import Deletion, Perturbation
from jostle.tokens import Batch, Embeddings, Inputs, Site, TextView
from jostle.tokens.padding import close_up
from jostle.tokens.sources import ONLY
from jostle.tokens.text import padding_id

ChoosePositions = Callable[[int, int, Tensor | None, torch.device, torch.Generator | None], Tensor]
MoveTokens = Callable[[Tensor, torch.Generator | None], Tensor]
Inside = contextlib.AbstractContextManager[None]


class TextMover:
    """Moves one random token of each text of a batch, or all tokens for a view with ``whole=True``.

    Arguments:
        view: ``Words`` or ``Embeddings``.
        perturbation: what a token becomes.
        choose_positions: a function of the number of texts, the number of columns, a mask, the device and a generator
            to a position for each text.
        move_tokens: a function of tokens (batch, dim) and a generator to new tokens.
    """

    def __init__(
        self,
        view: TextView,
        perturbation: Perturbation,
        choose_positions: ChoosePositions,
        move_tokens: MoveTokens,
    ) -> None:
        self.view, self.perturbation = view, perturbation
        self._choose_positions, self._move_tokens = choose_positions, move_tokens

    def move_for(
        self,
        model: Any,
        batch: Batch,
        mask: Tensor | None,
        generator: torch.Generator | None,
        chosen: Tensor | None = None,
    ) -> tuple[Batch, Inside]:
        """The batch for ``model``, and a context in which ``model`` must answer it.

        Arguments:
            model: the model that will answer. It knows the id of padding, and it holds the embeddings.
            batch: named tensors.
            mask: (batch, tokens), true for tokens that may be moved; by default all tokens that are not padding.
            generator: of the random numbers.
            chosen: (batch,), true for texts whose embeddings are moved; by default all.
        """
        pad = padding_id([model])
        held = Inputs(batch[ONLY] if set(batch) == {ONLY} else batch, self.view, mask, pad)
        ids = batch[held.key]
        allowed = None if held.mask is None else torch.from_numpy(held.mask)
        if self.view.whole:
            moving = (
                torch.ones_like(ids).bool() if held.moving is None else torch.from_numpy(held.moving).to(ids.device)
            )
            if isinstance(self.view, Embeddings):
                return batch, self._moving_embeddings(model, self.view, moving, chosen, ids, generator)
            return {**batch, held.key: self._move_words(ids, moving, generator)}, contextlib.nullcontext()
        columns = self._choose_positions(len(ids), ids.shape[1], allowed, ids.device, generator)
        if isinstance(self.view, Embeddings):
            one = torch.arange(ids.shape[1], device=ids.device) == columns[:, None]
            return batch, self._moving_embeddings(model, self.view, one, chosen, ids, generator)
        rows = torch.arange(len(ids), device=ids.device)
        before = self.view.pick(ids, rows, columns)
        self.perturbation.check(before[:1])
        if self.perturbation.closes_up:
            return self._delete_tokens(batch, held, columns), contextlib.nullcontext()
        after = self.view.put(ids.clone(), columns, self._move_tokens(before, generator))
        return {**batch, held.key: after}, contextlib.nullcontext()

    def _moving_embeddings(
        self,
        model: Any,
        view: Embeddings,
        moving: Tensor,
        chosen: Tensor | None,
        ids: Tensor,
        generator: torch.Generator | None,
    ) -> Inside:
        """A context in which the model's embeddings are moved where ``moving`` (batch, tokens) is true.

        Only chosen texts are moved.
        """
        # The seed is drawn now, and the noise when the size of an embedding is known: dropout on the way to the
        # embeddings draws from torch's generator, too.
        seed = int(torch.randint(2**62, (1,), generator=generator, device=ids.device))
        if chosen is not None:
            moving = moving & chosen[:, None]

        def move(embedded: Tensor) -> Tensor:
            rows, columns = moving.to(embedded.device).nonzero(as_tuple=True)
            if not len(rows):
                return embedded
            before = embedded[rows, columns]  # (vectors that move, dim)
            self.perturbation.check(before[:1].detach())
            after = self._move_tokens(before, torch.Generator(embedded.device).manual_seed(seed))
            changed = embedded.clone()
            changed[rows, columns] = after
            return changed

        rows, width = ids.shape
        return Site(model, view, takes_whole=True).edited(move, (rows, width))

    def _move_words(self, ids: Tensor, moving: Tensor, generator: torch.Generator | None) -> Tensor:
        """Token ids (batch, columns) with each that is ``moving`` changed as it would be alone."""
        before = ids[moving][:, None]
        self.perturbation.check(before[:1])
        if self.perturbation.closes_up:
            raise UsageError(f"perturbation={self.perturbation.describe()} of whole texts: leave out whole=true")
        after = ids.clone()
        after[moving] = self._move_tokens(before, generator)[:, 0]
        return after

    def _delete_tokens(self, batch: Batch, held: Inputs, columns: Tensor) -> Batch:
        """The batch without the tokens at ``columns``; the gaps are closed."""
        assert held.padding is not None
        own = self.perturbation.pad if isinstance(self.perturbation, Deletion) else None
        pad = held.pad if own is None else own
        last = torch.from_numpy(held.padding.stop - 1)
        return close_up(batch, held.key, columns, last, 0 if pad is None else pad, held.padding.side)
