"""Sensitivity measured inside any training loop, within a share of its time, and without changing its outcome.

``Probe`` is the object people hold; ``question`` is what it asks at every step, ``untouched`` what keeps training as it
was, ``budget`` how many passes it may make, ``log`` the file it writes and what is read from it, ``measures`` what else
it can ask, ``trackers`` and ``callbacks`` where other tools come in. Left on the line: estimates, results, figures;
right: studies. To add a measure, imitate ``logit_margin`` in ``measures``: a function of a model and inputs, with
``register`` on it.
"""

from jostle.probe.log import ProbeLog
from jostle.probe.measures import MEASURES, register
from jostle.probe.probe import Probe

__all__ = ["MEASURES", "Probe", "ProbeLog", "register"]
