"""Texts: how a token is changed inside a model, and whether the models can be asked this way.

``Move`` changes the embedded tokens on their way through a model. ``check_text`` makes sure, before anything is
measured, that leaving out padding and changing embeddings by a hook leave the outputs of a model as they were.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jostle.base.errors import FailureError, UsageError
from jostle.perturbations import Correlated, Deletion, Perturbation, ReplaceBy, UniformToken
from jostle.sampling.plans import Integers
from jostle.tokens import Inputs, TokenFunction, Words
from jostle.tokens.text import check_words, configured_padding, padding_id

if TYPE_CHECKING:
    from jostle.sampling.plans import Batching


class Move:
    """An edit of embedded texts: one vector of each text is changed, or several; all others stay bit for bit.

    Attributes:
        is_moved: (batch,) true for texts of which a vector changed; set by the edit.

    Arguments:
        perturbation: what a vector becomes.
        columns: (vectors,) their columns.
        uniforms: (vectors, at least as many as the perturbation needs) random numbers, the same for every model.
        rows: (vectors,) the text of the batch that each belongs to; by default one vector of each text, in order.
    """

    def __init__(
        self,
        perturbation: Perturbation,
        columns: Integers,
        uniforms: NDArray[np.float64],
        rows: Integers | None = None,
    ) -> None:
        self.perturbation, self.uniforms = perturbation, uniforms
        self._rows = np.arange(len(columns)) if rows is None else rows
        self._columns = torch.from_numpy(columns)
        self.is_moved: NDArray[np.bool_] = np.zeros(0, dtype=bool)

    def __call__(self, embedded: Tensor) -> Tensor:
        """``embedded`` (batch, tokens, dim) with some vectors changed, in new memory."""
        rows, columns = torch.from_numpy(self._rows), self._columns
        before = embedded[rows, columns].cpu()  # (vectors, dim)
        needed = self.perturbation.num_uniforms(before.shape[1])
        after = self.perturbation.apply(before, self.uniforms[:, :needed])
        self.is_moved = np.zeros(len(embedded), dtype=bool)
        self.is_moved[self._rows[(after != before).any(dim=1).numpy()]] = True
        moved = embedded.clone()
        moved[rows, columns] = after.to(embedded.device)
        return moved


_CHECKED, _CHECKED_AT_ONCE = 8, 3


def check_text(functions: list[TokenFunction], perturbation: Perturbation, batching: "Batching") -> None:
    """Raise if tokens cannot be changed this way, or if a model gives other answers when it is asked this way.

    The models are asked twice about up to 8 texts of all lengths: about the texts as given, and as in a measurement,
    in batches without padding and with an embedding replaced by itself. If padding makes a difference (positions are
    counted from the start of the padding), the padding stays, for all models, and a warning says so.
    """
    inputs = batching.inputs
    _check_vocabulary(perturbation, inputs)
    for function in functions:
        perturbation.check(function.sample_token)
        _check_known(perturbation, inputs, function)
    texts = some_texts(inputs)
    plain = [function(inputs.batch(texts)) for function in functions]
    differing = _differing(functions, plain, batching, texts)
    if differing and batching.trims:
        batching.trims = False
        for function in differing:
            function.warnings.append(
                f"{function.name} answers differently if padding is cut off (does it count positions, or look for its "
                "first token, from there?), so all texts keep theirs, which is slow: pad on the other side, or give "
                "position_ids"
            )
        differing = _differing(functions, plain, batching, texts)
    for function in differing:
        raise UsageError(
            f"{function.name} answers differently when one of its embeddings is replaced by itself: "
            f"tokens={inputs.view.describe()} cannot be used with it; use another tokens=embeddings:module=PATH"
        )


def padding_to_fill_with(perturbation: Perturbation, inputs: Inputs, functions: list[TokenFunction]) -> int:
    """The id that takes the place of a deleted token; raises if tokens cannot be deleted."""
    if not isinstance(inputs.view, Words) or inputs.padding is None:
        raise UsageError(
            f"perturbation={perturbation.describe()} takes tokens out of texts: use tokens=words, not "
            f"{inputs.view.describe()}"
        )
    if inputs.moving is not None:
        raise UsageError(f"perturbation={perturbation.describe()} would leave nothing of a text: leave out whole=true")
    short = np.flatnonzero(inputs.padding.lengths < 2)
    if len(short):
        raise UsageError(
            f"perturbation={perturbation.describe()} would leave {len(short)} of {len(inputs)} texts empty (first: "
            f"input {short[0]}, of one token): leave them out"
        )
    own = perturbation.pad if isinstance(perturbation, Deletion) else None
    models = [function.model for function in functions]
    for pad in (own, inputs.pad, padding_id(models), *map(configured_padding, models)):
        if pad is not None:
            return pad
    if inputs.is_aligned:
        return 0  # it stands behind the text, where no answer is read
    raise UsageError(
        "which token id is padding? No text is padded and no model says it; give it: Deletion(pad=0), or "
        "deletion:pad=0 on the command line"
    )


def _check_vocabulary(perturbation: Perturbation, inputs: Inputs) -> None:
    """Raise if a token could be replaced by padding, which would delete it.

    Not so where answers at tokens are read: padding is behind the text then, whatever its id.
    """
    if inputs.pad is None or not isinstance(inputs.view, Words) or inputs.is_aligned:
        return
    ids = _new_ids(perturbation)
    if ids is not None and bool((ids == inputs.pad).any()):
        raise UsageError(
            f"perturbation={perturbation.describe()} may put the padding id {inputs.pad} into a text: give ids of "
            f"words, e.g. UniformToken(torch.arange({inputs.pad + 1}, V)), or use Deletion"
        )


def _check_known(perturbation: Perturbation, inputs: Inputs, function: TokenFunction) -> None:
    """Raise if a token could be replaced by an id that the model has no word for."""
    ids = _new_ids(perturbation)
    if isinstance(perturbation, Deletion) and perturbation.pad is not None:
        ids = torch.tensor([perturbation.pad])
    if ids is None or not isinstance(inputs.view, Words):
        return
    low, high = int(ids.min()), int(ids.max())
    span = f"the id {low}" if low == high else f"ids from {low} to {high}"
    option = "vocabulary=" if isinstance(perturbation, Correlated) else "uniform-token:"
    remedy = f"give it ids of that vocabulary, e.g. {option}{{words}}"
    if not isinstance(perturbation, UniformToken | Correlated):
        remedy = "give it an id of that vocabulary"
    what = f"perturbation={perturbation.describe()} puts {span} into texts"
    check_words(function.model, low, high, what, function.name, remedy)


def _new_ids(perturbation: Perturbation) -> Tensor | None:
    """The ids that may replace a word; None if a perturbation does not name them."""
    ids = perturbation.table if isinstance(perturbation, UniformToken | Correlated) else None
    return perturbation.value if isinstance(perturbation, ReplaceBy) else ids


def some_texts(inputs: Inputs) -> Integers:
    """A few inputs, from the shortest to the longest."""
    assert inputs.padding is not None
    order = np.argsort(inputs.padding.lengths, kind="stable")
    return order[np.unique(np.linspace(0, len(order) - 1, _CHECKED).astype(np.int64))]


def _differing(
    functions: list[TokenFunction], plain: list[Tensor], batching: "Batching", texts: Integers
) -> list[TokenFunction]:
    """The models that answer differently when they are asked as in a measurement."""
    pairs = zip(functions, plain, strict=True)
    return [function for function, expected in pairs if not _is_same(expected, function, batching, texts)]


def _is_same(expected: Tensor, function: TokenFunction, batching: "Batching", texts: Integers) -> bool:
    """Whether a model answers as expected, up to rounding; an unsteady model passes, and is warned about elsewhere."""
    try:
        found = _through(function, batching, texts)
    except FailureError:
        if not batching.trims:
            raise
        return False  # the model takes no texts of another width
    if expected.shape == found.shape and (not function.is_steady or not expected.isfinite().all()):
        return True
    return agree(function, expected, found)


def agree(function: TokenFunction, expected: Tensor, found: Tensor) -> bool:
    """Whether two answers of a model, (texts, ...), are the same up to rounding."""
    if expected.shape != found.shape:
        return False
    difference = float((expected.double() - found.double()).abs().max())
    return difference <= function.rounding(expected.dtype) * (float(expected.abs().max()) + 1e-12)


def _through(function: TokenFunction, batching: "Batching", texts: Integers) -> Tensor:
    """A model's answers about texts, sorted by length, asked as in a measurement, without changing anything."""
    assert function.inputs.padding is not None
    answers = []
    size = min(batching.batch_size, _CHECKED_AT_ONCE)  # few, so that hardly any keeps the padding that it came with
    for start in range(0, len(texts), size):
        some = texts[start : start + size]
        batch, first = batching.batch(some)
        own = function.inputs.padding.first[some] - first
        still = Move(_Still(), own, np.empty((len(own), 0))) if function.site is not None else None
        answers.append(function(batch, still))
    return torch.cat(answers)


class _Still(Perturbation):
    """Every token stays as it is."""

    @property
    def is_deterministic(self) -> bool:
        return True

    def apply(self, tokens: Tensor, uniforms: NDArray[np.float64]) -> Tensor:  # noqa: ARG002
        return tokens

    def describe(self) -> str:
        return "still"
