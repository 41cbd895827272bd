"""Feature maps, and their features as functions of one word.

Here: the two interfaces, the registry, and the plain way to move one word, which works for any map. Not here: the maps
(``random_features``, ``attention``) and what uses them (``word_sensitivity``, ``interpolation``).
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle.base.registry import Registry


class OneWord(ABC):
    """The features of one input as a function of one of its words; all other words stay.

    Arguments:
        word: the word as it is, (dim,).
        clean: the features of the input as it is, (features,).
    """

    def __init__(self, word: Tensor, clean: Tensor) -> None:
        self.word, self.clean = word, clean

    @abstractmethod
    def features(self, changes: Tensor) -> Tensor:
        """Features after the word is moved, (count, dim) -> (count, features)."""

    def squared_change(self, changes: Tensor) -> Tensor:
        """||phi(X^i(Delta)) - phi(X)||_2^2 of each change, (count, dim) -> (count,); differentiable."""
        return (self.features(changes) - self.clean).square().sum(dim=1)

    def relative_change(self, changes: Tensor) -> Tensor:
        """||phi(X^i(Delta)) - phi(X)||_2 / ||phi(X)||_2, (count, dim) -> (count,): the ratio of Eq. 3.4."""
        return self.squared_change(changes).sqrt() / self.norm

    @property
    def norm(self) -> float:
        """||phi(X)||_2."""
        return float(torch.linalg.vector_norm(self.clean))

    def directions(self) -> Tensor:
        """Directions in which this map is known to move far, (count, dim), of any length; none by default."""
        return self.word.new_zeros(0, len(self.word))


class FeatureMap(nn.Module, ABC):
    """phi: n words of dimension d to a vector of features. A callable (batch, n, d) -> (batch, features).

    So it is a model like any other: ``jostle.measure(phi, words, tokens=jostle.Rows(), response="relative-change")``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.eval()  # nothing here is trained

    @abstractmethod
    def forward(self, words: Tensor) -> Tensor:
        """Features, (batch, n, d) -> (batch, features)."""

    def one_word(self, words: Tensor, position: int) -> OneWord:
        """The features of one input (n, d) as a function of its word at ``position``; by default all are recomputed."""
        return RecomputedWord(self, words, position)

    def starting_directions(self, tokens: Tensor, position: int) -> Tensor:
        """Directions (count, dim) in which ``jostle.worst_case`` starts its search at ``position`` of one input."""
        return self.one_word(tokens, position).directions()

    def one_words(self, words: Tensor, positions: Sequence[int]) -> Iterator[OneWord]:
        """``one_word`` for several positions, one after another; a map may share work between them."""
        return (self.one_word(words, position) for position in positions)


class RecomputedWord(OneWord):
    """The plain way, for any function of words: put the moved word into the input and compute all features again."""

    def __init__(self, function: Callable[[Tensor], Tensor], words: Tensor, position: int) -> None:
        check_words(words, position)
        self._function, self._words, self._position = function, words, position
        super().__init__(words[position], function(words[None]).detach().flatten())

    def features(self, changes: Tensor) -> Tensor:
        moved = self._words.expand(len(changes), *self._words.shape)  # (count, n, d)
        before, after = moved[:, : self._position], moved[:, self._position + 1 :]
        return self._function(torch.cat([before, (self.word + changes)[:, None], after], dim=1)).flatten(1)


FEATURE_MAPS = Registry[Callable[..., FeatureMap]](
    "feature map",
    homes={
        "drf": "jostle_papers.p2402_02969.features.random_features",
        "raf": "jostle_papers.p2402_02969.features.attention",
        "raf-qk": "jostle_papers.p2402_02969.features.attention",
        "rf": "jostle_papers.p2402_02969.features.random_features",
    },
)
register = FEATURE_MAPS.register
names = FEATURE_MAPS.names


def create(name: str, *, num_tokens: int, dim: int, seed: int = 0, **options: Any) -> FeatureMap:
    """The feature map called ``name``, with random weights.

    >>> create("raf", num_tokens=5, dim=4)(torch.ones(2, 5, 4)).shape
    torch.Size([2, 20])

    Arguments:
        name: one of ``names()``: rf, drf, raf, raf-relu, raf-linear, raf-qk.
        num_tokens: n, words of an input.
        dim: d, the dimension of a word.
        seed: of the weights.
        options: further arguments of the map, e.g. ``depth`` of drf.
    """
    try:
        return FEATURE_MAPS.get(name)(num_tokens=num_tokens, dim=dim, seed=seed, **options)
    except TypeError as error:
        raise UsageError(f"feature map {name!r} cannot be made with {options}: {error}") from None


def generator(seed: int, name: str) -> torch.Generator:
    """A generator of its own for each seed and name."""
    digest = hashlib.sha256(f"{int(seed)}/features/{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def gaussian(*size: int, std: float, seed: int, name: str) -> Tensor:
    """Independent N(0, std^2) in float64, the same for a given seed, name and size."""
    return torch.randn(*size, generator=generator(seed, name), dtype=torch.float64) * std


def check_words(words: Tensor, position: int | None = None) -> None:
    """Raise unless ``words`` is one input (n, d) of floats that has this position."""
    if not isinstance(words, Tensor) or words.ndim != 2 or not words.is_floating_point() or 0 in words.shape:
        shown = f"{tuple(words.shape)} of {words.dtype}" if isinstance(words, Tensor) else type(words).__name__
        raise UsageError(f"words must be one input of floats, (num_tokens, dim), got {shown}; take one of the batch")
    if position is not None:
        checks.whole("position", position, least=0, most=len(words) - 1, hint=" for these words")


def check_shape(words: Tensor, num_tokens: int, dim: int) -> None:
    """Raise unless the last two axes are those that the map was built for."""
    if words.shape[-2:] != (num_tokens, dim):
        raise UsageError(
            f"the feature map was built for words of shape ({num_tokens}, {dim}), got {tuple(words.shape[-2:])}; pass "
            "num_tokens and dim that match"
        )


def budget(radius: float, dim: int) -> float:
    """The longest change of a word: radius * sqrt(d), as words have norm sqrt(d)."""
    return checks.number("radius", radius, least=0, hint=", in units of sqrt(dim)") * math.sqrt(dim)
