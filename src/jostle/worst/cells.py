"""A model asked with gradients: only those of the moved token, and nothing of the model is touched.

The tokens that are searched: where they are, what they are, and the model asked about them when they are moved.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.linalg import vector_norm

from jostle.base.randomness import Stream
from jostle.perturbations import normals
from jostle.responses import Flip, Margin, Response, logits_of
from jostle.sampling.batches import Batching
from jostle.sampling.evaluation import References
from jostle.sampling.plans import Integers
from jostle.tokens import Batch, Edit, TokenFunction
from jostle.tokens.view import places
from jostle.training.randomness import random_numbers

DOWN, UP, EITHER = 1, -1, 0  # ways a margin can go
AIMS = (2, 3, 4, 5)  # down, towards the first, second, ... of the other classes


class Objective(Response):
    """A response, and a height that grows towards it and has a gradient.

    A flip has none, so the margin m of the clean prediction is brought down, and flips are counted on the way:

        several logits: m = z_c - max of the others, c the clean prediction;   one logit z: m = sign(z_clean) z

    Where a single clean logit is exactly 0, |z| grows instead: any other sign is a flip. Other responses are ascended
    themselves. A margin has many slopes that do not meet: it can fall towards any of the other classes, and |m' - m|
    grows where it rises, too. A start that happens to stand on a low one never leaves it, so starts are told which way
    to go: ``DOWN``, ``UP``, ``EITHER``, or one of ``AIMS``, where z_k - z_c is ascended for a class k that came second,
    third, ... in the clean outputs.

    Arguments:
        response: what counts as a change.
    """

    name: ClassVar[str] = "objective"

    def __init__(self, response: Response) -> None:
        self.response = response
        self.is_flip, self.is_margin = isinstance(response, Flip), isinstance(response, Margin)

    @property
    def has_margin(self) -> bool:
        """Whether a margin is what moves."""
        return self.is_flip or self.is_margin

    @property
    def can_ascend(self) -> bool:
        """Whether there is a number to ascend: not for binary responses other than flips."""
        return self.is_flip or not self.response.is_binary

    def reference(self, outputs: Tensor) -> Tensor:
        """What to remember of clean outputs; for flips and margins (batch, 2 + others): prediction, margin, others.

        The others are the classes that come next, best first, as many as ``AIMS``; none for a single logit.
        """
        kept = self.response.reference(outputs)
        if not self.has_margin:
            return kept
        predicted = (kept if self.is_flip else kept[:, 0]).double()
        margin = self._margin(predicted, outputs) if self.is_flip else kept[:, 1]
        logits = logits_of(outputs)
        count = min(len(AIMS), logits.shape[1] - 1)
        if not count:
            return torch.stack([predicted, margin], dim=1)
        others = logits.double().scatter(1, predicted.long()[:, None], -torch.inf)
        return torch.cat([predicted[:, None], margin[:, None], others.topk(count).indices.double()], dim=1)

    def change(self, reference: Tensor, outputs: Tensor) -> Tensor:
        """The response (batch,), in double precision."""
        kept = reference[:, 0].long() if self.is_flip else reference
        return self.response.change(kept, outputs).double()

    def height(self, reference: Tensor, outputs: Tensor, ways: Tensor | None = None) -> Tensor:
        """The number that is ascended, (batch,): minus the margin for flips, the response itself otherwise.

        ``ways`` (batch,) say which way a margin goes; all take the response's own unless given.
        """
        if not self.has_margin or (self.is_margin and ways is None):
            return self.change(reference, outputs)
        fallen = reference[:, 1] - self._margin(reference[:, 0], outputs)
        if ways is None:
            return fallen - reference[:, 1]
        aimed = self._towards(reference, outputs, ways)
        way = ways.to(fallen)
        either = fallen.abs() if self.is_margin else fallen
        return torch.where(way == EITHER, either, torch.where(way >= AIMS[0], aimed, way * fallen))

    def _towards(self, reference: Tensor, outputs: Tensor, ways: Tensor) -> Tensor:
        """z_k - z_c (batch,) for the class k that is aimed at; anything for trials that do not aim."""
        logits = logits_of(outputs).double()
        if logits.shape[1] == 1:
            return -reference[:, 0] * logits[:, 0]
        aim = (ways - AIMS[0]).clamp(0, reference.shape[1] - 3).long()[:, None]
        target = reference[:, 2:].gather(1, aim).long()
        return (logits.gather(1, target) - logits.gather(1, reference[:, :1].long()))[:, 0]

    def clean_height(self, reference: Tensor) -> Tensor:
        """The height where nothing is moved, (batch,)."""
        return -reference[:, 1] if self.is_flip else torch.zeros(len(reference), dtype=torch.float64)

    @staticmethod
    def _margin(predicted: Tensor, outputs: Tensor) -> Tensor:
        logits = logits_of(outputs).double()
        if logits.shape[1] == 1:
            return torch.where(predicted == 0, -logits[:, 0].abs(), predicted * logits[:, 0])
        column = predicted.long()[:, None]
        return logits.gather(1, column)[:, 0] - logits.scatter(1, column, -torch.inf).amax(dim=1)


_BACKWARD = 2  # passes that a backward pass counts as


class GradientFunction(TokenFunction):
    """A ``TokenFunction`` whose outputs can be differentiated with respect to what is put into it."""

    _latest: Tensor | None = None

    @contextlib.contextmanager
    def evaluating(self, seed: int = 0) -> Iterator[None]:
        """Inside: eval mode, no gradients unless asked for, none for parameters, own random numbers. Then all is back.

        Parameters that need no gradient save the memory and time of what only their gradients would need.
        """
        modules = list(self.model.modules()) if isinstance(self.model, nn.Module) else []
        modes = [module.training for module in modules]
        # A tensor made in inference mode can neither be asked to require gradients nor be asked not to.
        wanting = [p for m in modules for p in m.parameters(recurse=False) if p.requires_grad and not p.is_inference()]
        if any(modes):
            self.warnings.append(f"{self.name} was in train mode; it was measured in eval mode and put back")
        try:
            for module in modules:
                module.training = False  # not .eval(), which a module may override to keep a part in train mode
            for parameter in wanting:
                parameter.requires_grad = False
            with random_numbers(seed), torch.inference_mode(mode=False), torch.no_grad():
                yield
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode
            for parameter in wanting:
                parameter.requires_grad = True

    def read_outputs(self, answer: Any, batch: Batch) -> Tensor:
        """The outputs, still attached to what was put in."""
        self._latest = super().read_outputs(answer, batch)
        return self._latest

    def with_graph(self, batch: Batch, edit: Edit | None = None) -> Tensor:
        """Outputs (batch, ...) on the CPU, still attached to what was put in; otherwise as the call."""
        self(batch, edit)  # hands out detached outputs; what it read them from is kept by read_outputs
        attached, self._latest = self._latest, None
        assert attached is not None
        return attached.cpu()

    def gradient(self, height: Tensor, moved: Tensor) -> Tensor:
        """d (sum of height) / d moved, in the shape of ``moved`` (batch, dim); counts the backward pass."""
        self.passes += _BACKWARD * len(moved)
        (gradient,) = torch.autograd.grad(height.sum(), moved)
        return gradient


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
