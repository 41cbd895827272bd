"""Context modification: the search for a changed word for which a model that has learnt the input is right.

Paper 3 (2402.02969): a model learns (X, y), and X with one word changed has the label -y. Can it tell them apart?
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jostle.base import checks
from jostle_papers.p2402_02969.features.feature_map import OneWord, budget
from jostle_papers.p2402_02969.features.interpolation import LearntModel, ModifiedInputs
from jostle_papers.p2402_02969.features.word_sensitivity import ascend, on_ball, random_changes

GOALS = ("error", "alignment")


@dataclass(frozen=True, eq=False)
class Modification:
    """The best change of one word, and the model's answer to it.

    Arguments:
        change: Delta, (d,).
        prediction, error, gamma, alignment, bound, alignment_bound, feature_change: as in ``ModifiedInputs``.
    """

    change: Tensor
    prediction: float
    error: float
    gamma: float
    alignment: float
    bound: float
    alignment_bound: float
    feature_change: float

    @property
    def free_bound(self) -> float:
        """(2 - gamma)^2, the least error where the alignment is 1; 0 where gamma is at least 2."""
        return max(0.0, 2 - self.gamma) ** 2


def modify_word(
    one_word: OneWord,
    learnt: LearntModel,
    *,
    goal: str = "error",
    penalty: float = 10.0,
    radius: float = 1.0,
    starts: int = 8,
    steps: int = 200,
    seed: int = 0,
) -> Modification:
    """The change of a word, no longer than radius sqrt(d), with the least goal + penalty * gamma^2.

    With ``penalty=0`` the error can fall because the old model already told the two inputs apart; then the error says
    nothing about what was learnt. So gamma is held small here, and must always be read beside the error.

    Differs: the released code has no penalty, one start and the last iterate.

    Arguments:
        one_word: the features of the learnt input as a function of one word.
        learnt: the model after learning it.
        goal: ``error``, (f(X_D) + y)^2; or ``alignment``, (F - F*)^2 with F* the alignment at which the error is
            gamma^2 (the released code's target is -1, which it is for a = 0).
        penalty: of gamma^2.
        radius: in units of sqrt(d).
        starts, steps, seed: of the ascent; the first half of the starts, at most, are directions the map suggests, one
            is a deletion and the others are random.
    """
    checks.choice("goal", goal, GOALS)
    checks.sizes(starts=starts, steps=steps)
    checks.number("penalty", penalty, least=0)
    length = budget(radius, len(one_word.word))
    # Only two products of the features are needed, with theta* and with u.
    readers = torch.stack([learnt.old_weights, learnt.step], dim=1)  # (p, 2)
    target = learnt.separating_alignment

    def objective(changes: Tensor) -> Tensor:
        old, alignment = (one_word.features(changes) @ readers).unbind(dim=1)
        prediction = old + alignment * (learnt.label - learnt.before)
        missed = prediction + learnt.label if goal == "error" else alignment - target
        return -(missed.square() + penalty * (old - learnt.before).square())

    ascent = ascend(objective, _starts(one_word, length, starts, seed), length, steps=steps)
    change = ascent.changes[ascent.best]
    with torch.no_grad():
        found: ModifiedInputs = learnt.judge(one_word.features(change[None]))
    numbers = found.at(0)
    return Modification(change=change, feature_change=numbers.pop("change"), **numbers)


def _starts(one_word: OneWord, length: float, count: int, seed: int) -> Tensor:
    """Suggested directions, a deletion, and random ones of half the length, (count, d)."""
    known = torch.cat([-one_word.word[None], one_word.directions()[: count // 2]])[:count]
    drawn = random_changes(count, len(one_word.word), seed, "modification").to(known)[: count - len(known)]
    return torch.cat([on_ball(known, length), on_ball(drawn, length / 2)])
