"""Looks: the numbers of seeds at which a study was judged, or was planned to be.

A study that is judged at 3 seeds and, if undecided, again at 6 has two chances to be wrong. So each look has a share of
the error, and the shares add up to 1 (a union bound, so looks may depend on each other in any way):

    share of look k of K = 2 k / (K (K + 1)):  1;  1/3 2/3;  .1 .2 .3 .4

Later looks have more seeds behind them and get more. ``docs/verdicts.md`` has the error rates and the mean numbers of
seeds, beside those of a test that may be looked at after every seed.
"""

from collections.abc import Collection

from jostle.base import checks
from jostle.base.errors import UsageError

AT_MOST = 24
MOST_SEEDS = 10_000  # every seed has its cells in memory


def planned(first: int, at_most: int = AT_MOST) -> tuple[int, ...]:
    """The looks from the first number of seeds on, each with twice as many as the one before.

    >>> planned(3), planned(3, 10), planned(5, 5)
    ((3, 6, 12, 24), (3, 6, 10), (5,))
    """
    if checks.whole("at_most", at_most, least=1, most=MOST_SEEDS) < first:
        raise UsageError(
            f"at_most={at_most} is less than the {first} seeds of the first look; give more or fewer seeds"
        )
    found = [first]
    while found[-1] < at_most:
        found.append(min(2 * found[-1], at_most))
    return tuple(found)


def share_of_error(looks: Collection[int], seeds: int) -> float:
    """The share of the error that the look at so many seeds has, among all looks taken and planned.

    >>> [round(share_of_error((3, 6, 12, 24), seeds), 3) for seeds in (3, 6, 12, 24)]
    [0.1, 0.2, 0.3, 0.4]
    >>> share_of_error((), 3)
    1.0
    """
    every = sorted({*looks, seeds})
    return 2 * (every.index(seeds) + 1) / (len(every) * (len(every) + 1))
