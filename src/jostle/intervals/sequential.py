"""The interval of a sample that stopped because its own interval was narrow enough.

A confidence sequence is valid whatever made one stop, and pays for that with about 2.5 times the draws of a fixed
sample. The rule "stop when the Clopper-Pearson interval is narrow enough" is not whatever: near its stopping time the
sample size hardly depends on the estimate any more (Chow and Robbins 1965), so the plain interval is almost right, and
a slightly raised level makes it right for every p (Frey 2010, "Fixed-width sequential confidence intervals for a
proportion"). Both are held at once, with alpha = 1 - level split between them:

    a tenth of alpha     a confidence sequence, reported if something else ends the sampling
    the rest             the Clopper-Pearson interval at level 1 - 0.6 alpha, reported where it is first narrow enough

The factor 0.6 is calibrated, not derived: the exact coverage, by dynamic programming over all paths, is at least
1 - 0.9 alpha for levels from 0.8 to 0.99, half-widths from 0.002 to 0.2, relative precisions from 0.1 to 0.5, looks at
every draw or seldom, and p on a fine grid (tests/intervals/test_sequential.py). The price is about 1.3 times the draws
of a fixed sample.
"""

from jostle.intervals.fixed import Ends, clopper_pearson

_SEQUENCE_SHARE = 0.1
_PEEKED_SHARE = 0.6


def sequence_level(level: float) -> float:
    """The level of the confidence sequence that runs beside the stopping rule."""
    return 1 - _SEQUENCE_SHARE * (1 - level)


def stopped_proportion(successes: int, trials: int, level: float) -> Ends:
    """The interval that the stopping rule looks at, and the answer if it stops there.

    >>> low, high = stopped_proportion(24, 4800, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.0031, 0.0077)
    """
    low, high = clopper_pearson(successes, trials, 1 - _PEEKED_SHARE * (1 - level))
    return float(low), float(high)
