"""Texts in which one random token is moved, in their ids or in their embeddings inside the model, or all of them."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jostle.perturbations import Deletion, Perturbation
from jostle.tokens import Batch, Embeddings, Inputs, Site, TextView
from jostle.tokens.padding import closed_up
from jostle.tokens.sources import ONLY
from jostle.tokens.text import padding_id

Choose = Callable[[int, int, Tensor | None, torch.device, torch.Generator | None], Tensor]
Moved = Callable[[Tensor, torch.Generator | None], Tensor]
Inside = contextlib.AbstractContextManager[None]


class TextJostling:
    """What happens to a batch of texts.

    Arguments:
        view: ``Words`` or ``Embeddings``.
        perturbation: what becomes of the token.
        choose: a position for each text, from its number, the number of columns and a mask.
        moved: new tokens (batch, dim) from old ones.
    """

    def __init__(self, view: TextView, perturbation: Perturbation, choose: Choose, moved: Moved) -> None:
        self.view, self.perturbation = view, perturbation
        self._choose, self._moved = choose, moved

    def __call__(
        self,
        model: Any,
        batch: Batch,
        mask: Tensor | None,
        generator: torch.Generator | None,
        chosen: Tensor | None = None,
    ) -> tuple[Batch, Inside]:
        """The batch to ask ``model`` about, and what to be within while it answers.

        Arguments:
            model: the model, whose padding and embeddings these are.
            batch: named tensors.
            mask: (batch, tokens), true for tokens that may be moved; by default all that are not padding.
            generator: of the random numbers.
            chosen: (batch,), in which texts embeddings are moved; by default in all.
        """
        pad = padding_id([model])
        held = Inputs(batch[ONLY] if set(batch) == {ONLY} else batch, self.view, mask, pad)
        ids = batch[held.key]
        allowed = None if held.mask is None else torch.from_numpy(held.mask)
        if isinstance(self.view, Embeddings) and self.view.whole:
            moving = (
                torch.ones_like(ids).bool() if held.moving is None else torch.from_numpy(held.moving).to(ids.device)
            )
            return batch, self._inside(model, self.view, moving, chosen, ids, generator)
        columns = self._choose(len(ids), ids.shape[1], allowed, ids.device, generator)
        if isinstance(self.view, Embeddings):
            one = torch.arange(ids.shape[1], device=ids.device) == columns[:, None]
            return batch, self._inside(model, self.view, one, chosen, ids, generator)
        rows = torch.arange(len(ids), device=ids.device)
        before = self.view.pick(ids, rows, columns)
        self.perturbation.check(before[:1])
        if self.perturbation.closes_up:
            return self._without(batch, held, columns), contextlib.nullcontext()
        after = self.view.put(ids.clone(), columns, self._moved(before, generator))
        return {**batch, held.key: after}, contextlib.nullcontext()

    def _inside(
        self,
        model: Any,
        view: Embeddings,
        moving: Tensor,
        chosen: Tensor | None,
        ids: Tensor,
        generator: torch.Generator | None,
    ) -> Inside:
        """Within, the vectors at ``moving``, (batch, tokens) of booleans, are moved in the texts that are chosen."""
        # A seed now, numbers when the size of an embedding is known: dropout on the way there draws from torch, too.
        seed = int(torch.randint(2**62, (1,), generator=generator, device=ids.device))
        if chosen is not None:
            moving = moving & chosen[:, None]

        def move(embedded: Tensor) -> Tensor:
            rows, columns = moving.to(embedded.device).nonzero(as_tuple=True)
            if not len(rows):
                return embedded
            before = embedded[rows, columns]  # (vectors that move, dim)
            self.perturbation.check(before[:1].detach())
            after = self._moved(before, torch.Generator(embedded.device).manual_seed(seed))
            changed = embedded.clone()
            changed[rows, columns] = after
            return changed

        rows, width = ids.shape
        return Site(model, view, takes_whole=True).edited(move, (rows, width))

    def _without(self, batch: Batch, held: Inputs, columns: Tensor) -> Batch:
        assert held.padding is not None
        own = self.perturbation.pad if isinstance(self.perturbation, Deletion) else None
        pad = held.pad if own is None else own
        last = torch.from_numpy(held.padding.stop - 1)
        return closed_up(batch, held.key, columns, last, 0 if pad is None else pad, held.padding.side)
