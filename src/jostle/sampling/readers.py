"""Readers: cheaper ways to a model's answers than asking it about whole inputs, exact up to rounding.

A trial changes one token, and part of what a model computes cannot change with it. A ``Reader`` knows that part for one
kind of model: it remembers something of the clean inputs and answers trials from there. ``readers.find`` looks for one
by the type of the model; a model without a reader is asked about whole inputs. Five exist: ``chains`` (networks
that are a chain of layers, such as MLPs and small CNNs), ``prefixes`` (models that read a text in order), ``caches``
(language models of transformers), ``first_blocks`` (small transformers that read in no order) and ``residuals``
(ResNets of small images).

Here: what a reader is, ``RememberingReader`` for those that keep something of clean inputs, and what ``evaluation``
hands to them. To add one: a subclass, and a function that makes it, or returns None, in the list of ``find``.
"""

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import JostleError, UsageError
from jostle.base.model import has_hooks
from jostle.perturbations import Perturbation
from jostle.responses import Response
from jostle.sampling.plans import Batching, Integers, Trials
from jostle.sampling.text_checks import Move
from jostle.tokens import Batch, TokenFunction

Changes = NDArray[np.float64]
Through = Callable[..., Any]
MakeBatch = Callable[..., tuple[Batch, Move | None]]

_COMPARED_AT_ONCE = 2**20
_is_on = True


@dataclass(frozen=True)
class Moved:
    """Trials whose token changes.

    Arguments:
        trials: these trials.
        places: where they stand among all trials.
        tokens: (trials, dim) what their tokens become; None if they change inside of each model.
        uniforms: (trials, count) random numbers of the change inside of a model; None if each batch makes its own.
        before: (trials, dim) what their tokens were; None if they change inside of each model.
    """

    trials: Trials
    places: Integers
    tokens: Tensor | None
    uniforms: NDArray[np.float64] | None = None
    before: Tensor | None = None


class Reader(ABC):
    """Answers trials of one model. Its answers are those of the model itself, up to rounding.

    A reader must find out by itself whether it can be trusted, by asking the model about a few inputs both ways before
    its first answer: a subclass or a hook may have changed what the model computes. ``agree`` compares two answers.

    Attributes:
        remembers: whether its answers depend on which clean inputs it was asked to remember, and with which others.
        unit: about how many trials it is best asked about together.
        expected: at least about how many trials the measurement has in all; 0 if that is not known.
        share: of the time of a whole input, about what a trial takes.
    """

    remembers: bool = False
    unit: int = 2**10
    expected: float = 0.0
    share: float = 1.0

    def forget(self) -> None:  # noqa: B027
        """A new unit begins; unless it ``remembers``, a reader must not depend on earlier ones."""

    def remembering(self, indices: Integers) -> Through | None:  # noqa: ARG002
        """What to call in the place of the model for the clean pass of these inputs, to remember something of them.

        It takes the arguments of the model and returns its answer. None: the clean pass is of no use to this reader.
        """
        return None

    @abstractmethod
    def read(self, part: Moved, pending: "Pending", batch: MakeBatch) -> Integers | None:
        """Answer these trials; returns the order in which they were answered.

        None, before anything is asked, if whole inputs are cheaper for these trials.

        Arguments:
            part: the trials, and what their tokens become.
            pending: ``pending.ask`` asks the model, with ``through`` called in its place, and keeps the answers.
            batch: ``batch(part, rows, starts)`` is what ``pending.ask`` takes first: some trials as a batch of whole
                inputs, and the change inside the model, if there is one; for texts, from the tokens ``starts`` on.
        """


class RememberingReader(Reader):
    """A reader that keeps something of clean inputs, once it is known to agree with the model.

    Arguments:
        function: the model.
    """

    remembers = True
    unit = 2**13

    def __init__(self, function: TokenFunction) -> None:
        self.function, self.inputs = function, function.inputs

    @functools.cached_property
    def is_trusted(self) -> bool:
        """Whether clean and jostled inputs get the answers of the model itself; these passes do not count."""
        passes = self.function.passes
        try:
            return self.function.is_steady and self.agrees()
        except JostleError:
            return False  # the plain way says what is wrong
        finally:
            self.function.passes = passes

    @abstractmethod
    def agrees(self) -> bool:
        """Whether a few inputs get the answers of the model, with one token changed."""


def find(function: TokenFunction, perturbation: Perturbation, batching: Batching) -> Reader | None:
    """The reader for this model, these inputs and this perturbation, if there is one."""
    from jostle.sampling import caches, chains, first_blocks, prefixes, residuals

    if not _is_on or has_hooks(function.model):
        return None
    makers = (chains.reader, prefixes.reader, caches.reader, first_blocks.reader, residuals.reader)
    made = (make(function, perturbation, batching) for make in makers)
    return next((reader for reader in made if reader is not None), None)


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Inside, new measurements ask about whole inputs only: to compare, in tests and benchmarks."""
    global _is_on
    before, _is_on = _is_on, False
    try:
        yield
    finally:
        _is_on = before


class Pending:
    """Outputs of a model that wait to be compared with the clean ones; comparing many small ones at once is quicker."""

    def __init__(self, function: TokenFunction, response: Response) -> None:
        self.function, self.response = function, response
        self._outputs: list[Tensor] = []
        self._still: list[NDArray[np.bool_]] = []

    def ask(self, batch: Batch, move: Move | None = None, through: Through | None = None) -> None:
        """Ask the model about a batch; ``move`` changes a token of each input inside of it."""
        self._outputs.append(self.function(batch, move, through).clone())  # a model may use the same memory again
        if move is not None:
            self._still.append(~move.is_moved)

    def changes(self, reference: Tensor) -> Changes:
        """The change of every input against its reference, in the order in which the model was asked.

        (inputs,), or (inputs, places) where answers at several tokens are read.
        """
        parts, first = list[Changes](), 0
        for outputs in _joined(self._outputs):
            change = self.response.change(reference[first : first + len(outputs)], outputs)
            if not (outputs.sum() + change.sum()).isfinite():  # a sum is finite only if all that it sums is
                finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).reshape(-1, *[1] * (change.dim() - 1))
                change = change.masked_fill(~(finite & change.isfinite()), torch.nan)
            parts.append(change.numpy())
            first += len(outputs)
        changes = np.concatenate(parts) if parts else np.empty(0)
        if self._still:
            changes[np.concatenate(self._still)] = 0.0  # a token that stayed as it was makes no change, by definition
        return changes


def _joined(outputs: list[Tensor]) -> list[Tensor]:
    """Small outputs as one tensor, large ones as they are."""
    shapes = {part.shape[1:] for part in outputs}
    if len(shapes) > 1:
        one, other, *_ = sorted(shapes)
        raise UsageError(f"the model answers with {tuple(one)} numbers for an input, and then with {tuple(other)}")
    is_small = sum(part.numel() for part in outputs) <= _COMPARED_AT_ONCE
    return [torch.cat(outputs)] if outputs and is_small else outputs
