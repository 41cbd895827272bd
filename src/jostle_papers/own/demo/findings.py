"""Sentences about the sweep, made from intervals alone."""

from jostle.estimates import Comparison
from jostle.estimates.sweep import against, join_words

_REFERENCE = "ViT"


def headline(levels: dict[float, Comparison]) -> str:
    """One sentence: which networks are the least sensitive at the weakest and at the strongest noise."""
    weak, strong = min(levels), max(levels)
    first, last = (_least(levels[std]) for std in (weak, strong))
    found = f"at std {weak:g} it is {join_words(first, 'or')}, at std {strong:g} it is {join_words(last, 'or')}."
    if set(first) & set(last):
        return f"The least sensitive network: {found}"
    return f"Which network is the least sensitive depends on the strength of the noise: {found}"


def findings(levels: dict[float, Comparison]) -> list[str]:
    """Sentences about the transformer against each other network, also where it is not the least sensitive.

    Arguments:
        levels: the comparison of all networks at each noise level, weakest noise first.
    """
    names = next(iter(levels.values())).names
    first, last = min(levels), max(levels)
    sentences = [_ranking(levels[std], std) for std in (first, last)]
    if _REFERENCE in names:
        sentences += [_against(levels, other) for other in names if other != _REFERENCE]
    return sentences


def _ranking(comparison: Comparison, std: float) -> str:
    order = sorted(comparison, key=lambda name: comparison[name].value)
    ordered = ", ".join(f"{name} {comparison[name].value:.3f}" for name in order)
    least = _least(comparison)
    verdict = (
        f"{least[0]} is the least" if len(least) == 1 else f"{join_words(least)} cannot be told apart as the least"
    )
    return f"At noise of std {std:g}, from least to most sensitive: {ordered}; {verdict}."


def _least(comparison: Comparison) -> list[str]:
    """The network with the smallest sensitivity and all that cannot be told apart from it."""
    order = sorted(comparison, key=lambda name: comparison[name].value)
    return [name for name in order if name == order[0] or comparison.difference(order[0], name).high >= 0]


def _against(levels: dict[float, Comparison], other: str) -> str:
    """At which noise levels the reference is less, equally or more sensitive than ``other``."""
    return against(_REFERENCE, other, {std: levels[std].difference(_REFERENCE, other) for std in levels})
