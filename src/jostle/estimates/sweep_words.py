"""Which of two models is more sensitive at which strength: sentences made from intervals and nothing else."""

import itertools
from collections.abc import Mapping, Sequence

from jostle.estimates.comparison import Difference

_MOST_LISTED = 7  # of a longer row only its ends are named


def against(first: str, second: str, differences: Mapping[float, Difference], parameter: str = "std") -> str:
    """At which strengths ``first`` is more sensitive than ``second``, less, or not told apart from it.

    Strengths are gone through from the first to the last, so that a crossing of the two is read from left to right.

    Arguments:
        first, second: names of the models.
        differences: ``first - second`` at each strength, weakest first.
        parameter: what a strength is called.
    """
    words = [(_word(difference), strength) for strength, difference in differences.items()]
    rows = itertools.groupby(words, key=lambda pair: pair[0])
    parts = [f"{word} at {parameter} {_strengths([strength for _, strength in row])}" for word, row in rows]
    return f"{first} against {second}: {'; '.join(parts)}."


def listed(parts: Sequence[str], joint: str = "and") -> str:
    """Words as a sentence holds them.

    >>> listed(["MLP"]), listed(["MLP", "CNN", "ViT"], "or")
    ('MLP', 'MLP, CNN or ViT')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {joint} {parts[-1]}"


def _word(difference: Difference) -> str:
    if difference.low > 0:
        return "more sensitive"
    return "less sensitive" if difference.high < 0 else "not told apart"


def _strengths(strengths: Sequence[float]) -> str:
    if len(strengths) <= _MOST_LISTED:
        return listed([f"{strength:g}" for strength in strengths])
    return f"{strengths[0]:g} to {strengths[-1]:g} (all {len(strengths)} measured there)"
