"""Which of two flips more often? Evidence that may be looked at at any time. Pure functions of counts.

Two models see the same trials. Trials in which both flip, or neither, say nothing about which one flips more; those in
which one flips alone (discordant pairs) are coin tosses, fair if both are equally sensitive. So the sign of the
difference can be decided long before its size is known.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special


def log_evidence(wins: ArrayLike, losses: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithm of the evidence that wins are more likely than losses, and of that for the contrary.

    With a wins and b losses, and theta the probability of a win among them,

        M+ = integral over theta from 1/2 to 1 of  2 theta^a (1 - theta)^b / (1/2)^(a + b)
           = 2^(a + b + 1) B(a + 1, b + 1) P[Beta(a + 1, b + 1) > 1/2]

    If wins are not more likely than losses, M+ is a supermartingale that starts at 1, so it ever exceeds 2 / alpha with
    probability at most alpha / 2 (Ville 1939). M- is the same with a and b exchanged. Stopping when one of the two
    exceeds 2 / alpha therefore claims a wrong sign with probability at most alpha / 2, and any sign where there is no
    difference with probability at most alpha, however often one looks. Mixtures of likelihood ratios: Robbins (1970).

    >>> more, less = log_evidence(12, 1)
    >>> bool(more > np.log(2 / 0.05)), bool(less < 0)
    (True, True)
    """
    a, b = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    common = (a + b + 1) * np.log(2) + special.betaln(a + 1, b + 1)
    with np.errstate(divide="ignore"):
        more, less = np.log(special.betaincc(a + 1, b + 1, 0.5)), np.log(special.betainc(a + 1, b + 1, 0.5))
    return common + more, common + less


def signs(wins: ArrayLike, losses: ArrayLike, level: float) -> NDArray[np.int64]:
    """1 where the evidence says that wins are more likely, -1 where losses are, 0 where it does not tell yet."""
    more, less = log_evidence(wins, losses)
    threshold = np.log(2 / (1 - level))
    return np.where(more >= threshold, 1, np.where(less >= threshold, -1, 0))
