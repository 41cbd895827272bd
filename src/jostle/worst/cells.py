"""The tokens that are searched: where they are, what they are, and the model asked about them when they are moved."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.linalg import vector_norm

from jostle.perturbations.perturbation import normals
from jostle.randomness import Stream
from jostle.sampling.batching import Batching
from jostle.sampling.evaluation import References
from jostle.sampling.trials import Integers
from jostle.tokens import Batch, Edit
from jostle.tokens.view import places
from jostle.worst.asking import GradientFunction
from jostle.worst.objective import Objective

Floats = NDArray[np.float64]


class Cells:
    """Pairs (input, position), each a token with a ball around it.

    Attributes:
        clean: (cells, dim) the tokens as they are, at least in single precision.
        norms: (cells,) the unit in which radii are given: the norm of each token, or 1.

    Arguments:
        function, objective, batching: how the model is asked, and what of it counts.
        inputs, tokens: (cells,) each; cells of one input stand together.
        is_relative: whether radii are in units of the token's norm.
        noise: of the random directions; the same numbers as those of a measurement with the same seed.
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
        self.clean = clean if clean.dtype == torch.float64 else clean.float()  # (cells, dim)
        norms = vector_norm(self.clean.double(), dim=1)
        self.norms: Tensor = norms if is_relative else torch.ones_like(norms)
        self._held: tuple[Integers, Batch, int] | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def references(self, rows: Integers) -> Tensor:
        """What the objective remembers of the clean outputs of these cells."""
        return self._references[torch.from_numpy(self._owner[rows])]

    def cuts(self, rows: Integers) -> Iterator[slice]:
        """Slices of ``rows``, a batch each."""
        return self.batching.cuts(self.inputs[rows])

    def room(self, row: int) -> int:
        """How many cells like this one a batch may hold."""
        padding = self.function.inputs.padding
        if padding is None:
            return self.batching.batch_size
        width = padding.lengths[self.inputs[row]] if self.batching.trims else padding.width
        return int(max(1, min(self.batching.batch_size, self.batching.most_tokens // width)))

    def directions(self, rows: Integers, draws: Integers) -> Tensor:
        """Random unit vectors (len(rows), dim): draw ``draws[i]`` of cell ``rows[i]``, as ``Sphere`` draws them."""
        inputs, tokens = self.inputs[rows], self.tokens[rows]
        addresses = self.function.inputs.addresses(inputs, tokens)
        drawn = normals(self.noise.uniforms(inputs, addresses, draws, self.clean.shape[1]), self.clean)
        unit: Tensor = drawn / vector_norm(drawn, dim=1, keepdim=True)
        return unit

    def outputs(self, rows: Integers, deltas: Tensor) -> Tensor:
        """What the model answers when the token of each cell is moved by ``deltas`` (len(rows), dim).

        Attached to ``deltas`` if they require gradients.
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
        """The inputs of these cells; those of the latest batch are kept, since steps ask about them again."""
        if self._held is None or not np.array_equal(self._held[0], rows):
            self._held = (rows.copy(), *self.batching.batch(self.inputs[rows]))
        return self._held[1], self._held[2]

    def _embedded(self, distinct: Integers) -> Tensor:
        """The clean tokens (cells, dim) as the model embeds them."""
        parts = torch.empty(len(self.inputs), self.function.dim, dtype=self.function.sample_token.dtype)
        ordered = distinct[self.batching.order(distinct)]
        for cut in self.batching.cuts(ordered):
            chosen = ordered[cut]
            batch, first = self.batching.batch(chosen)
            look = _Look()
            self.function(batch, look)
            rows = np.flatnonzero(np.isin(self.inputs, chosen))
            place = {int(index): row for row, index in enumerate(chosen)}
            among = torch.tensor([place[int(index)] for index in self.inputs[rows]])
            parts[torch.from_numpy(rows)] = look.seen[among, torch.from_numpy(self.tokens[rows] - first)]
        return parts


class _Look:
    """An edit that changes nothing and keeps what it sees: (batch, tokens, dim)."""

    seen: Tensor

    def __call__(self, embedded: Tensor) -> Tensor:
        self.seen = embedded.detach().cpu()
        return embedded


def _replacing(columns: Tensor, moved: Tensor) -> Edit:
    """An edit that puts ``moved`` (batch, dim) at these columns of an embedded sequence, in new memory."""

    def edit(embedded: Tensor) -> Tensor:
        rows = torch.arange(len(embedded), device=embedded.device)
        return embedded.index_put((rows, columns.to(embedded.device)), moved.to(embedded))

    return edit
