"""Which (input, token, draw) triples are tried, and how models are asked about them.

``Grid`` is the papers' protocol, ``Until`` stops at a precision, and ``DefaultPlan`` chooses between them. A plan only
names triples; it holds no statistics. ``TrialEvaluation`` turns triples into changes of the models' outputs.
"""

from jostle.sampling.evaluation import TrialEvaluation
from jostle.sampling.plans import PLANS, DefaultPlan, Grid, Plan, Trials, Until
from jostle.sampling.readers import Changes

__all__ = ["PLANS", "Changes", "DefaultPlan", "Grid", "Plan", "TrialEvaluation", "Trials", "Until"]
