"""Which (input, token, draw) triples are evaluated, and their evaluation. Left: perturbations. Right: estimates.

``Grid`` is the papers' protocol, ``Until`` stops at a precision. A plan only names triples; it holds no statistics.
"""

from jostle.base.registry import Registry
from jostle.sampling.evaluation import Changes, Evaluation
from jostle.sampling.plans import Grid, Trials, Until

Plan = Grid | Until
PLANS: Registry[type[Plan]] = Registry("plan")
PLANS.register("grid")(Grid)
PLANS.register("until")(Until)

__all__ = ["PLANS", "Changes", "Evaluation", "Grid", "Plan", "Trials", "Until"]
