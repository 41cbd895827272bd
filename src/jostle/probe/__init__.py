"""Measure sensitivity inside any training loop, within a share of the training time, without changing the outcome.

``Probe`` is the object that a training loop calls, and ``ProbeLog`` the file that it writes. Inside: ``measurement`` is
what is measured, the same at every step; ``model`` prepares the model of the loop and protects the training;
``budget`` decides how many passes a measurement may make; ``measures`` are further numbers; ``trackers`` connects other
tools. To add a measure, imitate ``logit_margin`` in ``measures``: a function of a model and inputs, with ``register``
on it.
"""

from jostle.probe.log import ProbeLog
from jostle.probe.measures import MEASURES, register
from jostle.probe.probe import Probe

__all__ = ["MEASURES", "Probe", "ProbeLog", "register"]
