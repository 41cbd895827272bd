"""The tokens that are searched, and the model asked about them with gradients. Nothing of the model is changed."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.linalg import vector_norm

from jostle.base.interrupts import Uninterrupted
from jostle.base.model import eval_mode
from jostle.base.randomness import Stream
from jostle.perturbations import normals
from jostle.sampling.evaluation import References
from jostle.sampling.plans import Batching, Integers
from jostle.tokens import Batch, Edit, TokenFunction
from jostle.tokens.views import places
from jostle.training.randomness import random_numbers
from jostle.worst.objective import Objective
from jostle.worst.result import SCALED

Floats = NDArray[np.float64]

_BACKWARD = 2  # passes that a backward pass counts as


class GradientFunction(TokenFunction):
    """A ``TokenFunction`` whose outputs can be differentiated with respect to its inputs."""

    _latest: Tensor | None = None

    @contextlib.contextmanager
    def evaluating(self, seed: int = 0) -> Iterator[None]:
        """Inside: eval mode, no gradients unless asked for, own random numbers. Afterwards all is as before.

        Parameters require no gradients inside, which saves their memory and time.
        """
        with (
            eval_mode(self.model) as was_training,
            _without_parameter_gradients(self.model),
            random_numbers(seed),
            torch.inference_mode(mode=False),
            torch.no_grad(),
        ):
            if was_training:
                self.notes.append(f"{self.name} was in train mode; it was measured in eval mode and put back")
            yield

    def read_outputs(self, answer: Any, batch: Batch) -> Tensor:
        """The outputs (batch, ...), attached to the graph of the inputs."""
        self._latest = super().read_outputs(answer, batch)
        return self._latest

    def with_graph(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        """Outputs (batch, ...) on the CPU, attached to the graph of the inputs; otherwise as the call."""
        self(batch, edit)  # returns detached outputs; read_outputs keeps the attached ones
        attached, self._latest = self._latest, None
        assert attached is not None
        return attached.cpu()

    def gradient(self, height: Tensor, moved: Tensor) -> Tensor:
        """d (sum of height) / d moved, in the shape of ``moved`` (batch, dim); counts the backward pass."""
        self.passes += _BACKWARD * len(moved)
        with Uninterrupted():
            (gradient,) = torch.autograd.grad(height.sum(), moved)
        return gradient


@contextlib.contextmanager
def _without_parameter_gradients(model: Any) -> Iterator[None]:
    """Inside, no parameter of the model requires gradients."""
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    # The flag of a tensor that was made in inference mode cannot be changed.
    wanting = [parameter for parameter in parameters if parameter.requires_grad and not parameter.is_inference()]
    try:
        for parameter in wanting:
            parameter.requires_grad = False
        yield
    finally:
        for parameter in wanting:
            parameter.requires_grad = True


class Spots:
    """The tokens that are searched. A spot is a pair (input, position), a token with a ball around it.

    Attributes:
        clean: (spots, dim) the tokens as they are, at least in single precision.
        norms: (spots,) the unit of radii: the norm of each token, the standard deviation of each column, or 1.

    Arguments:
        function, objective, batching: how the model is asked, and what counts.
        inputs, tokens: (spots,) each; the spots of one input stand together.
        noise: of the random directions: the same numbers as in a measurement with the same seed.
        is_relative: whether radii are in units of the token's norm.
    """

    def __init__(
        self,
        function: GradientFunction,
        objective: Objective,
        batching: Batching,
        inputs: Integers,
        tokens: Integers,
        noise: Stream,
        *,
        is_relative: bool,
    ) -> None:
        self.function, self.objective, self.batching, self.noise = function, objective, batching, noise
        self.inputs, self.tokens = inputs, tokens
        distinct, self._owner = np.unique(inputs, return_inverse=True)
        self._references = References(function, objective, batching).of(distinct)
        clean = self._embedded(distinct) if function.site is not None else function.inputs.tokens(inputs, tokens)
        self.clean = clean if clean.dtype == torch.float64 else clean.float()  # (spots, dim)
        norms = vector_norm(self.clean.double(), dim=1)
        units = function.inputs.units if function.inputs.view.describe() == SCALED else None
        of_column = torch.ones_like(norms) if units is None else units.std[torch.from_numpy(tokens)]
        self.norms: Tensor = norms if is_relative else of_column
        self._latest_batch: tuple[Integers, Batch, int] | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def references(self, rows: Integers) -> Tensor:
        """What the objective remembers of the clean outputs, for these spots."""
        return self._references[torch.from_numpy(self._owner[rows])]

    def cuts(self, rows: Integers) -> Iterator[slice]:
        """Slices of ``rows``, one for each batch."""
        return self.batching.cuts(self.inputs[rows])

    def room(self, row: int) -> int:
        """How many spots like this one fit into a batch."""
        padding = self.function.inputs.padding
        if padding is None:
            return self.batching.batch_size
        width = padding.lengths[self.inputs[row]] if self.batching.trims else padding.width
        return int(max(1, min(self.batching.batch_size, self.batching.most_tokens // width)))

    def directions(self, rows: Integers, draws: Integers) -> Tensor:
        """Random unit vectors (len(rows), dim): draw ``draws[i]`` of spot ``rows[i]``, the same as of ``Sphere``."""
        inputs, tokens = self.inputs[rows], self.tokens[rows]
        addresses = self.function.inputs.addresses(inputs, tokens)
        gaussian = normals(self.noise.uniforms(inputs, addresses, draws, self.clean.shape[1]), self.clean)
        unit: Tensor = gaussian / vector_norm(gaussian, dim=1, keepdim=True)
        return unit

    def outputs(self, rows: Integers, deltas: Tensor) -> Tensor:
        """The model's outputs when the token of each spot is moved by ``deltas`` (len(rows), dim).

        They are attached to ``deltas`` if these require gradients.
        """
        held, first = self._batch(rows)
        moved = self.clean[torch.from_numpy(rows)] + deltas
        columns = torch.from_numpy(self.tokens[rows] - first)
        key, view = self.function.inputs.key, self.function.inputs.view
        batch = {name: tensor.clone() for name, tensor in held.items() if name != key}  # a model may change its inputs
        ask = self.function.with_graph if deltas.requires_grad else self.function
        if self.function.site is not None:
            return ask({**batch, key: held[key].clone()}, _replacing(columns, moved))
        whole = held[key]
        within = places(view, tuple(whole.shape[1:]))[columns]  # (rows, dim)
        flat = whole.view(len(whole), -1).scatter(1, within, moved.to(whole.dtype))
        return ask({**batch, key: flat.view(whole.shape)})

    def _batch(self, rows: Integers) -> tuple[Batch, int]:
        """The inputs of these spots. The latest batch is kept, because the next step asks about it again."""
        if self._latest_batch is None or not np.array_equal(self._latest_batch[0], rows):
            self._latest_batch = (rows.copy(), *self.batching.batch(self.inputs[rows]))
        return self._latest_batch[1], self._latest_batch[2]

    def _embedded(self, distinct: Integers) -> Tensor:
        """The clean tokens (spots, dim) as the model embeds them."""
        clean = torch.empty(len(self.inputs), self.function.dim, dtype=self.function.sample_token.dtype)
        ordered = distinct[self.batching.order(distinct)]
        for cut in self.batching.cuts(ordered):
            chosen = ordered[cut]
            batch, first = self.batching.batch(chosen)
            reader = _EmbeddingReader()
            self.function(batch, reader)
            rows = np.flatnonzero(np.isin(self.inputs, chosen))
            place = {int(index): row for row, index in enumerate(chosen)}
            among = torch.tensor([place[int(index)] for index in self.inputs[rows]])
            clean[torch.from_numpy(rows)] = reader.embedded[among, torch.from_numpy(self.tokens[rows] - first)]
        return clean


class _EmbeddingReader:
    """An edit that changes nothing and keeps the embedded sequence (batch, tokens, dim)."""

    embedded: Tensor

    def __call__(self, embedded: Tensor) -> Tensor:
        self.embedded = embedded.detach().cpu()
        return embedded


def _replacing(columns: Tensor, moved: Tensor) -> Edit:
    """An edit that puts ``moved`` (batch, dim) at these columns of an embedded sequence, in new memory."""

    def edit(embedded: Tensor) -> Tensor:
        rows = torch.arange(len(embedded), device=embedded.device)
        return embedded.index_put((rows, columns.to(embedded.device)), moved.to(embedded))

    return edit
