"""Confidence intervals: pure statistics on counts and values, no models, no tensors.

``fixed`` is for samples whose size was chosen beforehand, ``anytime`` for samples that stop when they look good enough.
``Interval`` carries the ends together with the target and the method.
"""

from jostle.intervals.interval import TARGETS, Interval, MeanWithInterval, Target

__all__ = ["TARGETS", "Interval", "MeanWithInterval", "Target"]
