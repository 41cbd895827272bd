"""Trials in, changes out: jostled batches are made once, and every model is asked about them.

``TrialEvaluation.changes`` is the hot path: draw the noise, change one token of each input, ask the models batch by
batch, and compare their outputs with those for the clean inputs, which ``References`` remember.
"""

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import UsageError
from jostle.base.randomness import Stream
from jostle.perturbations import OtherInput, Perturbation
from jostle.responses import Response
from jostle.sampling import readers
from jostle.sampling.by_token import ByToken
from jostle.sampling.plans import (
    TOKENS_ON_CPU,
    Batching,
    Integers,
    Trials,
    columns_to_spare,
    inputs_at_once,
    padding_for_free,
    tokens_at_once,
)
from jostle.sampling.readers import Changes, Moved, Pending, Reader
from jostle.sampling.slopes import PASSES as SLOPE_PASSES
from jostle.sampling.slopes import can_have_slopes, slopes_of
from jostle.sampling.text_checks import Move, check_text, padding_to_fill_with
from jostle.sampling.units import Made, Staff
from jostle.tokens import Batch, Inputs, TokenFunction
from jostle.tokens.padding import beginning_at, close_up, without_free_column

# With 2**15 an MLP took 5 % longer, since fewer trials of a token come together; 2**18 costs page faults.
_UNIFORMS_AT_ONCE = 2**16
_UNIFORMS_INSIDE = 2**22  # of all trials of a chunk; more are made batch by batch
_BATCHES_AT_ONCE = 32
_OUTPUTS_AT_ONCE = 2**26  # numbers
_REMEMBERED_NUMBERS = 2**25
_UNIT, _LEAST_UNIT = 4, 64  # batches and trials

Tell = Callable[[], object]


class TrialEvaluation:
    """Several models, one set of inputs, one perturbation, one response.

    Memory holds one batch, one chunk of random numbers and outputs, and the references of the inputs visited so far,
    never N x T of anything.

    Attributes:
        nonfinite: (models,) trials without a finite change so far.
        batching: how trials are cut into batches.

    Arguments:
        functions: the models; all see the same jostled inputs.
        perturbation: what a token becomes.
        response: what counts as a change.
        seed: of the noise.
        batch_size: the most inputs that a model is given at once; None for ``choose_batches`` to choose.
    """

    def __init__(
        self,
        functions: list[TokenFunction],
        perturbation: Perturbation,
        response: Response,
        seed: int,
        batch_size: int | None = None,
    ) -> None:
        self.functions, self.perturbation, self.response = functions, perturbation, response
        self.inputs: Inputs = functions[0].inputs
        self.nonfinite = np.zeros(len(functions), dtype=np.int64)
        self._is_on_cpu = all(function.device.type == "cpu" for function in functions)
        self._is_free = batch_size is None
        most_tokens = TOKENS_ON_CPU if self._is_on_cpu else np.inf
        self.batching = Batching(self.inputs, batch_size, most_tokens)
        self._noise = Stream(seed, "noise")
        self._is_inside = functions[0].site is not None
        self._num_uniforms = 1 if self._is_inside else perturbation.num_uniforms(self.inputs.dim)
        self._readers = [readers.find(function, perturbation, self.batching) for function in functions]
        pairs = zip(functions, self._readers, strict=True)
        self.references = [References(function, response, self.batching, reader) for function, reader in pairs]
        self.staff = Staff(self)
        self._numbers: int | None = None  # of an answer; None before a model was asked
        self._pad = padding_to_fill_with(perturbation, self.inputs, functions) if perturbation.closes_up else 0
        reads_several = functions[0].readout.reads_several
        self.by_token = ByToken(response, self.inputs, closes_up=perturbation.closes_up) if reads_several else None

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: all but who evaluates here."""
        return {key: value for key, value in vars(self).items() if key != "staff"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.staff = Staff(self)

    @property
    def passes(self) -> int:
        """The largest number of inputs that any of the models has answered."""
        return max(function.passes for function in self.functions)

    def restart(self, perturbation: Perturbation) -> None:
        """Go on with another strength of the same perturbation: counts start at 0, clean answers are remembered."""
        self.perturbation = perturbation
        self.nonfinite[:] = 0
        self.expect(0.0)
        for function in self.functions:
            function.passes, function.warnings, function.notes = 0, [], []

    def check(self) -> None:
        """Raise if the models cannot be asked about these texts, see ``check_text``; other inputs need no check."""
        if self.inputs.padding is not None:
            check_text(self.functions, self.perturbation, self.batching)

    def choose_batches(self) -> None:
        """Fit the batches to the models, if no size was given: what ``check_steady`` saw of them decides."""
        widest = max(function.widest for function in self.functions)
        if self._is_free:
            is_text = self.inputs.padding is not None
            # Of texts on a CPU the number of tokens bounds a batch, not the number of rows.
            self.batching.batch_size = inputs_at_once(int(self._is_on_cpu) if is_text else widest)
        if self._is_on_cpu and self.inputs.padding is not None:
            width = widest / self.inputs.shape[0]
            self.batching.most_tokens, self.batching.free_padding = tokens_at_once(width), padding_for_free(width)
            attend = all(function.attends for function in self.functions)
            self.batching.spare_columns = columns_to_spare(self.batching.free_padding) if attend else 0
        self._numbers = max(function.numbers for function in self.functions)

    @property
    def _chunk(self) -> int:
        """How many trials are perturbed at once: full batches, few enough to keep their noise and inputs in memory."""
        size = self.batching.batch_size
        batches = _UNIFORMS_AT_ONCE // max(1, self._num_uniforms) // size
        if self.inputs.items is not None:
            batches = min(batches, self.inputs.items.room() // size)
        return size * min(max(batches, 1), _BATCHES_AT_ONCE)

    def prepare(self, *groups: Integers, tell: Tell | None = None) -> None:
        """Ask the models about these clean inputs now; only inputs of one group share a batch."""
        if self.staff.crew is not None:
            self.staff.prepare([references.planned(groups) for references in self.references])
            return
        for indices in groups:
            for references in self.references:
                references.prepare(indices, tell)

    def changes(self, trials: Trials, tell: Tell | None = None) -> Changes:
        """(models, trials): the change in each trial, NaN where a model's output or the change is not finite.

        Arguments:
            trials: in any order and number; many at once fill batches better.
            tell: called now and then, after a few batches.
        """
        return next(self.changes_of([trials], tell))

    def changes_of(self, blocks: Iterable[Trials], tell: Tell | None = None) -> Iterator[Changes]:
        """``changes`` of some blocks of trials, in their order; a crew works on several of them at once."""
        left = iter(blocks)
        while self.staff.crew is None:
            trials = next(left, None)
            if trials is None:
                return
            yield self._counted(self._changes_here(trials, tell))
        for found in self._changes_elsewhere(list(left), tell):
            yield self._counted(found)

    def _counted(self, changes: Changes) -> Changes:
        self.nonfinite += np.isnan(changes).sum(axis=1)
        return changes

    def _changes_here(self, trials: Trials, tell: Tell | None) -> Changes:
        out = np.zeros((len(self.functions), len(trials)))
        if self.inputs.items is None:
            self.prepare(trials.inputs, tell=tell)
        for rows in self._units(trials):
            out[:, rows] = self.unit_changes(trials[rows], tell)
        return out

    def _changes_elsewhere(self, blocks: list[Trials], tell: Tell | None) -> Iterator[Changes]:
        """The changes of these blocks, evaluated by the crew."""
        self._prepare_elsewhere(blocks)
        units = [self._units(trials) for trials in blocks]
        found = self.staff.changes(trials[rows] for trials, cut in zip(blocks, units, strict=True) for rows in cut)
        with contextlib.closing(found):
            for trials, cut in zip(blocks, units, strict=True):
                out = np.zeros((len(self.functions), len(trials)))
                for rows in cut:
                    out[:, rows] = next(found)
                    if tell is not None:
                        tell()
                yield out

    def _prepare_elsewhere(self, blocks: list[Trials]) -> None:
        """Have the clean passes made, in the batches in which this process would make them."""
        asked = [trials.inputs for trials in blocks]
        if self.inputs.items is not None:
            units = ((trials, unit) for trials in blocks for unit in self._units(trials))
            asked = [trials.inputs[rows] for trials, unit in units for rows in self._parts(unit)]
        self.prepare(*asked)

    def unit_changes(self, trials: Trials, tell: Tell | None = None) -> Changes:
        """(models, trials) of one unit, evaluated in this process; it depends on no other unit."""
        out = np.zeros((len(self.functions), len(trials)))
        for reader in self._readers:
            if reader is not None:
                reader.forget()
        for part in self._parts(np.arange(len(trials))):
            for index, rows, asked, found in self._compared(trials, part):
                out[index, rows] = found if self.by_token is None else self.by_token.total(found, asked)
            if tell is not None:
                tell()
        return out

    @property
    def expected(self) -> float:
        """At least about how many trials the measurement has in all, as far as is known: readers weigh it."""
        return max((reader.expected for reader in self._readers if reader is not None), default=0.0)

    def expect(self, trials: float) -> None:
        """Tell readers that there will be at least about so many trials in all."""
        for reader in self._readers:
            if reader is not None:
                reader.expected = trials

    @property
    def remembers(self) -> bool:
        """Whether a model is read from what was remembered of clean inputs; its units depend on what came before."""
        return any(reader is not None and reader.remembers for reader in self._readers)

    def _units(self, trials: Trials) -> list[Integers]:
        """The places of these trials, cut into units, in an order that suits batches."""
        return _cut(self.batching.order(trials.inputs), self._unit)

    def _parts(self, rows: Integers) -> list[Integers]:
        """A unit, cut into what is in memory at once."""
        return _cut(rows, self._part)

    @property
    def _most(self) -> int:
        """About how many trials a unit has: few, so that there are enough for all workers, but some batches."""
        plain = max(_UNIT * self.batching.batch_size, _LEAST_UNIT)
        return max(plain if reader is None else reader.unit for reader in self._readers)

    @property
    def _part(self) -> int:
        """How many trials are asked about before their outputs are compared: a vocabulary at each token is large."""
        numbers = max(function.numbers for function in self.functions) if self._numbers is None else self._numbers
        return max(1, min(self._chunk, _OUTPUTS_AT_ONCE // max(numbers, 1), self._most))

    @property
    def _unit(self) -> int:
        """How many trials a unit has: whole parts."""
        return -(-self._most // self._part) * self._part

    def changes_by_token(self, trials: Trials) -> Changes:
        """(models, trials, places): the change of the answer at each token, for responses that read several."""
        assert self.by_token is not None
        out = np.zeros((len(self.functions), len(trials), self.by_token.width))
        if self.inputs.items is None:
            self.prepare(trials.inputs)
        for part in self._parts(self.batching.order(trials.inputs)):
            for index, rows, asked, found in self._compared(trials, part):
                out[index, rows] = self.by_token.changes(found, asked)
        return out

    def _compared(self, trials: Trials, rows: Integers) -> Iterator[tuple[int, Integers, Trials, Changes]]:
        """(model, places, trials, changes) of the trials in places ``rows``; those that move nothing are left out."""
        if self.inputs.items is not None:  # then an item is clean, perturbed and forgotten before the next
            for references in self.references:
                references.prepare(trials.inputs[rows])
        part = self._moved(trials[rows])
        pending = [Pending(function, self.response) for function in self.functions]
        for index, order_asked in enumerate(self._ask(part, pending)):
            asked = part.trials[order_asked]
            if not len(asked):
                continue
            clean = self.references[index].of(asked.inputs)
            if self.by_token is not None:
                clean = self.by_token.references(clean, asked)
            yield index, rows[part.places[order_asked]], asked, pending[index].changes(clean)

    def _ask(self, part: Moved, pending: list[Pending]) -> list[Integers]:
        """Ask every model about these trials; returns for each model the order in which it answered them."""
        orders, whole = [np.arange(len(part.trials)) for _ in pending], []
        for index, (reader, each) in enumerate(zip(self._readers, pending, strict=True)):
            order = None if reader is None or not len(part.trials) else reader.read(part, each, self._batch)
            if order is None:
                whole.append(each)
            else:
                orders[index] = order
        self._ask_whole(part, whole)
        return orders

    def _ask_whole(self, part: Moved, pending: list[Pending]) -> None:
        """Ask models about whole inputs, all of them about the same batches."""
        for cut in self.batching.cuts(part.trials.inputs if pending else part.trials.inputs[:0]):
            batch, move = self._batch(part, cut)
            for each in pending[:-1]:
                each.ask(
                    {key: tensor.clone() for key, tensor in batch.items()}, copy.copy(move)
                )  # a model may change them
            pending[-1].ask(batch, move)

    def _batch(self, part: Moved, rows: slice | Integers, starts: Integers | None = None) -> tuple[Batch, Move | None]:
        """Some trials as a batch, each text from token ``starts`` on, and the change that happens inside a model."""
        trials = part.trials[rows]
        if part.tokens is not None:
            return self.jostled(trials, part.tokens[rows], starts), None
        needed = self._uniforms_inside
        batch, columns = self._texts(trials, starts)
        if self.inputs.moving is None:
            uniforms = self._uniforms(trials, needed) if part.uniforms is None else part.uniforms[rows]
            return batch, Move(self.perturbation, columns, uniforms)
        owner, tokens = np.nonzero(self.inputs.moving[trials.inputs])  # each token moves as it would alone
        uniforms = self._uniforms(Trials(trials.inputs[owner], tokens, trials.draws[owner]), needed)
        return batch, Move(self.perturbation, columns[owner] + tokens, uniforms, owner)

    def _texts(self, trials: Trials, starts: Integers | None) -> tuple[Batch, Integers]:
        """The inputs of these trials, texts from token ``starts`` on, and the columns of the jostled tokens there."""
        batch, first = self.batching.batch(trials.inputs)
        columns = trials.tokens - first
        if starts is None or self.inputs.padding is None:
            return batch, columns
        begin = self.inputs.padding.first[trials.inputs] - first + starts
        width = int((self.inputs.padding.lengths[trials.inputs] - starts).max())
        return beginning_at(batch, self.inputs.key, torch.from_numpy(begin), width), columns - begin

    def _moved(self, trials: Trials) -> Moved:
        """The trials that the models must be asked about."""
        if self._is_inside:
            moved = trials[:0] if self.perturbation.moves_nothing else trials
            is_quick = self.inputs.moving is None and len(moved) * self._uniforms_inside <= _UNIFORMS_INSIDE
            uniforms = self._uniforms(moved, self._uniforms_inside) if is_quick else None
            return Moved(moved, np.arange(len(moved)), None, uniforms)
        places, tokens, before = self._tokens_moved(trials)
        return Moved(trials if len(places) == len(trials) else trials[places], places, tokens, before=before)

    @property
    def _uniforms_inside(self) -> int:
        """How many random numbers a change inside of a model takes."""
        return max(self.perturbation.num_uniforms(each.dim) for each in self.functions)

    def _uniforms(self, trials: Trials, size: int) -> NDArray[np.float64]:
        """The random numbers of these trials, (trials, size)."""
        tokens = self.inputs.addresses(trials.inputs, trials.tokens)
        return self._noise.uniforms(trials.inputs, tokens, trials.draws, size)

    def moved_tokens(self, trials: Trials) -> tuple[Integers, Tensor]:
        """Which of these trials change their token, and the new tokens (moved, dim).

        A trial whose token comes out bit for bit as it was (no noise, the same token drawn again) has no change by
        definition; it is left out and costs no pass. A deleted token always counts as changed.
        """
        return self._tokens_moved(trials)[:2]

    def _tokens_moved(self, trials: Trials) -> tuple[Integers, Tensor, Tensor]:
        """``moved_tokens``, and what these tokens were."""
        before = self.inputs.tokens(trials.inputs, trials.tokens)
        if self.inputs.moving is not None:
            after = self._moved_texts(trials, before)
        else:
            after = self._new_tokens(trials, before, self._uniforms(trials, self._num_uniforms))
        is_moved = (after != before).any(dim=1).numpy() | self.perturbation.closes_up
        moved = np.flatnonzero(is_moved)
        if len(moved) == len(after):
            return moved, after, before
        rows = torch.from_numpy(moved)
        return moved, after[rows], before[rows]

    def _new_tokens(self, trials: Trials, before: Tensor, uniforms: NDArray[np.float64]) -> Tensor:
        """What the tokens ``before`` of these trials become, (trials, dim)."""
        units = self.inputs.units
        if isinstance(self.perturbation, OtherInput) and self.inputs.padding is None:
            return self.inputs.tokens(self.perturbation.rows(uniforms, len(self.inputs)), trials.tokens)
        if units is None:
            return self.perturbation.apply(before, uniforms)
        mean, std = units.at(torch.from_numpy(trials.tokens), is_whole=self.inputs.num_tokens == 1)
        return self.perturbation.apply_in((mean, std), before, uniforms)

    def _moved_texts(self, trials: Trials, texts: Tensor) -> Tensor:
        """Whole texts, (trials, columns) token ids, with every token that may move changed as it would be alone."""
        assert self.inputs.moving is not None
        owner, columns = np.nonzero(self.inputs.moving[trials.inputs])
        needed = self.perturbation.num_uniforms(1)
        uniforms = self._uniforms(Trials(trials.inputs[owner], columns, trials.draws[owner]), needed)
        rows, places = torch.from_numpy(owner), torch.from_numpy(columns)
        after = texts.clone()
        after[rows, places] = self.perturbation.apply(texts[rows, places][:, None], uniforms)[:, 0]
        return after

    def jostled(self, trials: Trials, tokens: Tensor, starts: Integers | None = None) -> Batch:
        """The inputs of these trials with their one token replaced by ``tokens`` (trials, dim)."""
        batch, places = self._texts(trials, starts)
        columns = torch.from_numpy(places)
        key, padding = self.inputs.key, self.inputs.padding
        if self.inputs.moving is not None:  # the columns of the batch, of whole texts
            first, width = int(-places[0]), batch[key].shape[1]
            return {**batch, key: tokens[:, first : first + width].contiguous()}
        if not self.perturbation.closes_up or padding is None:
            self.inputs.view.put(batch[key], columns, tokens)
            return batch
        last = torch.from_numpy(padding.stop[trials.inputs] - 1 - trials.tokens) + columns
        closed = close_up(batch, key, columns, last, self._pad, padding.side)
        return without_free_column(closed, key, padding.side) if self.batching.trims else closed

    @property
    def knows_margins(self) -> bool:
        """Whether the first model's clean outputs tell how far they are from a change, as far as they are known."""
        return self.references[0].margins is not None

    @property
    def unasked(self) -> int:
        """How many clean inputs the first model has not been asked about."""
        return int(np.count_nonzero(~self.references[0].is_known(np.arange(len(self.inputs)))))

    @property
    def price_of_slopes(self) -> float:
        """How many passes the slopes of the first model take; infinity if there are none."""
        if self.staff.crew is not None or not can_have_slopes(self.functions[0]):
            return np.inf
        reader = self._readers[0]
        return SLOPE_PASSES * len(self.inputs) / (1.0 if reader is None else reader.share)

    def slopes(self) -> NDArray[np.float32] | None:
        """(N, tokens) how steep the margins of the first model are along each token; None if it does not tell."""
        return slopes_of(self.functions[0], self.response, self.batching)

    def margins(self) -> NDArray[np.float64]:
        """(N,) how far each clean output of the first model is from a change; all of them must be prepared."""
        margins = self.references[0].margins
        assert margins is not None
        return margins

    def new_passes(self, trials: Trials) -> Integers:
        """(trials,): passes that a model needs for the first 1, 2, ... of these trials, clean passes included."""
        if self.references[0].is_known(trials.inputs).all():
            return np.arange(1, len(trials) + 1)
        fresh = np.zeros(len(trials), dtype=np.int64)
        first_seen = np.unique(trials.inputs, return_index=True)[1]
        fresh[first_seen] = ~self.references[0].is_known(trials.inputs[first_seen])
        return np.cumsum(1 + fresh)


class References:
    """What a response remembers of a model's clean outputs; each input is asked once, if that fits in memory."""

    def __init__(
        self, function: TokenFunction, response: Response, batching: Batching, reader: Reader | None = None
    ) -> None:
        self.function, self.response, self.batching, self.reader = function, response, batching, reader
        self._known = np.zeros(len(function.inputs), dtype=bool)
        self._store: Tensor | None = None
        self._is_too_large = False
        # How far each known clean output is from a change; None if a response does not tell.
        self.margins: NDArray[np.float64] | None = np.zeros(len(function.inputs)) if response.is_binary else None

    def is_known(self, indices: Integers) -> NDArray[np.bool_]:
        """Which of these inputs have had their clean pass."""
        return self._known[indices]

    def prepare(self, indices: Integers, tell: Tell | None = None) -> None:
        """Make the clean passes of these inputs now, if their references can be kept; ``tell`` after each batch."""
        if not self._is_too_large:
            self.of(indices, tell)

    def planned(self, groups: Iterable[Integers]) -> list[Integers]:
        """The batches in which ``prepare`` of one group after the other would ask about them."""
        if self._is_too_large:
            return []
        known, batches = self._known.copy(), list[Integers]()
        for indices in groups:
            batches += self._batches(indices, known)
            known[indices] = True
        return batches

    def _batches(self, indices: Integers, known: NDArray[np.bool_]) -> list[Integers]:
        distinct = np.unique(indices)
        missing = distinct[~known[distinct]]
        missing = missing[self.batching.order(missing)]
        return [missing[cut] for cut in self.batching.cuts(missing)]

    def keep(self, batches: list[Integers], made: list[Made]) -> None:
        """Remember what was made of these batches, unless it is too large for that."""
        if not made or self._is_too_large:
            return
        first = made[0][0]
        if self._store is None and len(self._known) * first[0].numel() > _REMEMBERED_NUMBERS:
            self._is_too_large, self.margins = True, None
            return
        if self._store is None:
            self._store = torch.empty((len(self._known), *first.shape[1:]), dtype=first.dtype)
        for batch, (references, margins) in zip(batches, made, strict=True):
            self._store[torch.from_numpy(batch)] = references
            self._known[batch] = True
            if self.margins is None or margins is None:
                self.margins = None
            else:
                self.margins[batch] = margins

    def tell(self, indices: Integers) -> tuple[Integers, Tensor] | None:
        """What is remembered of these inputs, for ``learn`` in another process; None if it is too large to keep."""
        return None if self._is_too_large or self._store is None else (indices, self._store[torch.from_numpy(indices)])

    def learn(self, known: tuple[Integers, Tensor] | None) -> None:
        """Remember what another process told."""
        if known is None:
            self._is_too_large = True
            return
        if self._store is None:
            self._store = torch.empty((len(self._known), *known[1].shape[1:]), dtype=known[1].dtype)
        self._store[torch.from_numpy(known[0])] = known[1]
        self._known[known[0]] = True

    def of(self, indices: Integers, tell: Tell | None = None) -> Tensor:
        """The references of these inputs, (len(indices), ...)."""
        if not len(indices):
            return torch.empty(0)
        if self._store is not None and self._known[indices].all():
            return self._store[torch.from_numpy(indices)]
        batches = self._batches(indices, self._known)
        made = []
        for batch in batches:
            made.append(self.make(batch))
            if tell is not None:
                tell()
        self.keep(batches, made)
        if self._store is not None:
            return self._store[torch.from_numpy(indices)]
        asked = np.concatenate(batches)
        order = np.argsort(asked)
        places = order[np.searchsorted(asked, indices, sorter=order)]
        return torch.cat([references for references, _ in made])[torch.from_numpy(places)]

    def make(self, indices: Integers) -> Made:
        """The references and margins of a batch of inputs."""
        through = None if self.reader is None else self.reader.remembering(indices)
        outputs = self.function(self.batching.batch(indices)[0], through=through)
        finite = outputs.reshape(len(outputs), -1).isfinite().all(dim=1).numpy()
        if not finite.all():
            raise UsageError(
                f"{self.function.name} answers {int((~finite).sum())} of {len(finite)} unperturbed inputs with NaN or "
                f"infinity (first: input {indices[~finite][0]}); its predictions there mean nothing"
            )
        margins = None if self.margins is None else self.response.margins(outputs)
        references = self.response.reference(outputs.clone())  # a model may use the same memory again
        return references, None if margins is None else margins.numpy()


def _cut(rows: Integers, size: int) -> list[Integers]:
    """Pieces of this size; the last one may be smaller."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]
