"""Word sensitivity: how far the features of an input move when one of its words does. Paper 3 (2402.02969), Eq. 3.4.

The largest change is searched by projected gradient ascent, from many starts at once; the best iterate is kept.
``ascend`` knows nothing of networks and inputs: it maximises a function of the changes of one word.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.base import checks
from jostle.base.errors import UsageError
from jostle_papers.p2402_02969.features.feature_map import FeatureMap, OneWord, budget, check_words, generator


@dataclass(frozen=True, eq=False)
class WordSensitivity:
    """Changes of features at one position, or at the worst of several; all but ``absolute`` in units of ||phi(X)||.

    average <= largest <= value always, and constructed <= value.

    Arguments:
        value: the largest change of features found, a lower bound of the supremum.
        average: the mean over random changes on the sphere of radius sqrt(d).
        largest: the largest of these.
        constructed: the largest change by a direction the map itself suggests, without ascent; None if it has none.
        absolute: the largest change found over sqrt(n d), the norm of the input, instead of ||phi(X)||.
        position: where the largest change was found.
        change: Delta, (d,).
        by_position: value of each position that was searched.
    """

    value: float
    average: float
    largest: float
    constructed: float | None
    absolute: float
    position: int
    change: Tensor
    by_position: dict[int, float]

    def __str__(self) -> str:
        return (
            f"word sensitivity at least {self.value:.4g} (position {self.position}); "
            f"random changes {self.average:.4g} on average, {self.largest:.4g} at most"
        )


def word_sensitivity(
    feature_map: FeatureMap,
    words: Tensor,
    *,
    radius: float = 1.0,
    positions: Sequence[int] | None = None,
    screen: int | None = None,
    starts: int = 12,
    steps: int = 200,
    draws: int = 64,
    seed: int = 0,
) -> WordSensitivity:
    """S(X) = sup over i and ||Delta|| <= radius sqrt(d) of ||phi(X^i(Delta)) - phi(X)|| / ||phi(X)||, from below.

    X^i(Delta) has Delta added to word i. The supremum is searched by projected gradient ascent in the ball around the
    word as it is, from the directions that the map suggests, deletion (-x_i), and the best random changes.

    Differs: the released code looks at the first position only, from one start, in a ball around a jittered start, and
    takes the last iterate.

    >>> from jostle_papers.p2402_02969.features import RandomFeatures, isotropic_words
    >>> words = isotropic_words(1, num_tokens=9, dim=16)[0]
    >>> linear = RandomFeatures(num_tokens=9, dim=16, activation="identity")
    >>> found = word_sensitivity(linear, words, positions=[0])
    >>> exact = torch.linalg.matrix_norm(linear.block(0), 2) * 4 / linear(words[None]).norm()
    >>> bool(0.999 * exact < found.value < exact * (1 + 1e-9))
    True

    Arguments:
        feature_map: phi.
        words: X, (n, d).
        radius: in units of sqrt(d), the norm of a word.
        positions: where to search; all by default.
        screen: ascend only at this number of positions, where suggested directions and a deletion move most.
        starts: of the ascent at each position, at least one of them the best random change.
        steps: of the ascent.
        draws: random changes at each position.
        seed: of the random changes.
    """
    check_words(words)
    asked = list(range(len(words))) if positions is None else list(positions)
    if not asked:
        raise UsageError("positions is empty; name at least one, or leave it out for all")
    if screen is not None:
        checks.sizes(screen=screen)
        asked = _promising(feature_map, words, asked, budget(radius, words.shape[1]), screen)
    settings = {"starts": starts, "steps": steps, "draws": draws, "seed": seed}
    found = [
        sensitivity_at(one_word, radius, len(words), position=position, **settings)
        for position, one_word in zip(asked, feature_map.one_words(words, asked), strict=True)
    ]
    worst = max(found, key=lambda one: one.value)
    by_position = {one.position: one.value for one in found}
    return WordSensitivity(**{**vars(worst), "by_position": by_position})


def sensitivity_at(
    one_word: OneWord,
    radius: float = 1.0,
    num_tokens: int = 1,
    *,
    position: int = 0,
    starts: int = 12,
    steps: int = 200,
    draws: int = 64,
    seed: int = 0,
) -> WordSensitivity:
    """``word_sensitivity`` at one position, from the features as a function of the word, e.g. of ``DrawnFeatures``.

    Arguments:
        one_word: the features as a function of the word.
        num_tokens: n, for the absolute change.
        position: of the word, for the result.
        radius, starts, steps, draws, seed: as in ``word_sensitivity``.
    """
    checks.sizes(num_tokens=num_tokens, starts=starts, steps=steps, draws=draws)
    dim = len(one_word.word)
    length, norm = budget(radius, dim), one_word.norm
    if not norm > 0:
        raise UsageError("the features of the input are all 0, so a relative change is not defined")
    random = on_ball(random_changes(draws, dim, seed, f"{position}").to(one_word.word), length)
    with torch.no_grad():
        drawn = one_word.squared_change(random).sqrt()  # (draws,)
        suggested = one_word.directions()
        constructed = one_word.squared_change(on_ball(suggested, length)).sqrt() if len(suggested) else None
    order = drawn.argsort(descending=True)
    known = torch.cat([on_ball(suggested, length), on_ball(-one_word.word[None], length)])[: starts - 1]
    chosen = torch.cat([random[order[: max(1, starts - len(known))]], known])
    ascent = ascend(one_word.squared_change, chosen, length, steps=steps)
    # Scaled to the ball again, a start may lose its last digit.
    value = max(float(ascent.values.max().sqrt()), float(drawn.max()))
    return WordSensitivity(
        value=value / norm,
        average=float(drawn.mean()) / norm,
        largest=float(drawn.max()) / norm,
        constructed=None if constructed is None else min(float(constructed.max()), value) / norm,
        absolute=value / (num_tokens * dim) ** 0.5,
        position=position,
        change=ascent.changes[ascent.best],
        by_position={position: value / norm},
    )


def _promising(feature_map: FeatureMap, words: Tensor, positions: list[int], length: float, count: int) -> list[int]:
    """The positions where a deletion or a suggested direction moves most, in order."""

    def reach(one_word: OneWord) -> float:
        tried = torch.cat([one_word.directions(), -one_word.word[None]])
        return float(one_word.squared_change(on_ball(tried, length)).max())

    with torch.no_grad():
        reached = dict(zip(positions, map(reach, feature_map.one_words(words, positions)), strict=True))
    return sorted(sorted(positions, key=reached.__getitem__, reverse=True)[:count])


@dataclass(frozen=True, eq=False)
class WordAscent:
    """The best iterate from each start.

    Arguments:
        changes: (starts, dim), none longer than allowed.
        values: of the objective there, (starts,).
    """

    changes: Tensor
    values: Tensor

    @property
    def best(self) -> int:
        """The start that led to the largest value."""
        return int(self.values.argmax())


def ascend(
    objective: Callable[[Tensor], Tensor], starts: Tensor, length: float, *, steps: int = 200, step: float = 0.3
) -> WordAscent:
    """Maximise ``objective`` over changes no longer than ``length``, from each start.

    A step goes along the gradient, step * length * (1 + cos(pi t / steps)) / 2 far, and back into the ball, which is
    centred on the word as it is. Where the gradient is 0 or not finite the change stays. The value of every iterate
    counts, the first one included, so the result is never below the best start.

    >>> squares = lambda changes: (changes * torch.tensor([1.0, 3.0])).square().sum(1)
    >>> found = ascend(squares, torch.tensor([[1.0, 0.1]]), length=2.0)
    >>> [round(float(number), 6) for number in (found.values[0], found.changes[0].norm())]
    [36.0, 2.0]

    Arguments:
        objective: (count, dim) -> (count,), each value a function of its own row only, differentiable.
        starts: (count, dim); longer ones are scaled to the ball.
        length: the radius of the ball.
        steps: number of gradients.
        step: the first step in units of the radius.
    """
    if starts.ndim != 2 or len(starts) == 0 or not math.isfinite(length) or length < 0:
        raise UsageError(f"ascent needs starts (count, dim) and a finite length, got {tuple(starts.shape)}, {length}")
    changes = _inside(starts.detach(), length)
    best, values = changes, torch.full_like(changes[:, 0], -math.inf)
    for turn in range(steps + 1):
        asked = changes.clone().requires_grad_(turn < steps)
        found = objective(asked)
        better = found.detach() > values
        values = torch.where(better, found.detach(), values)
        best = torch.where(better[:, None], changes, best)
        if turn == steps:
            break
        (gradient,) = torch.autograd.grad(found.sum(), asked)
        size = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
        usable = size.isfinite() & (size > 0)
        rate = step * length * (1 + math.cos(math.pi * turn / steps)) / 2
        direction = torch.where(usable, gradient / torch.where(usable, size, 1.0), 0.0)
        changes = _inside(changes + rate * direction, length)
    return WordAscent(best, values)


def random_changes(count: int, dim: int, seed: int, name: str) -> Tensor:
    """Directions uniform on the sphere, (count, dim) in float64."""
    return torch.randn(count, dim, generator=generator(seed, f"changes/{name}"), dtype=torch.float64)


def on_ball(directions: Tensor, length: float) -> Tensor:
    """Each direction (count, d) with this length; a vector of zeros stays."""
    norms = torch.linalg.vector_norm(directions, dim=1, keepdim=True)
    return directions * (length / torch.where(norms > 0, norms, 1.0))


def _inside(changes: Tensor, length: float) -> Tensor:
    """The nearest changes that are no longer than ``length``."""
    sizes = torch.linalg.vector_norm(changes, dim=1, keepdim=True)
    inside: Tensor = changes * torch.where(sizes > length, length / sizes.clamp(min=1e-300), 1.0)
    return inside
