"""Trials in, changes out: builds jostled batches once and asks every model about them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.errors import UsageError
from jostle.perturbations import Perturbation
from jostle.randomness import Stream
from jostle.responses import Response
from jostle.sampling.trials import Integers, Trials
from jostle.tokens import Batch, Inputs, TokenFunction

Changes = NDArray[np.float64]

_UNIFORMS_AT_ONCE = 2**15  # 2**18 cost 5 % more in page faults and cache misses
_BATCHES_AT_ONCE = 32
_COMPARED_AT_ONCE = 2**20
_REMEMBERED_NUMBERS = 2**25


class Evaluation:
    """Several models, one set of inputs, one kind of jostle, one response.

    Memory holds one batch, one chunk of random numbers and outputs, and the references of the inputs visited so far,
    never N x T of anything.

    Arguments:
        functions: the models; all see the same jostled inputs.
        perturbation: what a token becomes.
        response: what counts as a change.
        seed: of the noise.
        batch_size: how many inputs a model answers at once.
    """

    def __init__(
        self,
        functions: list[TokenFunction],
        perturbation: Perturbation,
        response: Response,
        seed: int,
        batch_size: int,
    ) -> None:
        self.functions, self.perturbation, self.response = functions, perturbation, response
        self.inputs: Inputs = functions[0].inputs
        self.batch_size = batch_size
        self.nonfinite = np.zeros(len(functions), dtype=np.int64)
        self._noise = Stream(seed, "noise")
        self._num_uniforms = perturbation.num_uniforms(self.inputs.dim)
        batches = _UNIFORMS_AT_ONCE // max(1, self._num_uniforms) // batch_size
        self._chunk = batch_size * min(max(batches, 1), _BATCHES_AT_ONCE)
        self._references = [References(function, response, batch_size) for function in functions]

    @property
    def passes(self) -> int:
        """Inputs answered by the model that answered most."""
        return max(function.passes for function in self.functions)

    def prepare(self, indices: Integers) -> None:
        """Make the clean passes of these inputs now, in full batches."""
        for reference in self._references:
            reference.prepare(indices)

    def changes(self, trials: Trials) -> Changes:
        """(models, trials): the change in each trial, NaN where a model's output or the change is not finite."""
        out = np.zeros((len(self.functions), len(trials)))
        self.prepare(trials.inputs)
        for start in range(0, len(trials), self._chunk):
            part = trials[start : start + self._chunk]
            moved, tokens = self.moved_tokens(part)
            jostled = part if len(moved) == len(part) else part[moved]
            rows = start + moved
            pending = [Pending(function, self.response) for function in self.functions]
            for first in range(0, len(jostled), self.batch_size):
                batch = self.jostled(jostled[first : first + self.batch_size], tokens[first : first + self.batch_size])
                for each in pending[:-1]:
                    each.ask({key: tensor.clone() for key, tensor in batch.items()})  # it may change its inputs
                pending[-1].ask(batch)
            for index, (each, reference) in enumerate(zip(pending, self._references, strict=True)):
                out[index, rows] = each.changes(reference.of(jostled.inputs))
        self.nonfinite += np.isnan(out).sum(axis=1)
        return out

    def moved_tokens(self, trials: Trials) -> tuple[Integers, Tensor]:
        """Which of these trials move their token, and the new tokens (moved, dim).

        A trial whose token comes out bit for bit as it was (no noise, the same token drawn again) has no change by
        definition; it is left out and costs no pass.
        """
        uniforms = self._noise.uniforms(trials.inputs, trials.tokens, trials.draws, self._num_uniforms)
        before = self.inputs.tokens(trials.inputs, trials.tokens)
        after = self.perturbation.apply(before, uniforms)
        is_moved = (after != before).any(dim=1).numpy()
        moved = np.flatnonzero(is_moved)
        return moved, after if len(moved) == len(after) else after[torch.from_numpy(moved)]

    def jostled(self, trials: Trials, tokens: Tensor) -> Batch:
        """The inputs of these trials with their one token replaced by ``tokens`` (trials, dim)."""
        batch = self.inputs.batch(trials.inputs)
        self.inputs.view.put(batch[self.inputs.key], torch.from_numpy(trials.tokens), tokens)
        return batch

    def new_passes(self, trials: Trials) -> Integers:
        """(trials,): passes a model needs for the first 1, 2, ... of these trials, clean ones included."""
        fresh = np.zeros(len(trials), dtype=np.int64)
        first_seen = np.unique(trials.inputs, return_index=True)[1]
        fresh[first_seen] = ~self._references[0].is_known(trials.inputs[first_seen])
        return np.cumsum(1 + fresh)


class Pending:
    """Outputs of a model that wait for their comparison: small ones are compared many at a time, which is quicker."""

    def __init__(self, function: TokenFunction, response: Response) -> None:
        self.function, self.response = function, response
        self._outputs: list[Tensor] = []

    def ask(self, batch: Batch) -> None:
        """Let the model answer a batch."""
        self._outputs.append(self.function(batch).clone())  # it may use the same memory again

    def changes(self, reference: Tensor) -> Changes:
        """The change of every input asked about against its reference, in order."""
        parts, first = [np.empty(0)], 0
        for outputs in _joined(self._outputs):
            change = self.response.change(reference[first : first + len(outputs)], outputs)
            finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1) & change.isfinite()
            parts.append(change.masked_fill(~finite, torch.nan).numpy())
            first += len(outputs)
        return np.concatenate(parts)


def _joined(outputs: list[Tensor]) -> list[Tensor]:
    """Small outputs as one tensor, large ones as they are."""
    is_small = sum(part.numel() for part in outputs) <= _COMPARED_AT_ONCE
    return [torch.cat(outputs)] if outputs and is_small else outputs


class References:
    """What a response remembers of a model's clean outputs, computed once an input where that fits in memory."""

    def __init__(self, function: TokenFunction, response: Response, batch_size: int) -> None:
        self.function, self.response, self.batch_size = function, response, batch_size
        self._known = np.zeros(len(function.inputs), dtype=bool)
        self._store: Tensor | None = None
        self._is_too_large = False

    def is_known(self, indices: Integers) -> NDArray[np.bool_]:
        """Which of these inputs need no clean pass any more."""
        return self._known[indices]

    def prepare(self, indices: Integers) -> None:
        """Make the clean passes of these inputs now, if what they give can be kept."""
        if not self._is_too_large:
            self.of(indices)

    def of(self, indices: Integers) -> Tensor:
        """The references of these inputs, (len(indices), ...)."""
        if not len(indices):
            return torch.empty(0)
        distinct, back = np.unique(indices, return_inverse=True)
        missing = distinct[~self._known[distinct]]
        made = [self._make(missing[at : at + self.batch_size]) for at in range(0, len(missing), self.batch_size)]
        if made and self._store is None and len(self._known) * made[0][0].numel() > _REMEMBERED_NUMBERS:
            self._is_too_large = True
            return torch.cat(made)[torch.from_numpy(back)]
        if made:
            if self._store is None:
                self._store = torch.empty((len(self._known), *made[0].shape[1:]), dtype=made[0].dtype)
            self._store[torch.from_numpy(missing)] = torch.cat(made)
            self._known[missing] = True
        assert self._store is not None
        return self._store[torch.from_numpy(indices)]

    def _make(self, indices: Integers) -> Tensor:
        outputs = self.function(self.function.inputs.batch(indices))
        finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).numpy()
        if not finite.all():
            raise UsageError(
                f"{self.function.name} answers {int((~finite).sum())} of {len(finite)} unperturbed inputs with NaN or "
                f"infinity (first: input {indices[~finite][0]}); its predictions there mean nothing"
            )
        return self.response.reference(outputs.clone())  # it may use the same memory again
