"""Which (input, token, draw) triples are tried, and how models are asked about them.

``Grid`` is the papers' protocol, ``Until`` stops at a precision, and ``DefaultPlan`` chooses between them. A plan only
names triples; it holds no statistics. ``Evaluation`` turns triples into changes of the models' outputs.
"""

from jostle.sampling.evaluation import Changes, Evaluation
from jostle.sampling.plans import PLANS, DefaultPlan, Grid, Plan, Trials, Until

__all__ = ["PLANS", "Changes", "DefaultPlan", "Evaluation", "Grid", "Plan", "Trials", "Until"]
